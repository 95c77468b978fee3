"""A system of several named processes: its forms, and what is refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML
from streamgauge.errors import ScenarioError
from streamgauge.scenario import (
    Command,
    CommandProcess,
    Flow,
    Scenario,
    from_text,
    json_schema,
    load_file,
    override,
)

HEAD = """\
id: my/hls
title: A packager and an origin
path: {down: {rate: 1 Mbit/s, queue: droptail 10 kB}}
flows:
  video:
    role: subject
    system:
"""
TAIL = "until: {time: 5 s}\nmodes: [emu]\n"
MAPPING = """\
      server:
        packager:
          command: package it
          ready: $STREAMGAUGE_SHARED/x
          helpers: [pack.sh]
        origin: serve it
      player: play it
"""
LISTED = """\
      server:
        - {name: packager, command: package it, ready: $STREAMGAUGE_SHARED/x, helpers: [pack.sh]}
        - {name: origin, command: serve it}
      player: play it
"""
BUILT = Command(
    server={  # type: ignore[arg-type]
        "packager": CommandProcess(command="package it", ready="$STREAMGAUGE_SHARED/x", helpers=("pack.sh",)),
        "origin": "serve it",
    },
    player="play it",
)


def written(system: str, folder: Path) -> Path:
    (folder / "pack.sh").write_text("true\n", encoding="utf-8")
    file = folder / "my.yaml"
    file.write_text(HEAD + system + TAIL, encoding="utf-8")
    return file


def system_of(scenario: Scenario) -> Command:
    system = scenario.flows["video"].system
    assert isinstance(system, Command)
    return system


@pytest.mark.parametrize("system", [MAPPING, LISTED], ids=["mapping", "list"])
def test_every_form_is_the_same_processes(system: str, tmp_path: Path) -> None:
    (scenario,) = load_file(written(system, tmp_path))
    packager, origin = system_of(scenario).lines("server")
    assert (packager.name, packager.command, packager.ready) == (
        "packager",
        "package it",
        "$STREAMGAUGE_SHARED/x",
    )
    assert packager.helpers == (str(tmp_path / "pack.sh"),), "beside its scenario"
    assert (origin.name, origin.command, origin.essential) == ("origin", "serve it", True)
    assert [line.name for line in system_of(scenario).lines("player")] == [""]
    assert [line.name for line in BUILT.lines("server")] == ["packager", "origin"]


def test_the_published_schema_knows_every_form() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    for system in (MAPPING, LISTED):
        validator.validate(YAML(typ="safe", pure=True).load(HEAD + system + TAIL))
    for example in sorted((Path(__file__).parents[2] / "examples").glob("*.yaml")):
        validator.validate(YAML(typ="safe", pure=True).load(example))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(
            YAML(typ="safe", pure=True).load(HEAD + "      server: {a: 5}\n      player: p\n" + TAIL)
        )


def test_order_outlives_being_written_down() -> None:
    """A mapping's order is nobody's to keep: JSON with sorted keys is what digests are made of."""
    flow = Flow(role="subject", system=Command(server={"z": "first", "a": "second"}, player="p"))  # type: ignore[arg-type]
    (scenario,) = from_text(
        HEAD.partition("flows:")[0] + "flows: {x: {role: subject, traffic: ping}}\n" + TAIL
    )
    made = scenario.changed(flows={"video": flow})
    again = Scenario.model_validate(json.loads(json.dumps(made.normalised(), sort_keys=True)))
    assert again == made
    assert [line.command for line in system_of(again).lines("server")] == ["first", "second"]
    set_anew = override(made, {"flows.video.system.server.a.command": "third"})
    assert [line.command for line in system_of(set_anew).lines("server")] == ["first", "third"]


def test_one_command_is_written_as_before(tmp_path: Path) -> None:
    (scenario,) = load_file(written("      server: serve it\n      player: play it\n", tmp_path))
    assert scenario.normalised()["flows"]["video"]["system"] == {
        "server": "serve it",
        "player": "play it",
        "name": "command",
        "env": {},
        "folder": str(tmp_path),
    }


REFUSED = {
    "no process": (
        "      server: {}\n      player: p\n",
        "my.yaml:8: flows.video.system.server: has no process (name at least one)",
    ),
    "an empty list": (
        "      server: []\n      player: p\n",
        "my.yaml:8: flows.video.system.server: has no process (name at least one)",
    ),
    "an unusable name": (
        "      server:\n        a-b: x\n        c: x\n      player: p\n",
        "my.yaml:9: flows.video.system.server.a-b: 'a-b' is not a process's name; expected a letter, then "
        "letters, digits or _, 100 at most",
    ),
    "a name twice in a mapping": (
        "      server:\n        a: x\n        a: y\n      player: p\n",
        "my.yaml:10: a: duplicate key 'a'; give every name once",
    ),
    "a name twice in a list": (
        "      server:\n        - {name: a, command: x}\n        - {name: a, command: y}\n      player: p\n",
        "my.yaml:8: flows.video.system.server.a: two processes are called 'a' (every name is given once)",
    ),
    "another name inside": (
        "      server:\n        a:\n          name: b\n          command: x\n      player: p\n",
        "my.yaml:10: flows.video.system.server.a.name: 'a' has another name, 'b', too (leave 'name' out)",
    ),
    "an unknown key": (
        "      server:\n        a:\n          comand: x\n      player: p\n",
        "my.yaml:10: flows.video.system.server.a.comand: unknown key 'comand'; expected one of name, "
        "command, ready, essential, helpers (did you mean 'command'?)",
    ),
    "no command": (
        "      server:\n        a:\n          essential: true\n      player: p\n",
        "my.yaml:9: flows.video.system.server.a.command: the key 'command' is missing (add 'command:')",
    ),
    "an empty command": (
        "      server: {a: '', b: y}\n      player: p\n",
        "my.yaml:8: flows.video.system.server.a.command: an empty command",
    ),
    "an empty command alone": (
        "      server: s\n      player: ''\n",
        "my.yaml:9: flows.video.system.player: an empty command",
    ),
    "a number": (
        "      server: {a: 5}\n      player: p\n",
        "my.yaml:8: flows.video.system.server.a: 5 stands where a mapping was expected",
    ),
    "no sign of being ready": (
        "      server:\n        a:\n          command: x\n          ready: soon\n      player: p\n",
        "my.yaml:11: flows.video.system.server.a.ready: 'soon' is no sign of being ready; expected file, "
        "port, end or an absolute path (such as $STREAMGAUGE_SHARED/live.m3u8)",
    ),
    "a misspelled variable": (
        "      server:\n        a: x\n        b: serve $STREAMGAUGE_PROT\n      player: p\n",
        "my.yaml:10: flows.video.system.server.b: there is no variable 'STREAMGAUGE_PROT' "
        "(did you mean 'STREAMGAUGE_PORT'?)",
    ),
    "a misspelled variable below its key": (
        "      server:\n        a:\n          helpers: [pack.sh]\n          command: x ${STREAMGAUGE_PROT}\n"
        "      player: p\n",
        "my.yaml:11: flows.video.system.server.a.command: there is no variable 'STREAMGAUGE_PROT' "
        "(did you mean 'STREAMGAUGE_PORT'?)",
    ),
    "a misspelled variable in a path": (
        "      server:\n        - name: a\n          command: x\n          ready: $STREAMGAUGE_SHRED/x\n"
        "        - {name: b, command: y}\n      player: p\n",
        "my.yaml:11: flows.video.system.server.0.ready: there is no variable 'STREAMGAUGE_SHRED' "
        "(did you mean 'STREAMGAUGE_SHARED'?)",
    ),
    "a helper that is not there": (
        "      server:\n        a:\n          command: x\n          helpers: [pack.sh, page.html]\n"
        "      player: p\n",
        "my.yaml:11: flows.video.system.server.a.helpers: there is no file FOLDER/page.html "
        "(a path in a file is relative to it, one in --set to the working directory)",
    ),
    "a name that no variable has": (
        "      server: s\n      player: p\n      env: {A=B: x}\n",
        "my.yaml:10: flows.video.system.env.A=B: 'A=B' is no name of a variable; expected a letter or _, "
        "then letters, digits or _ (rename it)",
    ),
    "a zero byte in a variable": (
        '      server: s\n      player: p\n      env: {A: "x\\0"}\n',
        "my.yaml:10: flows.video.system.env.A: the value of A contains a zero byte (leave it out)",
    ),
    "a zero byte in a command": (
        '      server: s\n      player: "p\\0q"\n',
        "my.yaml:9: flows.video.system.player: 'p\\x00q' contains a zero byte (leave it out)",
    ),
    "nothing essential": (
        "      server: s\n      player:\n        a:\n          command: x\n          essential: off\n",
        "my.yaml:9: flows.video.system.player: has no essential process (leave 'essential' out of the one "
        "that is the side's own)",
    ),
}


@pytest.mark.parametrize("slip", REFUSED)
def test_a_slip_is_told_with_file_and_key(slip: str, tmp_path: Path) -> None:
    system, says = REFUSED[slip]
    file = written(system, tmp_path)
    with pytest.raises(ScenarioError) as caught:
        load_file(file)
    said = str(caught.value).replace(str(file), "my.yaml")
    assert said.startswith(says.replace("FOLDER", str(tmp_path))), said


def test_a_stand_in_in_emu_is_read_as_well(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(
        HEAD.replace("    system:\n", "    system: rtp\n    clip: carphone-200k\n    emu:\n      system:\n")
        + "        server: {a: x, b: serve $STREAMGAUGE_PROT}\n        player: p\n"
        + TAIL,
        encoding="utf-8",
    )
    with pytest.raises(
        ScenarioError, match=r"my.yaml:11: flows.video.emu.system.server.b: there is no variable"
    ):
        load_file(tmp_path / "my.yaml")


def test_a_setting_reaches_a_process(tmp_path: Path) -> None:
    file = written(MAPPING, tmp_path)
    (scenario,) = load_file(file, settings=["flows.video.system.server.packager.ready=end"])
    assert system_of(scenario).lines("server")[0].ready == "end"
    (scenario,) = load_file(file, settings=["flows.video.system.server.origin=serve more"])
    assert system_of(scenario).lines("server")[1].command == "serve more"

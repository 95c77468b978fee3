"""Slips of somebody who writes his first scenario: each is answered by one whole sentence, before anything
starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from stranger import Stranger

SCENARIO = """\
id: my/first
title: My first scenario
path:
  down: {DOWN}
  up: {delay: 20 ms}
flows:
  video:
    role: subject
    system:
      server: SERVER
      player: PLAYER
until: {time: 5 s}
"""
DOWN = "rate: 1 Mbit/s, queue: droptail 10 kB, delay: 20 ms"


def written(folder: Path, *, down: str = DOWN, server: str = "'true'", player: str = "'true'") -> None:
    text = SCENARIO.replace("DOWN", down).replace("SERVER", server).replace("PLAYER", player)
    (folder / "my.yaml").write_text(text, encoding="utf-8")


MISSING_QUOTE = (
    "cannot be split into words: a quote is opened and never closed "
    "(quotes and backslashes are read as a shell reads them)"
)

COMMANDS = {
    "a missing quote": (
        "sh -c 'abc",
        f"""my.yaml:10: flows.video.system.server: "sh -c 'abc" {MISSING_QUOTE}""",
    ),
    "a backslash at the end": (
        "abc \\",
        "my.yaml:10: flows.video.system.server: 'abc \\\\' cannot be split into words: it ends with a "
        "backslash (quotes and backslashes are read as a shell reads them)",
    ),
    "a misspelled variable": (
        "sh -c 'serve $STREAMGAUGE_PROT'",
        "my.yaml:10: flows.video.system.server: there is no variable 'STREAMGAUGE_PROT' "
        "(did you mean 'STREAMGAUGE_PORT'?)",
    ),
    "a misspelled variable in braces": (
        "serve --at ${STREAMGAUGE_SEVER}:1",
        "my.yaml:10: flows.video.system.server: there is no variable 'STREAMGAUGE_SEVER' "
        "(did you mean 'STREAMGAUGE_SERVER'?)",
    ),
    "a misspelled variable that a shell would cut": (
        "sh -c 'serve ${STREAMGAUGE_PROT%0}'",
        "my.yaml:10: flows.video.system.server: there is no variable 'STREAMGAUGE_PROT' "
        "(did you mean 'STREAMGAUGE_PORT'?)",
    ),
    "a misspelled program name in it": (
        "serve $STREAMGUAGE_PORT",
        "my.yaml:10: flows.video.system.server: there is no variable 'STREAMGUAGE_PORT' "
        "(did you mean 'STREAMGAUGE_PORT'?)",
    ),
    "a parameter that the flow has not": (
        "serve $STREAMGAUGE_PARAM_LEVEL",
        "my.yaml:10: flows.video.system.server: there is no variable 'STREAMGAUGE_PARAM_LEVEL' "
        "(the flow has no such parameter; add 'parameters: {level: ...}')",
    ),
    "media of a flow without a clip": (
        "serve $STREAMGAUGE_MEDIA",
        "my.yaml:10: flows.video.system.server: there is no variable 'STREAMGAUGE_MEDIA' "
        "(the flow plays no clip; add such as 'clip: carphone-550k')",
    ),
}


@pytest.mark.parametrize("slip", COMMANDS)
@pytest.mark.parametrize("command", ["show", "run"])
def test_a_slip_in_a_command(slip: str, command: str, stranger: Stranger) -> None:
    server, says = COMMANDS[slip]
    written(stranger.folder, server=server)
    done = stranger.run(f"streamgauge {command} my.yaml")
    assert (done.status, done.stderr) == (3, f"streamgauge: {says}\n")
    assert not (stranger.folder / "runs").exists()


SOUND = {
    "a shell's own number": "sh -c 'echo $$ $$STREAMGAUGE_X'",
    "a variable of the shell's own": "sh -c 'for n in 1 2; do echo $n ${PORT}; done'",
    "one that may be unset": "sh -c 'echo ${STREAMGAUGE_DEBUG:-0} ${STREAMGAUGE_TRACE+yes}'",
    "every kind of ours": "x $STREAMGAUGE_PORT ${STREAMGAUGE_OUT}/log ${STREAMGAUGE_READY}",
}


@pytest.mark.parametrize("command", SOUND.values(), ids=SOUND)
def test_what_is_no_slip_in_a_command(command: str, stranger: Stranger) -> None:
    written(stranger.folder, server=command)
    done = stranger.run("streamgauge show my.yaml")
    assert (done.status, done.stderr) == (0, "")


def test_what_env_gives_counts_as_a_variable(stranger: Stranger) -> None:
    written(stranger.folder, server="sh -c 'echo $STREAMGAUGE_LEVEL'\n      env: {STREAMGAUGE_LEVEL: high}")
    assert stranger.run("streamgauge show my.yaml").status == 0


def test_a_command_has_variables_of_its_own(stranger: Stranger) -> None:
    said = "STREAMGAUGE_X=1; LEVEL2=2; echo $STREAMGAUGE_X $LEVEL2"
    written(stranger.folder, server=f"sh -c '{said}'\n      env: {{LEVEL: high}}")
    done = stranger.run("streamgauge show my.yaml")
    assert (done.status, done.stderr) == (0, "")


def test_a_scenario_made_in_python_is_told_as_well() -> None:
    from streamgauge.errors import ScenarioError
    from streamgauge.systems.adapter import CommandLine, FlowSetup
    from streamgauge.systems.adapters import check_programs

    times = {"plan": {"start": 0}, "trial": {"duration": 10}}
    line = CommandLine(command="sh -c 'x $STREAMGAUGE_PROT'")
    flow = FlowSetup(name="v", index=0, system="command", commands={"server": [line]}, **times)
    with pytest.raises(ScenarioError) as caught:
        check_programs(flow)
    assert str(caught.value) == (
        "flow v: server: there is no variable 'STREAMGAUGE_PROT' (did you mean 'STREAMGAUGE_PORT'?)"
    )


def test_dollars_that_are_not_ours_reach_the_program() -> None:
    from streamgauge.systems.command import split_command

    text = "sh -c 'echo $$ $$STREAMGAUGE_PORT $PORT ${n} $1 $(date) $STREAMGAUGE_PORT ${STREAMGAUGE_PORT}'"
    assert split_command(text, {"STREAMGAUGE_PORT": "6000"}) == [
        "sh",
        "-c",
        "echo $$ $$STREAMGAUGE_PORT $PORT ${n} $1 $(date) 6000 6000",
    ]


# --- a comma that is missing ---

COMMAS = {
    "rate 1 Mbit/s queue 10 kB": ("rate", "queue 10 kB", "rate 1 Mbit/s, queue 10 kB"),
    "rate 1 Mbit/s, queue 10 kB delay 20 ms": (
        "queue",
        "delay 20 ms",
        "rate 1 Mbit/s, queue 10 kB, delay 20 ms",
    ),
    "queue 10 kB rate 1 Mbit/s delay 20 ms": (
        "queue",
        "rate 1 Mbit/s",
        "queue 10 kB, rate 1 Mbit/s, delay 20 ms",
    ),
    "rate 1 Mbit/s, queue codel 10 kB delay 20 ms": (
        "queue",
        "delay 20 ms",
        "rate 1 Mbit/s, queue codel 10 kB, delay 20 ms",
    ),
    "loss 1 % delay 20 ms": ("loss", "delay 20 ms", "loss 1 %, delay 20 ms"),
    "trace lte-walking delay 20 ms": ("trace", "delay 20 ms", "trace lte-walking, delay 20 ms"),
    "block udp delay 20 ms": ("block", "delay 20 ms", "block udp, delay 20 ms"),
    "jitter 5 ms delay 20 ms": ("jitter", "delay 20 ms", "jitter 5 ms, delay 20 ms"),
    "delay 20 ms jitter normal 5 ms": ("delay", "jitter normal 5 ms", "delay 20 ms, jitter normal 5 ms"),
    "mtu 1400 B delay 20 ms": ("mtu", "delay 20 ms", "mtu 1400 B, delay 20 ms"),
    "reorder 1 % 5 ms delay 10 ms": ("reorder", "delay 10 ms", "reorder 1 % 5 ms, delay 10 ms"),
}


@pytest.mark.parametrize("line", COMMAS)
def test_a_link_without_a_comma(line: str, stranger: Stranger) -> None:
    key, missing, whole = COMMAS[line]
    done = stranger.run(f"streamgauge link --down '{line}' -- true")
    says = f"streamgauge: --down: {key}: a comma is missing before '{missing}' (write '{whole}')\n"
    assert (done.status, done.stderr) == (3, says)
    # The remedy, followed.
    from streamgauge.scenario.path import direction_of_text

    assert direction_of_text(whole).chain()


def test_a_setting_called_as_a_key_is_no_key(stranger: Stranger) -> None:
    done = stranger.run(
        "streamgauge link --down 'rate 1 Mbit/s, queue codel 10 kB mtu 1500 B target 7 msx' -- true"
    )
    says = "'7 msx': 'msx' is not a unit of a time; expected one of ns, us, ms, s, min; did you mean 7 ms?"
    assert (done.status, done.stderr) == (3, f"streamgauge: --down: queue.codel.target: {says}\n")


@pytest.mark.parametrize(
    ("down", "says"),
    [
        (
            "rate: 1 Mbit/s queue 10 kB, delay: 20 ms",
            "path.down.rate: a comma is missing before 'queue' "
            "(write 'rate: 1 Mbit/s, queue: droptail 10 kB', or each key on a line of its own)",
        ),
        (
            "rate: 1 Mbit/s, queue: codel 10 kB delay 20 ms",
            "path.down.queue: a comma is missing before 'delay' "
            "(write 'queue: codel 10 kB, delay: 20 ms', or each key on a line of its own)",
        ),
    ],
)
def test_a_scenario_without_a_comma(down: str, says: str, stranger: Stranger) -> None:
    written(stranger.folder, down=down)
    done = stranger.run("streamgauge show my.yaml")
    assert (done.status, done.stderr) == (3, f"streamgauge: my.yaml:4: {says}\n")


def test_a_colon_in_the_place_of_a_comma(stranger: Stranger) -> None:
    written(stranger.folder, down="rate: 1 Mbit/s queue: droptail 10 kB")
    done = stranger.run("streamgauge show my.yaml")
    says = "my.yaml:4: not YAML: expected ',' or '}', but got ':'"
    assert (done.status, done.stderr) == (
        3,
        f"streamgauge: {says} (check indentation, brackets, commas and quotes)\n",
    )


# --- names and modes ---

USAGE = "(see 'streamgauge --help')"
NOWHERE = "neither as a file nor in the catalogue"
WORDS = {
    "show today/rtsp-udp-mediun": (
        f"there is no scenario 'today/rtsp-udp-mediun', {NOWHERE} (did you mean 'today/rtsp-udp-medium'?)"
    ),
    "reproduce 'hesler/*'": f"there is no scenario 'hesler/*', {NOWHERE} (did you mean 'hessler'?)",
    "reproduce darwn": f"there is no scenario 'darwn', {NOWHERE} (did you mean 'darwin'?)",
    "run nowhere.yaml": "nowhere.yaml: there is no such file",
    "run hessler/ftp-heavy --mode simm": (
        f"Invalid value for '--mode': 'simm' is not one of 'sim', 'emu'. {USAGE}"
    ),
    "run today/rtsp-udp-medium --mod sim": (
        f"No such option: --mod (Possible options: --mode, --on, --out) {USAGE}"
    ),
    "run hessler/ftp-heavy --set path.down.rat=1Mbit/s": (
        "--set path.down.rat=1Mbit/s: path.down.rat: there is no 'rat' in 'path.down'; expected one of "
        "block, loss, corrupt, duplicate, mtu, rate, queue, shaper, layer, delay, reorder, stages "
        "(did you mean 'path.down.rate'?)"
    ),
    "runn hessler/ftp-heavy": f"No such command 'runn'. Did you mean 'run'? {USAGE}",
    "serve --system darwin nowhere": (
        "open the folder nowhere: No such file or directory (os error 2); "
        "name a folder with .mp4, .m4v or .mov files"
    ),
    "play https://127.0.0.1/clip.mp4": (
        "invalid value 'https://127.0.0.1/clip.mp4' for '<URL>': \"https://127.0.0.1/clip.mp4\" is of scheme "
        "https, which nobody here plays; write rtsp://HOST[:PORT]/PATH or http://HOST[:PORT]/PATH or "
        "ndn://HOST[:PORT]/PATH"
    ),
    "clip carphone videos/clip.mp4": (
        "clip carphone: no such content. Write SOURCE-RATE such as carphone-550k, where SOURCE is one of "
        "carphone, bikes, bigbuckbunny, testsrc2. A scenario may also name a file with a bit rate."
    ),
    "clip testsrc2-550k clip.avi": (
        "a clip is an MP4 file, and 'clip.avi' has another name (end it with .mp4)"
    ),
    "clip testsrc2-550k clip.mp4 --duration 5": (
        "--duration: 5 has no unit; expected a time such as 10 ms (units: ns, us, ms, s, min)"
    ),
}


@pytest.mark.parametrize("words", WORDS)
def test_a_slip_on_the_command_line(words: str, stranger: Stranger) -> None:
    done = stranger.run(f"streamgauge {words}")
    assert (done.status, done.stderr) == (3, f"streamgauge: {WORDS[words]}\n")
    assert not list(stranger.folder.iterdir())


@pytest.mark.parametrize(
    ("mode", "flow", "says"),
    [
        (
            "sim",
            "{role: subject, system: rtsp, clip: carphone-550k}",
            "'rtsp' does not run in sim; name a stand-in with 'sim: {system: rtp}'",
        ),
        (
            "sim",
            "{role: subject, system: {server: serve, player: play}}",
            "sim cannot run commands; name a stand-in with 'sim: {system: rtp}'",
        ),
    ],
)
def test_a_mode_that_the_system_does_not_know(mode: str, flow: str, says: str, stranger: Stranger) -> None:
    text = (
        f"id: my/first\ntitle: First\npath: {{down: {{{DOWN}}}}}\nflows:\n  v: {flow}\nuntil: {{time: 5 s}}\n"
    )
    (stranger.folder / "my.yaml").write_text(text)
    done = stranger.run(f"streamgauge run my.yaml --mode {mode}")
    assert (done.status, done.stderr) == (3, f"streamgauge: my/first cannot run: {mode}: flows.v: {says}\n")

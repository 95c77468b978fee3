"""The processes of a flow: which lists of them make sense, and what becomes of commands."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from streamgauge.emu.process import furnish
from streamgauge.emu.trial_request import command_lines
from streamgauge.systems.adapter import SIDES, CommandLine, FlowSetup, Process, Side
from streamgauge.systems.adapters import ADAPTERS, adapter_for
from streamgauge.systems.command import check_lines
from streamgauge.systems.processes import ProcessError, check_processes, check_reach, main_process


def process(side: Side, name: str = "", **more: Any) -> Process:
    return Process(side=side, name=name, command=["true"], namespace="client", **more)


PLAYER = process("player")


@pytest.mark.parametrize(
    ("processes", "says"),
    [
        ([], "server: has no process (name at least one)"),
        ([process("server")], "player: has no process"),
        (
            [process("server", "a"), process("server"), PLAYER],
            "server: has several processes, and one of them",
        ),
        ([process("server", "a"), process("server", "a"), PLAYER], "server.a: two processes are called 'a'"),
        ([process("server", "a-b"), PLAYER], "server.a-b: 'a-b' is not a process's name; expected a letter"),
        ([process("server", "../x"), PLAYER], "server.../x: '../x' is not a process's name"),
        ([process("server", essential=False), PLAYER], "server: has no essential process"),
        (
            [process("server"), process("player", "a"), process("player", "b", early=True)],
            "player.b: is to be ready before the trial, but stands behind one that starts with the flow",
        ),
        (
            [process("server", helpers=[Path("/no/such.js")]), PLAYER],
            "server.helpers: there is no file /no/such",
        ),
        (
            [process("server", "a", helpers=[Path("/no/such.js")]), PLAYER],
            "server.a.helpers: there is no file /no/such.js",
        ),
    ],
)
def test_what_no_flow_can_be_run_with(processes: list[Process], says: str) -> None:
    with pytest.raises(ProcessError) as caught:
        check_processes(processes)
    assert str(caught.value).startswith(says)


def test_helpers_of_one_name_would_take_each_others_place(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "page.html").touch()
    helpers = [tmp_path / folder / "page.html" for folder in ("a", "b")]
    with pytest.raises(ProcessError, match=r"player.helpers: .* have one name \(rename one of them\)"):
        check_processes([process("server"), process("player", helpers=helpers)])
    with pytest.raises(ProcessError, match=r"page.html is there twice \(leave one out\)"):
        check_processes([process("server"), process("player", helpers=[helpers[0], helpers[0]])])
    for place in (Path("/"), tmp_path / ".."):
        with pytest.raises(ProcessError, match="has no name to be copied by"):
            check_processes([process("server"), process("player", helpers=[place])])
    check_processes([process("server", helpers=helpers[:1]), process("player", helpers=helpers[1:])])


def test_root_copies_no_file_for_a_program_that_it_may_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    folder, secret = tmp_path / "scenario", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("x")
    secret.chmod(0o600)
    (folder / "own").write_text("x")
    (folder / "own").chmod(0o600)
    (folder / "link").symlink_to(secret)
    check_reach("player", "", [folder / "own", Path("/bin/sh")], folder)
    for helper in (secret, folder / "link", folder / ".." / "secret"):
        with pytest.raises(ProcessError, match=r"player\.helpers: .* leads to .*/secret, outside"):
            check_reach("player", "", [helper], folder)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check_reach("player", "", [secret], folder)


def test_a_link_in_a_helpers_folder_is_copied_as_a_link(tmp_path: Path) -> None:
    folder, secret = tmp_path / "assets", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("x")
    secret.chmod(0o600)
    (folder / "page").write_text("x")
    (folder / "link").symlink_to(secret)
    flow = FlowSetup(name="web", index=0, system="command", folder=tmp_path / "flow")
    furnish(flow, process("player", helpers=[folder]), None)
    copied = flow.helpers("player") / "assets"
    assert (copied / "link").is_symlink() and (copied / "page").stat().st_mode & 0o777 == 0o644
    assert secret.stat().st_mode & 0o777 == 0o600


def test_the_last_essential_one_is_its_sides() -> None:
    made = [process("server", "a"), process("server", "b"), process("server", "c", essential=False), PLAYER]
    check_processes(made)
    assert main_process(made, "server").name == "b"
    assert main_process(made, "player") is PLAYER


PARAMETERS = {
    "rtsp": [{"player": "gstreamer"}, {"player": "ffmpeg"}],
    "nginx-http": [{"player": "gstreamer"}, {"player": "ffplay"}],
}
TCP = {"receive_window": 1, "congestion_control": "cubic"}
APPS: dict[str, dict[str, Any]] = {
    "bulk": {"tcp": TCP},
    "cbr": {"packets_per_s": 1.0, "payload_bytes": 100, "burst": 1, "windows": []},
}


@pytest.mark.parametrize("system", sorted(set(ADAPTERS) - {"command"}))
def test_what_ships_makes_sense_and_is_asked_without_a_trace(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for parameters in PARAMETERS.get(system, [{}]):
        app = {system: APPS.get(system, {})}
        times: dict[str, Any] = {"plan": {"start": 0, "app": app}, "trial": {"duration": 10**9}}
        flow = FlowSetup(name="v", index=0, system=system, parameters=parameters, **times)
        made = adapter_for(flow).processes(flow)
        check_processes(made)
        for one in made:
            # The first is what it runs; others are beside that.
            for helper in one.helpers[:1]:
                assert str(flow.helpers(one.side, one.name) / helper.name) in one.command
    assert not list(tmp_path.iterdir())


HLS = {
    "server": [
        CommandLine(
            name="packager", command="package -o $STREAMGAUGE_SHARED/x", ready="$STREAMGAUGE_SHARED/x"
        ),
        CommandLine(name="touches", command="sh -c 'sleep 1; touch $STREAMGAUGE_READY; sleep 60'"),
        CommandLine(name="logger", command="tail -f log", essential=False),
        CommandLine(name="origin", command="serve $STREAMGAUGE_OUT"),
    ],
    "player": [
        CommandLine(name="page", command="serve page", ready="port", helpers=("/etc/hostname",)),
        CommandLine(name="browser", command="browse http://127.0.0.1:$STREAMGAUGE_PORT/"),
    ],
}


def of_commands(commands: Any) -> list[Process]:
    times: dict[str, Any] = {"plan": {"start": 0}, "trial": {"duration": 10**9}}
    flow = FlowSetup(
        name="v", index=0, system="command", commands=commands, folder=Path("/f"), port=6000, **times
    )
    return adapter_for(flow).processes(flow)


def test_commands_in_their_order() -> None:
    made = of_commands(HLS)
    check_processes(made)
    found = {one.name: (one.side, one.early, one.ready, one.essential, one.may_end) for one in made}
    assert list(found) == ["packager", "touches", "logger", "origin", "page", "browser"]
    assert found == {
        "packager": ("server", True, Path("/f/shared/server/x"), True, True),
        "touches": ("server", True, "file", True, True),
        "logger": ("server", True, None, False, True),
        "origin": ("server", True, "file or port", True, False),
        "page": ("player", True, "port", True, True),
        "browser": ("player", False, None, True, True),
    }
    assert made[0].command == ["package", "-o", "/f/shared/server/x"]
    assert made[3].command == ["serve", "/f/server/origin"]
    assert made[4].helpers == [Path("/etc/hostname")]
    assert [one.acted_on for one in made] == [False] * 4 + [True] * 2


def test_one_command_is_as_it_was() -> None:
    lines = {side: [CommandLine(command="x $STREAMGAUGE_OUT")] for side in SIDES}
    server, player = of_commands(lines)
    assert (server.name, server.command, server.ready) == ("", ["x", "/f/server"], "file or port")
    assert (player.name, player.command, player.early) == ("", ["x", "/f/player"], False)
    assert (server.may_end, player.may_end) == (False, True)


def test_a_job_carries_them() -> None:
    written = {side: [asdict(line) for line in lines] for side, lines in HLS.items()}
    read = command_lines(json.loads(json.dumps({"commands": written})))
    assert of_commands(read) == of_commands(HLS)


A = CommandLine(name="a", command="a")


@pytest.mark.parametrize(
    ("side", "lines", "says"),
    [
        ("server", [], "server: has no process"),
        ("server", [A, A], "server.a: two processes are called 'a' (every name is given once)"),
        ("server", [CommandLine(name="a", command="a", essential=False)], "server: has no essential process"),
        ("player", [CommandLine(command=" ")], "player: an empty command"),
        ("player", [CommandLine(name="a", command="")], "player.a.command: an empty command"),
        (
            "server",
            [CommandLine(name="a", command="a", ready="prot")],
            "server.a.ready: 'prot' is no sign of being ready; expected file, port, end or an absolute path "
            "(did you mean 'port'?)",
        ),
        (
            "server",
            [CommandLine(name="a", command="a", ready="end")],
            "server.a.ready: the server's main process is to stay, and cannot be ready by its end",
        ),
        (
            "player",
            [CommandLine(name="a", command="a", ready="port")],
            "player.a.ready: the player's main process starts with its flow",
        ),
        (
            "player",
            [A, CommandLine(name="b", command="b", ready="port"), CommandLine(name="c", command="c")],
            "player.b: is to be ready before the trial, but stands behind 'a', which starts with the flow "
            "(put it before 'a')",
        ),
    ],
)
def test_commands_that_make_no_sense(side: Side, lines: list[CommandLine], says: str) -> None:
    with pytest.raises(ProcessError) as caught:
        check_lines(side, lines)
    assert str(caught.value).startswith(says)

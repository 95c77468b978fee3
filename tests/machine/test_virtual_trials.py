"""Trials in a virtual machine: the same every time, whatever the machine under it does, and nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from streamgauge.emu import EmuOptions, TrialBrokenError
from streamgauge.emu.machine import qemu
from streamgauge.emu.machine import run as run_module
from streamgauge.emu.machine.guest_files import digest_of
from streamgauge.emu.machine.virtual import _snapshot_of, why_not
from streamgauge.emu.trial import run_trial
from streamgauge.scenario import Scenario, find
from streamgauge.scenario.lower import lower

pytestmark = [
    pytest.mark.emu,
    pytest.mark.guest,
    pytest.mark.skipif(why_not() is not None, reason=f"no virtual machine: {why_not()}"),
]

SHORT = ("until.time=4 s", "measure.window=[0 s, 4 s]", "flows.cross.start=1 s", "flows.cross.stop=3 s")
COMMANDS = """
id: own/pair
title: a server and a player of one's own
question: Does it get there?
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 kB, delay: 10 ms}
  up: {}
flows:
  page:
    role: subject
    system:
      server: python3 server.py
      player: python3 player.py
    parameters: {transport: tcp}
until: {time: 4 s}
measure: {window: [0 s, 4 s], sample: 1 s}
"""
SERVER = """
import os
from http.server import HTTPServer, BaseHTTPRequestHandler
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(200_000))
HTTPServer((os.environ["STREAMGAUGE_SERVER"], int(os.environ["STREAMGAUGE_PORT"])), Page).serve_forever()
"""
PLAYER = """
import os, urllib.request
url = "http://%s:%s/" % (os.environ["STREAMGAUGE_SERVER"], os.environ["STREAMGAUGE_PORT"])
while True:
    urllib.request.urlopen(url).read()
"""


@pytest.fixture(scope="module", autouse=True)
def snapshot() -> None:
    """Made once, for all."""
    _snapshot_of(1, lambda line: None)


def guests(parent: int) -> list[int]:
    """QEMUs that were started by a process and have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(state[1]) == parent and state[0] != "Z" and qemu.PROGRAM.encode() in command:
            found.append(int(folder.name))
    return found


def ran(
    scenario: Scenario, seed: int, folder: Path, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """A trial, which must be valid."""
    found = run_trial(
        scenario, lower(scenario, "emu", seed), seed, folder, EmuOptions(way="virtual:1", say=say)
    )
    assert found["validity"]["valid"], found["validity"]["why"]
    return found


def digests(found: dict[str, Any]) -> tuple[str, str]:
    return found["summary"]["packets_digest"], found["summary"]["events_digest"]


def own(folder: Path) -> Scenario:
    """A scenario of programs that lie in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.py").write_text(SERVER, encoding="ascii")
    (folder / "player.py").write_text(PLAYER, encoding="ascii")
    (folder / "pair.yaml").write_text(COMMANDS, encoding="ascii")
    return find([str(folder / "pair.yaml")])[0]


def test_a_folder_that_is_brought_is_there(tmp_path: Path) -> None:
    """A program at its whole path, with a library that no command names."""
    mine = tmp_path / "mine"
    (mine / "lib").mkdir(parents=True)
    (mine / "lib/pages.py").write_text(SERVER, encoding="ascii")
    (mine / "serve").write_text(
        "#!/usr/bin/python3\nimport pathlib, sys\n"
        "sys.path.append(str(pathlib.Path(__file__).resolve().parent / 'lib'))\nimport pages\n",
        encoding="ascii",
    )
    (mine / "serve").chmod(0o755)
    (mine / "current").symlink_to("serve")
    own(tmp_path / "scenario")
    file = tmp_path / "scenario/pair.yaml"
    file.write_text(COMMANDS.replace("python3 server.py", str(mine / "current")), encoding="ascii")
    (scenario,) = find([str(file)])
    plan = lower(scenario, "emu", 1)
    options = EmuOptions(way="virtual:1", brought=(mine,))
    found = run_trial(scenario, plan, 1, tmp_path / "trial", options)
    assert found["validity"]["valid"], found["validity"]["why"]
    assert found["summary"]["rows"] > 300  # its pages, for 4 s at 1 Mbit/s
    assert found["provenance"]["virtual_machine"]["brought"] == {str(mine): digest_of(mine)}


def short(name: str, *settings: str) -> Scenario:
    return find([name], settings=[*SHORT, *settings])[0]


def disturb(parent: int, over: threading.Event) -> None:
    """Stops one of the guests again and again, as a busy host does."""
    while not over.wait(0.7):
        for one in guests(parent)[:1]:
            try:
                os.kill(one, signal.SIGSTOP)
                time.sleep(0.3)
                os.kill(one, signal.SIGCONT)
            except ProcessLookupError:
                pass


@pytest.mark.parametrize(
    "what",
    [
        "iperf3 beside mgen",
        pytest.param("GStreamer", marks=pytest.mark.long),
        pytest.param("commands", marks=pytest.mark.long),
    ],
)
def test_the_same_seed_is_the_same_trial(tmp_path: Path, what: str) -> None:
    """Two at once, of which one is stopped many times; from two folders."""

    def scenario(where: str) -> Scenario:
        match what:
            case "iperf3 beside mgen":
                return short("hessler/ftp-medium")
            case "GStreamer":
                return short("today/demo-rtsp-udp-medium")
        return own(tmp_path / where)

    over = threading.Event()
    stopper = threading.Thread(target=disturb, args=(os.getpid(), over))
    stopper.start()
    try:
        with ThreadPoolExecutor(2) as pool:
            names = ("one", "another folder")
            first, second = pool.map(lambda name: ran(scenario(name), 1, tmp_path / "out" / name), names)
    finally:
        over.set()
        stopper.join()
    assert digests(first) == digests(second)
    assert first["summary"]["rows"] > 50
    assert guests(os.getpid()) == []


def test_another_seed_is_another_trial_and_the_record_holds(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(
            lambda seed: ran(short("hessler/ftp-medium"), seed, tmp_path / f"{seed}"), (1, 2)
        )
    assert digests(first) != digests(second)
    measured = first["validity"]["measured"]
    assert measured["lateness_p99_s"] < 100e-6
    assert measured["late_over_service"] == 0
    about = first["provenance"]["virtual_machine"]
    assert set(about) == {"qemu", "kernel", "image", "snapshot", "instructions_per_s", "brought"}
    assert about["brought"] == {}
    assert about["instructions_per_s"] == 1_000_000_000
    assert first["provenance"]["seed"] == 1


def launched(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "streamgauge", "run", "hessler/ftp-no", "--machine", "virtual:1"]
    command += ["--out", str(folder), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def guest_of(launcher: subprocess.Popen[str], count: int = 1) -> list[int]:
    """The launcher's guests, once there are so many."""
    for _ in range(600):
        if len(found := guests(launcher.pid)) >= count:
            return found
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.05)
    raise AssertionError("no virtual machine was started")


def gone(processes: list[int]) -> bool:
    """Whether they have ended, within some seconds."""
    for _ in range(60):
        if not any(Path(f"/proc/{one}").exists() for one in processes):
            return True
        time.sleep(0.05)
    return False


def test_a_launcher_that_is_killed_takes_its_guest_along(tmp_path: Path) -> None:
    launcher = launched(tmp_path / "runs", "--seed", "1")
    found = guest_of(launcher)
    launcher.kill()
    launcher.wait()
    assert gone(found)


def test_ctrl_c_ends_the_guests_and_keeps_what_finished(tmp_path: Path) -> None:
    settings = ["--set", "until.time=2 s", "--set", "measure.window=[0 s, 2 s]"]
    assert launched(tmp_path / "runs", "--seed", "1", *settings).wait() in (0, 1, 2)
    kept = list((tmp_path / "runs").rglob("trial.json"))
    assert len(kept) == 1
    launcher = launched(tmp_path / "runs", "--repeat", "4", "--jobs", "2", *settings)
    found = guest_of(launcher)
    launcher.send_signal(signal.SIGINT)
    _, said = launcher.communicate(timeout=30)
    assert launcher.returncode == 130, said
    assert gone(found)
    assert kept[0].exists()
    assert not list((tmp_path / "runs").rglob("*partial*"))


def test_a_qemu_that_is_killed_breaks_its_trial(tmp_path: Path) -> None:
    def kill(line: str) -> None:
        if line == "waiting for servers":
            for one in guests(os.getpid()):
                os.kill(one, signal.SIGKILL)

    with pytest.raises(TrialBrokenError, match=r"signal 9|ended before the trial did"):
        ran(short("hessler/ftp-medium"), 1, tmp_path / "out", say=kill)
    assert guests(os.getpid()) == []


def test_a_guest_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(line: str) -> None:
        if line == "waiting for servers":
            for one in guests(os.getpid()):
                os.kill(one, signal.SIGSTOP)

    monkeypatch.setattr(run_module, "SILENT_S", 3.0)
    with pytest.raises(TrialBrokenError, match="said nothing for 3 s"):
        ran(short("hessler/ftp-medium"), 1, tmp_path / "out", say=stop)
    assert guests(os.getpid()) == []

"""The walks of the pages that add something, as the pages say: their files, their lines, their trials. What
is built is built once for all of them; it takes minutes, so `make test-long` has what needs it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from stranger import CHECKOUT as ROOT
from walks import Walk, changed

SYSTEM = Walk.of("extending.md", "## A system", "### Parts for machines")
QUEUE = Walk.of("adding-a-queue.md", "# Adding a queue discipline")
RULE = Walk.of("abr.md", "## A rule of your own")
ADAPTER = Walk.of("adapters.md", "## An adapter in code")
CRATES = ("base", "path", "plan", "python", "record", "sim", "systems", "transport", "wire")
"""What the simulator and its Python face are built from."""


PLAN = """
import json
from streamgauge.scenario import find, lower

(scenario,) = find(["pages.yaml"])
print(json.dumps(lower(scenario, "emu", 1)))
"""
FETCH = """
import itertools, json, socket, subprocess, sys, time
from contextlib import closing
from pathlib import Path
from streamgauge.emu.process import furnish
from streamgauge.systems.adapter import Clock, FlowSetup
from streamgauge.systems.adapters import adapter_for, check_programs

def flow_at(port):
    here = dict(server_ip="127.0.0.1", player_ip="127.0.0.1", port=port, folder=Path(sys.argv[1]) / str(port))
    plan = dict(plan={"start": 0}, trial={"duration": 10**9})
    return FlowSetup(name="web", index=0, system="curl", parameters={"count": 3}, **here, **plan)

def free_port():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

def serves(serving, log):
    # By its own word: who answers at the port may be somebody else, who was faster.
    until = time.monotonic() + 60
    while "Serving HTTP on" not in log.read_text():
        if serving.poll() is not None:
            assert "Address already in use" in log.read_text(), log.read_text()
            return False
        assert time.monotonic() < until, "the server does not begin: " + log.read_text()
        time.sleep(0.02)
    return True

def fetch(port):
    flow = flow_at(port)
    check_programs(flow)
    adapter = adapter_for(flow)
    server, player = adapter.processes(flow)
    logs = {}
    for one in (server, player):
        furnish(flow, one, None)
        logs[one.side] = flow.out(one.side) / "stdout.log"
    with logs["server"].open("w") as out:
        serving = subprocess.Popen(server.command, stdout=out, stderr=subprocess.STDOUT)
    try:
        if not serves(serving, logs["server"]):
            return None
        began = time.monotonic_ns()
        with logs["player"].open("w") as out:
            subprocess.run(player.command, stdout=out, check=True, timeout=60)
        assert serving.poll() is None, logs["server"].read_text()
    finally:
        serving.kill()
        serving.wait()
    clock = Clock(t0_monotonic_ns=0, t0_realtime_ns=0, started={"player": began}, ended_monotonic_ns=0)
    found = adapter.collect(flow, clock)
    return dict(
        port=port, faults=found.faults, received=found.received_bytes, events=found.events, began=began
    )

ports = itertools.chain([int(sys.argv[2])], (free_port() for _ in range(5)))
print(json.dumps(next(told for port in ports if (told := fetch(port)))))
"""
"""Runs the adapter's processes on loopback, as the sandbox would, and collects what they leave: at the port
that it is told, or at another one if somebody else has that."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the crates and the package with what the pages add. In one place, and written where it
    differs from what the last test left there, so that little is built anew."""
    made, folder = tmp_path_factory.mktemp("walks"), ROOT / "target" / "walks"
    for crate in CRATES:
        shutil.copytree(ROOT / "crates" / crate, made / "crates" / crate)
    copy_package(made)
    shutil.copytree(ROOT / "tests" / "scenario", made / "tests" / "scenario")
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(ROOT / name, made)
    for walk in (SYSTEM, QUEUE, RULE):
        walk.take(made)
    for old in [file for file in folder.rglob("*") if file.is_file()]:
        if not (made / old.relative_to(folder)).is_file():
            old.unlink()
    for file in [file for file in made.rglob("*") if file.is_file()]:
        there = folder / file.relative_to(made)
        if not there.is_file() or there.read_bytes() != file.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, there)
    return folder


def copy_package(folder: Path) -> None:
    """The package without what is built. Its folders of data may be links into the repository."""
    ignored = shutil.ignore_patterns("_bin", "*.so", "__pycache__")
    shutil.copytree(ROOT / "python" / "streamgauge", folder / "python" / "streamgauge", ignore=ignored)


def cargo(workspace: Path, *arguments: str) -> str:
    """Runs cargo there, with the repository's own build folder and without the network; its output."""
    rust = (ROOT / ".venv" / ".rust-bin").read_text(encoding="utf-8").strip()
    own = {"PATH": f"{rust}:{os.environ['PATH']}", "CARGO_TARGET_DIR": str(ROOT / "target")}
    # Both in the dev profile: what they build of other people's crates they share.
    done = subprocess.run(
        ["cargo", "--offline", *arguments],
        cwd=workspace,
        env={**os.environ, **own, "CARGO_INCREMENTAL": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert "generated" not in done.stderr, f"warnings: {done.stderr[-5000:]}"
    return done.stdout


def python(folder: Path, *arguments: str) -> str:
    """What the package there says."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "python")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(workspace: Path) -> Path:
    """The workspace with its native module."""
    cargo(workspace, "build", "-p", "streamgauge-python")
    shutil.copy2(
        ROOT / "target" / "debug" / "lib_native.so",
        workspace / "python" / "streamgauge" / "_native.abi3.so",
    )
    return workspace


def trials(built: Path, scenario: str, out: Path) -> list[Path]:
    """The folders of the valid trials of a scenario that a page has there."""
    arguments = ["-m", "streamgauge", "run", scenario, "--mode", "sim", "--out", str(out), "--json"]
    ran = json.loads(python(built, *arguments))
    assert all(trial["valid"] for trial in ran["trials"]), ran
    return [file.parent for file in out.glob("*/*/*/trial.json")]


def test_the_pages_name_every_file_and_nothing_but_what_they_need() -> None:
    own = [name for name in SYSTEM.files(new=True) if name.startswith("crates/systems/src/push/")]
    assert len(own) == 4
    assert sorted({*SYSTEM.files(new=True)} - {*own}) == ["push.yaml"]
    # A system is one room and one line; the crate's `mod` is Rust's.
    changes = ["crates/systems/src/lib.rs", "crates/systems/src/registry.rs"]
    assert SYSTEM.files(new=False) == changes
    for name in changes:
        text = (ROOT / name).read_text(encoding="utf-8")
        for block in (block for block in SYSTEM.blocks if block.name == name):
            assert len(changed(text, block.text).splitlines()) == len(text.splitlines()) + 1
    assert SYSTEM.commands[-1].endswith("streamgauge run push.yaml --mode sim")
    # A queue is a file, its test, and what names it.
    assert QUEUE.files(new=True) == [
        "crates/path/src/headdrop.rs",
        "crates/path/tests/headdrop.rs",
        "headdrop.yaml",
    ]
    # Without --test cargo would take the word for the name of a test, and run none of the file.
    assert "cargo test -p streamgauge-path --test headdrop " in QUEUE.commands[0]
    assert QUEUE.commands[-1].endswith("streamgauge run headdrop.yaml --mode sim")
    # A rule of adaptive bit rate is a file and its line; the crate's `mod` is Rust's.
    assert RULE.files(new=True) == ["crates/systems/src/abr/last.rs", "last.yaml"]
    assert RULE.files(new=False) == ["crates/systems/src/abr/mod.rs", "crates/systems/src/abr/rules.rs"]
    assert RULE.commands[-1].endswith("streamgauge run last.yaml --mode sim")
    # Of somebody else's programs, a file and a line.
    assert ADAPTER.files(new=True) == ["pages.yaml", "python/streamgauge/systems/curl.py"]
    assert ADAPTER.files(new=False) == ["python/streamgauge/systems/registry.py"]


@pytest.mark.long
def test_the_system_s_machine_does_what_the_page_says(workspace: Path) -> None:
    ran = cargo(workspace, "test", "-p", "streamgauge-systems", "--lib", "--", "push", "registry")
    assert "every_frame_is_shown_and_late_where_the_stream_is_too_slow ... ok" in ran
    assert "every_parameter_of_every_system_takes_what_it_says ... ok" in ran


@pytest.mark.long
def test_the_rule_does_what_the_page_says(workspace: Path) -> None:
    ran = cargo(workspace, "test", "-p", "streamgauge-systems", "--lib", "--", "abr::last", "abr::properties")
    assert "it_climbs_a_level_at_a_time_and_falls_at_once ... ok" in ran
    assert "a_level_of_the_ladder_is_decided_whatever_happens_and_again ... ok" in ran


@pytest.mark.long
def test_the_queue_does_what_the_page_says(workspace: Path) -> None:
    ran = cargo(workspace, "test", "-p", "streamgauge-path", "--test", "headdrop")
    assert "the_oldest_packet_makes_room ... ok" in ran
    assert "packets_leave_in_order ... ok" in ran


@pytest.mark.long
def test_a_trial_with_the_system_is_one_of_any_system(built: Path, tmp_path: Path) -> None:
    told = python(built, "-m", "streamgauge", "systems", "push")
    assert "Source: GStreamer's rtspsrc" in " ".join(told.split()) and "hold" in told
    ran = trials(built, "push.yaml", tmp_path)
    told = [json.loads((one / "trial.json").read_text(encoding="utf-8")) for one in ran]
    assert len(told) == 2 and all(one["systems"]["push"] == {"machine": 1} for one in told)


@pytest.mark.long
def test_a_trial_with_the_rule_decides_by_it(built: Path, tmp_path: Path) -> None:
    assert " last " in python(built, "-m", "streamgauge", "systems", "dash")
    ran = trials(built, "last.yaml", tmp_path)
    assert len(ran) == 2
    for one in ran:
        events = pl.read_parquet(one / "events.parquet")
        why = events.filter(pl.col("name") == "decision")["reason"].to_list()
        assert len(why) > 100 and any("of the last segment's" in one for one in why)


@pytest.mark.long
def test_a_trial_with_the_queue_drops_what_has_waited(built: Path, tmp_path: Path) -> None:
    ran = trials(built, "headdrop.yaml", tmp_path)
    assert len(ran) == 2
    for one in ran:
        packets = pl.read_parquet(one / "packets.parquet").filter(pl.col("t_drop").is_not_null())
        # By drop-tail it is dropped when it arrives.
        assert len(packets) > 10 and (packets["t_drop"] - packets["t_in"]).min() > 0, packets
    forms = ["tests/scenario/test_link_elements.py", "-p", "no:cacheprovider", "-k", "headdrop"]
    assert " passed" in python(built, "-m", "pytest", *forms)


def test_the_adapter_s_programs_do_what_the_page_says(tmp_path: Path) -> None:
    copy_package(tmp_path)
    native = ROOT / "python" / "streamgauge" / "_native.abi3.so"
    (tmp_path / "python" / "streamgauge" / native.name).symlink_to(native)
    ADAPTER.take(tmp_path)
    for line in ADAPTER.commands[:-1]:
        assert line.startswith(".venv/bin/streamgauge ")
        assert "Python's web server to curl" in python(tmp_path, "-m", "streamgauge", *line.split()[1:])
    flows = json.loads(python(tmp_path, "-c", PLAN))["flows"]
    assert [flow["app"] for flow in flows if flow["name"] == "web"] == ["external"]
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        # A free port may be somebody else's by the time that our server wants it.
        taken = other.getsockname()[1]
        told = json.loads(python(tmp_path, "-c", FETCH, str(tmp_path / "flow"), str(taken)))
    assert told["port"] != taken
    assert told["faults"] == [] and told["received"] == 3 * 50_000
    times = [one["t_monotonic_ns"] for one in told["events"]]
    assert len(times) == 3 and times == sorted(times) and times[0] > told["began"]
    assert all(one["name"] == "page_received" and one["reason"] == "50000 B" for one in told["events"])

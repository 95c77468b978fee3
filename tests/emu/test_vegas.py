"""Vegas where the kernel has none: our BPF program, and that it goes whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from driving import CHECKOUT, Person, Watched, end, the_valid_one
from scenarios import FTP, scenario
from streamgauge.emu.controls import lacking

# Controls are registered with this machine's kernel.
pytestmark = pytest.mark.xdist_group("machine")

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ENGINE = CHECKOUT / "python/streamgauge/_bin/streamgauge-engine"
VEGAS = FTP.replace("reno", "vegas")
PATH = """
id: test/vegas
title: One Vegas flow with room to fill
path:
  down: {rate: 4 Mbit/s, queue: droptail 60000 B, delay: 10 ms}
  up: {delay: 10 ms}
flows:
  tcp: {role: subject, traffic: bulk, congestion_control: vegas}
until: {time: 6 s}
modes: [emu]
"""
# A packet takes 3 ms and the queue holds 120 ms: Vegas keeps up to 5 packets there, Reno fills it.
MOST_RTT_S = 0.020 + 6.5 * 0.003


def _ours() -> set[str]:
    return {name for name in AVAILABLE.read_text().split() if name.startswith("sg_")}


@pytest.fixture
def root(person: Person) -> Iterator[Person]:
    """Somebody who may bring a control, on a machine that lacks it."""
    if person.way != "root":
        pytest.skip("root alone may")
    if "vegas" in AVAILABLE.read_text().split():
        pytest.skip("this kernel has its own")
    if (why := lacking("vegas", "root")) is not None:
        pytest.skip(why)
    before = _ours()
    yield person
    until = time.monotonic() + 3
    while _ours() - before:
        assert time.monotonic() < until, f"left registered: {_ours() - before}"
        time.sleep(0.05)


def test_a_flow_keeps_its_queue_short(root: Person) -> None:
    trial = the_valid_one(root.trials(PATH))
    folder = Path(trial["directory"])
    said = json.loads((folder / "provenance.json").read_text())["systems"]["tcp"]
    assert said["congestion_control_used"] == ["vegas"]
    assert said["congestion_control_origin"] == "bpf"
    rows = pl.read_parquet(folder / "events.parquet").filter(pl.col("name") == "rtt")
    settled = rows["value"].to_list()[2:]
    assert settled and max(settled) < MOST_RTT_S, settled


@pytest.mark.parametrize("victim", ["loader", "worker", "launcher"])
def test_the_kernel_takes_it_back(root: Person, victim: str) -> None:
    before = _ours()
    file = root.scenario(scenario(VEGAS, until="4 s"))
    command = ("run", file, "--mode", "emu", "--seed", "1", "--out", str(root.out), "--json")
    watched = Watched(root.popen(*command))
    try:
        watched.find("player")
        assert len(_ours() - before) == 1
        pid = watched.popen.pid if victim == "launcher" else watched.find(victim)
        os.kill(pid, signal.SIGKILL)
        answer, said = watched.popen.communicate(timeout=60)
    finally:
        end(watched.popen)
    watched.assert_gone()
    if victim != "launcher":
        assert watched.popen.returncode == 2, said
        (trial,) = json.loads(answer)["trials"]
        assert not trial["valid"] and "again" in trial["why"][0], trial["why"]
    if victim == "loader":
        assert "the congestion control vegas died" in trial["why"][0], trial["why"]


def _loader(name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [ENGINE, "bpf-cc", "vegas", "--name", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_at_once(root: Person) -> None:
    del root
    names = {f"sg_vegas_{os.getpid() % 65536:04x}_{n}" for n in "ab"}
    loaders = [_loader(name) for name in sorted(names)]
    try:
        for loader in loaders:
            assert loader.stdout is not None
            assert json.loads(loader.stdout.readline())["event"] == "ready"
        assert names <= _ours()
        again = subprocess.run(
            [ENGINE, "bpf-cc", "vegas", "--name", min(names)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert again.returncode == 2 and "the name is taken; choose another" in again.stderr
        loaders[0].communicate("")
        assert loaders[0].returncode == 0
        assert names & _ours() == {max(names)}, "one goes, the other stays"
    finally:
        for loader in loaders:
            end(loader)


@pytest.mark.parametrize("arguments", [["vegas", "--name", "Upper"], ["vegas", "--name", "a" * 16], ["yeah"]])
def test_bad_arguments(arguments: list[str]) -> None:
    done = subprocess.run([ENGINE, "bpf-cc", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "error" in done.stderr


def test_without_root_it_is_refused_before_anything_starts(person: Person) -> None:
    if person.way == "root":
        pytest.skip("root may")
    if "vegas" in AVAILABLE.read_text().split():
        pytest.skip("this kernel has its own")
    file = person.scenario(scenario(VEGAS))
    done = person.run("run", file, "--mode", "emu", "--out", str(person.out))
    assert done.returncode == 4, done.stderr
    words = " ".join(done.stderr.split())
    assert "flow ftp: this kernel has no vegas of its own" in words and "run as root" in words
    findings = {one["id"]: one for one in json.loads(person.run("doctor", "--json").stdout)["findings"]}
    assert not findings["vegas"]["ok"] and "run as root" in findings["vegas"]["remedy"]


def test_the_doctor_says_that_root_has_it(root: Person) -> None:
    findings = {one["id"]: one for one in json.loads(root.run("doctor", "--json").stdout)["findings"]}
    assert findings["vegas"]["ok"] and "BPF" in findings["vegas"]["what"]

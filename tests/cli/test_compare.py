"""``compare`` on the command line: real simulated trials, statuses, files, and slips."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streamgauge.compare import COMPARED

if TYPE_CHECKING:
    from conftest import Cli

SCENARIO = """\
id: test/compare
title: A download beside constant traffic
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 packets, delay: 5 ms}
  up: {delay: 5 ms}
flows:
  ftp: {role: subject, traffic: bulk, congestion_control: reno, parameters: {receive_window: 16 KiB}}
  cross: {role: rival, traffic: cbr, from: router, parameters: {rate: 60 packets/s}, start: ftp.start + 1 s}
until: {time: 6 s}
repetitions: {sim: 3}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SCENARIO)
    return "my.yaml"


def test_two_queues_are_told_apart_and_the_same_command_resumes(cli: Cli, file: str) -> None:
    command = ["compare", file, "--over", "path.down.queue=droptail 3 packets,droptail 30 packets"]
    ran = cli(*command, "--mode", "sim", "--json", "--metric", "neighbour_delay", "--metric", "harm")
    told = json.loads(ran.out)
    assert told["subjects"] == ["droptail 3 packets", "droptail 30 packets"]
    rows = {(row["subject"], row["metric"]): row for row in told["rows"]}
    assert rows["droptail 30 packets", "neighbour_delay"]["verdict"] == "worse" and ran.status == 1
    assert ("droptail 3 packets", "harm") in rows
    # The other way about, of what lies there already: nothing is run again.
    stamps = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("trial.json")}
    assert len(stamps) == 12  # two queues, with and without the flow under test
    ran = cli(
        *command, "--mode", "sim", "--metric", "neighbour_delay", "--baseline", "droptail 30 packets",
        "--until", "decided", "--at-most", "3",
    )  # fmt: skip
    assert ran.status == 0 and "better" in ran.out
    assert stamps == {path: path.stat().st_mtime_ns for path in Path("runs").rglob("trial.json")}


def test_many_subjects_are_ranked_a_line_each(cli: Cli, file: str) -> None:
    windows = [f"{count} KiB" for count in (4, 6, 8, 10, 12, 14, 16, 64)]
    axis = f"flows.ftp.parameters.receive_window={','.join(windows)}"
    ran = cli("compare", file, "--mode", "sim", "--over", axis, "--repeat", "6", "--metric", "goodput")
    rows = [line.split() for line in ran.out.splitlines() if line.lstrip()[:1].isdigit() and "KiB" in line]
    ranks = [int(row[0]) for row in rows]
    assert len(rows) == len(windows) and ranks[0] == 1 < ranks[-1]
    assert [row[1] for row in rows[-3:]] == ["8", "6", "4"], "the widest window first"
    assert f"n = 6, ranked by {COMPARED['goodput'].short}" in ran.out
    assert "against" not in ran.out, "no sentence a subject"


def test_folders_are_compared_as_they_lie(cli: Cli, file: str) -> None:
    for rate, out in (("40", "a"), ("40", "b")):
        setting = f"flows.cross.parameters.rate={rate} packets/s"
        assert (
            cli("run", file, "--mode", "sim", "--set", setting, "--out", out, "--keep", "metrics").status == 0
        )
    ran = cli("compare", "a", "b")
    assert ran.status == 0 and "practically equal" in ran.out
    cli("run", file, "--mode", "sim", "--out", "c", "--keep", "metrics")
    ran = cli("compare", "a", "c")
    assert ran.status == 2 and "not comparable, because flows.cross.parameters.rate" in ran.out


def test_a_baseline_is_kept_and_held_against(cli: Cli, file: str) -> None:
    assert cli("compare", file, "--mode", "sim", "--save-baseline", "base.json", "--out", "first").status == 0
    files = ["--junit", "junit.xml", "--summary", "summary.md", "--report", "page.html"]
    ran = cli("compare", file, "--mode", "sim", "--against", "base.json", "--out", "second", *files)
    assert ran.status == 0 and "practically equal" in ran.out
    assert "<testsuite" in Path("junit.xml").read_text() and "| " in Path("summary.md").read_text()
    assert "<html" in Path("page.html").read_text()
    worse = f"{file} flows.ftp.parameters.receive_window=3 KiB"
    ran = cli("compare", worse, "--mode", "sim", "--against", "base.json", "--metric", "goodput")
    assert ran.status == 1 and "worse" in ran.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["my.yaml"], "needs two or more"),
        (["my.yaml", "--over", "path.down.rate=1Mbit/s,fast"], "fast"),
        (["my.yaml", "--over", "mode=sim,emo"], "no mode"),
        (["my.yaml", "--over", "mode=sim,emu", "--baseline", "simm"], "did you mean 'sim'"),
        (["my.yaml", "--against", "nothing.json"], "nothing.json"),
        (["my.yaml", "--over", "mode=sim,emu", "--metric", "goodputt"], "did you mean 'goodput'"),
        (["my.yaml", "--over", "mode=sim,emu", "--margin", "goodput"], "no margin"),
        (["my.yaml", "--over", "mode=sim,emu", "--margin", "goodput=fast"], "goodput is a bit rate"),
        (["rtp", "bulk", "--in", "my.yaml", "--flow", "nobody"], "--flow"),
        (["my.yaml", "--commit", "HEAD"], "git"),
    ],
)
def test_slips_are_told_before_anything_runs(cli: Cli, file: str, words: list[str], why: str) -> None:
    ran = cli("compare", *words)
    assert ran.status == 3 and why in ran.err and not Path("runs").exists()

"""What ``streamgauge sweep`` prints, writes and exits with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamgauge.cli import sweeping
from streamgauge.sweeps.figure import write_files

Cli = Callable[..., Any]
OVER = ("--over", "path.down.queue=10kB,50kB", "--over", "path.down.rate=500kbit/s,1Mbit/s")
SIM = ("--mode", "sim")


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer than all the trials, and are tested elsewhere."""
    monkeypatch.setattr(sweeping, "write_files", lambda result, drawn: write_files(result, drawn=False))


def test_a_table_figures_and_where_they_are(cli: Cli) -> None:
    ran = cli("sweep", "my.yaml", *OVER, *SIM)
    assert ran.status == 0, ran.err
    assert "test/swept in sim, ftp; queue is path.down.queue, rate is path.down.rate" in ran.out
    rows = [line.split() for line in ran.out.splitlines() if re.match(r"\d+ kB ", line)]
    assert [row[:4] for row in rows] == [
        [queue, "kB", *rate] for queue in ("10", "50") for rate in (["500", "kbit/s"], ["1", "Mbit/s"])
    ]
    assert all("2/2" in row for row in rows)
    assert re.search(
        r"^Goodput, ftp: .* kbit/s \(queue .*, rate 500 kbit/s\) to .*rate 1 Mbit/s\)$", ran.out, re.M
    )
    assert "8 trials at 4 points in " in ran.out and "streamgauge report runs" in ran.out
    name = "test-swept-over-path.down.queue-path.down.rate"
    assert f"runs/sweep/{name}.csv .svg .png" in ran.out
    table = pl.read_csv(f"runs/sweep/{name}.csv")
    assert {"path.down.queue", "path.down.queue_bytes", "mean", "low", "high"} <= set(table.columns)
    again = cli("sweep", "my.yaml", *OVER, *SIM)
    assert "(8 there already)" in again.out


def test_files_where_they_are_asked_for(cli: Cli) -> None:
    files = ("--csv", "a.csv", "--parquet", "a.parquet", "--figure", "a.pdf")
    ran = cli("sweep", "my.yaml", *OVER, *SIM, *files, "--json")
    assert ran.status == 0, ran.err
    told = json.loads(ran.out)
    assert told["schema"] == "streamgauge.sweep/1"
    assert {"a.csv", "a.parquet", "a.pdf"} <= set(told["files"])
    assert Path("a.pdf").read_bytes().startswith(b"%PDF")
    assert pl.read_parquet("a.parquet").equals(
        pl.read_csv("a.csv", schema=pl.read_parquet_schema("a.parquet"))
    )
    assert all(Path(file).exists() for file in told["files"])


def test_what_is_left_out_is_named(cli: Cli, no_pictures: None) -> None:
    over = ("--over", "path.down.queue=0.5BDP,3BDP", "--over", "path.down.rate=2Mbit/s,4Mbit/s")
    ran = cli("sweep", "my.yaml", *over, *SIM, "--repeat", "1")
    assert ran.status == 0, ran.err
    assert "left out: queue 0.5 BDP, rate 2 Mbit/s: a queue of 0.5 BDP, 1250 B, cannot hold" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--over", "path.down.rate=1Mbit/s", "--figure", "a.gif"), "--figure a.gif: a figure is written as"),
        (("--over", "path.down.rate=1Mbit/s,2Mbps"), "--over path.down.rate=2Mbps: path.down.rate: "),
        (("--over", "path.down.rate=1Mbit/s", "--over", "path.down.rate=2Mbit/s"), "a second time"),
        (("--over", "path.down.rate=1Mbit/s", "--set", "path.down.rate=2Mbit/s"), "set by --set as well"),
        (("--over", "path.down.rate=1Mbit/s", "--metric", "x"), "--metric x: there is no metric 'x'"),
        ((), "Missing option '--over'"),
    ],
)
def test_bad_input_is_one_line_and_status_3(arguments: tuple[str, ...], said: str, cli: Cli) -> None:
    ran = cli("sweep", "my.yaml", *SIM, *arguments)
    assert ran.status == 3
    assert said in ran.err and len(ran.err.splitlines()) == 1
    assert not Path("runs").exists()


def test_a_run_of_a_point_finds_it_there_and_report_has_them_all(cli: Cli, no_pictures: None) -> None:
    assert cli("sweep", "my.yaml", *OVER, *SIM, "--keep", "packets").status == 0
    point = ("--set", "path.down.queue=50kB", "--set", "path.down.rate=1Mbit/s")
    assert "2 trials (2 there already)" in cli("run", "my.yaml", *SIM, *point).out
    report = cli("report", "runs")
    assert report.status == 0, report.err
    page = Path("runs/report.html").read_text()
    for queue in ("10kB", "50kB"):
        for rate in ("500kbit/s", "1Mbit/s"):
            assert f"test/swept (path.down.queue={queue}, path.down.rate={rate})" in page
    assert "4 scenarios, 8 trials" in page


def test_what_nobody_asked_for_and_is_never_there_is_one_line(cli: Cli, no_pictures: None) -> None:
    assert (
        "0 at every point: loss.ftp" in cli("sweep", "my.yaml", "--over", "path.down.rate=20Mbit/s", *SIM).out
    )
    asked = cli("sweep", "my.yaml", "--over", "path.down.rate=20Mbit/s", *SIM, "--metric", "loss")
    assert "0 at every point" not in asked.out and re.search(r"20 Mbit/s +2/2 +0$", asked.out, re.M)


@pytest.mark.parametrize("others", ["", ",udp"], ids=["all points", "one of two"])
def test_invalid_trials_are_told_and_left_out(others: str, cli: Cli, no_pictures: None) -> None:
    ran = cli("sweep", "my.yaml", "--over", f"path.up.block=tcp{others}", *SIM)
    assert ran.status == 2
    assert "2 of 2 trials are invalid at block tcp: flow ftp never sent" in ran.out
    assert not others or re.search(r"^tcp +0/2 +not known", ran.out, re.M)
    told = json.loads(cli("sweep", "my.yaml", "--over", f"path.up.block=tcp{others}", *SIM, "--json").out)
    mine = [row for row in told["rows"] if row["point"] == {"path.up.block": "tcp"}]
    assert all((row["n"], row["invalid"], row["mean"]) == (0, 2, None) for row in mine)
    assert bool(mine) == bool(others)


def test_rows_of_a_pipe_are_whole(cli: Cli, no_pictures: None) -> None:
    """With more columns than a terminal is wide, and more rows than are read."""
    names = ("goodput", "loss", "rtt", "sent", "received", "queue_delay", "srtt", "cwnd", "start")
    asked = [word for name in names for word in ("--metric", name)]
    quick = ("--repeat", "1", "--set", "until.time=200ms", "--set", "measure.sample=50ms")
    ran = cli("sweep", "my.yaml", "--over", "path.down.delay=1ms..70ms step 1ms", *SIM, *quick, *asked)
    rows = [line for line in ran.out.splitlines() if re.match(r"\d+ ms ", line)]
    assert len(rows) == 60 and "10 more rows are in the table's file" in ran.out
    assert all("1/1" in row and len(row.split()) >= 11 for row in rows)


def test_ctrl_c_keeps_what_has_ended_and_the_same_command_goes_on(folder: Path) -> None:
    out = folder / "runs"
    asked = [sys.executable, "-m", "streamgauge", "sweep", "my.yaml", *SIM, "--set", "until.time=60s"]
    asked += ["--over", "path.down.rate=1Mbit/s,2Mbit/s,4Mbit/s,8Mbit/s", "--repeat", "40"]
    begun = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + 60
    while len(list(out.rglob("trial.json"))) < 4:
        assert begun.poll() is None and time.monotonic() < give_up
        time.sleep(0.02)
    os.kill(begun.pid, signal.SIGINT)
    said, told = begun.communicate(timeout=60)
    assert begun.returncode == 130, told
    kept = len(list(out.rglob("trial.json")))
    assert 4 <= kept < 160 and not list(out.rglob("*.partial"))
    assert f"interrupted; {kept} of 160 trials are kept in runs" in told
    assert f"{kept} trials at 4 points in " in said
    asked[asked.index("40")] = "1"
    again = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0 and "4 trials at 4 points (4 there already)" in again.stdout

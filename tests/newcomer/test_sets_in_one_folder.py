"""Somebody sweeps --set into one folder and edits a scenario between runs: nothing is lost, nothing mixed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

SCENARIO = """\
id: test/sweep
title: A download for two seconds
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 packets}
flows:
  ftp: {role: subject, traffic: bulk, congestion_control: reno, parameters: {receive_window: 16 KiB}}
until: {time: 2 s}
repetitions: {sim: 2}
checks:
  fills:
    title: The link is full
    that: throughput.ftp >= 500 kbit/s
    origin: predicted
    breaks: {path.down.rate: 300 kbit/s}
"""
RATES = ("500kbit/s", "2Mbit/s", "10Mbit/s")
HERE = Path("scenario=test%2Fsweep/mode=sim")


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SCENARIO)


def streamgauge(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "streamgauge", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def run(*arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(streamgauge("run", "my.yaml", "--mode", "sim", "--json", *arguments))
    return told


def digests(told: dict[str, Any]) -> set[str]:
    return {trial["digest"] for trial in told["trials"]}


def kept(folder: Path) -> set[str]:
    return {json.loads(file.read_text())["digest"] for file in folder.rglob("trial.json")}


def section_of(page: str, scenario: str) -> str:
    """A scenario's section of a report, its spaces as in any text."""
    (found,) = [
        part.split("</section>")[0]
        for part in page.split('<section class="scenario')[1:]
        if f"<code>{scenario}</code>" in part.split("</section>")[0]
    ]
    return found.replace("\u00a0", " ")


def checks_of(page: str, scenario: str) -> str:
    """What the report says of a scenario's checks."""
    rows = page.split('<h2 class="rule">Checks</h2>')[1].split("</section>")[0].split("<tr ")[1:]
    return "".join(row for row in rows if f"of {scenario} is decided" in row)


def test_a_sweep_into_one_folder_loses_and_mixes_nothing() -> None:
    out = Path("D")
    ran = {rate: run("--set", f"path.down.rate={rate}", "--out", "D") for rate in RATES}
    assert kept(out) == set.union(*map(digests, ran.values())), "every trial is there"
    assert {path.name for path in out.iterdir()} == {
        "path.down.rate=500kbit_s",
        "path.down.rate=2Mbit_s",
        "path.down.rate=10Mbit_s",
        "index.sqlite",
    }
    # What was set is a column to any reader of Hive partitions.
    packets = pl.read_parquet("D/**/packets.parquet", hive_partitioning=True)
    assert packets["path.down.rate"].unique().sort().to_list() == ["10Mbit_s", "2Mbit_s", "500kbit_s"]
    again = run("--set", f"path.down.rate={RATES[0]}", "--out", "D")
    assert again["trials"] == ran[RATES[0]]["trials"], "each resumes in its own place"

    run("--out", "D")
    page = Path(streamgauge("report", "D").splitlines()[-1]).read_text()
    assert "4 scenarios, 8 trials" in page
    for rate in RATES:
        section = section_of(page, f"test/sweep (path.down.rate={rate})")
        assert "n = 2" in section and "n = 4" not in section


def test_a_check_is_judged_on_its_own_set_alone() -> None:
    # 300 kbit/s leave too little for the claim; 10 Mbit/s must not lift it.
    slow = run("--set", "path.down.rate=300kbit/s", "--out", "D")["checks"][0]
    fast = run("--set", "path.down.rate=10Mbit/s", "--out", "D")["checks"][0]
    assert (slow["verdict"], fast["verdict"]) == ("fail", "pass")
    page = Path(streamgauge("report", "D").splitlines()[-1]).read_text()
    assert "1 pass, 1 fail, 0 inconclusive" in page


def test_without_an_out_too() -> None:
    told = run("--set", "path.down.rate=2 Mbit/s", "--set", "path.down.delay=10 ms")
    place = Path("runs/path.down.delay=10ms/path.down.rate=2Mbit_s") / HERE / "seed=1"
    assert told["trials"][0]["directory"] == str(place)
    assert json.loads((place / "trial.json").read_text())["set"] == [
        "path.down.delay=10 ms",
        "path.down.rate=2 Mbit/s",
    ]
    # The same in another order is the same.
    again = run("--set", "path.down.delay=10ms", "--set", "path.down.rate=2Mbit/s")
    assert [one["directory"] for one in again["trials"]] == [one["directory"] for one in told["trials"]]
    assert digests(again) == digests(told) and len(kept(Path("runs"))) == 2


def test_an_edited_scenario_keeps_what_it_was() -> None:
    first = run("--out", "D", "--repeat", "3")
    Path("my.yaml").write_text(SCENARIO.replace("1 Mbit/s", "2 Mbit/s"))
    second = run("--out", "D")
    assert kept(Path("D") / HERE) == digests(second), "no older trial is left to be averaged in"
    (aside,) = second["set_aside"]
    assert (aside["scenario"], aside["mode"], aside["trials"]) == ("test/sweep", "sim", 3)
    assert kept(Path(aside["directory"])) == digests(first), "none is lost"
    assert "rate" in aside["why"]

    page = Path(streamgauge("report", "D").splitlines()[-1]).read_text()
    assert "1 scenario, 2 trials" in page
    assert "D/earlier/1" in page, "the report names what it leaves out"
    earlier = Path(streamgauge("report", "D/earlier/1").splitlines()[-1]).read_text()
    assert "1 scenario, 3 trials" in earlier

    # Back to what it was: that is there already.
    Path("my.yaml").write_text(SCENARIO)
    said = streamgauge("run", "my.yaml", "--mode", "sim", "--out", "D", "--repeat", "3")
    assert "3 trials (3 there already)" in said
    assert "2 sim trials of an earlier test/sweep" in said and "D/earlier/" in said
    assert kept(Path("D") / HERE) == digests(first)
    assert kept(Path("D")) == digests(first) | digests(second)


def test_two_files_with_one_id() -> None:
    first = run("--out", "D")
    Path("other.yaml").write_text(SCENARIO.replace("16 KiB", "8 KiB"))
    streamgauge("run", "other.yaml", "--mode", "sim", "--out", "D")
    assert digests(first) <= kept(Path("D")) and len(kept(Path("D"))) == 4


def test_a_new_wording_is_the_same_experiment() -> None:
    run("--out", "D")
    Path("my.yaml").write_text(SCENARIO.replace("A download", "One download"))
    assert "2 there already" in streamgauge("run", "my.yaml", "--mode", "sim", "--out", "D")
    assert not Path("D/earlier").exists()


def test_a_changed_scenario_is_not_held_against_the_paper() -> None:
    ftp = ("hessler/ftp-medium", "--mode", "sim", "--repeat", "2", "--out", "D")
    assert "differs from the paper (sent: published 8.0697 MB" in streamgauge("run", *ftp)
    said = streamgauge("run", *ftp, "--set", "path.down.rate=2Mbit/s")
    assert "differs from the paper" not in said
    assert "changed from the catalogue: not compared with the paper" in said
    page = Path(streamgauge("report", "D").splitlines()[-1]).read_text()
    own, other = (
        checks_of(page, f"hessler/ftp-medium{was_set}") for was_set in ("", " (path.down.rate=2Mbit/s)")
    )
    assert "<b>Differs from the paper</b> (sent: published" in own and ", ours " in own
    assert "<b>Changed from the catalogue: not compared with the paper</b>" in other
    assert ", ours " not in other

"""The table against trials of its own scenario, and the command's files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from streamgauge.campaign.plan import jobs_for
from streamgauge.campaign.work import perform, tasks_of
from streamgauge.cli import main
from streamgauge.errors import ScenarioError
from streamgauge.latency_table import LatencyQuestion, able, run_table
from streamgauge.latency_table.running import BASE, FLOW
from streamgauge.record import Record
from streamgauge.scenario import load

SHORT = ("flows.video.clip={source: bigbuckbunny, rate: 1 Mbit/s, duration: 10 s}", "until.time=15 s",
         "measure.window=[0 s, 10 s]")  # fmt: skip


def _question(folder: Path, **more: object) -> LatencyQuestion:
    asked = {"system": "srt", "losses": ["5 %"], "rtts": ["40 ms"], "repeat": 2, "share": "99 %"} | more
    return LatencyQuestion(settings=SHORT, out=folder, **asked)  # type: ignore[arg-type]


def _lost(folder: Path, latency_ms: float) -> int:
    """Returns the pictures lost in the table's two trials with this latency."""
    settings = [
        "flows.video.system=srt", f"flows.video.parameters.latency={latency_ms:.0f} ms",
        *(f"path.{way}.{key}" for way in ("down", "up") for key in ("delay=20 ms", "loss=5 %")), *SHORT,
    ]  # fmt: skip
    (scenario,) = load(BASE, settings=settings, mutants=False)
    jobs = jobs_for(scenario, "sim", folder, first_seed=1, repeat=2)
    for job in jobs:
        perform(tasks_of("events", {})(job))
    found = 0
    for job in jobs:
        told = Record.open(job.directory).told
        lost = [name for name in ("frame_incomplete", "frame_late") if (name, FLOW) in told]
        found += sum(len(told[name, FLOW][0]) for name in lost)
    return found


def test_the_latency_of_the_table_shows_the_share_and_half_of_it_does_not(tmp_path: Path) -> None:
    table = run_table(_question(tmp_path / "table"))
    (cell,) = table.cells
    assert (cell.seeds, cell.pictures, cell.most_s) == (2, 500, 0.32)
    assert cell.latency_s is not None
    assert _lost(tmp_path / "enough", 1e3 * cell.latency_s) <= 0.01 * 500 + 1
    assert _lost(tmp_path / "less", 500 * cell.latency_s) > 0.01 * 500


def test_what_cannot_be_asked_is_refused_with_the_remedy(tmp_path: Path) -> None:
    assert {"rist", "srt"} <= set(able())
    for more, words in (
        ({"system": "rtp"}, "expected one of"),
        ({"losses": ["5"]}, "--loss: 5 has no unit"),
        ({"losses": ["100 %"]}, "--loss: expected less than 100 %"),
        ({"rtts": ["1 ms"]}, "--rtt: expected 2 ms to 8 s"),
        ({"burst": "0 packets"}, "--burst: expected 1 packet or more"),
        ({"share": "0 %"}, "--share: expected more than 0 %"),
    ):
        with pytest.raises(ScenarioError, match=words):
            run_table(_question(tmp_path, **more))
    assert not list(tmp_path.iterdir())


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, figure = tmp_path / "table.html", tmp_path / "map.svg"
    arguments = [
        "latency-table",
        "srt",
        "--loss",
        "0%,5%",
        "--rtt",
        "40ms",
        "--repeat",
        "2",
        "--share",
        "99%",
    ]
    arguments += ["--out", str(tmp_path / "runs"), "--burst", "2 packets"]
    for one in SHORT:
        arguments += ["--set", one]
    assert main([*arguments, "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "40 ms" in shown and "5 %" in shown and str(page) in shown
    text = page.read_text(encoding="utf-8")
    assert "Least latency of srt that shows 99 % of pictures" in text and "<table" in text
    assert main([*arguments, "--report", str(figure), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "streamgauge.latency-table/1" and len(found["cells"]) == 2
    none, lossy = found["cells"]
    # Without loss a large picture alone waits, for its own packets.
    assert none["latency_s"] < 0.02 and lossy["latency_s"] > 0.02
    assert "<svg" in figure.read_text(encoding="utf-8")
    assert main([*arguments, "--report", str(tmp_path / "table.txt")]) == 3
    assert "expected a name that ends in .html" in capsys.readouterr().err


def test_systems_stand_beside_each_other_and_beside_theory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "both.html"
    arguments = ["latency-table", "srt", "rist", "--loss", "5%", "--rtt", "40ms", "--repeat", "1"]
    arguments += ["--out", str(tmp_path / "runs"), *(word for one in SHORT for word in ("--set", one))]
    assert main([*arguments, "--report", str(page), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "streamgauge.latency-tables/1"
    srt, rist = found["tables"]
    assert (srt["system"], rist["system"]) == ("srt", "rist")
    (srt_cell,), (rist_cell,) = srt["cells"], rist["cells"]
    assert srt_cell["plain_arq_s"] == rist_cell["plain_arq_s"] == pytest.approx(0.12)
    # Its first request waits 25 ms, further ones 55.
    assert rist_cell["latency_s"] > srt_cell["latency_s"] > 0.04
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "plain ARQ" in shown and "srt and rist" in shown
    assert page.read_text(encoding="utf-8").count("plain ARQ") == 1
    assert main([*arguments, "--report", str(tmp_path / "map.svg")]) == 3
    assert "ends in .html for 2 systems" in capsys.readouterr().err


def test_a_trial_ends_with_an_outcome_for_each_picture(tmp_path: Path) -> None:
    run_table(_question(tmp_path))
    (file, *_) = sorted(tmp_path.rglob("events.parquet"))
    names = pl.read_parquet(file)["name"].cast(pl.String)
    said = ("frame_shown", "frame_late", "frame_incomplete", "picture_wait")
    shown, late, lost, waits = (int((names == name).sum()) for name in said)
    assert shown + late + lost == 250 and shown + late == waits

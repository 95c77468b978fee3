"""Records of every schema version that we ever wrote must stay readable, by every metric and figure.

A folder under `records/` is a trial as its version wrote it, with `expected.json`: its metrics of then.
New versions add a folder; nothing here is ever regenerated.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge.metrics import compute
from streamgauge.record import Record
from streamgauge.report import answer, build, for_entry, gather
from streamgauge.report.model import load_trial

RECORDS = sorted((Path(__file__).parent / "records").iterdir())


def same(found: Any, expected: Any, where: str = "") -> None:
    """Everything that was measured then is measured now, to nine digits; new keys may come."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            same(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            same(one, other, f"{where}[{index}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9), where
    else:
        assert found == expected, where


def test_there_is_one_of_each_version() -> None:
    assert [folder.name for folder in RECORDS] == ["1", "1-model-4", "2", "3"]


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_metrics_are_what_they_were(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    same(compute(Record.open(folder)).to_json(), expected)


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_what_was_measured_balances_with_the_record(folder: Path) -> None:
    """Against the balance that the path itself counted, in Ethernet bytes over the whole trial."""
    record = Record.open(folder)
    record.trial["scenario"]["measure"] = {"layer": "ethernet"}
    metrics = compute(record)
    for row in record.trial["balance"]:
        if row["flow"] == "other" or row["direction"] != "down":
            continue
        if row["stage"] == "bottleneck":
            duration = record.trial["duration_s"]
            offered = metrics.value("offered", row["flow"]) * duration / 8
            achieved = metrics.value("achieved", row["flow"]) * duration / 8
            assert offered == pytest.approx(row["in_bytes"])
            assert achieved == pytest.approx(row["out_bytes"])
    dropped: dict[str, int] = {}
    for row in record.trial["balance"]:
        if row["direction"] == "down":
            dropped[row["flow"]] = dropped.get(row["flow"], 0) + sum(row["dropped_bytes"].values())
    for name in metrics.flows:
        assert metrics.value("lost", name) / 8 == dropped[name]


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_every_figure_is_drawn(folder: Path, tmp_path: Path) -> None:
    trial = load_trial(folder)
    assert trial.valid, trial.why
    (entry,) = gather([trial])
    over_time, *_ = for_entry(entry)
    # The first versions took no samples of TCP.
    sampled = {"Congestion window"} if "tcp_cwnd" in Record.open(folder).events["name"] else set()
    panels = {str(row[0]).partition(",")[0] for row in over_time.rows if row[6] is not None}
    assert panels >= {"Sent", "Received", "Round-trip time"} | sampled
    assert any(panel.startswith("Queue") for panel in panels)
    assert entry.checks[0].verdict == "pass"
    assert "test/kept" in answer([trial])
    assert build([trial], tmp_path / "report.html").stat().st_size > 500_000

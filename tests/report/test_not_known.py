"""What cannot be known is said not to be, and is never 0."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from streamgauge.cli.tables import flow_rows
from streamgauge.metrics import compute
from streamgauge.metrics.result import Series
from streamgauge.report import LoadedTrial, answer, build, for_entry, gather
from synthetic import CROSS, EVENTS, constant, record


def trial(seed: int, mode: str = "sim", silent: bool = False) -> LoadedTrial:
    sent = constant(1, 50, 0, 10, kind=CROSS) + ([] if silent else constant(0, 25, 0, 10))
    built = record(sent, flows=["v", "cross"], duration_s=10.0, seed=seed, mode=mode)
    built.trial["scenario"]["figures"] = [
        {"draw": draw, "of": ["frames_lost"], "by": "flow"} for draw in ("series", "bars", "cdf")
    ]
    return LoadedTrial(built.trial, {}, compute(built))


def with_frames(one: LoadedTrial, lost: Series | None, scalar: bool = False) -> LoadedTrial:
    """With what became of its frames: known, a series of nothing, a null, or not even that."""
    metrics = one.metrics
    assert metrics is not None
    flow = metrics.flows["v"]
    series = {**flow.series, **({} if lost is None else {"frames_lost": lost})}
    scalars: dict[str, float | None] = {**flow.scalars, **({"frames_lost": None} if scalar else {})}
    flows = {**metrics.flows, "v": dataclasses.replace(flow, series=series, scalars=scalars)}
    return dataclasses.replace(one, held=dataclasses.replace(metrics, flows=flows))


def nothing(one: LoadedTrial, how: str) -> LoadedTrial:
    assert one.metrics is not None
    gaps = np.full(len(one.metrics.grid), np.nan)
    match how:
        case "nan":
            return with_frames(one, Series(gaps, gaps))
        case "null":
            return with_frames(one, None, scalar=True)
    return with_frames(one, None)


@pytest.mark.parametrize("how", ["nan", "null", "absent"])
def test_frames_that_nobody_counted_are_not_drawn(how: str, tmp_path: Path) -> None:
    known = trial(1)
    assert known.metrics is not None
    ones = np.ones(len(known.metrics.grid))
    trials = [with_frames(known, Series(ones, 4 * ones)), nothing(trial(1, "emu"), how)]
    (entry,) = gather(trials)
    over_time, *asked = for_entry(entry)
    assert len(asked) == 2 and all("asked" in figure.id for figure in asked)
    assert {row[1] for row in over_time.rows if row[0] == "Frames due but not shown, %"} == {"sim"}
    assert "Not known in emu: Frames due but not shown." in over_time.notes
    for figure in asked:
        assert {str(value)[:3] for row in figure.rows for value in row} & {"sim", "emu"} == {"sim"}
        assert "Not known in emu." in figure.caption
    (entry,) = gather([nothing(trial(1, "emu"), how)])
    (over_time,) = for_entry(entry)
    assert "Frames" not in {str(row[0]).partition(" ")[0] for row in over_time.rows}
    assert build(trials, tmp_path / "r.html").exists()


def columns(trials: list[LoadedTrial]) -> dict[str, list[str]]:
    (entry,) = gather(trials)
    return {name: cells for name, *cells in flow_rows(entry.groups[0])}


def test_a_flow_that_sent_nothing_lost_an_unknown_share(tmp_path: Path) -> None:
    trials = [trial(1, silent=True), trial(2, silent=True)]
    found = columns(trials)
    assert found["v"] == ["0 kbit/s", "0 kbit/s", "not known"]
    assert found["cross"][2] == "0 %"
    assert "test/one: v sent nothing." in answer(trials)
    page = build(trials, tmp_path / "r.html").read_text()
    assert ">not known</td>" in page


def test_what_one_trial_lacks_the_others_tell() -> None:
    trials = [trial(1, silent=True), trial(2), trial(3)]
    found = columns(trials)
    assert found["v"][2] == "0 %"


def of_transfers(*completed_s: int, **measure: Any) -> LoadedTrial:
    """`v` is of short transfers, of which these completed at these times; `cross` is not."""
    sent = constant(0, 25, 0, 10) + constant(1, 50, 0, 10, kind=CROSS)
    built = record(sent, flows=["v", "cross"], duration_s=10.0, measure=measure)
    built.trial["plan"]["flows"][0]["app"] = {"bulk": {"arrivals": [{"at": 0, "bytes": 10**6}]}}
    rows = [(at * 10**9, "v", "transfer_complete", 1.5, "s", "") for at in completed_s]
    built.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    return LoadedTrial(built.trial, {}, compute(built))


def completion_cells(page: str) -> list[str]:
    """How long transfers took, by the table of flows; empty without that column."""
    table = re.split(r'<table class="list [^"]*flows-table', page)[1].partition("</table>")[0]
    return re.findall(r'<td[^>]* data-metric="completion_time"[^>]*>(.*?)</td>', table, re.DOTALL)


def test_transfers_of_which_none_completed_took_an_unknown_time(tmp_path: Path) -> None:
    """That is not to have none: the table says so, and the answer."""

    def told(one: LoadedTrial) -> tuple[str, list[str]]:
        return answer([one]), completion_cells(build([one], tmp_path / "r.html").read_text())

    said, cells = told(of_transfers())
    assert cells == ["not known", "–"]
    assert said.count(" None of its transfers completed. ") == 1
    said, cells = told(of_transfers(2, window=["3 s", "9 s"]))
    assert cells == ["not known", "–"] and "transfers completed in the measurement window." in said
    said, cells = told(of_transfers(2))
    assert cells[0].startswith("1.50\u00a0s") and cells[1] == "–"
    assert "Its transfers took" in said and "None of" not in said
    said, cells = told(trial(1))
    assert not cells and "transfers" not in said


def test_a_trace_whose_mean_is_not_known_has_none_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.report import stages

    rate = {"opportunities": {"period": 1_000_000_000}}
    monkeypatch.setattr(stages, "mean_bps", lambda *_: None)
    assert stages._rate(rate) == "a trace, repeated every 1 s"
    monkeypatch.setattr(stages, "mean_bps", lambda *_: 2e6)
    assert stages._rate(rate) == "a trace of 2.00 Mbit/s on the mean, repeated every 1 s"


@pytest.mark.parametrize(("count", "word"), [(1, "Not decided"), (3, "Yes")])
def test_one_repetition_has_no_interval_and_answers_no_question(count: int, word: str) -> None:
    from streamgauge.metrics import Interval
    from streamgauge.report.yes_no import _decided

    entry, group = SimpleNamespace(id="test/x"), SimpleNamespace()
    value = Interval(mean=0.97, half_width=None if count == 1 else 0.01, n=count, no_variation=False)
    told = _decided([entry], [group], lambda *_: ("v", value), 0.9, lambda *_: "v 97 %", "", "90 %")
    assert told.startswith(f"{word}: v 97 %")

"""Cells of the table, held against pictures whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from streamgauge.latency_table import LatencyCell, Waits, cell_of


def _waits(*waits_ms: float, lost: int = 0) -> Waits:
    return Waits(np.sort(np.array(waits_ms) / 1e3), len(waits_ms) + lost)


def _cell(trials: list[Waits], share: float, most_s: float = 0.8) -> LatencyCell:
    return cell_of(trials, share, loss=("1 %", 0.01), rtt=("100 ms", 0.1), most_s=most_s)


def test_the_latency_shows_the_share_and_a_millisecond_less_does_not() -> None:
    waits = _waits(*range(1, 101))
    assert _cell([waits], 0.9).latency_s == pytest.approx(0.090)
    assert _cell([waits], 0.901).latency_s == pytest.approx(0.091)
    assert _cell([waits], 1.0).round_trips == pytest.approx(1.0)
    assert _cell([_waits(*np.arange(0.2, 20, 0.2))], 1.0).latency_s == pytest.approx(0.020), (
        "whole milliseconds"
    )


def test_pictures_that_never_came_count_and_may_leave_no_latency() -> None:
    assert _cell([_waits(*range(1, 100), lost=1)], 0.99).latency_s == pytest.approx(0.099)
    assert _cell([_waits(*range(1, 99), lost=2)], 0.99).latency_s is None
    assert _cell([_waits(900.0)], 1.0).latency_s is None, "beyond the latency of the trials"
    assert _cell([_waits()], 0.5).latency_s is None


def test_seeds_are_pooled_and_the_interval_is_between_them() -> None:
    slow, quick = _waits(*[200.0] * 100), _waits(*[20.0] * 100)
    cell = _cell([slow, quick, quick, quick], 0.9)
    assert (cell.pictures, cell.seeds) == (400, 4)
    assert [cell.latency_s, cell.low_s, cell.high_s] == pytest.approx([0.2, 0.02, 0.2])
    assert _cell([slow, quick, quick, quick], 0.9) == cell, "the resamples are the same in each call"
    alone = _cell([slow], 0.9)
    assert (alone.low_s, alone.high_s, alone.to_json()["interval_s"]) == (None, None, None)

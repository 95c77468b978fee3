"""Samples of TCP's state as metrics."""

from __future__ import annotations

import polars as pl
import pytest
from streamgauge.metrics import compute
from synthetic import EVENTS, SECOND, constant, record


def test_windows_and_round_trips_are_means_of_the_samples() -> None:
    made = record(constant(0, 150, 0, 5) + constant(1, 90, 0, 5), flows=["a", "b"], duration_s=5.0)
    rows = [
        (round(at * SECOND), flow, name, value, unit, "cubic")
        for flow, name, unit, values in (
            ("a", "tcp_cwnd", "B", {0.1: 10_000.0, 0.3: 20_000.0, 2.0: 60_000.0}),
            ("a", "tcp_srtt", "s", {0.1: 0.020, 0.3: 0.040, 2.0: 0.060}),
            ("b", "tcp_cwnd", "B", {4.9: 1_000.0}),
        )
        for at, value in values.items()
    ]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    metrics = compute(made)
    found = metrics.flow_json("a")
    assert found["cwnd_mean_bytes"] == pytest.approx(30_000)
    assert (found["cwnd_min_bytes"], found["cwnd_max_bytes"]) == (10_000, 60_000)
    assert found["srtt_mean_s"] == pytest.approx(0.040)
    # In bit, as all data: the first half second has two samples, the fifth one, the others none.
    course = metrics.series("cwnd", "a").samples()
    assert course[0] == pytest.approx(8 * 15_000) and course[4] == pytest.approx(8 * 60_000)
    assert sum(value == value for value in course) == 2
    other = metrics.flow_json("b")
    assert (other["cwnd_mean_bytes"], other["srtt_mean_s"]) == (1_000, None)

"""The state of Reliable UDP as metrics."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.metrics import compute
from streamgauge.metrics.course import stepped
from streamgauge.metrics.grid import grid_of
from synthetic import EVENTS, SECOND, constant, record


def test_windows_hold_until_they_change_and_deeds_are_counted() -> None:
    made = record(constant(0, 20, 0, 10), flows=["qt", "tcp"], duration_s=10.0)
    said = [
        (1.0, "rudp_cwnd", 24_000.0), (3.0, "rudp_cwnd", 12_000.0), (3.0, "rudp_cut", 12_000.0),
        (7.0, "rudp_cwnd", 48_000.0), (2.0, "rudp_rto", 0.6), (4.0, "rudp_retransmit", 17.0),
        (4.1, "rudp_retransmit", 18.0), (8.0, "stale_drop", 2.5), (9.0, "media_end", 1.0),
    ]  # fmt: skip
    rows = [(round(at * SECOND), "qt", name, value, "", "") for at, name, value in said]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    metrics = compute(made)
    found = metrics.flow_json("qt")
    # 2 s of 24 kB, 4 s of 12 kB and 2 s of 48 kB, until the media's end.
    assert found["rudp_cwnd_mean_bytes"] == pytest.approx((2 * 24 + 4 * 12 + 2 * 48) * 1000 / 8)
    assert (found["rudp_cwnd_min_bytes"], found["rudp_cwnd_max_bytes"]) == (12_000, 48_000)
    assert found["rudp_rto_mean_s"] == pytest.approx(0.6)
    assert (found["rudp_cuts"], found["rudp_retransmit_packets"], found["stale_drop_packets"]) == (1, 2, 1)
    assert found["rudp_expired_packets"] == 0
    course = metrics.series("rudp_cwnd", "qt").samples() / 8
    assert np.isnan(course[0]) and course[2] == course[5] == 24_000 and course[6] == 12_000
    assert np.isnan(course[19])
    other = metrics.flow_json("tcp")
    assert other["rudp_cwnd_mean_bytes"] is None and other["rudp_cuts"] is None


changes = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50)), min_size=1, max_size=20)


@given(changes, st.integers(1, 110))
def test_a_held_value_by_walking(said: list[tuple[int, int]], until: int) -> None:
    said = sorted(dict(said).items())
    times, values = (np.array(column) for column in zip(*said, strict=True))
    grid = grid_of({"sample": "7 ns"}, 100e-9)
    found = stepped(grid, (times.astype(np.int64), values.astype(np.float64)), until)
    held: list[float | None] = [
        None if now >= until else next((float(v) for t, v in reversed(said) if t <= now), None)
        for now in range(100)
    ]
    for sample, (low, high) in enumerate(zip(grid.edges_ns, grid.edges_ns[1:], strict=False)):
        inside = [value for value in held[low:high] if value is not None]
        assert found.numerator[sample] * 1e9 == pytest.approx(sum(inside), abs=1e-9)
        assert found.denominator is not None
        assert found.denominator[sample] * 1e9 == pytest.approx(len(inside), abs=1e-9)
        if inside:
            part = slice(sample, sample + 1)
            assert found.extreme(part, highest=True) == max(inside)
            assert found.extreme(part, highest=False) == min(inside)

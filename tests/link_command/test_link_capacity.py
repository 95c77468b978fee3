"""Capacity over a span: exact sums against small steps of time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.link_command.capacity import bottleneck, capacity_bits

SECOND = 10**9
TIMES = st.integers(0, 30 * SECOND)
RATES: list[dict[str, Any]] = [
    {"constant": 1_000_000},
    {"steps": [[0, 1_000_000], [3 * SECOND, 0], [5 * SECOND, 250_000]]},
    {"square": {"first": 2_000_000, "second": 500_000, "period": 3 * SECOND}},
    {"opportunities": {"times": [0, 10_000_000, 10_000_000, 700_000_000], "bytes": 1504, "period": SECOND}},
    {"opportunities": {"times": [5, SECOND], "period": None}},
]


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: next(iter(rate)))
@given(times=st.lists(TIMES, min_size=3, max_size=3))
def test_spans_add_up(rate: dict[str, Any], times: list[int]) -> None:
    begin, middle, end = sorted(times)
    whole = capacity_bits(rate, begin, end)
    parts = capacity_bits(rate, begin, middle) + capacity_bits(rate, middle, end)
    assert whole == pytest.approx(parts, abs=1e-3)
    assert capacity_bits(rate, begin, begin) == 0


def test_what_each_kind_can_send() -> None:
    constant, steps, square, trace, once = RATES
    assert capacity_bits(constant, SECOND, 3 * SECOND) == 2e6
    assert capacity_bits(steps, 2 * SECOND, 7 * SECOND) == pytest.approx(1e6 + 2 * 250_000)
    # Half a period at each rate.
    assert capacity_bits(square, 0, 3 * SECOND) == pytest.approx(1.5 * 2.5e6)
    assert capacity_bits(square, SECOND, 2 * SECOND) == pytest.approx(0.5 * 2.5e6)
    assert capacity_bits(trace, 0, 10 * SECOND) == 10 * 4 * 1504 * 8
    assert capacity_bits(once, 0, 10 * SECOND) == 2 * 1504 * 8


def test_the_slowest_of_several_bottlenecks() -> None:
    def stage(bps: int) -> dict[str, Any]:
        return {"name": f"at_{bps}", "kind": {"bottleneck": {"rate": {"constant": bps}}}}

    delay = {"name": "delay", "kind": {"delay": {"delay": 0}}}
    found = bottleneck([stage(5), delay, stage(3), stage(4)])
    assert found is not None and found[0] == 2
    assert bottleneck([delay]) is None

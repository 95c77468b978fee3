"""Capacity over a span: exact sums against small steps of time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.link_command.capacity import bottleneck
from streamgauge.report.stages import rate_words
from streamgauge.scenario.path.capacity import (
    bits_until,
    capacity_bits,
    highest_bps,
    mean_bps,
    rate_steps,
)

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
    parts = [capacity_bits(rate, begin, middle), capacity_bits(rate, middle, end)]
    assert whole == pytest.approx(sum(part for part in parts if part is not None), abs=1e-3)
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


def test_opportunities_count_in_the_round_in_which_they_are() -> None:
    # The last is at the period's end, as in each of mahimahi's files.
    trace = {"opportunities": {"times": [0, SECOND // 2, SECOND], "bytes": 1000, "period": SECOND}}
    at = [0, 1, SECOND // 2, SECOND, SECOND + 1, 2 * SECOND, 2 * SECOND + 1]
    found = bits_until(trace, at)
    assert found is not None
    # At 1 s the one at the end of the first round and that at the start of the second are still to come.
    assert (found / 8000).tolist() == [0, 1, 1, 2, 4, 5, 7]


def test_a_trace_is_drawn_by_its_mean_in_each_second() -> None:
    trace = {
        "opportunities": {"times": [0, 1, 1_200_000_000, 2 * SECOND], "bytes": 1000, "period": 2 * SECOND}
    }
    assert rate_steps(trace, 3.0) == [(0.0, 16_000.0), (1.0, 8_000.0), (2.0, 24_000.0)]
    assert mean_bps(trace, 4 * SECOND) == pytest.approx(7 * 8000 / 4)
    assert highest_bps(trace) == 16_000.0


def test_a_rate_of_no_known_kind_is_not_known() -> None:
    for unknown in ({}, {"steps": []}, {"sawtooth": {"peak": 1}}):
        assert capacity_bits(unknown, 0, SECOND) is None
        assert mean_bps(unknown, SECOND) is None and highest_bps(unknown) is None
        assert rate_words({"rate": unknown}) == "a rate that is not known"


def test_the_slowest_of_several_bottlenecks() -> None:
    def stage(bps: int) -> dict[str, Any]:
        return {"name": f"at_{bps}", "kind": {"bottleneck": {"rate": {"constant": bps}}}}

    delay = {"name": "delay", "kind": {"delay": {"delay": 0}}}
    found = bottleneck([stage(5), delay, stage(3), stage(4)])
    assert found is not None and found[0] == 2
    assert bottleneck([delay]) is None

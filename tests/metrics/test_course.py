"""Courses of values over time, held against sums second by second."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.metrics.course import Spans, stepped
from streamgauge.metrics.grid import SECOND_NS, Grid

LASTS = 40

seconds = st.integers(0, LASTS)


def _ns(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64) * int(SECOND_NS)


@given(
    edges=st.sets(st.integers(1, LASTS - 1), max_size=12),
    changes=st.dictionaries(seconds, st.integers(0, 9), min_size=1, max_size=12),
    until=st.integers(1, LASTS + 5),
    cuts=st.sets(st.integers(0, LASTS + 5), max_size=12),
)
@settings(max_examples=200)
def test_a_stepped_value_is_its_mean_over_what_counts(
    edges: set[int], changes: dict[int, int], until: int, cuts: set[int]
) -> None:
    bounds = [0, *sorted(edges), LASTS]
    grid = Grid(_ns(bounds), 0, len(bounds) - 1, 1.0)
    times = sorted(changes)
    ordered = sorted(cuts)
    begins, ends = ordered[: len(ordered) // 2 * 2 : 2], ordered[1::2]
    without = Spans(_ns(begins), _ns(ends))
    told = (_ns(times), np.array([float(changes[at]) for at in times]))

    found = stepped(grid, told, int(until * SECOND_NS), without=without)

    left_out = {at for begin, end in zip(begins, ends, strict=True) for at in range(begin, end)}
    # By the clock second by second: what holds there, if anything does and it counts.
    holds = {
        at: changes[max(time for time in times if time <= at)]
        for at in range(min(times), until)
        if at not in left_out and min(times) < min(until, LASTS)
    }
    assert found.denominator is not None
    for sample, (begin, end) in enumerate(pairwise(bounds)):
        inside = [holds[at] for at in range(begin, end) if at in holds]
        assert found.denominator[sample] == len(inside)
        assert found.numerator[sample] == pytest.approx(sum(inside), abs=1e-9)

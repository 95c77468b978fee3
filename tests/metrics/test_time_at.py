"""How long each level was shown, told from means over samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.metrics.levels import time_at
from streamgauge.metrics.result import Series

SAMPLE_S = 0.5
LEVELS = (100e3, 300e3, 600e3, 1500e3)


def sampled(shown: list[tuple[float, float]]) -> Series:
    """Levels of these lengths (bit/s, s), one after another, as means over samples."""
    ends = np.cumsum([length for _, length in shown])
    begins = ends - [length for _, length in shown]
    edges = np.arange(0.0, ends[-1] + SAMPLE_S, SAMPLE_S)
    held = np.maximum(
        0.0, np.minimum(edges[1:, None], ends) - np.maximum(edges[:-1, None], begins)
    )  # [sample, level]
    return Series(held @ np.array([rate for rate, _ in shown]), held.sum(axis=1))


def test_a_sample_of_two_levels_is_shared_between_them() -> None:
    found = time_at(sampled([(100e3, 2.2), (600e3, 3.1), (300e3, 1.7)]))
    assert found == pytest.approx({100e3: 2.2, 300e3: 1.7, 600e3: 3.1}, abs=1e-4)


def test_a_time_in_which_nothing_is_shown_is_nobodys() -> None:
    held = np.array([0.5, 0.5, 0.0, 0.2, 0.5, 0.5])
    rates = np.array([100e3, 100e3, 0.0, 100e3, 100e3, 100e3])
    assert time_at(Series(held * rates, held)) == pytest.approx({100e3: 2.2})
    assert time_at(Series(np.zeros(3), np.zeros(3))) == {}


@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.floats(1.6, 9.0)), min_size=1, max_size=12))
def test_it_is_what_was_shown_whatever_the_order(shown: list[tuple[float, float]]) -> None:
    """Each lasts for two whole samples at least, as every segment of 2 s does."""
    found = time_at(sampled(shown))
    expected: dict[float, float] = {}
    for rate, length in shown:
        expected[rate] = expected.get(rate, 0.0) + length
    assert sum(found.values()) == pytest.approx(sum(expected.values()))
    assert {rate: found.get(rate, 0.0) for rate in expected} == pytest.approx(expected, abs=1e-3)

"""Distances of distributions, correlations and shares, with intervals over clips."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.metrics.distributions import emd, ks
from streamgauge.paper.distances import (
    Bounded,
    Sample,
    correlated,
    distances,
    least_squares,
    share_of,
    wilson,
)
from streamgauge.paper.distributions import cumulative

FINITE = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
VALUES = st.lists(FINITE, min_size=1, max_size=30)
WITH_NEVER = st.lists(FINITE | st.just(float("inf")), min_size=1, max_size=30)


def sample(values: list[float], clips: list[int] | None = None) -> Sample:
    return Sample(np.array(values), np.arange(len(values)) if clips is None else np.array(clips))


def far(one: Sample, other: Sample) -> tuple[Bounded, Bounded | None]:
    found = distances(one, other)
    assert found is not None
    return found


@given(WITH_NEVER)
def test_equal_samples_are_not_apart(values: list[float]) -> None:
    largest, area = far(sample(values), sample(values[::-1]))
    assert largest.value == 0
    assert area is None or area.value == 0


@given(WITH_NEVER, WITH_NEVER)
def test_distances_are_symmetric_and_within_their_bounds(one: list[float], other: list[float]) -> None:
    largest, area = far(sample(one), sample(other))
    again, area_again = far(sample(other), sample(one))
    assert 0 <= largest.low <= largest.value <= largest.high <= 1 and largest.value == again.value
    assert (area is None) is (float("inf") in {*one, *other})
    if area is not None and area_again is not None:
        assert 0 <= area.low <= area.value <= area.high and area.value == area_again.value


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=30))
def test_they_are_those_of_checks(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    once = np.ones((1, len(x)))
    largest, area = far(sample(x.tolist()), sample(y.tolist()))
    assert area is not None
    assert largest.value == pytest.approx(ks(x, y, once)[0])
    assert area.value == pytest.approx(emd(x, y, once)[0], abs=1e-6)


@given(VALUES, FINITE)
def test_moving_all_by_so_much_is_so_far(values: list[float], by: float) -> None:
    _, area = far(sample(values), sample([value + by for value in values]))
    assert area is not None and area.value == pytest.approx(abs(by), abs=1e-6)


def test_an_interval_has_the_true_distance_in_it_and_shrinks_with_clips() -> None:
    """Of normal distributions that are one standard deviation apart it is 2 Φ(1/2) - 1 = 0.383."""
    held = np.zeros(2)
    widths = {}
    for count in (50, 800):
        for seed in range(10):
            random = np.random.default_rng(seed)
            one, other = (sample(random.normal(mean, size=count).tolist()) for mean in (0, 1))
            largest, area = far(one, other)
            assert area is not None
            held += [largest.low < 0.383 < largest.high, area.low < 1 < area.high]
            widths[count] = largest.high - largest.low
    assert (held >= 15).all() and widths[800] < widths[50] / 2.5


def test_equal_distributions_are_seldom_told_apart() -> None:
    reaches = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        largest, _ = far(sample(random.normal(size=79).tolist()), sample(random.normal(size=79).tolist()))
        reaches += largest.low == 0
    assert reaches >= 13


def test_the_same_clip_twice_tells_no_more_than_once() -> None:
    random = np.random.default_rng(1)
    one, other = random.normal(size=40).tolist(), random.normal(0.5, size=40).tolist()
    once, _ = far(sample(one), sample(other))
    clips = [*range(40), *range(40)]
    twice, _ = far(sample(one * 2, clips), sample(other * 2, clips))
    assert (twice.low, twice.value, twice.high) == pytest.approx((once.low, once.value, once.high))


def test_many_values_a_clip_are_told_at_some_places_alone() -> None:
    random = np.random.default_rng(2)
    clips = np.repeat(np.arange(20), 200)
    one, other = (Sample(random.normal(mean, size=4000), clips) for mean in (0, 0.3))
    largest, _ = far(one, other)
    assert largest.low < largest.value < largest.high
    assert largest.value == pytest.approx(ks(one.values, other.values, np.ones((1, 4000)))[0])
    assert distances(one, Sample(np.empty(0), np.empty(0, dtype=np.int64))) is None


@given(st.lists(st.tuples(FINITE, FINITE), min_size=3, max_size=30))
def test_r_is_between_minus_one_and_one_and_that_of_numpy(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    found = correlated(sample(x.tolist()), y)
    if found is None:
        return
    assert -1 <= found.low <= found.value <= found.high <= 1
    if min(np.ptp(x), np.ptp(y)) > 1:
        assert found.value == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-6)


def test_what_lies_on_a_line_has_r_of_one() -> None:
    x = np.arange(10.0)
    found = correlated(sample(x.tolist()), 3 - 2 * x)
    assert found is not None and found.value == found.low == pytest.approx(-1)
    assert least_squares(x, 3 - 2 * x) == pytest.approx((-2, 3))
    assert correlated(sample([1.0] * 10), x) is None and least_squares(np.ones(10), x) is None
    assert correlated(sample([1.0, 2.0]), x[:2]) is None


@given(WITH_NEVER, FINITE, st.floats(0.1, 1e6))
def test_a_distribution_function_rises_from_what_is_below_to_what_is_within(
    values: list[float], low: float, width: float
) -> None:
    x, y = cumulative(np.array(values), low, low + width)
    assert (np.diff(x) >= 0).all() and (np.diff(y) >= 0).all()
    assert x[0] == low and x[-1] == low + width and y[0] >= 0 and y[-1] <= 100
    assert y[-1] == pytest.approx(100 * np.mean(np.array(values) <= low + width))
    assert y[0] == pytest.approx(100 * np.mean(np.array(values) < low))


def test_a_long_distribution_function_keeps_its_ends() -> None:
    x, y = cumulative(np.linspace(0, 1, 10_000), 0, 1)
    assert len(x) <= 402 and (y[0], y[-1]) == (0, 100) and np.allclose(y, 100 * x, atol=0.6)


def test_wilsons_interval_is_the_published_one() -> None:
    """Newcombe, Statistics in Medicine 17 (1998), table I, method 3."""
    for r, n, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)):
        found = wilson(r / n, n)
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert wilson(1.0, 29).low == pytest.approx(0.8830, abs=5e-5) and wilson(1.0, 29).high == 1


def test_a_share_counts_trials_and_is_as_sure_as_its_clips() -> None:
    found = share_of([True, True, False, False], [1, 1, 2, 2])
    assert found == wilson(0.5, 2)
    assert share_of([], []) is None

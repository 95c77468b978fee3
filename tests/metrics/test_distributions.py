"""Statistics of distributions over trials, with their resamples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from streamgauge.metrics.distributions import correlation, emd, ks, quantile, resampled, spread

values = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
pairs = st.lists(st.tuples(values, values), min_size=2, max_size=40)
ALONE = 1e-9


def once(n: int) -> np.ndarray:
    return np.ones((1, n))


@given(pairs)
def test_they_are_what_scipy_has_of_them(of: list[tuple[float, float]]) -> None:
    x, y = np.array(of).T
    assert ks(x, y, once(len(x)))[0] == pytest.approx(stats.ks_2samp(x, y).statistic, abs=ALONE)
    assert emd(x, y, once(len(x)))[0] == pytest.approx(stats.wasserstein_distance(x, y), abs=1e-6)
    assert quantile(x, 0.5, once(len(x)))[0] == np.quantile(x, 0.5, method="inverted_cdf")
    if min(np.ptp(x), np.ptp(y)) > 1:
        assert correlation(x, y, once(len(x)))[0] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-6)


@given(pairs, st.data())
def test_a_count_of_two_is_the_trial_twice(of: list[tuple[float, float]], data: st.DataObject) -> None:
    x, y = np.array(of).T
    often = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x))))
    if not often.sum():
        return
    counts, again = often[None, :].astype(float), np.repeat(np.arange(len(x)), often)
    for function in (ks, emd, correlation):
        told, repeated = function(x, y, counts), function(x[again], y[again], once(len(again)))
        assert told[0] == pytest.approx(repeated[0], abs=1e-5, nan_ok=True)
    for share in (0.01, 0.3, 0.5, 1.0):
        assert quantile(x, share, counts)[0] == quantile(x[again], share, once(len(again)))[0]


@given(pairs)
def test_distances_are_distances(of: list[tuple[float, float]]) -> None:
    x, y = np.array(of).T
    for function in (ks, emd):
        assert function(x, x, once(len(x)))[0] == 0
        assert function(x, y, once(len(x)))[0] == pytest.approx(function(y, x, once(len(x)))[0])
    assert 0 <= ks(x, y, once(len(x)))[0] <= 1


def test_what_never_comes_is_above_all() -> None:
    x = np.array([1.0, 2.0, np.inf, np.inf])
    assert quantile(x, 0.5, once(4))[0] == 2
    assert quantile(x, 0.75, once(4))[0] == np.inf
    assert ks(x, np.array([1.0, 2.0, 3.0, 4.0]), once(4))[0] == 0.5
    with pytest.raises(ValueError, match="more than 0"):
        quantile(x, 0.0, once(4))


def test_an_interval_by_resamples_holds_the_value_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        x = random.normal(size=60)
        y = 0.5 * x + random.normal(size=60) * np.sqrt(0.75)
        found = spread(correlation(x, y, resampled(60)), 60)
        held += found.low <= 0.5 <= found.high  # type: ignore[operator]
    assert 180 <= held <= 198


def test_no_variation_and_nothing_finite() -> None:
    same = np.full(8, 3.0)
    assert spread(quantile(same, 0.5, resampled(8)), 8).no_variation
    assert spread(quantile(np.array([3.0]), 0.5, resampled(1)), 1).half_width is None
    with pytest.raises(ValueError, match="not finite"):
        spread(correlation(same, same, resampled(8)), 8)

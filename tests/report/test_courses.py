"""Courses over all trials: quantiles in bounded memory, and points of trials of different lengths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.metrics.frame import FlowInfo
from streamgauge.metrics.grid import Grid
from streamgauge.metrics.result import FlowMetrics, Series
from streamgauge.report.courses import (
    BAND_TRIALS,
    MAX_POINTS,
    SHOWN_TRIALS,
    Courses,
    GroupCourse,
    Spread,
    band_words,
)
from synthetic import constant, record

KNOWN = st.floats(-1e6, 1e6, width=32)


@given(st.lists(st.lists(KNOWN | st.just(float("nan")), min_size=3, max_size=3), min_size=1, max_size=40))
def test_few_values_have_the_quantiles_of_numpy(rows: list[list[float]]) -> None:
    spread = Spread(3)
    for row in rows:
        spread.add(np.array(row))
    shares = [0.0, 0.025, 0.5, 0.975, 1.0]
    found = spread.quantiles(shares)
    for point, values in enumerate(np.array(rows).T):
        known = values[np.isfinite(values)]
        expected = np.quantile(known, shares) if len(known) else np.full(5, np.nan)
        assert found[:, point] == pytest.approx(expected, rel=1e-5, abs=1e-3, nan_ok=True)


@pytest.mark.parametrize("order", ["shuffled", "ascending", "descending"])
def test_many_values_have_quantiles_nearly(order: str) -> None:
    count = 10_000
    values = np.arange(count, dtype=float)
    if order == "shuffled":
        np.random.default_rng(1).shuffle(values)
    spread = Spread(2)
    for value in values if order != "descending" else values[::-1]:
        spread.add(np.array([value, -value]))
    shares = np.array([0.025, 0.5, 0.975])
    found = spread.quantiles(list(shares))
    assert np.abs(found[:, 0] / count - shares).max() < 0.012
    assert np.abs(-found[::-1, 1] / count - shares).max() < 0.012
    held = sum(rows.size for rows, _ in spread._levels)
    assert held <= 2 * 256 * 7, "a level more for each doubling, and no more"


def trial(seed: int, pps: float, duration_s: float = 10.0, **measure: str) -> TrialMetrics:
    sent = constant(0, pps, 0, duration_s)
    return compute(record(sent, flows=["video"], duration_s=duration_s, seed=seed, measure=measure))


def courses_of(trials: list[TrialMetrics]) -> Courses:
    found = Courses(max(len(one.grid) for one in trials), [("sender_rate", "value")], sums=["throughput"])
    for one in trials:
        found.add(one)
    return found


def test_the_band_is_all_of_few_trials_and_most_of_many() -> None:
    for count in (1, BAND_TRIALS - 1, 20):
        rates = [10.0 + 2 * n for n in range(count)]
        course = courses_of([trial(n + 1, rate) for n, rate in enumerate(rates)]).course(
            "video", "sender_rate"
        )
        assert course is not None and course.trials == count
        each = np.array([course.single[n] for n in range(min(count, SHOWN_TRIALS))])
        assert np.isfinite(each).all() and len(each) == min(count, SHOWN_TRIALS)
        if count == 1:
            assert course.low is None and course.high is None and band_words(1) == ""
            assert np.allclose(course.median, each[0])
            continue
        assert course.low is not None and course.high is not None
        assert (course.low <= course.median).all() and (course.median <= course.high).all()
        if count < BAND_TRIALS:
            assert np.allclose(course.low, each.min(axis=0)) and np.allclose(course.high, each.max(axis=0))
            assert f"{count} trials" in band_words(count)
        else:
            assert (course.low[2:-2] > each.min(axis=0)[2:-2]).all(), "the outermost are left out"
            assert "2.5th" in band_words(count)


def test_where_most_trials_have_ended_nothing_is_drawn() -> None:
    found = courses_of([trial(1, 20, 10.0), trial(2, 20, 5.0), trial(3, 20, 5.0)])
    course = found.course("video", "sender_rate")
    assert course is not None and found.edges_s[-1] == 10.0
    known = np.isfinite(course.median)
    assert known[course.ends_s <= 5.0].all() and not known[course.begins_s >= 5.0].any()


def test_sums_are_means_over_the_trials() -> None:
    trials = [trial(1, 20), trial(2, 40)]
    found = courses_of(trials).sums("video", "throughput")
    assert found is not None
    bits = [one.series("throughput", "video").numerator.sum() for one in trials]
    assert found[0].sum() == pytest.approx(sum(bits) / 2)
    assert found[1].sum() == pytest.approx(10.0)


def test_points_are_few_and_their_values_exact() -> None:
    one = trial(1, 50, 10.0, sample="10 ms")
    found = courses_of([one])
    course = found.course("video", "sender_rate")
    assert course is not None and len(course.median) <= MAX_POINTS and found.step == 5
    samples = one.series("sender_rate", "video").samples()[: 5 * (len(one.grid) // 5)]
    merged = samples.reshape(-1, 5).mean(axis=1)
    assert course.median[: len(merged)] == pytest.approx(merged)


def trial_of(series: Series, samples: int) -> TrialMetrics:
    grid = Grid(np.arange(samples + 1, dtype=np.int64) * 10**9, 0, samples, 1.0)
    flow = FlowMetrics({"x": series}, info=FlowInfo(0, "film", "subject", "rtp", True, False))
    return TrialMetrics(
        "a/b", "sim", 1, True, (), "ip", grid, {"film": flow}, {}, math.nan, np.empty(samples), ()
    )


def drawn_of(trials: list[TrialMetrics]) -> GroupCourse | None:
    courses = Courses(len(trials[0].grid), [("x", "value")])
    for one in trials:
        courses.add(one)
    assert courses.subjects("x") == ["film"]
    return courses.course("film", "x")


@st.composite
def series(draw: st.DrawFn) -> tuple[Series, int]:
    samples = draw(st.sampled_from([1, 2, 7, MAX_POINTS, MAX_POINTS + 1, 3 * MAX_POINTS - 5]))
    top = draw(npst.arrays(np.float64, samples, elements=st.floats(0, 1e6)))
    below = draw(st.none() | npst.arrays(np.float64, samples, elements=st.floats(1e-3, 10) | st.just(0.0)))
    return Series(top, below), samples


@settings(max_examples=50)
@given(series())
def test_merged_points_are_ratios_of_sums(drawn: tuple[Series, int]) -> None:
    one, samples = drawn
    step = math.ceil(samples / MAX_POINTS)
    parts = [slice(at, min(at + step, samples)) for at in range(0, samples, step)]
    values = [
        float(np.mean(one.numerator[part])) if one.denominator is None else one.value(part) for part in parts
    ]
    expected = {
        (part.start + part.stop) / 2: value
        for part, value in zip(parts, values, strict=True)
        if math.isfinite(value)
    }
    course = drawn_of([trial_of(one, samples)])
    assert (course is not None) == bool(expected)
    if course is not None:
        shown = np.isfinite(course.median)
        assert len(shown) <= MAX_POINTS
        assert dict(zip(course.times_s[shown], course.median[shown], strict=True)) == pytest.approx(expected)


@given(
    npst.arrays(
        np.float64,
        st.tuples(st.integers(1, 9), st.integers(1, 5)),
        elements=st.floats(0, 2**30, width=32, allow_subnormal=False) | st.just(math.nan),
    )
)
def test_lines_are_medians_where_half_of_the_trials_have_a_value(values: np.ndarray[Any, Any]) -> None:
    trials, samples = values.shape
    course = drawn_of([trial_of(Series(row, np.ones(samples)), samples) for row in values])
    known = np.isfinite(values).sum(axis=0)
    shown = (2 * known >= trials) & (known > 0)
    if course is None:
        assert not shown.any()
        return
    assert course.known.tolist() == known.tolist()
    assert np.isfinite(course.median).tolist() == shown.tolist()
    assert course.median[shown] == pytest.approx(np.nanmedian(values[:, shown], axis=0))
    if trials > 1:
        assert course.low is not None and course.high is not None
        assert (course.low[shown] <= course.median[shown]).all()
        assert (course.median[shown] <= course.high[shown]).all()
        assert (course.low[shown] >= np.nanmin(values[:, shown], axis=0)).all()

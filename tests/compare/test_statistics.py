"""What a referee asks of the statistics: intervals that hold, bounded errors, no confidence from nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.compare.statistics import FEWEST_RESAMPLED, holm, paired, single, unpaired

finite = st.integers(-(10**9), 10**9).map(lambda value: value / 1e3)
samples = st.lists(finite, min_size=2, max_size=12)
chances = st.lists(st.none() | st.floats(0, 1), max_size=12)


@given(samples)
def test_an_interval_holds_its_mean_and_more_data_do_not_change_the_answer(values: list[float]) -> None:
    found = single(values)
    assert found == single(values)
    assert found.interval is not None and (found.probability is None) == found.no_variation
    low, high = found.interval
    slack = 1e-9 * max(map(abs, values), default=0.0)
    assert low - slack <= found.mean <= high + slack
    assert found.no_variation or 0 <= (found.probability or 0) <= 1


@given(samples, st.floats(0.01, 100))
def test_units_do_not_matter(values: list[float], scale: float) -> None:
    ours, theirs = single(values), single([scale * value for value in values])
    assert ours.method == theirs.method
    assert (ours.probability or 0) == pytest.approx(theirs.probability or 0, abs=2e-3)


@given(samples)
def test_what_is_turned_about_is_as_likely(values: list[float]) -> None:
    ours, theirs = single(values), single([-value for value in values])
    assert ours.interval is not None and theirs.interval is not None
    if ours.method != "bootstrap-t":  # whose resamples are not drawn in pairs of opposites
        assert ours.interval[0] == pytest.approx(-theirs.interval[1])
        assert (ours.probability or 0) == pytest.approx(theirs.probability or 0)


@given(samples, st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_wider_margin_is_met_sooner(values: list[float], one: float, other: float) -> None:
    found = single(values)
    near, far = found.within(min(one, other)), found.within(max(one, other))
    assert (near is None) == (far is None) == found.no_variation
    assert near is None or far is None or far <= near


@given(st.lists(finite, min_size=1, max_size=12))
def test_nothing_against_itself_is_equal_and_never_different(values: list[float]) -> None:
    found = paired(values, values)
    assert found.mean == 0
    assert found.no_variation == (len(values) > 1)
    assert found.probability is None and found.within(1.0) is None


@given(st.integers(2, 12))
def test_no_variation_is_no_confidence(n: int) -> None:
    """The same difference in every pair has no error, and so no probability either."""
    found = paired([1.5] * n, [1.0] * n)
    assert found.no_variation and found.interval == (0.5, 0.5) and found.method == "none"
    assert found.probability is None and found.within(1.0) is None


@given(chances)
def test_holm_corrects_upwards_in_order(values: list[float | None]) -> None:
    corrected = holm(values)
    known = [(a, b) for a, b in zip(values, corrected, strict=True) if a is not None and b is not None]
    assert [a is None for a in values] == [b is None for b in corrected]
    assert all(a <= b <= 1 for a, b in known)
    assert [b for _, b in sorted(known)] == sorted(b for _, b in known)
    if known:
        least, of_least = min(known)
        assert of_least == pytest.approx(min(1.0, least * len(known)))


def test_holm_by_hand() -> None:
    """4 x 0.001; 3 x 0.010; 2 x 0.023; and 0.031, which may not be below the one before it."""
    assert holm([0.010, 0.031, 0.001, 0.023]) == pytest.approx([0.030, 0.046, 0.004, 0.046])


@pytest.mark.parametrize("n", [3, FEWEST_RESAMPLED, 10, 30])
@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_intervals_cover_the_truth(n: int, draw: str) -> None:
    """Of 400 samples from a known distribution the 95 % interval misses the mean in little more than 5 %."""
    random = np.random.default_rng(20_130_101)
    missed = 0
    for _ in range(400):
        values = random.normal(3, 2, n) if draw == "normal" else random.exponential(3, n)
        found = single(values.tolist())
        assert found.interval is not None
        missed += not found.interval[0] <= 3 <= found.interval[1]
    # Student's t of three exponential values is known to miss more.
    assert missed / 400 <= (0.16 if n < FEWEST_RESAMPLED and draw == "exponential" else 0.085)


@pytest.mark.parametrize("n", [3, 8])
def test_two_samples_are_told_apart_no_more_often_than_said(n: int) -> None:
    random = np.random.default_rng(7)
    false = true = 0
    for _ in range(300):
        a, b = random.normal(0, 1, n).tolist(), random.normal(0, 3, n).tolist()
        chance = unpaired(a, b).probability
        far = unpaired([value + 30 for value in a], b).probability
        assert chance is not None and far is not None
        false += chance <= 0.05
        true += far <= 0.05
    assert false / 300 <= 0.08 and true / 300 >= 0.9


@given(samples, samples)
def test_unpaired_differences_turn_about(a: list[float], b: list[float]) -> None:
    ours, theirs = unpaired(a, b), unpaired(b, a)
    assert ours.mean == pytest.approx(-theirs.mean, abs=1e-6)
    assert ours.n == theirs.n == min(len(a), len(b))


def test_a_few_that_differ_set_no_bound() -> None:
    """One of ten that differs: most resamples hold it once or never, so that nothing bounds the mean."""
    found = single([0.0] * 9 + [5.0])
    assert found.interval is not None and not all(map(math.isfinite, found.interval))
    assert found.probability is not None and found.probability > 0.05


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        single(values)


def test_pairs_are_as_many() -> None:
    with pytest.raises(ValueError, match="paired"):
        paired([1.0, 2.0], [1.0])

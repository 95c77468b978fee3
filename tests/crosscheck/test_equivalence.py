"""The equivalence tests: what they call equal and different, and how often they err."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.crosscheck.equivalence import compare, margin_of

Sizes = pytest.mark.parametrize(
    ("sims", "emus", "distribution"), [(10, 5, False), (6, 3, False), (40, 20, True)]
)
means = st.floats(0.01, 1e6)
seeds = st.integers(0, 2**32 - 1)


def findings(runs: int, shift: float, sims: int, emus: int, distribution: bool) -> Counter[str]:
    """Of `runs` comparisons of normal runs whose means differ by `shift` standard deviations."""
    random = np.random.default_rng(7)
    return Counter(
        compare(
            random.normal(50 + shift, 1, sims).tolist(),
            random.normal(50, 1, emus).tolist(),
            relative=0,
            absolute=0,
            distribution=distribution,
        ).finding
        for _ in range(runs)
    )


@Sizes
def test_one_distribution_is_seldom_inconclusive_and_hardly_ever_different(
    sims: int, emus: int, distribution: bool
) -> None:
    found = findings(150 if distribution else 1000, 0.0, sims, emus, distribution)
    total = found.total()
    assert found["different"] <= 0.02 * total
    assert found["equivalent"] >= 0.85 * total


@Sizes
def test_far_apart_is_never_equivalent(sims: int, emus: int, distribution: bool) -> None:
    found = findings(100 if distribution else 500, 12.0, sims, emus, distribution)
    assert found["equivalent"] <= 0.02 * found.total()
    assert found["different"] >= (0.9 if emus > 3 else 0.6) * found.total()


@given(seeds, means, st.floats(0, 0.2), st.sampled_from([-1, 1]), st.integers(4, 12), st.integers(4, 8))
def test_three_margins_apart_is_always_different(
    seed: int, mean: float, spread: float, side: int, sims: int, emus: int
) -> None:
    random = np.random.default_rng(seed)
    noise = random.normal(0, 1, emus)
    emu = mean * (1 + spread * (noise - noise.mean()))
    margin = margin_of(emu.tolist(), relative=0.1, absolute=0)
    sim = emu.mean() + side * 3 * margin + np.resize(emu - emu.mean(), sims)
    found = compare(sim.tolist(), emu.tolist(), relative=0.1, absolute=0)
    assert found.finding == "different", found


@given(seeds, means, st.floats(0, 0.2), st.integers(4, 12))
def test_the_same_values_are_equivalent(seed: int, mean: float, spread: float, runs: int) -> None:
    values = (mean * (1 + spread * np.random.default_rng(seed).normal(0, 1, runs))).tolist()
    found = compare(values, values, relative=0.1, absolute=0)
    assert found.finding == "equivalent", found
    assert found.spread is not None and found.margin is not None
    assert found.margin >= 0.1 * abs(np.mean(values)) * (1 - 1e-9)


@given(seeds, means, means, st.floats(0.001, 1000))
def test_units_do_not_matter(seed: int, mean: float, other: float, scale: float) -> None:
    random = np.random.default_rng(seed)
    sim, emu = random.normal(mean, 0.1 * mean, 6), random.normal(other, 0.1 * other, 5)
    plain = compare(sim.tolist(), emu.tolist(), relative=0.1, absolute=0)
    scaled = compare((scale * sim).tolist(), (scale * emu).tolist(), relative=0.1, absolute=0)
    assert plain.finding == scaled.finding


def test_runs_without_any_variation_are_held_against_the_floor() -> None:
    near = compare([10.9] * 3, [10.0] * 3, relative=0.1, absolute=0)
    far = compare([11.1] * 3, [10.0] * 3, relative=0.1, absolute=0)
    assert (near.finding, far.finding) == ("equivalent", "different")
    assert near.margin == pytest.approx(1.0)
    assert (near.low, near.high) == (pytest.approx(0.9), pytest.approx(0.9))


def test_a_fixed_margin_does_not_grow_with_the_spread() -> None:
    emu = [0.1, 0.9, 0.2, 0.8, 0.5]
    assert margin_of(emu, relative=0, absolute=0.1, fixed=True) == 0.1
    assert margin_of(emu, relative=0, absolute=0.1) > 0.5
    assert compare(emu, emu, relative=0, absolute=0.1, fixed=True).finding == "inconclusive"


def test_distributions_of_one_mean_but_other_shape_differ() -> None:
    emu = [0.1] * 10 + [0.9] * 10
    sim = [0.5] * 40
    assert compare(sim, emu, relative=0, absolute=0.1, distribution=False).finding == "equivalent"
    found = compare(sim, emu, relative=0, absolute=0.1, fixed=True, distribution=True)
    assert found.finding == "different"
    assert found.ks_p is not None and found.ks_p < 0.01


def test_what_never_happens_in_both_is_equivalent_and_in_one_is_different() -> None:
    none: list[float | None] = [None] * 5
    some: list[float | None] = [1.0, 1.1, 0.9, 1.0, 1.0]
    assert compare(none, none, relative=0.1, absolute=0).finding == "equivalent"
    for sim, emu in ((none, some), (some, none)):
        found = compare(sim, emu, relative=0.1, absolute=0)
        assert found.finding == "different"
        assert "nothing to measure" in found.why
    assert compare([None, None, None, 1.0, None], some, relative=0.1, absolute=0).finding == "inconclusive"


def test_without_runs_nothing_is_found() -> None:
    assert compare([], [1.0, 1.0], relative=0.1, absolute=0).finding == "inconclusive"
    assert compare([1.0, 1.0], [1.0], relative=0.1, absolute=0).finding == "inconclusive"

"""Are two sets of runs the same, near enough? Never "no difference was found": few runs find none in
anything.

**Means.** The two one-sided tests (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657): they are
*equivalent* if the 90 % interval of the difference of their means (Welch's, for unequal variances) lies
inside a margin, which is a test of level 5 %. They are *different* if the whole interval lies outside, and
otherwise the runs do not decide: *inconclusive*.

**The margin** is derived from the reference's own spread, as regulators scale it for quantities that vary by
themselves (EMA 2010, guideline on bioequivalence, section 4.1.10): half the 95 % prediction interval of one
further run of the reference, t(0.975, m - 1) s sqrt(1 + 1/m) for m runs with standard deviation s. A
simulated mean inside it is no more conspicuous than the emulator's next run would be. Where the reference
hardly varies a floor takes its place, declared with each quantity (`quantities`): two machines need not agree
better than that to be read as one. For some quantities the floor is the margin, whatever the spread.

**Distributions.** Mixes with an outcome that varies from run to run are compared as distributions: by the
earth mover's distance W1, how far values have to be moved on average to turn the one set into the other. It
has the quantity's unit, is never less than the difference of the means, and sees spread and shape besides.
Its 90 % interval by the bootstrap (Efron and Tibshirani 1993, chapter 13) is compared with the larger of the
floor and one standard deviation of the reference: two sets of 20 runs from one normal distribution are about
a third of that apart by chance. The probability of the two-sample Kolmogorov-Smirnov statistic is given
beside it.

`tests/crosscheck/test_equivalence.py` measures the error rates of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["LEAST_RUNS", "EquivalenceResult", "QuantityComparison", "compare", "margin_of"]

EquivalenceResult = Literal["equivalent", "different", "inconclusive"]
Floats = npt.NDArray[np.float64]

LEVEL: Final = 0.05
"""Level of each of the two one-sided tests: the interval of the difference is one of 1 - 2 LEVEL."""
PREDICTION: Final = 0.95
"""Level of the prediction interval that is the margin."""
LEAST_RUNS: Final = 2
"""Fewer runs have no spread."""
BOOTSTRAPS: Final = 1000


@dataclass(frozen=True)
class QuantityComparison:
    """How a simulated quantity compares with the reference's. Numbers in the quantity's own unit."""

    sim: float | None
    """Mean over the runs that have the quantity; None if none has."""
    emu: float | None
    spread: float | None
    """Standard deviation between the reference's runs."""
    margin: float | None
    low: float | None
    """Lower end of the 90 % interval of the difference, or of the distance between distributions."""
    high: float | None
    n_sim: int
    n_emu: int
    finding: EquivalenceResult
    why: str
    """In words where the finding does not follow from the interval."""
    ks_p: float | None = None
    """Probability of the Kolmogorov-Smirnov statistic if the distributions are one; None for means."""


def margin_of(emu: Sequence[float], *, relative: float, absolute: float, fixed: bool = False) -> float:
    """Returns the margin for the mean of further runs; see the module's text.

    Args:
        emu: the reference's values, two or more unless `fixed`.
        relative: floor, of the mean's absolute value.
        absolute: floor, in the quantity's unit.
        fixed: the floor alone.
    """
    values = np.asarray(emu, dtype=np.float64)
    floor = max(relative * abs(float(values.mean())), absolute)
    if fixed or len(values) < LEAST_RUNS:
        return floor
    return max(
        floor, _t(PREDICTION / 2 + 0.5, len(values) - 1) * _sd(values) * math.sqrt(1 + 1 / len(values))
    )


def compare(
    sim: Sequence[float | None],
    emu: Sequence[float | None],
    *,
    relative: float,
    absolute: float,
    fixed: bool = False,
    distribution: bool = False,
) -> QuantityComparison:
    """Compares a quantity's values over runs; None is a run without a value.

    Args:
        sim: one value a simulated run.
        emu: one value a run of the reference.
        relative: floor of the margin, of the reference's mean.
        absolute: floor of the margin, in the quantity's unit.
        fixed: the floor is the margin.
        distribution: compare distributions, not means.
    """
    x = np.array([value for value in sim if value is not None], dtype=np.float64)
    y = np.array([value for value in emu if value is not None], dtype=np.float64)

    def found(finding: EquivalenceResult, why: str) -> QuantityComparison:
        return QuantityComparison(
            sim=float(x.mean()) if len(x) else None,
            emu=float(y.mean()) if len(y) else None,
            spread=_sd(y) if len(y) >= LEAST_RUNS else None,
            margin=None,
            low=None,
            high=None,
            n_sim=len(x),
            n_emu=len(y),
            finding=finding,
            why=why,
        )

    if not len(sim) or not len(emu):
        return found("inconclusive", "no valid run")
    rare_sim, rare_emu = 2 * len(x) < len(sim), 2 * len(y) < len(emu)
    if rare_sim and rare_emu:
        # A rare event has no useful mean; that it is rare in both is the finding.
        return found("equivalent", "nothing to measure in most runs of both")
    if rare_sim != rare_emu:
        who = "sim" if rare_sim else "the reference"
        sure = (not len(x) and len(y) == len(emu)) or (not len(y) and len(x) == len(sim))
        return found("different" if sure else "inconclusive", f"nothing to measure in most runs of {who}")
    if len(x) < LEAST_RUNS or len(y) < LEAST_RUNS:
        return found("inconclusive", "one run has no spread")
    if distribution:
        return _distributions(x, y, relative, absolute, fixed)
    margin = margin_of(y.tolist(), relative=relative, absolute=absolute, fixed=fixed)
    low, high = _difference(x, y)
    return QuantityComparison(
        sim=float(x.mean()),
        emu=float(y.mean()),
        spread=_sd(y),
        margin=margin,
        low=low,
        high=high,
        n_sim=len(x),
        n_emu=len(y),
        finding=_place(low, high, margin),
        why="",
    )


def _place(low: float, high: float, margin: float) -> EquivalenceResult:
    if -margin <= low and high <= margin:
        return "equivalent"
    return "different" if low > margin or high < -margin else "inconclusive"


def _difference(x: Floats, y: Floats) -> tuple[float, float]:
    """Returns the interval of mean(x) - mean(y) at 1 - 2 LEVEL: Welch's t with Satterthwaite's degrees of
    freedom."""
    difference = float(x.mean() - y.mean())
    parts = [_sd(values) ** 2 / len(values) for values in (x, y)]
    total = sum(parts)
    if total == 0:
        return difference, difference
    freedom = total**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (x, y), strict=True))
    half = _t(1 - LEVEL, freedom) * math.sqrt(total)
    return difference - half, difference + half


def _distributions(x: Floats, y: Floats, relative: float, absolute: float, fixed: bool) -> QuantityComparison:
    from scipy.stats import ks_2samp

    floor = max(relative * abs(float(y.mean())), absolute)
    margin = floor if fixed else max(floor, _sd(y))
    # Seeded: the same runs give the same verdict.
    random = np.random.default_rng(1)
    distance = float(_earth_mover(x, y))
    drawn = [
        (random.integers(0, len(x), len(x)), random.integers(0, len(y), len(y))) for _ in range(BOOTSTRAPS)
    ]
    again_x, again_y = (np.array(indices) for indices in zip(*drawn, strict=True))
    distances = _earth_mover(x[again_x], y[again_y])
    # A distance is never negative, so resampling adds to it: the basic bootstrap takes that off again.
    low, high = np.quantile(distances, (LEVEL, 1 - LEVEL))
    low, high = max(0.0, 2 * distance - float(high)), max(distance, 2 * distance - float(low))
    return QuantityComparison(
        sim=float(x.mean()),
        emu=float(y.mean()),
        spread=_sd(y),
        margin=margin,
        low=low,
        high=high,
        n_sim=len(x),
        n_emu=len(y),
        finding=_place(low, high, margin),
        why="",
        ks_p=float(ks_2samp(x, y).pvalue),
    )


def _earth_mover(x: Floats, y: Floats) -> Floats:
    """W1, the area between the distribution functions of two samples [..., runs]: of each pair, [...]."""
    every = np.concatenate([x, y], axis=-1)
    order = np.argsort(every, axis=-1)
    widths = np.diff(np.take_along_axis(every, order, axis=-1), axis=-1)
    of_x = order < x.shape[-1]
    below_x, below_y = (
        np.cumsum(which, axis=-1)[..., :-1] / values.shape[-1] for which, values in ((of_x, x), (~of_x, y))
    )
    area: Floats = (np.abs(below_x - below_y) * widths).sum(axis=-1)
    return area


def _sd(values: Floats) -> float:
    # Equal values have no spread, though the sum of squares may be rounded to another value.
    return 0.0 if float(np.ptp(values)) == 0 else float(values.std(ddof=1))


def _t(share: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))

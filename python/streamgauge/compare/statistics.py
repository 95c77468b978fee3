"""Evidence of two samples of repetitions on the difference of their means.

From six repetitions on (pairs, or the smaller of two unpaired samples) intervals and probabilities are
those of the studentised bootstrap, *bootstrap-t* (Efron and Tibshirani, "An Introduction to the Bootstrap",
1993, sections 12.5 and 16.4), which allows for skewed values; its resamples are drawn once and the same for
every call, so that equal data give equal answers. Fewer cannot be resampled with sense, and Student's t
takes its place (Welch's for unpaired samples), which holds for values near the normal distribution.

Where no resample is as far from zero as the sample, the probability is below the resolution of the resamples,
1 in 10,000 on a side, and Student's t supplies the value: of 27 subjects there are 351 pairs, and Holm's
correction leaves none of them under 5 % that is not below 1 in 14,000.

A difference that is the same in every pair has an interval without width, which is no confidence: it has no
probability, and `Estimate.no_variation` is true.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import numpy as np

from streamgauge.metrics.grid import Floats

__all__ = ["CONFIDENCE", "FEWEST_RESAMPLED", "Estimate", "holm", "paired", "single", "unpaired"]

CONFIDENCE = 0.95
"""Level of every interval."""
FEWEST_RESAMPLED = 6
"""From this number of repetitions on the bootstrap is used."""
RESAMPLES = 9_999
_SEED = 20_130_101
_AGREE = 1e-12
"""Values this near one another, relative to the largest, are the same."""

Method = Literal["bootstrap-t", "Student's t", "none"]


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of means, with the known facts on its error.

    ``interval`` holds the `CONFIDENCE` interval's ends, an infinite one where the data set no bound; None for
    fewer than two repetitions. `probability` is that of data at least as far from zero if the true value were
    zero, two-sided; None without an interval, and where nothing varied.
    """

    mean: float
    interval: tuple[float, float] | None
    probability: float | None
    n: int
    method: Method
    no_variation: bool
    _scaled: Floats | None = field(default=None, compare=False, repr=False)
    """The studentised means of resamples, [resample]; None for Student's distribution."""
    _error: float = 0.0
    _freedom: float = 0.0

    def within(self, margin: float) -> float | None:
        """Returns the probability of data as near to zero as these, or nearer, if the true value were at
        least `margin` away from it: the greater of two one-sided tests (Schuirmann, Journal of
        Pharmacokinetics and Biopharmaceutics 15, 1987). None where `probability` is."""
        if self.probability is None:
            return None
        above = self._share_above((self.mean + margin) / self._error)
        below = self._share_below((self.mean - margin) / self._error)
        return max(above, below)

    def _share_above(self, at: float) -> float:
        return self._share(at, 1)

    def _share_below(self, at: float) -> float:
        return self._share(at, -1)

    def _share(self, at: float, side: Literal[1, -1]) -> float:
        """Returns the share of studentised means that are at least as high as `at`, or for `side` -1 as
        low."""
        from scipy.special import stdtr

        reached = 0 if self._scaled is None else int(np.count_nonzero(side * self._scaled >= side * at))
        resolved = 1.0 if self._scaled is None else (1 + reached) / (1 + len(self._scaled))
        return resolved if reached else min(resolved, float(stdtr(self._freedom, -side * at)))


def single(values: Sequence[float]) -> Estimate:
    """Returns the mean of repetitions. Raises ValueError without any, or for one that is not finite."""
    x = _checked(values)
    n = len(x)
    if n < 2:
        return Estimate(float(x.mean()), None, None, n, "none", False)
    error = float(x.std(ddof=1)) / math.sqrt(n)
    # Squares of the smallest numbers are nothing.
    if _same(x) or not error:
        mean = float(x[0])
        return Estimate(mean, (mean, mean), None, n, "none", True)
    if n < FEWEST_RESAMPLED:
        return _student(float(x.mean()), error, n - 1, n)
    means, errors = _resampled(x)
    return _bootstrapped(float(x.mean()), error, means, errors, n)


def paired(values: Sequence[float], baseline: Sequence[float]) -> Estimate:
    """Returns the mean difference of pairs, ``values`` less ``baseline``; see `single`."""
    ours, theirs = _checked(values), _checked(baseline)
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} values cannot be paired with {len(theirs)}")
    scale = max(float(np.abs(ours).max()), float(np.abs(theirs).max()))
    difference = ours - theirs
    difference[np.abs(difference) <= _AGREE * scale] = 0.0
    return single(difference.tolist())


def unpaired(values: Sequence[float], baseline: Sequence[float]) -> Estimate:
    """Returns the difference of two independent samples' means, ``values`` less ``baseline``.

    The two variances need not be equal (Welch, Biometrika 34, 1947; of the bootstrap, section 16.2 of Efron
    and Tibshirani). `n` is the smaller sample's size.
    """
    ours, theirs = _checked(values), _checked(baseline)
    mean, n = float(ours.mean() - theirs.mean()), min(len(ours), len(theirs))
    if n < 2:
        return Estimate(mean, None, None, n, "none", False)
    if _same(ours) and _same(theirs):
        mean = 0.0 if _same(np.concatenate([ours, theirs])) else mean
        return Estimate(mean, (mean, mean), None, n, "none", True)
    a, b = float(ours.var(ddof=1)) / len(ours), float(theirs.var(ddof=1)) / len(theirs)
    error = math.sqrt(a + b)
    if not error:
        return Estimate(mean, (mean, mean), None, n, "none", True)
    if n < FEWEST_RESAMPLED:
        freedom = (a + b) ** 2 / (a**2 / (len(ours) - 1) + b**2 / (len(theirs) - 1))
        return _student(mean, error, freedom, n)
    my_means, my_errors = _resampled(ours)
    their_means, their_errors = _resampled(theirs, other=True)
    return _bootstrapped(mean, error, my_means - their_means, np.hypot(my_errors, their_errors), n)


def holm(probabilities: Sequence[float | None]) -> list[float | None]:
    """Returns probabilities corrected for their number, in the same order (Holm, Scandinavian Journal of
    Statistics 6, 1979): with those below 5 % taken for true, the chance of an error in any of them is 5 % at
    most."""
    known = sorted((value, place) for place, value in enumerate(probabilities) if value is not None)
    found: list[float | None] = [None] * len(probabilities)
    least = 0.0
    for rank, (value, place) in enumerate(known):
        least = max(least, min(1.0, value * (len(known) - rank)))
        found[place] = least
    return found


def _checked(values: Sequence[float]) -> Floats:
    x = np.array(values, dtype=np.float64)
    if not len(x) or not np.isfinite(x).all():
        raise ValueError(f"a mean needs finite values, not {list(values)}")
    return x


def _same(x: Floats) -> bool:
    return float(np.ptp(x)) <= _AGREE * float(np.abs(x).max())


def _student(mean: float, error: float, freedom: float, n: int) -> Estimate:
    from scipy.special import stdtr, stdtrit

    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * error
    chance = 2 * float(stdtr(freedom, -abs(mean) / error))
    return Estimate(
        mean, (mean - half, mean + half), chance, n, "Student's t", False, _error=error, _freedom=freedom
    )


def _bootstrapped(mean: float, error: float, means: Floats, errors: Floats, n: int) -> Estimate:
    """Returns the interval from resamples' means, each less that of the sample, and standard errors,
    [resample]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = means / errors
    # A resample of one value only has no information on its error, and bounds nothing.
    scaled[np.isnan(scaled)] = 0.0
    # Order statistics, so that infinite ones are taken as they are.
    places = [math.ceil((0.5 + side * CONFIDENCE / 2) * (len(scaled) + 1)) - 1 for side in (1, -1)]
    low, high = np.partition(scaled, places)[places].tolist()
    found = Estimate(
        mean, (mean - low * error, mean - high * error), 1.0, n, "bootstrap-t", False, scaled, error, n - 1
    )
    tail = found._share_above(mean / error) if mean > 0 else found._share_below(mean / error)
    return replace(found, probability=min(1.0, 2 * tail))


def _resampled(x: Floats, *, other: bool = False) -> tuple[Floats, Floats]:
    """Returns for each resample its mean less that of `x`, and its standard error, [resample]."""
    n = len(x)
    centred = x - x.mean()
    shares = _shares(n, other)
    means: Floats = shares @ centred
    squares = shares @ centred**2
    variance = np.maximum(squares - means**2, 0.0) * n / (n - 1)
    # Rounding errors of zero.
    variance[variance <= 1e-14 * float((centred**2).max())] = 0.0
    return means, np.sqrt(variance / n)


@cache
def _shares(n: int, other: bool) -> Floats:
    """Returns how often each of `n` values is in each resample, over n, [resample, value]."""
    random = np.random.default_rng([_SEED, n, other])
    return random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n

"""Statistics over all trials together: of one value's distribution, or of two.

Each is given `counts`, [resample, trial]: how often a trial is in each resample, all ones for the trials as
they are. A bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 6) is therefore
one call, and two statistics of the same resamples, which are drawn once, can be compared with one another.
Values may be infinite where it is stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from streamgauge.metrics.grid import Floats
from streamgauge.metrics.interval import Interval

__all__ = [
    "RESAMPLES",
    "correlation",
    "emd",
    "ks",
    "not_certain",
    "quantile",
    "resampled",
    "resampled_by",
    "spread",
]

RESAMPLES = 1_999
_SEED = 20_130_101


def correlation(x: Floats, y: Floats, counts: Floats) -> Floats:
    """Pearson's r of pairs, [resample]; NaN where either does not vary."""
    n = counts.sum(axis=1)
    # From the mean of each resample, so that nothing is lost where that is far from the values' own spread.
    dx, dy = (values - (counts @ values / n)[:, None] for values in (x, y))
    var_x, var_y = (np.einsum("rt,rt->r", counts, deviation**2) for deviation in (dx, dy))
    covariance = np.einsum("rt,rt,rt->r", counts, dx, dy)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = covariance / np.sqrt(var_x * var_y)
    # Rounding errors of zero are no variation.
    least_x, least_y = (n * (1e-14 * np.abs(values).max(initial=0)) ** 2 for values in (x, y))
    return np.where((var_x <= least_x) | (var_y <= least_y), np.nan, np.clip(found, -1.0, 1.0))


def quantile(x: Floats, share: float, counts: Floats) -> Floats:
    """Returns the least value that at least a share (above 0, to 1) of the values do not exceed, [resample]:
    the inverse of the distribution function. Values may be infinite.

    Raises:
        ValueError: if the share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"a quantile is at more than 0 and at most 100 %, not {100 * share:g} %")
    order = np.argsort(x, kind="stable")
    reached = np.cumsum(counts[:, order], axis=1)
    wanted = share * reached[:, -1:] * (1 - 1e-12)
    return np.asarray(x[order][(reached >= wanted).argmax(axis=1)])


def ks(x: Floats, y: Floats, counts: Floats) -> Floats:
    """Returns the Kolmogorov-Smirnov distance, [resample]: how far the distribution functions of two values
    of the same trials are apart where they are furthest, from 0 to 1. Values may be infinite."""
    _, apart = _apart(x, y, counts)
    return np.asarray(np.abs(apart).max(axis=1))


def emd(x: Floats, y: Floats, counts: Floats) -> Floats:
    """Returns the earth mover's distance, [resample], in the unit of the values: the area between their
    distribution functions, or how far a value must be moved on average to make one distribution of the other
    (Wasserstein's of order 1)."""
    points, apart = _apart(x, y, counts)
    return np.asarray(np.abs(apart[:, :-1]) @ np.diff(points))


def _apart(x: Floats, y: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Returns the points where either distribution function steps, and how far the two are apart from there
    on."""
    points, place = np.unique(np.concatenate([x, y]), return_inverse=True)
    n = len(x)
    steps = np.zeros((len(points), n))
    np.add.at(steps, (place[:n], np.arange(n)), 1.0)
    np.add.at(steps, (place[n:], np.arange(n)), -1.0)
    return points, (counts @ np.cumsum(steps, axis=0).T) / counts.sum(axis=1, keepdims=True)


def resampled_by(groups: Sequence[int]) -> Floats:
    """As `resampled`, of trials that are drawn in groups: those of one are in a resample as often as each
    other (a cluster bootstrap; Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section
    3.8)."""
    _, place = np.unique(np.asarray(groups), return_inverse=True)
    return resampled(int(place.max()) + 1)[:, place]


@cache
def resampled(n: int) -> Floats:
    """Returns how often each of `n` trials is in the trials themselves, which come first, and in each of
    `RESAMPLES` resamples with replacement, [1 + resample, trial]; the same for every call."""
    drawn = np.random.default_rng([_SEED, n]).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    return np.concatenate([np.ones((1, n)), drawn])


def not_certain(found: Floats, n: int) -> Floats:
    """Returns a share of `n` and those of resamples. At none or all, every resample has the same share, which
    is no certainty: they then lie, half on either side, at the ends of Wilson's interval (Journal of the
    American Statistical Association 22, 1927), of z² / (n + z²) with z = 1.96."""
    if found[0] not in (0.0, 1.0) or n < 2:
        return found
    from scipy.special import stdtrit

    half = 1.96**2 / (n + 1.96**2) / float(stdtrit(n - 1, 0.975))
    signs = np.where(np.arange(len(found) - 1) % 2, 1.0, -1.0)
    return np.concatenate([found[:1], found[0] + half * signs])


def spread(found: Floats, n: int) -> Interval:
    """Returns a statistic, the first of `found`, with its interval by the others, which are those of
    resamples: ± t times their standard deviation, of Student's t with n - 1 degrees of freedom.

    Raises:
        ValueError: if the statistic is not finite, or more than one in forty of the resamples' is not.
    """
    value, others = float(found[0]), found[1:]
    finite = others[np.isfinite(others)]
    if not np.isfinite(value) or len(finite) < 0.975 * len(others):
        raise ValueError("it is not finite")
    if n < 2:
        return Interval(value, None, n, False)
    if float(np.ptp(finite)) <= 1e-12 * float(np.abs(finite).max()):
        return Interval(value, 0.0, n, True)
    from scipy.special import stdtrit

    return Interval(value, float(stdtrit(n - 1, 0.975)) * float(finite.std(ddof=1)), n, False)

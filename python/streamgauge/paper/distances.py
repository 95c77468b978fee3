"""How far two samples of clips are apart, how two values go together, and how sure that is.

What is uncertain is which clips were played: clips are drawn anew, each with all of its trials and over both
transports at once (a cluster bootstrap; Davison and Hinkley, "Bootstrap Methods and their Application", 1997,
section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.metrics.grid import Floats, Ints

__all__ = ["Bounded", "Sample", "correlation", "distances", "least_squares", "share_of", "wilson"]

BOOTSTRAPS = 1000
LEVEL = 0.025
"""At each end of an interval."""
_PLACES = 512
"""The bootstrap of a distance looks at two distribution functions at so many places at most."""


@dataclass(frozen=True)
class Sample:
    """Values, each with the clip of which it is. A value that is never reached is infinite."""

    values: Floats
    clips: Ints

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Bounded:
    """A value with its 95 % interval, which the value is always in."""

    value: float
    low: float
    high: float


def distances(one: Sample, other: Sample) -> tuple[Bounded, Bounded | None] | None:
    """Kolmogorov and Smirnov's distance of two samples, in [0, 1], and the earth mover's, in the values'
    unit; None if one is empty. The earth mover's is None where a value is infinite.

    Neither is ever negative, so that resampling adds to them: the basic bootstrap takes that off again.
    """
    if not len(one) or not len(other):
        return None
    places = np.unique(np.concatenate([one.values, other.values]))
    apart = np.abs(_shares(one.values, places) - _shares(other.values, places))
    largest, is_finite = float(apart.max()), bool(np.isfinite(places).all())
    area = float((apart[:-1] * np.diff(places)).sum()) if is_finite else 0.0
    if len(places) > _PLACES:
        places = places[np.linspace(0, len(places) - 1, _PLACES).round().astype(int)]
    clips = np.unique(np.concatenate([one.clips, other.clips]))
    weights = _drawn(len(clips))
    again = np.abs(_again(one, clips, places, weights) - _again(other, clips, places, weights))
    again = again[np.isfinite(again).all(axis=1)]
    largest_again = again.max(axis=1)
    found = _basic(largest, largest_again, 1.0)
    if not is_finite:
        return found, None
    return found, _basic(area, (again[:, :-1] * np.diff(places)).sum(axis=1), math.inf)


def _shares(values: Floats, places: Floats) -> Floats:
    """The distribution function at some places."""
    return np.asarray(np.searchsorted(np.sort(values), places, side="right") / len(values))


def _drawn(count: int) -> Floats:
    """How often each of so many clips is drawn, [bootstrap, clip]. Seeded: the same trials give the same."""
    shares = np.full(count, 1.0 / count)
    return np.asarray(np.random.default_rng(1).multinomial(count, shares, BOOTSTRAPS), dtype=np.float64)


def _again(sample: Sample, clips: Ints, places: Floats, weights: Floats) -> Floats:
    """The distribution function of each draw, [bootstrap, place]; NaN where nothing was drawn."""
    counts = np.zeros((len(clips), len(places)))
    at = np.searchsorted(places, sample.values).clip(max=len(places) - 1)
    np.add.at(counts, (np.searchsorted(clips, sample.clips), at), 1.0)
    below = weights @ np.cumsum(counts, axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(below / below[:, -1:])


def _basic(value: float, again: Floats, most: float) -> Bounded:
    if not len(again):
        return Bounded(value, 0.0, most)
    low, high = np.quantile(again, (LEVEL, 1 - LEVEL))
    low, high = max(0.0, 2 * value - float(high)), min(most, 2 * value - float(low))
    return Bounded(value, min(low, value), max(high, value))


def correlation(x: Sample, y: Floats) -> Bounded | None:
    """Pearson's r of two values of each trial, between the bootstrap's percentiles; None if one of them does
    not vary."""
    if len(x) < 3:
        return None
    clips, at = np.unique(x.clips, return_inverse=True)
    a, b = x.values - x.values.mean(), y - y.mean()
    if min(float(np.abs(a).max()), float(np.abs(b).max())) == 0:
        return None
    # Of unit size, so that products of large numbers do not swallow small ones.
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    sums = np.zeros((len(clips), 6))
    np.add.at(sums, at, np.column_stack([np.ones(len(a)), a, b, a * a, b * b, a * b]))
    value = _pearson(sums.sum(axis=0, keepdims=True))[0]
    if not math.isfinite(value):
        return None
    again = _pearson(_drawn(len(clips)) @ sums)
    again = again[np.isfinite(again)]
    low, high = np.quantile(again, (LEVEL, 1 - LEVEL)) if len(again) else (-1.0, 1.0)
    return Bounded(float(value), min(float(low), float(value)), max(float(high), float(value)))


def _pearson(sums: Floats) -> Floats:
    """r of sums of 1, a, b, a², b² and ab, [..., 6]; NaN where one does not vary."""
    n, a, b, aa, bb, ab = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        of_a, of_b = aa - a * a / n, bb - b * b / n
        # What is left of rounding is no variation.
        varies = (of_a > 1e-12 * aa) & (of_b > 1e-12 * bb)
        found = np.where(varies, (ab - a * b / n) / np.sqrt(of_a * of_b), np.nan)
    return np.asarray(found.clip(-1.0, 1.0))


def least_squares(x: Floats, y: Floats) -> tuple[float, float] | None:
    """Slope and value at 0 of the line of least squares; None if x does not vary."""
    if len(x) < 2 or float(np.ptp(x)) == 0:
        return None
    slope, at_zero = np.polyfit(x, y, 1)
    return float(slope), float(at_zero)


def share_of(truths: Sequence[bool], clips: Sequence[int]) -> Bounded | None:
    """The share of trials of which something is true, with `wilson`'s interval; None if there are none.

    The trials of one clip are as one: they tell no more than the clip does.
    """
    if not truths:
        return None
    return wilson(sum(truths) / len(truths), len(set(clips)))


def wilson(share: float, n: int) -> Bounded:
    """Wilson's 95 % interval of a share of n (Journal of the American Statistical Association 22, 1927)."""
    z = 1.959964
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Bounded(share, min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half)))

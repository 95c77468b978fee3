"""How far two samples of clips are apart, how two values go together, and how sure that is.

The uncertainty is in the choice of clips: clips are drawn anew, each with all of its trials and over both
transports at once (a cluster bootstrap; Davison and Hinkley, "Bootstrap Methods and their Application", 1997,
section 3.8), as checks draw them (`streamgauge.checks.of_trials`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.metrics.distributions import correlation, resampled, resampled_by, spread
from streamgauge.metrics.grid import Floats, Ints

__all__ = ["Bounded", "Sample", "correlated", "distances", "least_squares", "share_of", "wilson"]

_LEVEL = 0.025
"""At each end of an interval."""
_PLACES = 512
"""Most places at which the bootstrap of a distance compares two distribution functions."""


@dataclass(frozen=True)
class Sample:
    """Values, each with its clip. A value that is never reached is infinite."""

    values: Floats
    clips: Ints

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Bounded:
    """A value with its 95 % interval, in which it always is."""

    value: float
    low: float
    high: float


def distances(one: Sample, other: Sample) -> tuple[Bounded, Bounded | None] | None:
    """Kolmogorov and Smirnov's distance of two samples, in [0, 1], and the earth mover's, in the values'
    unit; None if one is empty. The earth mover's is None where a value is infinite."""
    if not len(one) or not len(other):
        return None
    places = np.unique(np.concatenate([one.values, other.values]))
    apart = np.abs(_shares(one.values, places) - _shares(other.values, places))
    largest = float(apart.max())
    area = float((apart[:-1] * np.diff(places)).sum()) if np.isfinite(places).all() else math.inf
    if len(places) > _PLACES:
        places = places[np.linspace(0, len(places) - 1, _PLACES).round().astype(int)]
    clips = np.unique(np.concatenate([one.clips, other.clips]))
    counts = resampled(len(clips))[1:]
    again = np.abs(_again(one, clips, places, counts) - _again(other, clips, places, counts))
    found = _basic(largest, again.max(axis=1), 1.0)
    if not math.isfinite(area):
        return found, None
    return found, _basic(area, again[:, :-1] @ np.diff(places), math.inf)


def _shares(values: Floats, places: Floats) -> Floats:
    """Returns the distribution function at some places."""
    return np.asarray(np.searchsorted(np.sort(values), places, side="right") / len(values))


def _again(sample: Sample, clips: Ints, places: Floats, counts: Floats) -> Floats:
    """Returns the distribution function of each resample, [resample, place]; NaN where nothing was drawn."""
    steps = np.zeros((len(clips), len(places)))
    at = np.searchsorted(places, sample.values).clip(max=len(places) - 1)
    np.add.at(steps, (np.searchsorted(clips, sample.clips), at), 1.0)
    below = counts @ np.cumsum(steps, axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(below / below[:, -1:])


def _basic(value: float, again: Floats, most: float) -> Bounded:
    """A distance is never negative, which makes resampling add to it: the basic bootstrap subtracts that
    again. For equal distributions of 79 clips, 82 % of such intervals reach 0, by standard deviations 11
    %."""
    again = again[np.isfinite(again)]
    if not len(again):
        return Bounded(value, 0.0, most)
    low, high = np.quantile(again, (_LEVEL, 1 - _LEVEL))
    low, high = max(0.0, 2 * value - float(high)), min(most, 2 * value - float(low))
    return Bounded(value, min(low, value), max(high, value))


def correlated(x: Sample, y: Floats) -> Bounded | None:
    """Pearson's r of two values of each trial; None if one of them does not vary."""
    if len(x) < 3:
        return None
    clips = len(np.unique(x.clips))
    found = correlation(x.values, y, resampled_by(x.clips.tolist()))
    if not np.isfinite(found[0]):
        return None
    try:
        r = spread(found, clips)
    except ValueError:
        return Bounded(float(found[0]), -1.0, 1.0)
    low, high = (r.mean if end is None else end for end in (r.low, r.high))
    return Bounded(r.mean, max(-1.0, low), min(1.0, high))


def least_squares(x: Floats, y: Floats) -> tuple[float, float] | None:
    """Slope and value at 0 of the line of least squares; None if x does not vary."""
    if len(x) < 2 or float(np.ptp(x)) == 0:
        return None
    slope, at_zero = np.polyfit(x, y, 1)
    return float(slope), float(at_zero)


def share_of(truths: Sequence[bool], clips: Sequence[int]) -> Bounded | None:
    """Returns the share of trials for which something is true, with `wilson`'s interval; None if there are
    none.

    The trials of one clip are as one: they carry no more information than the clip does.
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

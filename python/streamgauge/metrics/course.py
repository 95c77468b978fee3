"""From things that happened at times to metrics over a trial's samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamgauge.metrics.grid import SECOND_NS, Floats, Grid, Ints, Mask, differences
from streamgauge.metrics.passage import Samples
from streamgauge.metrics.reported import EventSeries
from streamgauge.metrics.result import Series


@dataclass(frozen=True)
class Spans:
    """Stretches of time in ns, [begin, end), disjoint and ascending."""

    begin: Ints
    end: Ints

    @classmethod
    def none(cls) -> Spans:
        """No time at all."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def within(self, times: Ints) -> Ints:
        """Returns how many ns of them lie before each time."""
        if not len(self.begin):
            return np.zeros(len(times), dtype=np.int64)
        whole = np.concatenate([[0], np.cumsum(self.end - self.begin)])
        latest = np.searchsorted(self.begin, times, side="right") - 1
        inside = np.minimum(times, self.end[latest]) - self.begin[latest]
        return np.where(latest >= 0, whole[latest] + inside, 0)

    def seconds(self, grid: Grid) -> Floats:
        """Returns how much of each sample they cover, in s."""
        found: Floats = differences(self.within(grid.edges_ns)) / SECOND_NS
        return found

    def without(self, others: Spans) -> Spans:
        """Returns the parts of them outside all of the others."""
        if not len(others.begin) or not len(self.begin):
            return self
        cuts = np.unique(np.concatenate([self.begin, self.end, others.begin, others.end]))
        kept = self._hold(cuts[:-1]) & ~others._hold(cuts[:-1])
        return Spans(cuts[:-1][kept], cuts[1:][kept])

    def clipped(self, begin: int, end: int) -> Spans:
        """Returns the parts of them in [begin, end)."""
        low, high = np.maximum(self.begin, begin), np.minimum(self.end, end)
        kept = low < high
        return Spans(low[kept], high[kept])

    def hold(self, begin: Ints, end: Ints) -> Mask:
        """Returns which of these stretches lie in one of them as a whole."""
        if not len(self.begin):
            return np.zeros(len(begin), dtype=np.bool_)
        latest = np.searchsorted(self.begin, begin, side="right") - 1
        held: Mask = (latest >= 0) & (end <= self.end[latest])
        return held

    def _hold(self, times: Ints) -> Mask:
        latest = np.searchsorted(self.begin, times, side="right") - 1
        held: Mask = (latest >= 0) & (times < self.end[latest])
        return held


def counted(grid: Grid, times_ns: Ints) -> Floats:
    """Returns how many of these ascending times fall into each sample."""
    return differences(grid.cuts(times_ns)).astype(np.float64)


def summed(grid: Grid, times_ns: Ints, values: Floats) -> Floats:
    """Returns the sum in each sample of values at these ascending times."""
    reached = np.concatenate([[0.0], np.cumsum(values)])
    found: Floats = differences(reached[grid.cuts(times_ns)])
    return found


def observed(grid: Grid, times_ns: Ints, values: Floats) -> Series:
    """Returns the mean of values that were observed at these ascending times, and their extremes in each
    sample."""
    cuts = grid.cuts(times_ns)
    count = differences(cuts)
    reached = np.concatenate([[0.0], np.cumsum(values)])
    low, high = np.full(len(grid), np.nan), np.full(len(grid), np.nan)
    if (filled := np.flatnonzero(count)).size:
        inside = values[: cuts[-1]]
        low[filled] = np.minimum.reduceat(inside, cuts[filled])
        high[filled] = np.maximum.reduceat(inside, cuts[filled])
    return Series(differences(reached[cuts]), count.astype(np.float64), low, high)


def stepped(
    grid: Grid, told: EventSeries, until_ns: int, scale: float = 1.0, without: Spans | None = None
) -> Series:
    """Returns the reported values as the mean over time of a value that holds until the next change.

    Args:
        grid: the samples.
        told: its changes; before the first there is nothing to measure.
        until_ns: the end of its validity.
        scale: canonical units in one of its own.
        without: spans that do not count.
    """
    times, values = told
    edges = grid.edges_ns
    known = (times < min(until_ns, int(edges[-1]))) & ~np.isnan(values)
    times, values = times[known], scale * values[known]
    if not len(times):
        nothing = np.full(len(grid), np.nan)
        return Series(np.zeros(len(grid)), np.zeros(len(grid)), nothing, nothing)
    holds_s = differences(np.append(times, until_ns)) / SECOND_NS
    area = np.concatenate([[0.0], np.cumsum(values * holds_s)])

    def reached(at: Ints) -> Floats:
        at = np.clip(at, times[0], until_ns)
        latest = np.maximum(np.searchsorted(times, at, side="right") - 1, 0)
        return np.asarray(area[latest] + values[latest] * (at - times[latest]) / SECOND_NS)

    total, held_ns = reached(edges), np.clip(edges, times[0], until_ns)
    if without is not None and len(without.begin):
        held_ns = held_ns - without.clipped(int(times[0]), until_ns).within(edges)
        # The part of a stretch before an edge: none of it, all of it or, if the edge is within it, a part.
        before, after = reached(without.begin).tolist(), reached(without.end).tolist()
        by_edge = total.copy()
        first = np.searchsorted(edges, without.begin).tolist()
        last = np.searchsorted(edges, without.end).tolist()
        for begin, end, low, high in zip(first, last, before, after, strict=True):
            total[:begin] -= low
            total[begin:end] -= by_edge[begin:end]
            total[end:] -= high
    # Extremes: every change, and the value that held already at each sample's begin.
    starts = edges[:-1]
    held = np.searchsorted(times, starts, side="right") - 1
    carried = np.where((held >= 0) & (starts < until_ns), values[np.maximum(held, 0)], np.nan)
    place = np.concatenate([starts, times])
    order = np.argsort(place, kind="stable")
    everything = np.concatenate([carried, values])[order]
    firsts = np.flatnonzero(order < len(starts))
    low, high = np.fmin.reduceat(everything, firsts), np.fmax.reduceat(everything, firsts)
    return Series(differences(total), differences(held_ns) / SECOND_NS, low, high)


def averaged(samples: Samples, scale: float = 1.0) -> Series:
    """Returns the mean of one flow's observed values, with their extremes; `scale` is the canonical units in
    one of theirs."""
    return Series(scale * samples.total, samples.count, scale * samples.low, scale * samples.high)

"""How quantities go over time in all trials of a group: each is read once, and little is kept of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.grid import SECOND_NS, Floats, Grid, Ints, Mask
from streamgauge.metrics.result import Series

__all__ = ["BAND_TRIALS", "MAX_POINTS", "SHOWN_TRIALS", "Courses", "GroupCourse", "Spread", "band_words"]

MAX_POINTS = 240
"""Most points of a line: more would not be seen at the width of a page."""
BAND_TRIALS = 5
"""From this number of trials on a band holds 95 % of them; with fewer it reaches from the least to the
greatest."""
SHOWN_TRIALS = 10
"""Most trials with courses of their own, those of the lowest seeds."""

How = Literal["value", "most", "share", "trailing"]
"""Meaning of a metric's point: its value over the point's samples; the greatest inside them; for a metric
that is a time, the share of the point's length that it takes; or its value over the last while, up to the
point's end."""
_EXACT = 256


class Spread:
    """Quantiles of values that arrive one after the other, at many points at once, in bounded memory.

    It is exact up to 256 values. Out of each 256 more, sorted, every second stays and counts for two, and
    likewise at higher levels (Manku, Rajagopalan and Lindsay, SIGMOD 1998, section 3). Out of 10,000 a
    quantile is off by at most 1.2 % of them, and usually by far less.
    """

    def __init__(self, points: int) -> None:
        self._points = points
        self._levels: list[tuple[Floats, int]] = []
        """Values with a weight of 2^level each, [value, point], and the number of filled rows."""
        self._odd = False

    def add(self, values: Floats) -> None:
        """One more value for each point; NaN for those that have none."""
        self._put(0, values[np.newaxis])

    def _put(self, level: int, rows: Floats) -> None:
        if level == len(self._levels):
            # Most groups are of few trials.
            self._levels.append((np.empty((8, self._points), dtype=np.float32), 0))
        held, count = self._levels[level]
        needed = count + len(rows)
        if needed > len(held):
            grown = np.empty((min(_EXACT, max(2 * len(held), needed)), self._points), dtype=np.float32)
            grown[:count] = held[:count]
            held = grown
        held[count:needed] = rows
        self._levels[level] = held, needed
        if needed == _EXACT:
            held.sort(axis=0)
            # By turns, which makes dropped values lie as often above as below.
            kept = held[int(self._odd) :: 2].copy()
            self._odd = not self._odd
            self._levels[level] = held, 0
            self._put(level + 1, kept)

    def quantiles(self, shares: Sequence[float]) -> Floats:
        """Returns quantiles of the known values, linear between neighbours, [share, point]; NaN where none
        is."""
        filled = [(held[:count], 2.0**level) for level, (held, count) in enumerate(self._levels) if count]
        if not filled:
            return np.full((len(shares), self._points), np.nan)
        values = np.concatenate([held for held, _ in filled]).astype(np.float64)
        weights = np.concatenate([np.full(len(held), weight) for held, weight in filled])
        order = np.argsort(values, axis=0)  # NaN last
        values, sorted_weights = np.take_along_axis(values, order, axis=0), weights[order]
        known = np.isfinite(values)
        sorted_weights = np.where(known, sorted_weights, 0.0)
        ends = np.cumsum(sorted_weights, axis=0)
        places = ends - (sorted_weights + 1) / 2
        found = np.full((len(shares), self._points), np.nan)
        for point in np.flatnonzero(known.any(axis=0)):
            mine = known[:, point]
            at = np.asarray(shares) * (ends[-1, point] - 1)
            found[:, point] = np.interp(at, places[mine, point], values[mine, point])
        return found


@dataclass(frozen=True)
class GroupCourse:
    """A quantity over time in all trials of a group. Points are [point]; NaN where fewer than half of the
    trials have a value."""

    begins_s: Floats
    ends_s: Floats
    times_s: Floats
    """Time at which a point is drawn: its middle; for a value of the past, its end, as it is not known
    earlier."""
    median: Floats
    mean: Floats
    low: Floats | None
    """The band's lower edge; None of a single trial."""
    high: Floats | None
    known: Floats
    """How many trials have a value."""
    trials: int
    """How many were read."""
    single: Floats
    """Values of the first trials each, [trial, point]."""

    def greatest(self) -> float:
        """Returns the greatest of all drawn values except single trials; 0 without any."""
        drawn = [part for part in (self.median, self.mean, self.high) if part is not None]
        values = np.concatenate(drawn)
        values = values[np.isfinite(values)]
        return float(values.max()) if len(values) else 0.0


def band_words(trials: int) -> str:
    """Returns the meaning of a band over the trials; empty for a single one."""
    if trials < 2:
        return ""
    if trials < BAND_TRIALS:
        return f"from the least to the greatest of {trials} trials"
    return "from the 2.5th to the 97.5th percentile"


@dataclass(frozen=True)
class _Cut:
    """A trial's samples as points."""

    starts: Ints
    counts: Floats
    widths_s: Floats
    drawn: Mask

    @classmethod
    def of(cls, grid: Grid, step: int) -> _Cut:
        starts = np.arange(0, len(grid), step)
        ends = np.minimum(starts + step, len(grid))
        widths_s = (grid.edges_ns[ends] - grid.edges_ns[starts]) / SECOND_NS
        # A sliver left at either end by the window's bounds would show as a spike or a gap.
        usual = float(np.median(grid.widths_s))
        return cls(starts, (ends - starts).astype(np.float64), widths_s, widths_s >= 0.5 * usual)

    def values(self, series: Series, how: How, trailing: int) -> Floats:
        """Returns a series in each point, NaN where there is nothing to measure; `trailing` is in samples."""
        if how == "most":
            inside = series.samples() if series.high is None else series.high
            found: Floats = np.fmax.reduceat(inside, self.starts)
        elif how == "trailing":
            ends = (self.starts + self.counts).astype(np.int64)
            begins = np.maximum(ends - trailing, 0)
            over, under = (
                whole[ends] - whole[begins]
                for part in (series.numerator, series.denominator)
                for whole in [np.concatenate([[0.0], np.cumsum(np.ones(ends[-1]) if part is None else part)])]
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.where(under > 0, over / under, np.nan)
        else:
            over = np.add.reduceat(series.numerator, self.starts)
            if how == "share":
                under = self.widths_s
            elif series.denominator is None:
                under = self.counts
            else:
                under = np.add.reduceat(series.denominator, self.starts)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.where(under > 0, over / under, np.nan)
        return np.where(self.drawn, found, np.nan)


class _Read:
    """Stored data of a quantity."""

    def __init__(self, points: int) -> None:
        self.spread = Spread(points)
        self.total = np.zeros(points)
        self.known = np.zeros(points)
        self.single: list[Floats] = []
        self.trials = 0

    def add(self, values: Floats) -> None:
        self.spread.add(values)
        finite = np.isfinite(values)
        self.total[finite] += values[finite]
        self.known += finite
        self.trials += 1
        if len(self.single) < SHOWN_TRIALS:
            self.single.append(values)


class Courses:
    """Reads trials of one group, each once.

    Args:
        samples: the most samples that a trial of the scenario has; neighbours are merged where they are more
            than `MAX_POINTS`. A point's value is exact, a ratio of sums.
        flows: the requested metrics of each flow, with their kinds.
        stages: those of each bottleneck.
        sums: metrics of flows with sums in each point.
        trailing: the samples in the last while, if requested.
    """

    def __init__(
        self,
        samples: int,
        flows: Iterable[tuple[str, How]],
        stages: Iterable[tuple[str, How]] = (),
        sums: Iterable[str] = (),
        trailing: int = 1,
    ) -> None:
        self.step = math.ceil(samples / MAX_POINTS)
        """How many samples make a point."""
        self.trials = 0
        self._points = math.ceil(samples / self.step)
        self._wanted = (tuple(flows), tuple(stages))
        self._summed = tuple(sums)
        self._trailing = trailing
        self._found: dict[tuple[str, str, How], _Read] = {}
        self._sums: dict[tuple[str, str], tuple[Floats, Floats]] = {}
        self._edges_ns: Ints = np.zeros(1, dtype=np.int64)
        self._cuts: dict[bytes, _Cut] = {}

    def add(self, trial: TrialMetrics) -> None:
        """Reads one trial."""
        key = trial.grid.edges_ns.tobytes()
        cut = self._cuts.setdefault(key, _Cut.of(trial.grid, self.step))
        if len(trial.grid.edges_ns) > len(self._edges_ns):
            self._edges_ns = trial.grid.edges_ns
        self.trials += 1
        for wanted, subjects in zip(self._wanted, (trial.flows, trial.stages), strict=True):
            for subject, measured in subjects.items():
                for metric, how in wanted:
                    if (series := measured.series.get(metric)) is not None:
                        self._put((subject, metric, how), cut.values(series, how, self._trailing))
        if ("jain", "value") in self._wanted[0] and np.isfinite(trial.jain_samples).any():
            self._put(("", "jain", "value"), cut.values(trial.series("jain"), "value", 1))
        for metric, how in self._wanted[0]:
            if (series := trial.whole.series.get(metric)) is not None:
                self._put(("", metric, how), cut.values(series, how, self._trailing))
        for name, flow in trial.flows.items():
            for metric in self._summed:
                if (series := flow.series.get(metric)) is not None:
                    self._sum((name, metric), cut, series)

    def _put(self, key: tuple[str, str, How], values: Floats) -> None:
        read = self._found.setdefault(key, _Read(self._points))
        read.add(np.concatenate([values, np.full(self._points - len(values), np.nan)]))

    def _sum(self, key: tuple[str, str], cut: _Cut, series: Series) -> None:
        nothing = (np.zeros(self._points), np.zeros(self._points))
        over, under = self._sums.setdefault(key, nothing)
        count = len(cut.starts)
        over[:count] += np.add.reduceat(series.numerator, cut.starts)
        if series.denominator is not None:
            under[:count] += np.add.reduceat(series.denominator, cut.starts)

    @property
    def edges_s(self) -> Floats:
        """Returns the points' bounds in the longest trial, [point + 1]."""
        places = [*range(0, len(self._edges_ns) - 1, self.step), len(self._edges_ns) - 1]
        return self._edges_ns[places] / SECOND_NS

    def subjects(self, metric: str) -> list[str]:
        """Returns the flows or stages with values of a metric; an empty name is the whole trial's."""
        return [subject for subject, name, how in self._found if (name, how) == (metric, "value")]

    def course(self, subject: str, metric: str, how: How = "value") -> GroupCourse | None:
        """Returns one quantity over all trials; None if no trial has a value."""
        read = self._found.get((subject, metric, how))
        if read is None or not read.known.any():
            return None
        edges = self.edges_s
        count = len(edges) - 1
        few = read.known[:count] < self.trials / 2
        tail = (0.0, 1.0) if self.trials < BAND_TRIALS else (0.025, 0.975)
        quantiles = read.spread.quantiles([0.5, *tail])[:, :count]
        quantiles[:, few] = np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(few, np.nan, read.total[:count] / read.known[:count])
        several = self.trials > 1
        return GroupCourse(
            begins_s=edges[:-1],
            ends_s=edges[1:],
            times_s=edges[1:] if how == "trailing" else (edges[:-1] + edges[1:]) / 2,
            median=quantiles[0],
            mean=mean,
            low=quantiles[1] if several else None,
            high=quantiles[2] if several else None,
            known=read.known[:count],
            trials=self.trials,
            single=np.array(read.single)[:, :count],
        )

    def sums(self, subject: str, metric: str) -> tuple[Floats, Floats] | None:
        """Numerators and denominators of a metric in each point, means over the trials; see `Series`."""
        found = self._sums.get((subject, metric))
        if found is None:
            return None
        count = len(self.edges_s) - 1
        return found[0][:count] / self.trials, found[1][:count] / self.trials


Modes = Mapping[str, Courses]
"""A scenario's courses by mode."""

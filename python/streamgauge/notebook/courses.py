"""Metrics over time of many trials at once: the median, and the band that holds the middle 95 % of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.grid import SECOND_NS, Floats
from streamgauge.metrics.result import Series
from streamgauge.report.model import Group

__all__ = ["MOST_POINTS", "Course", "courses"]

MOST_POINTS: Final = 240
"""Of a line: more would not be seen at the width of a page."""
_BAND: Final = (0.025, 0.975)


@dataclass(frozen=True)
class Course:
    """A metric of one flow or stage over time, over the trials of a group; canonical units."""

    subject: str
    times_s: Floats
    median: Floats
    low: Floats
    high: Floats
    trials: Floats
    """How many trials each point is of."""


def courses(group: Group, chosen: Callable[[TrialMetrics], Sequence[tuple[str, Series]]]) -> list[Course]:
    """What is chosen of each valid trial, by the flow's or stage's name; trials are read one after the other.

    Samples are merged to at most `MOST_POINTS` points, exactly: a ratio of sums. A point stands where at
    least half of the trials have a value.
    """
    found: dict[str, dict[int, list[float]]] = {}
    middles: dict[int, float] = {}
    for metrics in group.each():
        for subject, series in chosen(metrics):
            points = found.setdefault(subject, {})
            for begin_ns, middle_s, value in _points(metrics, series):
                middles.setdefault(begin_ns, middle_s)
                points.setdefault(begin_ns, []).append(value)
    return [
        course
        for subject, points in found.items()
        if (course := _course(subject, points, middles, len(group.valid))) is not None
    ]


def _course(
    subject: str, points: dict[int, list[float]], middles: dict[int, float], trials: int
) -> Course | None:
    begins = [begin for begin in sorted(points) if 2 * len(points[begin]) >= trials]
    if not begins:
        return None
    values = [np.array(points[begin]) for begin in begins]
    low, high = (np.array([np.quantile(one, share) for one in values]) for share in _BAND)
    return Course(
        subject,
        np.array([middles[begin] for begin in begins]),
        np.array([np.median(one) for one in values]),
        low,
        high,
        np.array([float(len(one)) for one in values]),
    )


def _points(metrics: TrialMetrics, series: Series) -> list[tuple[int, float, float]]:
    """(begin in ns, middle in s, value) of each point with something to measure."""
    edges = metrics.grid.edges_ns
    step = math.ceil(len(metrics.grid) / MOST_POINTS)
    starts = np.arange(0, len(metrics.grid), step)
    ends = np.append(starts[1:], len(metrics.grid))
    total = np.add.reduceat(series.numerator, starts)
    weight = (
        (ends - starts).astype(np.float64)
        if series.denominator is None
        else np.add.reduceat(series.denominator, starts)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(weight > 0, total / weight, np.nan)
    widths = edges[ends] - edges[starts]
    # A sliver left at either end by the window's bounds would show as a spike.
    whole = np.isfinite(values) & (2 * widths >= np.median(widths))
    middles = (edges[starts] + edges[ends]) / 2 / SECOND_NS
    return [(int(edges[starts[i]]), float(middles[i]), float(values[i])) for i in np.flatnonzero(whole)]

"""Small drawings that need no script: a value with its interval on the axis of its column, and subjects on
two axes.

All is inline SVG with the colours of the page's style sheet. Positions on a column's axis are in percent,
which makes a cell's drawing as wide as its cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from markupsafe import Markup

from streamgauge.claims.dimension import Dimension, pick_unit, plain
from streamgauge.report.naming import Area, place_names

__all__ = ["DotAxis", "Point", "ScatterAxis", "axis_of", "dot", "drawn_ends", "pareto", "scatter"]

Place = Callable[[float, float], tuple[float, float]]
"""From values on both axes to where they are drawn."""

_EDGE = 5.0
"""Percent of a cell's width left free at either end, for a dot at the end of its axis."""
_FROM_ZERO = 0.6
"""An axis begins at 0 unless its values lie closer together than this share of the greatest."""


@dataclass(frozen=True)
class DotAxis:
    """Range of the values, in canonical units, and the labels at its ends."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    unit: str

    def percent(self, value: float) -> float:
        """Returns a value's place across a cell; a value off the axis stays at its end."""
        share = (value - self.low) / (self.high - self.low)
        return _EDGE + (100 - 2 * _EDGE) * min(1.0, max(0.0, share))


def axis_of(values: Sequence[float], dimension: Dimension, ticks: int = 3) -> DotAxis:
    """Returns an axis with round ends that holds all values; from 0 unless they lie far from it."""
    low, high = min(values), max(values)
    if low >= 0 and (high - low > (1 - _FROM_ZERO) * high or high == 0):
        low = 0.0
    if high <= low:
        room = abs(high) * 0.1 or 1.0
        low, high = (0.0, high + room) if low == 0 else (low - room, high + room)
    scale, unit = pick_unit(max(abs(low), abs(high)), dimension)
    step = _step((high - low) / scale, ticks)
    first, last = math.floor(low / scale / step + 1e-9), math.ceil(high / scale / step - 1e-9)
    marks = tuple((place * step * scale, plain(place * step, 6)) for place in range(first, last + 1))
    return DotAxis(marks[0][0], marks[-1][0], marks, unit)


def _step(span: float, count: int) -> float:
    """Returns a round distance that fits into the span at most `count` times, or once more."""
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= raw * 0.999)


def dot(
    axis: DotAxis,
    value: float,
    interval: tuple[float, float] | None,
    *,
    first: bool,
    beside: float | None = None,
) -> Markup:
    """Returns a value with its interval; `first` fills it in the accent, `beside` is the baseline's value, a
    line through all rows."""
    y = 7
    parts = [f'<line class="rail" x1="{_EDGE:g}%" x2="{100 - _EDGE:g}%" y1="{y}" y2="{y}"/>']
    if beside is not None and math.isfinite(beside):
        at = f"{axis.percent(beside):.2f}%"
        parts.append(f'<line class="beside" x1="{at}" x2="{at}" y1="0" y2="14"/>')
    if interval is not None and interval[1] > interval[0]:
        low, high = (
            axis.percent(end) if math.isfinite(end) else edge
            for end, edge in zip(interval, (_EDGE, 100 - _EDGE), strict=True)
        )
        parts.append(f'<line class="span" x1="{low:.2f}%" x2="{high:.2f}%" y1="{y}" y2="{y}"/>')
    kind = "dot first" if first else "dot"
    parts.append(f'<circle class="{kind}" cx="{axis.percent(value):.2f}%" cy="{y}" r="4.5"/>')
    return Markup(f'<svg class="strip" width="100%" height="14" aria-hidden="true">{"".join(parts)}</svg>')


@dataclass(frozen=True)
class Point:
    """A subject on two axes, with its intervals."""

    name: str
    x: float
    y: float
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    said: str = ""
    """Its numbers in words, shown on hover."""


def pareto(points: Sequence[Point], x_better: str, y_better: str) -> list[Point]:
    """Returns the points that no other is at least as good as on both axes and better on one, from left to
    right.

    Args:
        points: where subjects lie.
        x_better: ``less`` or ``more``.
        y_better: the same of the other axis.
    """

    def worse(value: float, better: str) -> float:
        return value if better == "less" else -value

    def costs(point: Point) -> tuple[float, float]:
        return worse(point.x, x_better), worse(point.y, y_better)

    kept = [
        point
        for point in points
        if not any(
            all(theirs <= mine for theirs, mine in zip(costs(other), costs(point), strict=True))
            and costs(other) != costs(point)
            for other in points
        )
    ]
    return sorted(kept, key=lambda point: (point.x, costs(point)[1]))


_W, _H = 400.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 14.0, 20.0, 44.0
_CHAR = 8.6
"""Width of a letter of a name that is printed in bold."""


@dataclass(frozen=True)
class ScatterAxis:
    """Content of an axis of a scatter."""

    title: str
    dimension: Dimension
    better: str
    """``less`` or ``more``."""
    signed: bool = False
    """Whether values can be below zero."""


def drawn_ends(values: Sequence[tuple[float, tuple[float, float] | None]], *, signed: bool) -> list[float]:
    """Returns the range of an axis for values and their intervals: nothing below zero for values that cannot
    be negative."""
    ends = [end for _, interval in values if interval for end in interval if math.isfinite(end)]
    return [value for value, _ in values] + [end if signed else max(0.0, end) for end in ends]


def scatter(points: Sequence[Point], x: ScatterAxis, y: ScatterAxis, *, name: str) -> Markup:
    """Subjects as points with crosses of their intervals, the Pareto front as a line.

    Args:
        points: the subjects; one at least.
        x: the horizontal axis.
        y: the vertical one.
        name: the drawing's name for screen readers.
    """
    across = axis_of(
        drawn_ends([(point.x, point.x_interval) for point in points], signed=x.signed), x.dimension, 4
    )
    up = axis_of(
        drawn_ends([(point.y, point.y_interval) for point in points], signed=y.signed), y.dimension, 4
    )

    def at(px: float, py: float) -> tuple[float, float]:
        share_x = min(1.0, max(0.0, (px - across.low) / (across.high - across.low)))
        share_y = min(1.0, max(0.0, (py - up.low) / (up.high - up.low)))
        return (
            _LEFT + 8 + share_x * (_W - _LEFT - _RIGHT - 16),
            _H - _BOTTOM - 8 - share_y * (_H - _TOP - _BOTTOM - 16),
        )

    parts = [_frame(across, up, at), *_titles(x, y, across.unit, up.unit)]
    front = pareto(points, x.better, y.better)
    if len(front) > 1:
        corners: list[tuple[float, float]] = []
        for earlier, later in pairwise(front):
            (x1, y1), (x2, y2) = at(earlier.x, earlier.y), at(later.x, later.y)
            # Over the corner that both leave undone.
            corners += [(x1, y1), (x2, y1) if x.better == "less" else (x1, y2), (x2, y2)]
        parts.append(f'<polyline class="front" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}"/>')
    best = {id(point) for point in front}
    for point in points:
        parts.append(_cross(point, at))
    places = [at(point.x, point.y) for point in points]
    left, base, _ = _corner(x, y)
    corner = (left - 40 if left > _W / 2 else left, base - 11, left if left > _W / 2 else left + 40, base + 4)
    box = (2.0, 14.0, _W - 2, _H - _BOTTOM + 2)
    names = place_names([point.name for point in points], places, Area(box, _CHAR, (corner,)))
    parts += [one.line for one in names]
    for point in points:
        px, py = at(point.x, point.y)
        kind = "dot first" if id(point) in best else "dot"
        parts.append(
            f"<g><title>{escape(point.said or point.name)}</title>"
            f'<circle class="{kind}" cx="{px:.1f}" cy="{py:.1f}" r="6"/></g>'
        )
    for point, one in zip(points, names, strict=True):
        kind = "name first" if id(point) in best else "name"
        parts.append(f'<text class="{kind}" {one.attributes}>{escape(one.text)}</text>')
    return Markup(
        f'<svg class="scatter" viewBox="0 0 {_W:g} {_H:g}" role="img" aria-label="{escape(name)}">'
        f"{''.join(parts)}</svg>"
    )


def _frame(across: DotAxis, up: DotAxis, at: Place) -> str:
    parts = []
    for value, text in across.ticks:
        px, _ = at(value, up.low)
        parts.append(f'<line class="grid" x1="{px:.1f}" x2="{px:.1f}" y1="{_TOP:g}" y2="{_H - _BOTTOM:g}"/>')
        parts.append(
            f'<text class="tick" x="{px:.1f}" y="{_H - _BOTTOM + 14:g}" text-anchor="middle">{text}</text>'
        )
    for value, text in up.ticks:
        _, py = at(across.low, value)
        parts.append(f'<line class="grid" x1="{_LEFT:g}" x2="{_W - _RIGHT:g}" y1="{py:.1f}" y2="{py:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 6:g}" y="{py + 4:.1f}" text-anchor="end">{text}</text>')
    return "".join(parts)


def _corner(x: ScatterAxis, y: ScatterAxis) -> tuple[float, float, str]:
    """Returns where it is better: place and anchor of that word."""
    right, top = x.better == "more", y.better == "more"
    px, anchor = (_W - _RIGHT - 6, "end") if right else (_LEFT + 6, "start")
    return px, _TOP + 14 if top else _H - _BOTTOM - 6, anchor


def _titles(x: ScatterAxis, y: ScatterAxis, x_unit: str, y_unit: str) -> list[str]:
    def told(title: str, unit: str) -> str:
        return escape(f"{title}, {unit}" if unit else title)

    # An arrow towards better values, beside the words.
    x_said = f"{told(x.title, x_unit)} →" if x.better == "more" else f"← {told(x.title, x_unit)}"
    y_said = f"{'↑' if y.better == 'more' else '↓'} {told(y.title, y_unit)}"
    corner_x, corner_y, anchor = _corner(x, y)
    return [
        f'<text class="axis" x="{_W - _RIGHT:g}" y="{_H - 8:g}" text-anchor="end">{x_said}</text>',
        f'<text class="axis" x="4" y="12">{y_said}</text>',
        f'<text class="corner" x="{corner_x:g}" y="{corner_y:g}" text-anchor="{anchor}">better</text>',
    ]


def _cross(point: Point, at: Place) -> str:
    parts = []
    if point.x_interval is not None and all(map(math.isfinite, point.x_interval)):
        (x1, y1), (x2, _) = at(point.x_interval[0], point.y), at(point.x_interval[1], point.y)
        parts.append(f'<line class="span" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y1:.1f}"/>')
    if point.y_interval is not None and all(map(math.isfinite, point.y_interval)):
        (x1, y1), (_, y2) = at(point.x, point.y_interval[0]), at(point.x, point.y_interval[1])
        parts.append(f'<line class="span" x1="{x1:.1f}" x2="{x1:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>')
    return "".join(parts)

"""Two measures of many systems against each other, each with its name: where they crowd, names stand apart
from their points, with a line between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

from markupsafe import Markup

from streamgauge.compare import ComparedMetric
from streamgauge.report.dots import DotAxis, Point, axis_of, drawn_ends, pareto
from streamgauge.report.naming import Area, Box, place_names

__all__ = ["front"]

_W, _H = 560.0, 440.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 16.0, 24.0, 44.0
_CHAR = 7.2
"""Width of a letter of a name, in the drawing's units."""
_NAME, _BELOW = 11.0, 4.0
"""How far a word reaches above and below its base line."""

At = Callable[[float, float], tuple[float, float]]
"""From values on both axes to where they are drawn."""


def front(points: Sequence[Point], x: ComparedMetric, y: ComparedMetric) -> Markup:
    """Returns the drawing: points with crosses of their 95 % intervals, names, and the Pareto front as a
    dashed line.

    Args:
        points: systems with their values and intervals; one at least.
        x: the horizontal metric.
        y: the vertical one.
    """
    across, up = (
        axis_of(
            drawn_ends(
                [(getattr(p, side), getattr(p, f"{side}_interval")) for p in points], signed=about.signed
            ),
            about.dimension,
            5,
        )
        for side, about in (("x", x), ("y", y))
    )

    def at(px: float, py: float) -> tuple[float, float]:
        share_x = min(1.0, max(0.0, (px - across.low) / (across.high - across.low)))
        share_y = min(1.0, max(0.0, (py - up.low) / (up.high - up.low)))
        return _LEFT + share_x * (_W - _LEFT - _RIGHT), _H - _BOTTOM - share_y * (_H - _TOP - _BOTTOM)

    places = [at(point.x, point.y) for point in points]
    best = pareto(points, x.better, y.better)
    parts = [_grid(across, up, at), *_titles(x, y, across, up)]
    if len(best) > 1:
        corners: list[tuple[float, float]] = []
        for earlier, later in pairwise(best):
            (x1, y1), (x2, y2) = at(earlier.x, earlier.y), at(later.x, later.y)
            corners += [(x1, y1), (x2, y1) if x.better == "less" else (x1, y2), (x2, y2)]
        parts.append(f'<polyline class="front" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}"/>')
    first = {id(point) for point in best}
    box = (2.0, _TOP, _W - 2, _H - _BOTTOM + 2)
    # The corner with the better values is left free.
    names = place_names([point.name for point in points], places, Area(box, _CHAR, (_corner(x, y)[0],)))
    parts += [one.line for one in names if one.line]
    for point in points:
        parts += _cross(point, at)
    for point, (px, py) in zip(points, places, strict=True):
        kind = "dot first" if id(point) in first else "dot"
        parts.append(
            f"<g><title>{escape(point.said or point.name)}</title>"
            f'<circle class="{kind}" cx="{px:.1f}" cy="{py:.1f}" r="5"/></g>'
        )
    for point, one in zip(points, names, strict=True):
        kind = "name first" if id(point) in first else "name"
        parts.append(f'<text class="{kind}" {one.attributes}>{escape(one.text)}</text>')
    title = f"{x.title} and {y.title[0].lower()}{y.title[1:]} of each system"
    return Markup(
        f'<svg class="scatter" viewBox="0 0 {_W:g} {_H:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _grid(across: DotAxis, up: DotAxis, at: At) -> str:
    parts = []
    for value, text in across.ticks:
        px, _ = at(value, up.low)
        parts.append(f'<line class="grid" x1="{px:.1f}" x2="{px:.1f}" y1="{_TOP:g}" y2="{_H - _BOTTOM:g}"/>')
        parts.append(
            f'<text class="tick" x="{px:.1f}" y="{_H - _BOTTOM + 16:g}" text-anchor="middle">{text}</text>'
        )
    for value, text in up.ticks:
        _, py = at(across.low, value)
        parts.append(f'<line class="grid" x1="{_LEFT:g}" x2="{_W - _RIGHT:g}" y1="{py:.1f}" y2="{py:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 7:g}" y="{py + 4:.1f}" text-anchor="end">{text}</text>')
    return "".join(parts)


def _corner(x: ComparedMetric, y: ComparedMetric) -> tuple[Box, float, float, str]:
    """Returns where it is better: the place of that word, and how it is anchored."""
    px, anchor = (_W - _RIGHT - 6, "end") if x.better == "more" else (_LEFT + 6, "start")
    py = _TOP + 14 if y.better == "more" else _H - _BOTTOM - 7
    left = px - 40 if anchor == "end" else px
    return (left, py - _NAME, left + 40, py + _BELOW), px, py, anchor


def _titles(x: ComparedMetric, y: ComparedMetric, across: DotAxis, up: DotAxis) -> list[str]:
    def told(about: ComparedMetric, unit: str) -> str:
        return escape(f"{about.short}, {unit}" if unit else about.short)

    right, top = x.better == "more", y.better == "more"
    x_said = f"{told(x, across.unit)} →" if right else f"← {told(x, across.unit)}"
    y_said = f"{'↑' if top else '↓'} {told(y, up.unit)}"
    _, corner_x, corner_y, anchor = _corner(x, y)
    return [
        f'<text class="axis" x="{_W - _RIGHT:g}" y="{_H - 8:g}" text-anchor="end">{x_said}</text>',
        f'<text class="axis" x="4" y="13">{y_said}</text>',
        f'<text class="corner" x="{corner_x:g}" y="{corner_y:g}" text-anchor="{anchor}">better</text>',
    ]


def _cross(point: Point, at: At) -> list[str]:
    parts = []
    if point.x_interval is not None and all(map(math.isfinite, point.x_interval)):
        (x1, y1), (x2, _) = (at(end, point.y) for end in point.x_interval)
        parts.append(f'<line class="span" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y1:.1f}"/>')
    if point.y_interval is not None and all(map(math.isfinite, point.y_interval)):
        (x1, y1), (_, y2) = (at(point.x, end) for end in point.y_interval)
        parts.append(f'<line class="span" x1="{x1:.1f}" x2="{x1:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>')
    return parts

"""Two measures of many systems against each other, each with its name: where they crowd, names stand apart
from their points, with a line between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

from markupsafe import Markup

from streamgauge.compare import ComparedMetric
from streamgauge.report.dots import DotAxis, Point, axis_of, pareto

__all__ = ["front"]

_W, _H = 560.0, 440.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 16.0, 24.0, 44.0
_CHAR = 7.2
"""Width of a letter of a name, in the drawing's units."""
_NAME, _BELOW = 11.0, 4.0
"""How far a name reaches above and below its base line."""
_DISTANCES = (11.0, 20.0, 32.0, 46.0, 62.0, 80.0, 100.0)
"""From a point to its name, tried in turn."""
_NEAR = 14.0
"""Names no further away need no line."""
_DIRECTIONS = tuple(math.radians(angle) for angle in (0, 180, 90, 270, 45, 315, 135, 225, 20, 340, 160, 200))

Box = tuple[float, float, float, float]
At = Callable[[float, float], tuple[float, float]]
"""From values on both axes to where they are drawn."""


def front(points: Sequence[Point], x: ComparedMetric, y: ComparedMetric) -> Markup:
    """The drawing: points with crosses of their 95 % intervals, names, and the Pareto front as a dashed line.

    Args:
        points: systems with their values and intervals; one at least.
        x: what lies across.
        y: what goes up.
    """
    across, up = (
        axis_of(
            _ends([(getattr(p, side), getattr(p, f"{side}_interval")) for p in points]), about.dimension, 5
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
    names = _names(points, places, _corner(x, y)[0])
    parts += [line for _, line in names if line]
    for point in points:
        parts += _cross(point, at)
    for point, (px, py) in zip(points, places, strict=True):
        kind = "dot first" if id(point) in first else "dot"
        parts.append(
            f"<g><title>{escape(point.said or point.name)}</title>"
            f'<circle class="{kind}" cx="{px:.1f}" cy="{py:.1f}" r="5"/></g>'
        )
    for point, (text, _) in zip(points, names, strict=True):
        kind = "name first" if id(point) in first else "name"
        parts.append(f'<text class="{kind}" {text}>{escape(point.name)}</text>')
    title = f"{x.title} and {y.title[0].lower()}{y.title[1:]} of each system"
    return Markup(
        f'<svg class="scatter" viewBox="0 0 {_W:g} {_H:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _ends(values: Sequence[tuple[float, tuple[float, float] | None]]) -> list[float]:
    ends = [end for _, interval in values if interval for end in interval if math.isfinite(end)]
    return [value for value, _ in values] + ends


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
    """Where it is better: the place of that word, and how it is anchored."""
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


def _names(
    points: Sequence[Point], places: Sequence[tuple[float, float]], corner: Box
) -> list[tuple[str, str]]:
    """Of each point its name's attributes, and the line to it, if it needs one."""
    dots: list[Box] = [(px - 7, py - 7, px + 7, py + 7) for px, py in places]
    # The corner that says where it is better is nobody's.
    taken: list[Box] = [corner]
    found: dict[int, tuple[str, str]] = {}
    # Those with the least room around them choose first.
    order = sorted(range(len(points)), key=lambda i: _room(i, places))
    for i in order:
        px, py = places[i]
        width = _CHAR * len(points[i].name)
        choices = []
        for distance in _DISTANCES:
            for angle in _DIRECTIONS:
                tx, ty = px + distance * math.cos(angle), py - distance * math.sin(angle) + 4
                side = math.cos(angle)
                anchor = "start" if side > 0.3 else "end" if side < -0.3 else "middle"
                left = tx - (width if anchor == "end" else width / 2 if anchor == "middle" else 0.0)
                box = (left, ty - _NAME, left + width, ty + _BELOW)
                choices.append((box, tx, ty, anchor, distance))
        inside = [
            one for one in choices
            if one[0][0] >= 2 and one[0][2] <= _W - 2 and one[0][1] >= _TOP and one[0][3] <= _H - _BOTTOM + 2
        ]  # fmt: skip
        free = next(
            (one for one in inside if not any(_meet(one[0], other) for other in [*taken, *dots])),
            (inside or choices)[0],
        )
        box, tx, ty, anchor, distance = free
        taken.append(box)
        line = ""
        if distance > _NEAR:
            nx, ny = min(max(px, box[0]), box[2]), min(max(py, box[1]), box[3])
            line = f'<line class="leader" x1="{px:.1f}" y1="{py:.1f}" x2="{nx:.1f}" y2="{ny:.1f}"/>'
        found[i] = (f'x="{tx:.1f}" y="{ty:.1f}" text-anchor="{anchor}"', line)
    return [found[i] for i in range(len(points))]


def _room(i: int, places: Sequence[tuple[float, float]]) -> float:
    px, py = places[i]
    return min((math.hypot(px - x, py - y) for j, (x, y) in enumerate(places) if j != i), default=math.inf)


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]

"""Names beside points: where points crowd, a name has a distance from its own, with a line between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Area", "Box", "PlacedName", "meet", "place_names"]

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in a drawing's units."""
_NAME, _BELOW = 13.0, 5.0
"""How far a name reaches above and below its base line."""
_DISTANCES = (11.0, 20.0, 32.0, 46.0, 62.0, 80.0, 100.0, 125.0, 155.0, 190.0)
"""From a point to its name, tried in turn."""
_NEAR = 14.0
"""Names no further away need no line."""
_DIRECTIONS = tuple(math.radians(angle) for angle in (0, 180, 90, 270, 45, 315, 135, 225, 20, 340, 160, 200))
_DOT = 7.0
_LONGEST = 24
"""Letters of a name."""


@dataclass(frozen=True)
class Area:
    """Where names may stand."""

    box: Box
    letter: float
    """Width of a letter."""
    taken: tuple[Box, ...] = ()
    """Other texts there."""


@dataclass(frozen=True)
class PlacedName:
    """A name in a drawing."""

    text: str
    """The name, cut if it is long."""
    x: float
    y: float
    anchor: str
    box: Box
    leader: tuple[float, float, float, float] | None
    """The line from the point to it, if it needs one."""

    @property
    def attributes(self) -> str:
        """Returns those of its SVG element."""
        return f'x="{self.x:.1f}" y="{self.y:.1f}" text-anchor="{self.anchor}"'

    @property
    def line(self) -> str:
        """Returns its line as an SVG element; empty without one."""
        if self.leader is None:
            return ""
        x1, y1, x2, y2 = self.leader
        return f'<line class="leader" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def place_names(names: Sequence[str], places: Sequence[tuple[float, float]], area: Area) -> list[PlacedName]:
    """Returns the names of points, in their order, each where it meets no other name and no point if there is
    such a place."""
    dots: list[Box] = [(px - _DOT, py - _DOT, px + _DOT, py + _DOT) for px, py in places]
    taken: list[Box] = list(area.taken)
    found: dict[int, PlacedName] = {}
    # Those with the least room around them choose first.
    for i in sorted(range(len(names)), key=lambda one: _room(one, places)):
        shown = names[i] if len(names[i]) <= _LONGEST else f"{names[i][: _LONGEST - 1]}…"
        choices = _choices(shown, places[i], area)
        inside = [one for one in choices if _holds(area.box, one.box)]
        free = next(
            (one for one in inside if not any(meet(one.box, other) for other in [*taken, *dots])),
            (inside or choices)[0],
        )
        taken.append(free.box)
        found[i] = free
    return [found[i] for i in range(len(names))]


def _choices(shown: str, at: tuple[float, float], area: Area) -> list[PlacedName]:
    """Returns every place that a name may have, the nearest to its point first."""
    (px, py), width = at, area.letter * len(shown)
    made = []
    for distance in _DISTANCES:
        for angle in _DIRECTIONS:
            tx, ty = px + distance * math.cos(angle), py - distance * math.sin(angle) + 4
            side = math.cos(angle)
            anchor = "start" if side > 0.3 else "end" if side < -0.3 else "middle"
            left = tx - (width if anchor == "end" else width / 2 if anchor == "middle" else 0.0)
            box = (left, ty - _NAME, left + width, ty + _BELOW)
            near = min(max(px, box[0]), box[2]), min(max(py, box[1]), box[3])
            leader = (px, py, *near) if distance > _NEAR else None
            made.append(PlacedName(shown, tx, ty, anchor, box, leader))
    return made


def _holds(outer: Box, inner: Box) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def _room(i: int, places: Sequence[tuple[float, float]]) -> float:
    px, py = places[i]
    return min((math.hypot(px - x, py - y) for j, (x, y) in enumerate(places) if j != i), default=math.inf)


def meet(one: Box, other: Box) -> bool:
    """Returns whether two boxes overlap."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]

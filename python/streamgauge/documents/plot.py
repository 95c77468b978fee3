"""Intervals as lines of text, which show wherever text is shown: summaries of jobs, logs, terminals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PlottedInterval", "interval_plot"]

_HALF = 20
"""Cells on either side of zero."""
_LEAST, _MOST = 2.0, 8.0
"""Least and most units to each side: an outlier shrinks no other."""


@dataclass(frozen=True)
class PlottedInterval:
    """A line: a name, and low end, mean and high end in units that all lines share. Ends may be infinite."""

    name: str
    low: float
    mean: float
    high: float


def interval_plot(
    lines: Sequence[PlottedInterval], *, left: str, right: str, shaded: float = 0.0
) -> list[str]:
    """Returns a line each, about zero; a value beyond the picture's width ends in an arrow.

    Characters are of WGL4, which fixed-width fonts have at one width.

    Args:
        lines: from above.
        left: meaning of negative values.
        right: meaning of positive ones.
        shaded: to this many units on either side of zero the ground is shaded; 0 for none.
    """
    if not lines:
        return []
    ends = [abs(end) for one in lines for end in (one.low, one.mean, one.high) if math.isfinite(end)]
    reach = min(_MOST, max(_LEAST, 1.05 * max(ends, default=0.0)))
    wide = max(len(one.name) for one in lines)
    head = f"{'':{wide}}  {left:<{_HALF}}│{right:>{_HALF}}"
    return [head, *(f"{one.name:<{wide}}  {_line(one, reach, shaded)}" for one in lines)]


def _line(one: PlottedInterval, reach: float, shaded: float) -> str:
    cells = [" "] * (2 * _HALF + 1)
    if shaded:
        for place in range(_cell(-shaded, reach), _cell(shaded, reach) + 1):
            cells[place] = "░"
    cells[_HALF] = "│"
    low, mean, high = (_cell(value, reach) for value in (one.low, one.mean, one.high))
    for place in range(low, high + 1):
        cells[place] = "─"
    cells[low] = "◄" if one.low < -reach else "├"
    cells[high] = "►" if one.high > reach else "┤"
    cells[mean] = "◄" if one.mean < -reach else "►" if one.mean > reach else "●"
    return "".join(cells).rstrip()


def _cell(value: float, reach: float) -> int:
    return round(_HALF * (1 + max(-1.0, min(1.0, value / reach))))

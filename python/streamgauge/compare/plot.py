"""Differences with their intervals as lines of text, which show wherever text is shown: summaries of jobs,
logs, terminals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from streamgauge.compare.comparison import ComparedRow

__all__ = ["difference_plot"]

_HALF = 20
"""Cells on either side of zero."""


def difference_plot(rows: Sequence[ComparedRow]) -> list[str]:
    """A line for each row that has a difference: better is to the right. One margin is as wide in all lines,
    shaded, so that what ends inside is practically equal; what lies further out than the line is long ends in
    an arrow.

    Characters are of WGL4, which fixed-width fonts have at one width.
    """
    drawn = [(row, _scaled(row)) for row in rows]
    kept = [(row, scaled) for row, scaled in drawn if scaled is not None]
    if not kept:
        return []
    # As many margins to each side as the widest needs, within reason: one that is far out shrinks no other.
    reach = min(8.0, max(2.0, *(max(map(abs, scaled)) for _, scaled in kept)) * 1.05)
    several = len({row.subject for row, _ in kept}) > 1
    names = [f"{row.about.title}, {row.subject}" if several else row.about.title for row, _ in kept]
    wide = max(map(len, names))
    head = f"{'':{wide}}  {'worse':<{_HALF}}│{'better':>{_HALF}}"
    return [head, *(f"{name:<{wide}}  {_line(s, reach)}" for name, (_, s) in zip(names, kept, strict=True))]


def _scaled(row: ComparedRow) -> tuple[float, float, float] | None:
    """Low end, mean and high end in margins, better to the right; None without a difference or margin."""
    if row.difference is None or not row.margin:
        return None
    ends = row.difference_interval or (row.difference, row.difference)
    sign = 1 if row.about.better == "more" else -1
    low, high = sorted(sign * end / row.margin for end in ends)
    return low, sign * row.difference / row.margin, high


def _line(scaled: tuple[float, float, float], reach: float) -> str:
    cells = [" "] * (2 * _HALF + 1)
    inside = _HALF / reach
    for place in range(round(_HALF - inside), round(_HALF + inside) + 1):
        cells[place] = "░"
    cells[_HALF] = "│"
    low, mean, high = (_cell(value, reach) for value in scaled)
    for place in range(low, high + 1):
        cells[place] = "─"
    cells[low] = "◄" if scaled[0] < -reach else "├"
    cells[high] = "►" if scaled[2] > reach else "┤"
    cells[mean] = "◄" if scaled[1] < -reach else "►" if scaled[1] > reach else "●"
    return "".join(cells).rstrip()


def _cell(value: float, reach: float) -> int:
    if not math.isfinite(value):
        return 0 if value < 0 else 2 * _HALF
    return round(_HALF * (1 + max(-1.0, min(1.0, value / reach))))

"""Differences with their intervals, drawn as text."""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.compare.comparison import ComparedRow
from streamgauge.documents import PlottedInterval, interval_plot

__all__ = ["difference_plot"]


def difference_plot(rows: Sequence[ComparedRow]) -> list[str]:
    """Returns a line for each row that has a difference and a margin, better to the right. The unit of a line
    is its margin, shaded: an interval that ends inside is practically equal."""
    several = len({row.subject for row in rows}) > 1
    lines = []
    for row in rows:
        if row.difference is None or not row.margin:
            continue
        sign = 1 if row.about.better == "more" else -1
        ends = row.difference_interval or (row.difference, row.difference)
        low, high = sorted(sign * end / row.margin for end in ends)
        name = f"{row.about.short}, {row.subject}" if several else row.about.short
        lines.append(PlottedInterval(name, low, sign * row.difference / row.margin, high))
    return interval_plot(lines, left="worse", right="better", shaded=1.0)

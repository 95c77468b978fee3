"""Words in plots over time: titles, names at the ends of lines, notes on values off the scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgauge.report.chart import INK, rounded
from streamgauge.report.plots import Column, Plot, PlotScales, Threshold
from streamgauge.report.vega import Spec, channel

__all__ = ["CHAR", "MOST_NAMES", "line_names", "note", "off_scale", "period_words", "short", "written"]

CHAR = 6.1
"""Width of a character of a label, in CSS pixels, on the safe side."""
MOST_NAMES = 6
"""Most lines of one plot that are named at their ends; more have a legend."""
_HEIGHT = 11.5
"""Height of a label, in CSS pixels."""
_MOST_CHARACTERS = 24
_OFF = ", off the scale"


def written(rows: list[Spec], mark: Spec, scales: PlotScales, top: float) -> Spec:
    """Words inside a plot or beside it."""
    return {
        "data": {"values": rows},
        "mark": {"type": "text", "fontSize": 11, "baseline": "middle", **mark},
        "encoding": {
            "x": channel("at:Q", scale={"domain": [0, scales.end_s], "nice": False}),
            "y": channel("value:Q", scale={"domain": [0, top], "nice": False}),
            "text": channel("text:N"),
            "color": channel("colour:N", scale=None),
        },
    }


def line_names(plot: Plot, mode: str, scales: PlotScales, top: float) -> list[Spec]:
    """Names at the ends of lines, moved apart where they would overlap; beside the rows of bars."""
    if len(plot.lines) > MOST_NAMES and not plot.bars:
        return []
    wanted: list[tuple[float, str]] = []
    for line in plot.lines:
        if line.part == "bar":
            wanted.append((top - 0.55 - plot.bars.index(line.series), line.series))
        elif mode in line.courses:
            values = line.values(mode) / plot.scale
            known = values[np.isfinite(values)]
            wanted += [(float(known[-1]), line.series)] if len(known) else []
    for bound in plot.bounds:
        corners = bound.corners.get(mode)
        if corners and (last := corners[-1][1] / plot.scale) <= top:
            wanted.append((last, bound.series))
    heights = _apart([plot.height * (1 - value / top) for value, _ in wanted], plot.height)
    at = rounded(scales.end_s * (1 + 5 / scales.width), 6)
    return [
        {
            "at": at,
            "value": rounded(top * (1 - height / plot.height)),
            "text": short(series),
            "colour": scales.colours[series],
        }
        for height, (_, series) in zip(heights, wanted, strict=True)
    ]


def _apart(wanted: Sequence[float], height: float) -> list[float]:
    """Heights as near to those wanted as labels of `_HEIGHT` allow, in the same order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    low, high = min(0.0, height / 2 - _HEIGHT * len(wanted) / 2), height
    placed: list[list[float]] = []
    """Runs of labels that touch: the middle of the run, and how many."""
    for i in order:
        placed.append([min(max(wanted[i], low), high), 1])
        while len(placed) > 1 and (
            placed[-1][0] - placed[-2][0] < _HEIGHT * (placed[-1][1] + placed[-2][1]) / 2
        ):
            (b, n), (a, m) = placed.pop(), placed.pop()
            half = _HEIGHT * (m + n - 1) / 2
            middle = (a * m + b * n) / (m + n)
            placed.append([min(max(middle, low + half), max(high - half, low + half)), m + n])
    heights = [
        middle + _HEIGHT * (k - (count - 1) / 2) for middle, count in placed for k in range(int(count))
    ]
    found = [0.0] * len(wanted)
    for i, at in zip(order, heights, strict=True):
        found[i] = at
    return found


def off_scale(bound: Threshold, mode: str, scale: float, top: float) -> str:
    """Returns the note on a bound that leaves the plot; empty if it does not."""
    values = [value / scale for _, value in bound.corners.get(mode, ())]
    if not values or max(values) <= top:
        return ""
    return f"↑ {bound.said}{_OFF}"


def note(name: str, said: str, place: int, title: str, scales: PlotScales, top: float) -> list[Spec]:
    """At the right top: beside the title where there is room, else in the plot, on a ground of its own."""
    is_above = not place and CHAR * (len(title) + len(said) + 2) <= scales.width
    fits = CHAR * len(said) <= scales.width
    text = said if fits else [f"{said.removesuffix(_OFF)},", _OFF.removeprefix(", ")]
    row: Spec = {"at": scales.end_s, "value": top, "text": text}
    mark = {"align": "right", "dx": 0 if is_above else -4, "dy": -8 if is_above else 8 + 12 * place}
    ground = {"stroke": "#ffffff", "strokeWidth": 3, "strokeJoin": "round"}
    return [
        {
            "name": f"{name}_ground",
            **written([{**row, "colour": "#ffffff"}], {**mark, **ground}, scales, top),
        },
        {"name": f"{name}_note", **written([{**row, "colour": INK}], mark, scales, top)},
    ]


def period_words(plot: Plot, column: Column, scales: PlotScales, above: float) -> Spec:
    """Puts words above the shaded part, but beside the plot's title and not beyond the plot."""
    per_s = scales.width / scales.end_s
    title = CHAR * (len(plot.shown or plot.title) + 2)
    furthest = scales.width + scales.right - CHAR * len(column.period_words)
    at = max(min(column.periods[0][0] * per_s, furthest), title)
    return {"at": rounded(at / per_s), "value": above, "text": column.period_words, "colour": "#777777"}


def short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"

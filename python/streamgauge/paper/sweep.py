"""A paper's figure of a sweep: measured against varied values, a line a series."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamgauge.metrics import interval
from streamgauge.metrics.grid import Floats
from streamgauge.paper.gathering import Gathered
from streamgauge.paper.machines import look_of
from streamgauge.paper.panels import (
    COLUMNS,
    DrawnPanels,
    axis_of,
    grid,
    panel_of,
    scaled,
    shown_number,
    width_of,
)
from streamgauge.paper.published import PaperFigure, cases_of
from streamgauge.paper.reading import Reading
from streamgauge.report.chart import BLUE, GREEN, INK, VERMILION
from streamgauge.report.vega import Spec, channel, filtered

__all__ = ["SWEEP_COLUMNS", "draw_sweep"]

SWEEP_COLUMNS = ("panel", "series", "whose", "x", "value", "low", "high", "label")
"""Columns of a figure's rows. `whose` is a mode, ``paper``, ``bound`` for references, or the place of a name
of one of the last two; `x` is a number, or the name of a case."""
_COLOURS = (BLUE, VERMILION, GREEN)
_GREY = "#777777"
_LINE: Spec = {"type": "line", "strokeDash": [4, 3], "strokeWidth": 1.1, "color": _GREY, "clip": True}
_JOINT: Spec = {"type": "line", "strokeWidth": 1.4}
_BAR: Spec = {"type": "rule", "strokeWidth": 1.4, "clip": True}
_TEXT: Spec = {"type": "text", "align": "right", "baseline": "bottom", "fontSize": 10}
_NAME: Spec = {**_TEXT, "color": _GREY}
_POINT: Spec = {"type": "point", "filled": True, "size": 40, "opacity": 1}
_DIAMOND: Spec = {
    "type": "point", "shape": "diamond", "filled": False, "size": 110, "strokeWidth": 1.8, "opacity": 1,
    "color": INK,
}  # fmt: skip
_BESIDE = 3
"""Pixels between lines."""
_SIDES: dict[str, Spec] = {
    "above": {"dx": -8, "dy": -3},
    "below": {"dx": -8, "dy": 3, "baseline": "top"},
    "right": {"dx": 9, "align": "left", "baseline": "middle"},
    "right below": {"dx": 5, "dy": 2, "align": "left", "baseline": "top"},
}
"""Place of a name beside its point."""
_HEIGHT = 165
_ROOM = 1.1
"""Height of a panel over that of its contents."""
_BARS = 2.0
"""Distance of bars above the highest mean."""
_WHOLE = 104.0
"""Top of the axis for values of at most 100 %."""
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class _Drawn:
    """A panel's rows, and of how many trials each of its points is."""

    rows: Rows
    counts: list[int]
    lacking: int
    """Trials that have no value."""
    missing: dict[str, int]
    """By mode, cases that were not run."""


def draw_sweep(figure: PaperFigure, reading: Reading, trials: Gathered) -> DrawnPanels | None:
    """Panel by panel as `figure.more` has them, with the cases that were run; None if none was."""
    more = figure.more
    spread = more.get("bars", "interval")
    found = [_panel(figure, panel, reading.modes, trials, spread) for panel in more["panels_of"]]
    if not any(one.counts for one in found):
        return None
    modes = [mode for mode in reading.modes if any(row[2] == mode for one in found for row in one.rows)]
    names = list(dict.fromkeys(name for panel in more["panels_of"] for name in panel["series"]))
    columns: int = more.get("columns", COLUMNS)
    charts = [
        _chart(figure, panel, drawn.rows, names, modes, width_of(len(found), columns))
        for panel, drawn in zip(more["panels_of"], found, strict=True)
    ]
    rows = [row for one in found for row in one.rows]
    told = _told(reading, modes, found, spread, any(row[2] == "paper" for row in rows))
    return DrawnPanels(grid(charts, columns=columns), tuple(rows), told)


def _told(
    reading: Reading, modes: Sequence[str], found: Sequence[_Drawn], spread: str, has_published: bool
) -> str:
    marks = [
        f"{look_of(mode)[0]} {reading.words(mode)}" + ("" if mode == "sim" else ", dashed") for mode in modes
    ]
    counts = [count for one in found for count in one.counts]
    low, high = min(counts), max(counts)
    n = f"n = {low}" if low == high else f"n = {low} to {high}"
    how = "± their standard deviation" if spread == "sd" else "with 95 % intervals"
    text = f"{', '.join(marks)}: means over the trials {how} ({n})"
    if has_published:
        text += "; ◇ what the paper's text says"
    lacking = sum(one.lacking for one in found)
    if lacking:
        text += f"; {lacking} values of trials that have none are left out"
    missing = {mode: max(one.missing.get(mode, 0) for one in found) for mode in modes}
    for mode, count in missing.items():
        if count:
            text += f"; of up to {count} cases a panel there are no trials of {reading.words(mode)}"
    return f"{text}."


def _panel(
    figure: PaperFigure, panel: Mapping[str, Any], modes: Sequence[str], trials: Gathered, spread: str
) -> _Drawn:
    axis, name = axis_of(panel["y"]), panel["label"]
    cases = cases_of(figure, panel)
    rows: Rows = []
    counts: list[int] = []
    lacking, missing = 0, dict.fromkeys(modes, 0)
    for mode in modes:
        for x, scenario in cases:
            read = trials.get((scenario, mode))
            if read is None:
                missing[mode] += 1
                continue
            for series, text in panel["series"].items():
                values = np.array(read.values[text], dtype=np.float64) / axis.scale
                known = values[np.isfinite(values)]
                lacking += len(values) - len(known)
                if len(known):
                    counts.append(len(known))
                    rows.append((name, series, mode, x, *_with_ends(known, spread), ""))
    for one in panel.get("published", ()):
        value = shown_number(scaled(one["y"], axis))
        for whose in ("paper", f"paper name {one.get('side', 'above')}"):
            rows.append((name, one["of"], whose, one["x"], value, None, None, one["label"]))
    return _Drawn(rows, counts, lacking, missing)


def _with_ends(values: Floats, spread: str) -> tuple[float | None, ...]:
    """Mean and the ends of the bar across it; these are None of a single value."""
    found = interval(values.tolist())
    if spread == "sd" and len(values) > 1:
        half = float(values.std(ddof=1))
        ends: tuple[float | None, float | None] = (found.mean - half, found.mean + half)
    else:
        ends = (found.low, found.high)
    low, high = (None if end is None else shown_number(max(0.0, end)) for end in ends)
    return shown_number(found.mean), low, high


def _chart(
    figure: PaperFigure,
    panel: Mapping[str, Any],
    rows: Rows,
    names: Sequence[str],
    modes: Sequence[str],
    width: float,
) -> Spec:
    """Draws a panel; adds the rows of its references to its own."""
    axis, x_axis, name = axis_of(panel["y"]), axis_of(figure.more["x"]), panel["label"]
    xs: list[Any] = [x for x, _ in cases_of(figure, panel)]
    is_number = all(isinstance(x, int | float) for x in xs)
    bounds = [(one["label"], scaled(one["at"], axis)) for one in panel.get("bounds", ())]
    highest = max([*(row[4] for row in rows), *(at for _, at in bounds)], default=1.0)
    # Few trials that differ much have a bar that would leave the means no room.
    bars = [row[6] for row in rows if row[6] is not None]
    top = _ROOM * min(max([highest, *bars]), _BARS * highest) or 1.0
    if axis.unit == "%":
        top = min(top, _WHOLE)
    low, high = (min(0.0, min(xs) - 0.03 * max(xs)), 1.03 * max(xs)) if is_number else (xs[0], xs[-1])
    for label, at in bounds:
        rows += _bound(name, label, (low, at), (high, at))
    for label, factor in panel.get("times", {}).items():
        end, named = min(high, top / factor), min(0.6 * high, 0.9 * top / factor)
        rows += _bound(name, label, (0.0, 0.0), (end, factor * end))[:2]
        rows.append(
            (name, "", "slope name", shown_number(named), shown_number(factor * named), None, None, label)
        )
    if is_number:
        scale: Spec = {"domain": [low, high], "nice": False}
        ticks: Spec = {"values": xs, "labelOverlap": "greedy", "labelSeparation": 5, "format": "d"}
    else:
        scale, ticks = {"type": "point", "padding": 0.5, "domain": xs}, {"labelAngle": 0}
    x = channel("x:Q" if is_number else "x:N", title=x_axis.words, sort=None, scale=scale, axis=ticks)
    y = channel("value:Q", title=axis.words, scale={"domain": [0, top], "nice": False}, axis={"tickCount": 6})
    kinds = {row[2] for row in rows}
    whose = [mode for mode in modes if mode in kinds]
    parts = _parts(x, y, names, whose, kinds, is_joined=figure.more.get("joined", True))
    return panel_of(name, parts, width=width, height=_HEIGHT)


def _bound(name: str, label: str, begin: tuple[Any, float], end: tuple[Any, float]) -> Rows:
    """Returns a line to compare with, named at its end."""
    places = [("bound", begin), ("bound", end), ("bound name", end)]
    return [(name, "", part, x, shown_number(y), None, None, label) for part, (x, y) in places]


def _parts(
    x: Spec, y: Spec, names: Sequence[str], whose: Sequence[str], kinds: set[str], *, is_joined: bool
) -> list[Spec]:
    """Returns the references of a panel, lines from case to case, means with their bars, and the paper's
    text."""
    both = {"x": x, "y": y}
    legend: Spec = {"title": None, "orient": "top", "symbolType": "stroke", "symbolSize": 300}
    colours = {"domain": list(names), "range": list(_COLOURS[: len(names)])}
    colour = channel("series:N", scale=colours, legend=legend if len(names) > 1 else None)
    shape, dash = (
        channel(
            "whose:N",
            scale={"domain": list(whose), "range": [look_of(mode)[part] for mode in whose]},
            legend=None,
        )
        for part in (1, 2)
    )
    tooltip = [
        channel("series:N", title="of"), channel("whose:N"),
        {key: x[key] for key in ("field", "type", "title")},
        channel("value:Q", title=y["title"]), channel("low:Q", title="from"), channel("high:Q", title="to"),
        channel("label:N", title="which"),
    ]  # fmt: skip
    lines = [(name, mode) for name in names for mode in whose]
    # Means of one place are side by side.
    beside = [
        (
            _BESIDE * (2 * at - len(lines) + 1) / 2,
            f"datum.series == {json.dumps(name)} && datum.whose == '{mode}'",
        )
        for at, (name, mode) in enumerate(lines)
    ]
    label = {**both, "text": channel("label:N")}
    line = {**both, "color": colour, "strokeDash": dash}
    point = {**both, "color": colour, "shape": shape, "tooltip": tooltip}
    ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    parts = [
        ("bound", _LINE, {**both, "detail": channel("label:N")}, ["datum.whose == 'bound'"]),
        ("bound name", {**_NAME, "dy": -2}, label, ["datum.whose == 'bound name'"]),
        ("slope name", {**_NAME, **_SIDES["right below"]}, label, ["datum.whose == 'slope name'"]),
        *(("joined", {**_JOINT, "xOffset": side}, line, [mine]) for side, mine in beside),
        *(("", {**_BAR, "xOffset": side}, ends, [mine, "isValid(datum.low)"]) for side, mine in beside),
        *(("", {**_POINT, "xOffset": side}, point, [mine]) for side, mine in beside),
        ("paper", _DIAMOND, {**both, "tooltip": tooltip}, ["datum.whose == 'paper'"]),
        *(
            (f"paper name {side}", {**_TEXT, "color": INK, **moved}, label,
             [f"datum.whose == 'paper name {side}'"])
            for side, moved in _SIDES.items()
        ),
    ]  # fmt: skip
    drawn = kinds | {""} | ({"joined"} if is_joined else set())
    return [
        {"mark": mark, "encoding": encoding, "transform": filtered(*tests)}
        for part, mark, encoding, tests in parts
        if part in drawn
    ]

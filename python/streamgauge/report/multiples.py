"""Small multiples: plots below one another that share their axis of time, a column for each mode.

A plot is named at its left top, with the unit of its axis; its lines are named at their ends.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamgauge.metrics.grid import Floats
from streamgauge.report.chart import COLOURS, INK, WIDTH, DrawnFigure, dash_of, rounded
from streamgauge.report.courses import GroupCourse
from streamgauge.report.plot_words import (
    CHAR,
    MOST_NAMES,
    line_names,
    note,
    off_scale,
    period_words,
    short,
    written,
)
from streamgauge.report.plots import Column, Plot, PlotBlock, PlotScales
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

__all__ = ["COLUMNS", "colour_scale", "multiples"]

COLUMNS = ("panel", "mode", "series", "part", "time_s", "end_s", "value", "low", "high")
"""Columns of a row. `part` is ``line``, ``thin``, ``bar`` (from `time_s` to `end_s`), ``bound``, or the kind
of text at the side of a block."""
_LEFT = 46
"""Width of the axes of values, the same in every plot, which aligns plots above one another."""
_GAP = 16
_FAR = 1.6
"""A bound is off the scale if it is further up than this many times the drawn values."""
_ROW = 0.9
"""How much of its row the highest bar takes."""


def multiples(
    id_: str,
    title: str,
    caption: str,
    blocks: Sequence[PlotBlock],
    colours: Mapping[str, str],
    *,
    notes: str = "",
    aside_width: float = 0,
    beside: Mapping[str, Any] | None = None,
) -> DrawnFigure:
    """Draws plots over time, blocks of them below one another.

    Args:
        colours: of each series. Those that `Threshold` names are dashed, others by their order.
        aside_width: room at the right of each block, in CSS pixels.
        beside: see `DrawnFigure.beside`; single trials are added.
    """
    scales = _scales(blocks, colours, aside_width)
    rows: list[tuple[Any, ...]] = []
    placed: list[tuple[str, Plot, Column]] = []
    plots: list[Spec] = []
    charts: list[Spec] = []
    for block in blocks:
        mine = replace(scales, end_s=block.end_s)
        first = len({id(plot) for _, plot, _ in placed})
        stacks: list[Spec] = []
        for column in block.columns:
            stack = []
            for place, plot in enumerate(block.plots, first):
                name = f"plot{place}_{column.mode}"
                placed.append((name, plot, column))
                rows += _rows(plot, column.mode)
                stack.append(_spec(name, plot, column, block.plots, mine))
                plots.append(_meta(name, plot, column, mine))
            heading = {
                "text": column.heading, "anchor": "start", "frame": "bounds", "dx": _LEFT, "fontSize": 12,
                "fontWeight": "bold", "offset": 8,
            }  # fmt: skip
            stacks.append({"title": heading, "vconcat": stack, "spacing": 5})
        rows += block.aside_rows
        sides = [*stacks, block.aside] if block.aside is not None else stacks
        charts.append({"hconcat": sides, "spacing": _GAP})
    meta = {
        "left": _LEFT, "right": scales.right, "axis": "time_s", "colours": dict(colours), "plots": plots,
    }  # fmt: skip
    more = dict(beside or {})
    if single := _single(placed, scales):
        more["single"] = single
    chart = charts[0] if len(charts) == 1 else {"vconcat": charts, "spacing": 24}
    spec = whole({"usermeta": {"streamgauge": meta}, **chart})
    return DrawnFigure(id_, title, caption, spec, COLUMNS, tuple(rows), notes, more)


def _meta(name: str, plot: Plot, column: Column, scales: PlotScales) -> dict[str, Any]:
    """Returns a page's data of a plot."""
    bars = {"bars": plot.bars} if plot.bars else {}
    return {
        "name": name, "panel": plot.title, "mode": column.mode, "domain": [0, scales.end_s],
        "top": scales.tops[plot.title], **bars,
    }  # fmt: skip


def _rows(plot: Plot, mode: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for line in plot.lines:
        if (course := line.courses.get(mode)) is None:
            continue
        key = (plot.title, mode, line.series, line.part)
        values = line.values(mode) / plot.scale
        rows += _bars(key, course, values) if line.part == "bar" else _course(key, plot, course, values)
    for bound in plot.bounds:
        rows += [
            (plot.title, mode, bound.series, "bound", at, None, rounded(value / plot.scale), None, None)
            for at, value in bound.corners.get(mode, ())
        ]
    return rows


def _course(key: tuple[str, ...], plot: Plot, course: GroupCourse, values: Floats) -> list[tuple[Any, ...]]:
    """Returns a row a point; one without a value where the line is broken."""
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return []
    band = course.low is not None and course.high is not None and key[3] == "line"
    rows: list[tuple[Any, ...]] = []
    for i in range(known[0], known[-1] + 1):
        at = rounded(float(course.times_s[i]), 6)
        if np.isfinite(values[i]):
            ends: tuple[float | None, float | None] = (None, None)
            if band:
                assert course.low is not None and course.high is not None
                ends = rounded(float(course.low[i]) / plot.scale), rounded(float(course.high[i]) / plot.scale)
            rows.append((*key, at, None, rounded(float(values[i])), *ends))
        elif rows[-1][6] is not None:
            rows.append((*key, at, None, None, None, None))
    return rows


def _bars(key: tuple[str, ...], course: GroupCourse, values: Floats) -> list[tuple[Any, ...]]:
    """Returns a row for each stretch of equal height."""
    rows: list[tuple[Any, ...]] = []
    for begin, end, value in zip(course.begins_s, course.ends_s, values, strict=True):
        if not value > 0:
            continue
        begin, end, value = rounded(float(begin), 6), rounded(float(end), 6), rounded(float(value))
        if rows and rows[-1][5] == begin and rows[-1][6] == value:
            begin = rows.pop()[4]
        rows.append((*key, begin, end, value, None, None))
    return rows


def colour_scale(colours: Mapping[str, str]) -> Spec:
    """Returns the colours of series as a scale."""
    return {"domain": list(colours), "range": list(colours.values())}


def _scales(blocks: Sequence[PlotBlock], colours: Mapping[str, str], aside_width: float) -> PlotScales:
    plots = [plot for block in blocks for plot in block.plots]
    bounds = {bound.series for plot in plots for bound in plot.bounds}
    # Grey lines are identified by their labels; colours need dashes besides, for eyes and printers that see
    # none.
    lines = [name for name in colours if colours[name] in COLOURS]
    dashes = {name: [1, 0] for name in colours} | {name: dash_of(place) for place, name in enumerate(lines)}
    dashes |= {name: [5, 3] for name in bounds}
    crowded = [plot for plot in plots if len(plot.lines) > MOST_NAMES and not plot.bars]
    legend = None
    if crowded:
        told = list(dict.fromkeys(line.series for plot in crowded for line in plot.lines))
        look = {"symbolType": "stroke", "symbolOpacity": 1}
        legend = {"orient": "top", "values": told, "columns": 6, **look}
    labels = [
        short(name)
        for plot in plots
        if plot not in crowded
        for name in (
            *(line.series for line in plot.lines),
            *(bound.series for bound in plot.bounds),
        )
    ]
    right = round(8 + CHAR * max(map(len, labels), default=0))
    count = max(len(block.columns) for block in blocks)
    room = WIDTH - _GAP * (count - 1) - (aside_width + _GAP if aside_width else 0)
    tops = {
        plot.title: _top(plot, [c.mode for c in block.columns]) for block in blocks for plot in block.plots
    }
    for plot in plots:
        if plot.alike:
            tops[plot.title] = max(tops[one.title] for one in plots if one.alike == plot.alike)
    dash = {"domain": list(colours), "range": [dashes[name] for name in colours]}
    return PlotScales(
        end_s=0.0,
        width=round(room / count - _LEFT - right),
        right=right,
        colours=colours,
        colour=channel("series:N", scale=colour_scale(colours), legend=legend),
        dash=channel("series:N", scale=dash, legend=legend),
        x_title="time, s",
        tops=tops,
    )


def _top(plot: Plot, modes: Sequence[str]) -> float:
    if plot.top is not None:
        return plot.top
    if plot.bars:
        return float(len(plot.bars))
    drawn = [
        course.greatest() for line in plot.lines for mode, course in line.courses.items() if mode in modes
    ]
    top = max(drawn, default=0.0) / plot.scale
    for bound in plot.bounds:
        # One that the lines come near to is shown; one that is far above would flatten them.
        least = [value / plot.scale for mode in modes for _, value in bound.corners.get(mode, ())]
        if least and max(least) <= _FAR * top:
            top = max(top, max(least))
    # A little room, so that a line at the top does not hide in the frame.
    return 1.06 * top or 1.0


def _spec(name: str, plot: Plot, column: Column, plots: Sequence[Plot], scales: PlotScales) -> Spec:
    """Returns one plot."""
    top, mode = scales.tops[plot.title], column.mode
    is_last, is_first = plot is plots[-1], plot is plots[0]
    quiet = {"labels": False, "ticks": False, "domain": False}
    x = channel(
        "time_s:Q",
        title=scales.x_title if is_last else None,
        scale={"domain": [0, scales.end_s], "nice": False},
        axis={"tickCount": 8, **({} if is_last else quiet)},
    )
    axis: Spec = {"minExtent": _LEFT, "maxExtent": _LEFT, "tickCount": 4 if plot.height > 60 else 3}
    if plot.bars:
        axis |= {**quiet, "values": list(range(len(plot.bars)))}
    y_scale = {"domain": [0, top], "nice": False}
    y = channel("value:Q", title=None, scale=y_scale, axis=axis)
    encoding = {"x": x, "y": y, "color": scales.colour}
    drawn = [line for line in plot.lines if mode in line.courses]
    parts = {line.part for line in drawn}
    layers: list[Spec] = list(plot.under)
    if column.periods:
        layers.append(_shade(column, scales))
    if any(line.part == "line" and line.courses[mode].low is not None for line in drawn):
        edges = {"y": channel("low:Q", title=None, scale=y_scale, axis=axis), "y2": {"field": "high"}}
        layers.append(_of(f"{name}_band", "line", {"type": "area", "opacity": 0.18}, {**encoding, **edges}))
    if plot.bars:
        layers.append(_bar_rows(f"{name}_bar", plot, encoding))
    if "thin" in parts:
        layers.append(
            _of(f"{name}_thin", "thin", {"type": "line", "strokeWidth": 0.9, "opacity": 0.9}, encoding)
        )
    if "line" in parts:
        layers.append(_of(f"{name}_line", "line", {"type": "line"}, {**encoding, "strokeDash": scales.dash}))
    notes = [words for bound in plot.bounds if (words := off_scale(bound, mode, plot.scale, top))]
    if any(bound.corners.get(mode) for bound in plot.bounds):
        look: Spec = {"type": "line", "strokeWidth": 1.2, **({"clip": True} if notes else {})}
        layers.append(_of(f"{name}_bound", "bound", look, {**encoding, "strokeDash": scales.dash}))
    above = top * (1 + 8 / plot.height)
    title = plot.shown or plot.title
    texts: list[Spec] = [{"at": 0, "value": above, "text": title, "colour": INK}]
    if is_first and column.periods and column.period_words:
        texts.append(period_words(plot, column, scales, above))
    texts += line_names(plot, mode, scales, top)
    layers.append({"name": f"{name}_words", **written(texts, {"align": "left"}, scales, top)})
    for place, said in enumerate(notes):
        layers += note(name, said, place, title, scales, top)
    here = f"datum.panel == {_text(plot.title)} && datum.mode == {_text(mode)}"
    return {
        "name": name,
        **layer(layers, width=scales.width, height=plot.height),
        "transform": filtered(here),
    }


def _bar_rows(name: str, plot: Plot, encoding: Spec) -> Spec:
    """Returns a row a series, the first on top; a bar is as high as its share of the row."""
    rows = len(plot.bars)
    names = f"[{', '.join(map(_text, plot.bars))}]"
    foot = f"{rows - 1} - indexof({names}, datum.series)"
    y = {**encoding["y"], "field": "foot"}
    return {
        "name": name,
        "mark": {"type": "rect", "opacity": 0.85},
        "encoding": {**encoding, "y": y, "x2": {"field": "end_s"}, "y2": {"field": "head"}},
        "transform": [
            *filtered("datum.part == 'bar'"),
            {"calculate": foot, "as": "foot"},
            {"calculate": f"datum.foot + {_ROW} * datum.value / 100", "as": "head"},
        ],
    }


def _of(name: str, part: str, mark: Spec, encoding: Spec) -> Spec:
    """Returns the rows of one part; a page finds the layer by its name."""
    return {
        "name": name,
        "mark": mark,
        "encoding": encoding,
        "transform": filtered(f"datum.part == '{part}'"),
    }


def _text(text: str) -> str:
    """Returns the text for an expression of Vega's."""
    return json.dumps(text, ensure_ascii=False)


def _shade(column: Column, scales: PlotScales) -> Spec:
    values = [{"begin": begin, "end": end} for begin, end in column.periods]
    scale = {"domain": [0, scales.end_s], "nice": False}
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "color": "#777777", "opacity": 0.13, "clip": True},
        "encoding": {"x": channel("begin:Q", scale=scale), "x2": {"field": "end"}},
    }


def _single(placed: Sequence[tuple[str, Plot, Column]], scales: PlotScales) -> dict[str, Any]:
    """Courses of single trials for a page, which shows them where the pointer is.

    `times` are the points' by plot, in s; `plots` has by plot and series a text a trial: in base 64 a byte a
    point, the value in 250 steps of the plot's height, and 255 where there is none.
    """
    times: dict[str, list[float]] = {}
    found: dict[str, dict[str, list[str]]] = {}
    for name, plot, column in placed:
        for line in plot.lines:
            course = line.courses.get(column.mode)
            if course is None or course.trials < 2 or line.part != "line":
                continue
            with np.errstate(invalid="ignore"):
                steps = np.clip(np.round(250 * course.single / plot.scale / scales.tops[plot.title]), 0, 250)
            steps = np.where(np.isfinite(steps), steps, 255).astype(np.uint8)
            times[name] = [rounded(float(at), 6) for at in course.times_s]
            texts = [base64.b64encode(one.tobytes()).decode() for one in steps]
            found.setdefault(name, {})[line.series] = texts
    # Nearly all plots have the times of the first.
    first = next(iter(times.values()), [])
    others = {name: its for name, its in times.items() if its != first}
    return {"times": first, "others": others, "plots": found} if found else {}

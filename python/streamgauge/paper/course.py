"""A paper's figure of single trials over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamgauge.checks.published import published_value
from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.grid import Floats
from streamgauge.metrics.result import Series
from streamgauge.paper.gathering import time_of
from streamgauge.paper.panels import (
    DrawnPanels,
    PanelAxis,
    PanelRows,
    across,
    axis_channel,
    axis_of,
    bound_rows,
    grid,
    panel_of,
    parts_of,
    scaled,
    shown_number,
    width_of,
)
from streamgauge.paper.published import PaperFigure
from streamgauge.paper.reading import Reading
from streamgauge.report.model import listed

__all__ = ["draw_course"]

_POINTS = 1200
"""Most points of a curve; where samples are more they are taken in means."""
_LEAST = 0.1
"""The last samples below this share of the greatest are left out: they belong to the end of the session."""
_HEIGHT, _LOW_HEIGHT = 190, 96
"""Heights of a panel, and of one in a row with others."""


def draw_course(figure: PaperFigure, reading: Reading) -> DrawnPanels | None:
    """Panel by panel as `figure.more` has them: of the valid trial with the lowest seed, or of the first
    ``trials`` of a curve. A panel may have a metric and an axis of its own, a curve a metric. Each curve
    begins with its flow, or with ``since: trial`` all with the trial. Panels stand below one another, or
    ``columns`` of them in a row. None if a curve has none."""
    more = figure.more
    panels = across(figure, reading)
    if not panels:
        return None
    is_since_trial = more.get("since") == "trial"
    found: list[_Panel] = []
    seeds: dict[tuple[str, str], list[int]] = {}
    for panel, mode, name in panels:
        y_axis = axis_of(panel.get("y") or more["y"])
        way = _Way(
            metric=panel.get("metric") or more["metric"],
            axis=y_axis,
            in_steps=more.get("steps", False),
            is_since_trial=is_since_trial,
            every_s=published_value(more["every"])[0] if "every" in more else 0.0,
            until_s=published_value(more["until"])[0] if "until" in more else np.inf,
        )
        mine: PanelRows = []
        moments: list[tuple[str, float]] = []
        for curve in panel["curves"]:
            entry = reading.by_id.get(curve["scenario"])
            group = entry.group(mode) if entry else None
            if group is None or not group.valid:
                return None
            several = curve.get("trials", 1)
            for at, trial in enumerate(group.valid[:several], start=1):
                shown = trial.metrics
                assert shown is not None
                seeds.setdefault((curve["scenario"], mode), []).append(shown.seed)
                label = f"{curve['label']} {at}" if several > 1 else curve["label"]
                own = replace(way, metric=curve.get("metric", way.metric))
                mine += _curve(name, {**curve, "label": label}, shown, own)
                if at == 1 and curve is panel["curves"][0]:
                    moments = _moments(panel, shown)
        end = float(max((row[3] for row in mine), default=1.0))
        bounds = [
            (one["label"], scaled(one["at"], y_axis), one.get("side", "right"))
            for one in panel.get("bounds", ())
        ]
        room = 1.2 if moments else 1.08
        top = room * max([row[4] for row in mine if row[4] is not None] + [at for _, at, _ in bounds] + [0.0])
        found.append(_Panel(name, mine, y_axis, bounds, moments, end, top or 1.0))
    if is_since_trial:
        # Panels of the same time stand above one another.
        longest = max(one.end for one in found)
        found = [replace(one, end=longest) for one in found]
    columns: int = more.get("columns", 1)
    if columns > 1:
        # Panels of a grid are compared with one another: those of one axis have one scale.
        tops = {
            axis: max(one.top for one in found if one.axis == axis) for axis in {one.axis for one in found}
        }
        found = [replace(one, top=tops[one.axis]) for one in found]
    for one in found:
        for label, at_s in one.moments:
            one.rows.extend(bound_rows(one.name, label, (at_s, 0.0), (at_s, one.top), side="up"))
        for label, height, side in one.bounds:
            one.rows.extend(bound_rows(one.name, label, (0.0, height), (one.end, height), side))
    rows = [row for one in found for row in one.rows]
    names = list(dict.fromkeys(row[1] for row in rows if row[2] == "curve"))
    since = "time" if is_since_trial else "time since the start"
    line = "step-after" if more.get("steps", False) else "linear"
    charts = []
    for place, one in enumerate(found):
        x_axis = PanelAxis(f"{since}, s", 1.0, "", False, (0.0, one.end))
        x, y = axis_channel("x", x_axis, x_axis.domain), axis_channel("y", one.axis, (0.0, one.top))
        if columns > 1:
            # The title of an axis is drawn once for a row and once for a column.
            x["title"] = x["title"] if place >= len(found) - columns else None
            y["title"] = y["title"] if place % columns == 0 else None
            for channel in (x, y):
                channel["axis"] = {**channel["axis"], "tickCount": 4}
        parts = parts_of(x, y, names, {row[2] for row in one.rows}, line=line, size=20)
        height = _HEIGHT if columns == 1 else _LOW_HEIGHT
        charts.append(panel_of(one.name, parts, width=width_of(len(found), columns), height=height))
    return DrawnPanels(grid(charts, columns=columns), tuple(rows), _whose(seeds))


@dataclass(frozen=True)
class _Panel:
    """Contents of a panel."""

    name: str
    rows: PanelRows
    axis: PanelAxis
    bounds: list[tuple[str, float, str]]
    """Horizontal lines: their names, their values, and the end of the name."""
    moments: list[tuple[str, float]]
    """Vertical lines: their names, and their times."""
    end: float
    """Where its time ends."""
    top: float


@dataclass(frozen=True)
class _Way:
    """How curves of a panel are drawn."""

    metric: str
    axis: PanelAxis
    in_steps: bool
    is_since_trial: bool
    every_s: float
    """Length of a point, or of a sample if that is longer."""
    until_s: float


def _moments(panel: Mapping[str, Any], trial: TrialMetrics) -> list[tuple[str, float]]:
    """Returns when the panel's moments are in a trial, s; none of one that it does not have."""
    found = [
        # Lines are distinguished by their names, also those without one.
        (one["label"] or " " * place, time_of(one["at"], trial))
        for place, one in enumerate(panel.get("moments", ()))
    ]
    return [(label, at) for label, at in found if np.isfinite(at)]


def _whose(seeds: Mapping[tuple[str, str], Sequence[int]]) -> str:
    """Returns which trials are drawn."""
    every = sorted({seed for each in seeds.values() for seed in each})
    if any(len(set(each)) > 1 for each in seeds.values()):
        return f"Trials of seeds {listed([str(seed) for seed in every])}."
    if len(every) == 1:
        return f"One trial each, of seed {every[0]}." if len(seeds) > 1 else f"One trial, of seed {every[0]}."
    told = [f"{scenario.rpartition('/')[2]} seed {each[0]}" for (scenario, _), each in seeds.items()]
    return f"One trial each: {listed(told)}."


def _curve(name: str, curve: Mapping[str, Any], trial: TrialMetrics, way: _Way) -> PanelRows:
    """From when the flow starts to the last sample that has anything in it worth drawing."""
    flow = curve["flow"]
    try:
        series = trial.series(way.metric, flow)
    except KeyError:
        return []
    start = 0.0 if way.is_since_trial else trial.value("start", flow)
    times, values = trial.grid.starts_s, series.samples()
    if (count := round(way.every_s / trial.grid.sample_s)) > 1:
        times, values = _together(times, series, count)
    least = 0.0 if way.in_steps else _LEAST * float(np.nanmax(values, initial=0.0))
    there = np.isfinite(values) if way.is_since_trial else np.nan_to_num(values) > least
    some = np.flatnonzero(there & (times <= way.until_s))
    if not len(some):
        return []
    first = int(np.searchsorted(times, start - trial.grid.sample_s)) if np.isfinite(start) else 0
    part = slice(first, some[-1] + 2)
    if way.in_steps and series.low is not None and series.high is not None:
        times, values = _steps(times, trial.grid.widths_s, values, series.low, series.high, part)
    else:
        times, values = _thinned(times[part], values[part])
    since = times - (start if np.isfinite(start) else 0.0)
    return [
        (name, curve["label"], "curve", max(0.0, shown_number(time)), _known(value / way.axis.scale), "")
        for time, value in zip(since.tolist(), values.tolist(), strict=True)
    ]


def _together(times: Floats, series: Series, count: int) -> tuple[Floats, Floats]:
    """Returns the metric of `count` samples together, each at its middle."""
    begins = np.arange(0, len(times), count)
    parts = [slice(at, at + count) for at in begins.tolist()]
    half = float(times[1] - times[0]) * count / 2 if len(times) > 1 else 0.0
    return times[begins] + half, np.array([series.value(part) for part in parts])


def _steps(
    times: Floats, widths: Floats, values: Floats, low: Floats, high: Floats, part: slice
) -> tuple[Floats, Floats]:
    """Returns the times at which a held value changes: within a sample that has two values the mean
    determines the time. A sample with more values is drawn as a step of its own."""
    found: list[tuple[float, float]] = []
    held = float("nan")
    for at in range(*part.indices(len(times))):
        value, time = float(values[at]), float(times[at])
        ends = (float(low[at]), float(high[at]))
        if held in ends and ends[0] < value < ends[1]:
            value_then = ends[1] if held == ends[0] else ends[0]
            time += float(widths[at]) * (value - value_then) / (held - value_then)
            value = value_then
        elif ends[0] == ends[1]:
            # Without the rounding errors of a ratio of sums.
            value = ends[0]
        if value != held and not (np.isnan(value) and np.isnan(held)):
            # The old value is held until then, also before a gap.
            found += [(time, held), (time, value)] if found else [(time, value)]
        held = value
    found.append((float(times[part][-1]), held))
    return np.array([time for time, _ in found]), np.array([value for _, value in found])


def _known(value: float) -> float | None:
    """A gap is drawn as one."""
    return shown_number(value) if np.isfinite(value) else None


def _thinned(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    count = -(-len(times) // _POINTS)
    if count < 2:
        return times, values
    whole = len(times) // count * count
    rows = values[:whole].reshape(-1, count)
    known = np.isfinite(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(known, rows, 0.0).sum(axis=1) / known.sum(axis=1)
    return times[:whole:count], np.asarray(means)

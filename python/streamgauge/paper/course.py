"""A paper's figure of one trial over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.grid import Floats
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
"""A curve has so many points at most; where samples are more they are taken in means."""
_LEAST = 0.1
"""The last samples with less than so much of the greatest are left out: a session that says it is over."""
_HEIGHT = 190


def draw_course(figure: PaperFigure, reading: Reading) -> DrawnPanels | None:
    """Panel by panel as `figure.more` has them: of the valid trial with the lowest seed. None if a curve has
    none."""
    y_axis = axis_of(figure.more["y"])
    metric, in_steps = figure.more["metric"], figure.more.get("steps", False)
    panels = across(figure, reading)
    if not panels:
        return None
    names = list(dict.fromkeys(curve["label"] for panel, _, _ in panels for curve in panel["curves"]))
    rows: PanelRows = []
    charts, seeds = [], {}
    for panel, mode, name in panels:
        mine: PanelRows = []
        for curve in panel["curves"]:
            entry = reading.by_id.get(curve["scenario"])
            group = entry.group(mode) if entry else None
            shown = group.shown if group else None
            if shown is None:
                return None
            seeds[curve["scenario"], mode] = shown.seed
            mine += _curve(name, curve, shown, metric, y_axis, in_steps=in_steps)
        end = max((row[3] for row in mine), default=1.0)
        bounds = [(one["label"], scaled(one["at"], y_axis)) for one in panel.get("bounds", ())]
        top = 1.08 * max([row[4] for row in mine if row[4] is not None] + [at for _, at in bounds] + [0.0])
        for label, at in bounds:
            mine += bound_rows(name, label, (0.0, at), (end, at))
        rows += mine
        x_axis = PanelAxis("time since the start, s", 1.0, "", False, (0.0, end))
        parts = parts_of(
            axis_channel("x", x_axis, x_axis.domain), axis_channel("y", y_axis, (0.0, top or 1.0)), names,
            {row[2] for row in mine}, line="step-after" if in_steps else "linear", size=20,
        )  # fmt: skip
        charts.append(panel_of(name, parts, width=width_of(1), height=_HEIGHT))
    return DrawnPanels(grid(charts, columns=1), tuple(rows), _whose(seeds))


def _whose(seeds: Mapping[tuple[str, str], int]) -> str:
    """Which trials are drawn."""
    every = sorted(set(seeds.values()))
    if len(every) == 1:
        return f"One trial each, of seed {every[0]}." if len(seeds) > 1 else f"One trial, of seed {every[0]}."
    told = [f"{scenario.rpartition('/')[2]} seed {seed}" for (scenario, _), seed in seeds.items()]
    return f"One trial each: {listed(told)}."


def _curve(
    name: str, curve: Mapping[str, Any], trial: TrialMetrics, metric: str, axis: PanelAxis, *, in_steps: bool
) -> PanelRows:
    """From when the flow starts to the last sample that has anything in it worth drawing."""
    flow = curve["flow"]
    try:
        series = trial.series(metric, flow)
    except KeyError:
        return []
    start = trial.value("start", flow)
    times, values = trial.grid.starts_s, series.samples()
    least = 0.0 if in_steps else _LEAST * float(np.nanmax(values, initial=0.0))
    some = np.flatnonzero(np.nan_to_num(values) > least)
    if not len(some):
        return []
    first = int(np.searchsorted(times, start - trial.grid.sample_s)) if np.isfinite(start) else 0
    part = slice(first, some[-1] + 2)
    if in_steps and series.low is not None and series.high is not None:
        times, values = _steps(times, trial.grid.widths_s, values, series.low, series.high, part)
    else:
        times, values = _thinned(times[part], values[part])
    since = times - (start if np.isfinite(start) else 0.0)
    return [
        (name, curve["label"], "curve", max(0.0, shown_number(time)), _known(value / axis.scale), "")
        for time, value in zip(since.tolist(), values.tolist(), strict=True)
    ]


def _steps(
    times: Floats, widths: Floats, values: Floats, low: Floats, high: Floats, part: slice
) -> tuple[Floats, Floats]:
    """Where a value that is held changes: within a sample that has two values the mean tells when. Of one
    with more it is drawn as a step of its own."""
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
            # Free of what a ratio of sums leaves in the last digits.
            value = ends[0]
        if value != held and not (np.isnan(value) and np.isnan(held)):
            # What was held is held until then, also before a gap.
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

"""A paper's figure of points, one a trial: two values against one another, and how they go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgauge.paper.distances import Sample, correlated, least_squares
from streamgauge.paper.gathering import Gathered
from streamgauge.paper.panels import (
    DrawnPanels,
    PanelAxis,
    PanelRows,
    across,
    axis_channel,
    axis_of,
    bound_rows,
    bounded_words,
    counted_trials,
    grid,
    panel_of,
    parts_of,
    scaled,
    shown_number,
    width_of,
)
from streamgauge.paper.published import PaperFigure
from streamgauge.paper.reading import Reading

__all__ = ["draw_scatter"]

_HEIGHT, _LOW = 380, 220
_SQUARE = 1.2
"""Width over height of a panel with two equal axes."""


def draw_scatter(figure: PaperFigure, reading: Reading, trials: Gathered) -> DrawnPanels | None:
    """Panel by panel as `figure.more` has them; None if it was run in no mode, or points have no
    trial with both values.

    `line` is ``equal`` (where both values are the same), ``least squares`` (with Pearson's r), or nothing.
    """
    x_axis, y_axis = axis_of(figure.more["x"]), axis_of(figure.more["y"])
    line = figure.more.get("line", "")
    rows: PanelRows = []
    charts, counts, lacking, outside = [], [], 0, 0
    panels = across(figure, reading)
    if not panels:
        return None
    names = list(dict.fromkeys(points["label"] for panel, _, _ in panels for points in panel["points"]))
    for panel, mode, name in panels:
        mine: PanelRows = []
        clips: list[int] = []
        for points in panel["points"]:
            found = _points(points, mode, trials, name, x_axis, y_axis)
            if found is None:
                return None
            some, whose, missing = found
            mine += some
            clips += whose
            counts.append(len(some))
            lacking += missing
        outside += _beyond(mine, x_axis, y_axis)
        x = np.array([row[3] for row in mine])
        y = np.array([row[4] for row in mine])
        x_domain = x_axis.domain or _around(x, [], with_zero=not x_axis.log)
        bounds = [(one["label"], scaled(one["y"], y_axis)) for one in panel.get("bounds", ())]
        y_domain = y_axis.domain or _around(y, [at for _, at in bounds], with_zero=True)
        told = ""
        if line == "equal":
            high = max(x_domain[1], y_domain[1])
            x_domain = y_domain = (0.0, high)
            mine += bound_rows(name, "both the same", (0.0, 0.0), (high, high), "within")
        elif line == "least squares":
            mine += _line(name, x, y, x_domain)
            told = _together(panel, x, y, clips)
        for label, at in bounds:
            mine += bound_rows(name, label, (x_domain[0], at), (x_domain[1], at))
        rows += mine
        parts = parts_of(
            axis_channel("x", x_axis, x_domain), axis_channel("y", y_axis, y_domain), names,
            {row[2] for row in mine}, line="linear", size=26,
        )  # fmt: skip
        height = _HEIGHT if len(panels) == 1 else _LOW
        width = _SQUARE * height if line == "equal" else width_of(len(panels))
        charts.append(panel_of(name, parts, width=width, height=height, told=told))
    text = f"A point a trial, {counted_trials(counts, lacking)}."
    if outside:
        text += f" {outside} {'lies' if outside == 1 else 'lie'} beyond the axes."
    if line == "least squares":
        text += (
            " The line is that of least squares, r Pearson's coefficient of correlation with its 95 % "
            "interval over clips."
        )
    return DrawnPanels(grid(charts), tuple(rows), text)


def _points(
    points: Mapping[str, Any], mode: str, trials: Gathered, name: str, x_axis: PanelAxis, y_axis: PanelAxis
) -> tuple[PanelRows, list[int], int] | None:
    """Rows, the clip of each, and how many trials lack a value; None if all do."""
    found = trials.get((points["scenario"], mode))
    if found is None:
        return None
    x, y = (np.array(found.values[points[side]]) for side in ("x", "y"))
    known = np.isfinite(x) & np.isfinite(y)
    rows: PanelRows = [
        (
            name,
            points["label"],
            "point",
            shown_number(a / x_axis.scale),
            shown_number(b / y_axis.scale),
            which,
        )
        for a, b, which in zip(
            x[known].tolist(),
            y[known].tolist(),
            _which(found.clips, found.seeds, known.tolist()),
            strict=True,
        )
    ]
    clips = [clip for clip, is_known in zip(found.clips, known.tolist(), strict=True) if is_known]
    return (rows, clips, int((~known).sum())) if rows else None


def _beyond(rows: PanelRows, x_axis: PanelAxis, y_axis: PanelAxis) -> int:
    """Returns the number of points outside the range of the axes."""

    def is_outside(value: float, axis: PanelAxis) -> bool:
        return axis.domain is not None and not axis.domain[0] <= value <= axis.domain[1]

    return sum(is_outside(row[3], x_axis) or is_outside(row[4], y_axis) for row in rows)


def _which(clips: list[int], seeds: list[int], known: list[bool]) -> list[str]:
    return [
        f"clip {clip}, seed {seed}"
        for clip, seed, is_known in zip(clips, seeds, known, strict=True)
        if is_known
    ]


def _line(name: str, x: Any, y: Any, domain: tuple[float, float]) -> PanelRows:
    if (fitted := least_squares(x, y)) is None:
        return []
    slope, at_zero = fitted
    ends = [max(domain[0], float(x.min())), min(domain[1], float(x.max()))]
    return [(name, "", "line", shown_number(end), shown_number(at_zero + slope * end), "") for end in ends]


def _together(panel: Mapping[str, Any], x: Any, y: Any, clips: list[int]) -> str:
    found = correlated(Sample(x, np.array(clips, dtype=np.int64)), y)
    text = "r is not known" if found is None else f"r = {bounded_words(found, is_signed=True)}"
    if "published_r" in panel:
        said = panel["published_r"]
        text += (
            f"; the paper {said}".replace("-", "−")
            if isinstance(said, int | float)
            else f"; the paper: {said}"
        )
    return text


def _around(values: Any, more: list[float], *, with_zero: bool) -> tuple[float, float]:
    every = [*values.tolist(), *more, *([0.0] if with_zero else [])]
    low, high = min(every), max(every)
    room = 0.04 * (high - low) or 1.0
    return (low - room if low < 0 else 0.0 if with_zero else low / 1.05), high + room

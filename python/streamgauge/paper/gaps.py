"""A paper's figure of the gaps between packets: the share of them up to x, or above."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgauge.checks.published import published_value
from streamgauge.metrics.grid import Floats
from streamgauge.paper.distributions import cumulative
from streamgauge.paper.gathering import time_of
from streamgauge.paper.panels import (
    DrawnPanels,
    PanelAxis,
    PanelRows,
    across,
    axis_channel,
    bound_rows,
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
from streamgauge.paper.sent import sent_packets
from streamgauge.report.model import Group

__all__ = ["draw_gaps"]

_HEIGHT = 190
_LEAST = 0.1
"""Where shares of gaps that are longer end, %: of thousands of packets fewer are single ones."""


def draw_gaps(figure: PaperFigure, reading: Reading) -> DrawnPanels | None:
    """Draws panel by panel as `figure.more` has them, over all valid trials with packets that were kept; None
    if a curve has none."""
    panels = across(figure, reading)
    if not panels:
        return None
    rows: PanelRows = []
    found, counts, lacking = [], [], 0
    for panel, mode, name in panels:
        x_axis = PanelAxis("gap to the next packet", 1e-3, "ms", False, tuple(panel["domain"]))
        y_axis = _share(panel["form"])
        low, high = panel["domain"]
        mine: PanelRows = []
        for curve in panel["curves"]:
            entry = reading.by_id.get(curve["scenario"])
            group = entry.group(mode) if entry else None
            gaps_s, missing = _gaps(group, curve)
            if gaps_s is None:
                return None
            counts.append(len(group.valid) - missing if group else 0)
            lacking += missing
            x, y = cumulative(gaps_s / x_axis.scale, low, high)
            if panel["form"] == "longer":
                y = 100 - y
            mine += [
                (name, curve["label"], "curve", shown_number(float(a)), shown_number(float(b)), "")
                for a, b in zip(x, y, strict=True)
                if not y_axis.log or b >= _LEAST
            ]
        for one in panel.get("published", ()):
            place = (
                shown_number(scaled(one["x"], x_axis)),
                shown_number(100 * published_value(one["y"])[0]),
            )
            mine.append((name, "", "published", *place, one["label"]))
            mine.append((name, "", "published name below", *place, one["label"]))
        for one in panel.get("moments", ()):
            at = scaled(one["at"], x_axis)
            mine += bound_rows(name, one["label"], (at, _LEAST), (at, 100.0), side="up")
        rows += mine
        found.append((name, mine, x_axis, y_axis))
    names = list(dict.fromkeys(row[1] for row in rows if row[2] == "curve"))
    charts = []
    for name, mine, x_axis, y_axis in found:
        parts = parts_of(
            axis_channel("x", x_axis, x_axis.domain), axis_channel("y", y_axis, y_axis.domain), names,
            {row[2] for row in mine}, line="step-after", size=40,
        )  # fmt: skip
        charts.append(panel_of(name, parts, width=width_of(len(panels)), height=_HEIGHT))
    text = f"Of the packets of all trials together, {counted_trials(counts, lacking)}."
    if any(row[2] == "published" for row in rows):
        text += " ◇ and dashed lines: what the paper's text says."
    return DrawnPanels(grid(charts), tuple(rows), text)


def _share(form: str) -> PanelAxis:
    if form == "longer":
        return PanelAxis("longer gaps, %", 1.0, "", True, (_LEAST, 100.0))
    return PanelAxis("gaps, %", 1.0, "", False, (0.0, 100.0))


def _gaps(group: Group | None, curve: Mapping[str, Any]) -> tuple[Floats | None, int]:
    """Returns the gaps that begin in the curve's stretch, s, and of how many trials nothing is known."""
    gaps, missing = [], 0
    for trial in group.valid if group else ():
        metrics, sent = trial.metrics, None
        if trial.directory is not None:
            sent = sent_packets(trial.directory, curve["flow"])
        if sent is None or metrics is None:
            missing += 1
            continue
        begin, end = (time_of(curve[side], metrics) for side in ("from", "to"))
        inside = (sent.times_s[:-1] >= begin) & (sent.times_s[:-1] < end)
        gaps.append(np.diff(sent.times_s)[inside])
    return (np.concatenate(gaps) if any(len(one) for one in gaps) else None), missing

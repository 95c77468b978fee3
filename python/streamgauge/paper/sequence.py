"""A paper's figure of sequence numbers against time: a point a packet, of one trial."""

from __future__ import annotations

import numpy as np

from streamgauge.paper.gathering import time_of
from streamgauge.paper.panels import (
    DrawnPanels,
    PanelAxis,
    PanelRows,
    across,
    axis_channel,
    grid,
    panel_of,
    parts_of,
    shown_number,
    width_of,
)
from streamgauge.paper.published import PaperFigure
from streamgauge.paper.reading import Reading
from streamgauge.paper.sent import SentTimes, sent_packets
from streamgauge.report.model import Group, LoadedTrial

__all__ = ["draw_sequence"]

_HEIGHT = 230
_NAMES = ("sent for the first time", "sent again")


def draw_sequence(figure: PaperFigure, reading: Reading) -> DrawnPanels | None:
    """Draws panel by panel as `figure.more` has them: the valid trial with the lowest seed that has its
    packets. None if there is none."""
    panels = across(figure, reading)
    if not panels:
        return None
    rows: PanelRows = []
    charts, seeds = [], set()
    for panel, mode, name in panels:
        (one,) = panel["points"]
        entry = reading.by_id.get(one["scenario"])
        shown = _shown(entry.group(mode) if entry else None, one["flow"])
        if shown is None:
            return None
        trial, sent = shown
        metrics = trial.metrics
        assert metrics is not None
        begin, end = (time_of(panel[side], metrics) for side in ("from", "to"))
        inside = np.flatnonzero((sent.times_s >= begin) & (sent.times_s < end) & (sent.numbers >= 0))
        if not len(inside):
            return None
        seeds.add(trial.seed)
        mine: PanelRows = [
            (
                name,
                _NAMES[bool(sent.again[at])],
                "point",
                shown_number(sent.times_s[at] - begin),
                int(sent.numbers[at]),
                "",
            )
            for at in inside.tolist()
        ]
        rows += mine
        x_axis = PanelAxis("time since PLAY, s", 1.0, "", False, (0.0, 1.01 * (end - begin)))
        numbers = sent.numbers[inside]
        y_axis = PanelAxis("sequence number", 1.0, "", False, None)
        room = 0.04 * (int(numbers.max()) - int(numbers.min()) + 1)
        y_domain = (int(numbers.min()) - room, int(numbers.max()) + room)
        parts = parts_of(
            axis_channel("x", x_axis, x_axis.domain), axis_channel("y", y_axis, y_domain), _NAMES,
            {"point"}, line="linear", size=16,
        )  # fmt: skip
        charts.append(panel_of(name, parts, width=width_of(1), height=_HEIGHT))
    told = "One trial" if len(panels) == 1 else "One trial each"
    which = f"{told}, of seed {min(seeds)}." if len(seeds) == 1 else f"{told}."
    return DrawnPanels(grid(charts, columns=1), tuple(rows), which)


def _shown(group: Group | None, flow: str) -> tuple[LoadedTrial, SentTimes] | None:
    for trial in group.valid if group else ():
        sent = None if trial.directory is None else sent_packets(trial.directory, flow)
        if sent is not None:
            return trial, sent
    return None

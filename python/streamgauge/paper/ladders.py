"""A paper's figure of the levels that each clip of a population has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.checks.published import published_value
from streamgauge.paper.gathering import population
from streamgauge.paper.panels import (
    DrawnPanels,
    PanelAxis,
    PanelRows,
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
from streamgauge.units import Rate

__all__ = ["draw_ladders", "levels_bps"]

_HEIGHT = 320


def levels_bps(member: Mapping[str, Any]) -> list[float]:
    """Returns a member's levels, the lowest first, bit/s."""
    clip = member["clip"]
    return sorted(float(Rate(rate).bps) for rate in clip.get("ladder") or [clip["rate"]])


def draw_ladders(figure: PaperFigure, reading: Reading) -> DrawnPanels | None:
    """Clips by how many levels they have, then by their lowest; None if the scenario has no trial."""
    entry = reading.by_id.get(figure.more["scenario"])
    members = population(entry) if entry and any(group.valid for group in entry.groups) else ()
    ladders = sorted((levels_bps(one) for one in members), key=lambda levels: (len(levels), levels[0]))
    if not ladders:
        return None
    scale = published_value("1 kbit/s")[0]
    y_axis = axis_of({"title": "rate of each level", "unit": "kbit/s", "log": True})
    rates = [rate / scale for levels in ladders for rate in levels]
    end = len(ladders) + 1.0
    rows: PanelRows = [
        ("", "", "point", float(rank), shown_number(rate / scale), f"{len(levels)} levels")
        for rank, levels in enumerate(ladders, 1)
        for rate in levels
    ]
    for bound in figure.more.get("bounds", ()):
        rate = scaled(bound["at"], y_axis)
        rows += bound_rows("", bound["label"], (0.0, rate), (end, rate), "left")
    x_axis = PanelAxis("clips, by how many levels they have, then by the lowest", 1.0, "", False, (0.0, end))
    parts = parts_of(
        axis_channel("x", x_axis, x_axis.domain),
        axis_channel("y", y_axis, (min(rates) / 1.3, max(rates) * 1.3)),
        [""], {row[2] for row in rows}, line="linear", size=14,
    )  # fmt: skip
    chart = panel_of("", parts, width=width_of(1), height=_HEIGHT)
    single = sum(len(levels) == 1 for levels in ladders)
    told = f"{len(ladders)} clips, of which {single} have one level."
    return DrawnPanels(grid([chart]), tuple(rows), told)

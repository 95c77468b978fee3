"""The figures of a crosscheck of adaptive bit rate, from its document alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import altair as alt

from streamgauge.report.chart import BLUE, VERMILION, DrawnFigure, spec_of

__all__ = ["figures"]

_SOURCE = alt.NamedData(name="source")
_MODES: Final = ("sim", "emu")
COLUMNS: Final = 6
"""A row for each player."""


def figures(document: Mapping[str, Any]) -> list[DrawnFigure]:
    """Levels over time, a panel a case, a row for each player."""
    rows = []
    panels: dict[str, None] = {}
    for case in document["cases"]:
        if set(case["asked"]) != set(_MODES):
            continue
        panels[case["id"]] = None
        for mode, asked in case["asked"].items():
            for time_s, level, _ in asked:
                rows.append((time_s, case["levels_bps"][level] / 1e3, mode, case["id"]))
    if not rows:
        return []
    chart = (
        alt.Chart(_SOURCE)
        .mark_line(interpolate="step-after", strokeWidth=1.4, point=alt.OverlayMarkDef(size=9))
        .encode(
            x=alt.X("t:Q", title="time, s"),
            y=alt.Y("v:Q", title="kbit/s", scale=alt.Scale(type="sqrt"), axis=alt.Axis(tickCount=4)),
            color=alt.Color("m:N", title=None, scale=alt.Scale(domain=list(_MODES), range=[BLUE, VERMILION])),
        )
        .properties(width=120, height=80)
        .facet(alt.Facet("c:N", title=None, sort=list(panels)), columns=COLUMNS, spacing=12)
        .resolve_scale(y="independent")
    )
    return [
        DrawnFigure(
            "fidelity-abr-levels",
            "Levels asked for over time",
            "The level of each request for a segment, in sim and in emu; one run of each, seed 1.",
            spec_of(chart),
            ("t", "v", "m", "c"),
            tuple(rows),
        )
    ]

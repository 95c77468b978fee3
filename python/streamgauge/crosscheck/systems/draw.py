"""The figure of a crosscheck of systems, from its document alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import altair as alt

from streamgauge.crosscheck.systems.quantities import QUANTITIES
from streamgauge.report.chart import BLUE, ORANGE, SKY, VERMILION, DrawnFigure, spec_of

__all__ = ["figures"]

FAR: Final = 3.0
"""Number of margins; points further away are drawn there."""
_VERDICTS: Final = ("equivalent", "explained", "inconclusive", "unexplained")
_COLOURS: Final = (BLUE, SKY, ORANGE, VERMILION)
_SHAPES: Final = ("circle", "diamond", "triangle-up", "cross")
_ACROSS: Final = 3
"""Panels beside each other."""
_SOURCE = alt.NamedData(name="source")


def figures(document: Mapping[str, Any]) -> list[DrawnFigure]:
    """Returns how far each system in sim is from itself in emu: a panel a system, a row a quantity, a dot a
    case."""
    rows: list[tuple[Any, ...]] = []
    for row in document["rows"]:
        if not row["margin"]:
            continue
        who, _, condition = row["case"].partition("/")
        off = (row["sim"] - row["emu"]) / row["margin"]
        rows.append((who, QUANTITIES[row["metric"]].words, off, row["verdict"], condition))
    if not rows:
        return []
    words = [asked.words for asked in QUANTITIES.values() if any(row[1] == asked.words for row in rows)]
    names = list(dict.fromkeys(row[0] for row in rows))
    base = alt.Chart(_SOURCE)
    limits = alt.Scale(domain=[-FAR, FAR], clamp=True)
    dots = base.mark_point(filled=True, size=28, opacity=0.75).encode(
        x=alt.X(
            "d:Q", scale=limits, title="(sim - emu) / margin", axis=alt.Axis(values=[-3, -2, -1, 0, 1, 2, 3])
        ),
        y=alt.Y("q:N", sort=words, title=None, axis=alt.Axis(labelLimit=200, grid=True)),
        color=alt.Color("w:N", title=None, scale=alt.Scale(domain=list(_VERDICTS), range=list(_COLOURS))),
        shape=alt.Shape("w:N", title=None, scale=alt.Scale(domain=list(_VERDICTS), range=list(_SHAPES))),
        tooltip=[alt.Tooltip("n:N", title="condition"), alt.Tooltip("d:Q", title="margins")],
    )
    edges = [
        base.transform_calculate(e=place)
        .mark_rule(strokeDash=[4, 3], strokeWidth=0.8)
        .encode(x=alt.X("e:Q", scale=limits))
        for place in ("1", "-1")
    ]
    chart = (
        alt.layer(*edges, dots)
        .properties(width=190, height=alt.Step(15))
        .facet(facet=alt.Facet("s:N", sort=names, title=None), columns=_ACROSS, spacing=14)
    )
    return [
        DrawnFigure(
            "fidelity-systems",
            "How far each system in sim is from itself on real sockets",
            "The difference of the means of sim and emu as a share of the margin, a dot for each condition; "
            f"between the dashed lines lies the margin. Values beyond {FAR:g} margins are drawn at the edge.",
            spec_of(chart),
            ("s", "q", "d", "w", "n"),
            tuple(rows),
        )
    ]

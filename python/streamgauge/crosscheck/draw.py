"""The figures of a crosscheck, from its document alone: nothing here is run or chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import altair as alt

from streamgauge.report.chart import BLUE, ORANGE, SKY, VERMILION, DrawnFigure, spec_of

__all__ = ["figures"]

DRAWN_LINKS: Final = ("10m-25kb", "1m-75kb")
"""Links with windows that are drawn."""
DRAWN_S: Final = 20.0
"""How much of a trial, from the window's begin."""
FAR: Final = 3.0
"""Number of margins; points further away are drawn there."""
_VERDICTS: Final = ("equivalent", "explained", "inconclusive", "unexplained")
_COLOURS: Final = (BLUE, SKY, ORANGE, VERMILION)
_SHAPES: Final = ("circle", "diamond", "triangle-up", "cross")
_UNIT: Final = re.compile(r"_(per_s|bps|s|packets|percent)$")
_SOURCE = alt.NamedData(name="source")


def figures(document: Mapping[str, Any]) -> list[DrawnFigure]:
    """Returns every figure for which the document has something to draw."""
    found = [_windows(document, link) for link in DRAWN_LINKS]
    return [figure for figure in (*found, _distances(document), _shares(document)) if figure is not None]


def _windows(document: Mapping[str, Any], link: str) -> DrawnFigure | None:
    """Packets in flight over time, sim and emu side by side, a row a controller."""
    rows: list[tuple[Any, ...]] = []
    controls: list[str] = []
    for case in document["cases"]:
        who, _, where = case["id"].partition("/")
        if case["kind"] != "single" or where != link or len(case["windows"]) < 2:
            continue
        controls.append(who)
        begin = case["window_s"][0]
        for mode, flows in case["windows"].items():
            (series,) = flows.values()
            for at, packets in zip(series["t_s"], series["packets"], strict=True):
                if begin <= at < begin + DRAWN_S:
                    rows.append((at, packets, mode, who))
    if not rows:
        return None
    modes = ["sim", "emu"]
    one = (
        alt.Chart(_SOURCE)
        .mark_line(interpolate="step-after", strokeWidth=1.3)
        .encode(
            x=alt.X("t:Q", title="time, s", scale=alt.Scale(zero=False, nice=False)),
            y=alt.Y("v:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4)),
            color=alt.Color("m:N", scale=alt.Scale(domain=modes, range=[BLUE, VERMILION]), legend=None),
        )
        .properties(width=370, height=105)
    )
    return DrawnFigure(
        f"fidelity-windows-{link}",
        f"Packets in flight, {link}",
        f"Most packets in flight in each of 600 steps of a trial on {link}; one run of each, seed 1.",
        _panels(spec_of(one), rows, controls, modes),
        ("t", "v", "m", "c"),
        tuple(rows),
    )


def _panels(
    unit: dict[str, Any], rows: Sequence[tuple[Any, ...]], controls: Sequence[str], modes: Sequence[str]
) -> dict[str, Any]:
    """Returns a row of two panels for each controller. The two share their scale, which facets cannot do a
    row."""
    unit = dict(unit)
    kept: dict[str, Any] = {key: unit.pop(key) for key in ("$schema", "data") if key in unit}
    lines = []
    for control in controls:
        top = 1.05 * max(row[1] for row in rows if row[3] == control)
        panels = []
        for mode in modes:
            panel = {**unit, "transform": [{"filter": f"datum.c == '{control}' && datum.m == '{mode}'"}]}
            panel["encoding"] = {**unit["encoding"]}
            scale = {"domain": [0, top], "nice": False}
            last = control == controls[-1]
            x = {**unit["encoding"]["x"], "title": "time, s" if last else None}
            y = {
                **unit["encoding"]["y"],
                "scale": scale,
                "title": "packets in flight" if mode == modes[0] else None,
            }
            panel["encoding"] |= {"x": x, "y": y}
            panel["title"] = {"text": f"{control}, {mode}", "anchor": "start", "fontSize": 12}
            panels.append(panel)
        lines.append({"hconcat": panels, "spacing": 20})
    return {**kept, "vconcat": lines, "spacing": 8}


def _distances(document: Mapping[str, Any]) -> DrawnFigure | None:
    """Returns how far sim is from emu in margins: a column a controller, a row a quantity, a dot a link."""
    rows = list(_distance_rows(document))
    if not rows:
        return None
    metrics = list(dict.fromkeys(row[1] for row in rows))
    controls = list(dict.fromkeys(row[0] for row in rows))
    links = list(dict.fromkeys(row[2] for row in rows))
    limits = alt.Scale(domain=[-FAR, FAR], clamp=True)
    base = alt.Chart(_SOURCE)
    y = alt.Y("q:N", sort=metrics, title=None, axis=alt.Axis(labelLimit=240, grid=True))
    offset = alt.YOffset("l:N", sort=links)
    spans = base.mark_rule(strokeWidth=1, opacity=0.55).encode(
        x=alt.X("lo:Q", scale=limits), x2="hi:Q", y=y, yOffset=offset
    )
    dots = base.mark_point(filled=True, size=34, opacity=1).encode(
        x=alt.X(
            "d:Q", scale=limits, title="(sim - emu) / margin", axis=alt.Axis(values=[-3, -2, -1, 0, 1, 2, 3])
        ),
        y=y,
        yOffset=offset,
        color=alt.Color("w:N", scale=alt.Scale(domain=list(_VERDICTS), range=list(_COLOURS))),
        shape=alt.Shape("w:N", scale=alt.Scale(domain=list(_VERDICTS), range=list(_SHAPES))),
        tooltip=[alt.Tooltip("l:N", title="link"), alt.Tooltip("d:Q", title="margins")],
    )
    edges = (
        base.transform_calculate(e="1").mark_rule(strokeDash=[4, 3], strokeWidth=0.8).encode(x=alt.X("e:Q"))
    )
    other = (
        base.transform_calculate(e="-1").mark_rule(strokeDash=[4, 3], strokeWidth=0.8).encode(x=alt.X("e:Q"))
    )
    width = 700 / max(1, len(controls)) - 18
    chart = (
        alt.layer(edges, other, spans, dots)
        .properties(width=max(width, 120), height=alt.Step(7))
        .facet(column=alt.Column("c:N", sort=controls, title=None), spacing=10)
    )
    return DrawnFigure(
        "fidelity-margins",
        "How far sim is from emu",
        "Single flows: the difference of the means of sim and emu with its 90 % interval, as a share of the "
        f"margin; within the dashed lines the two count as equivalent. Dots of a row, from above: "
        f"{', '.join(links)}. Values beyond {FAR:g} margins are drawn at the edge.",
        spec_of(chart),
        ("c", "q", "l", "d", "lo", "hi", "w"),
        tuple(rows),
    )


def _distance_rows(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    singles = {case["id"] for case in document["cases"] if case["kind"] == "single"}
    for row in document["rows"]:
        if row["case"] not in singles or not row["margin"] or row["low"] is None:
            continue
        who, _, link = row["case"].partition("/")
        name = _UNIT.sub("", row["metric"]).replace("_", " ")
        distance = (row["sim"] - row["emu"]) / row["margin"]
        low, high = row["low"] / row["margin"], row["high"] / row["margin"]
        yield who, name, link, distance, low, high, row["verdict"]


def _shares(document: Mapping[str, Any]) -> DrawnFigure | None:
    """Returns each run's share of the first flow of each pair, sim beside emu."""
    rows: list[tuple[Any, ...]] = []
    pairs = [case for case in document["cases"] if case["kind"] == "pair"]
    links = list(dict.fromkeys(case["id"].partition("/")[2] for case in pairs))
    # A panel a case: in a grid of links and pairs Vega puts panels elsewhere where a link has not all pairs.
    for case in sorted(pairs, key=lambda one: links.index(one["id"].partition("/")[2])):
        who, _, link = case["id"].partition("/")
        for mode, runs in case["quantities"].items():
            for run in runs:
                for metric, value in run.items():
                    if metric.endswith(".share") and value is not None:
                        rows.append((f"{who}, {link}", mode, value))
    if not rows:
        return None
    modes = ["sim", "emu"]
    base = alt.Chart(_SOURCE)
    dots = base.mark_point(size=36, strokeWidth=1.3, opacity=0.8).encode(
        x=alt.X("m:N", sort=modes, title=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("v:Q", title="share of the first flow", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color(
            "m:N", sort=modes, scale=alt.Scale(domain=modes, range=[BLUE, VERMILION]), legend=None
        ),
        shape=alt.Shape(
            "m:N", sort=modes, scale=alt.Scale(domain=modes, range=["circle", "square"]), legend=None
        ),
    )
    means = base.mark_tick(thickness=2, size=26, color="#444444").encode(
        x=alt.X("m:N", sort=modes), y="mean(v):Q"
    )
    chart = (
        alt.layer(dots, means)
        .properties(width=130, height=130)
        .facet(
            alt.Facet("c:N", sort=list(dict.fromkeys(row[0] for row in rows)), title=None),
            columns=4,
            spacing=14,
        )
    )
    return DrawnFigure(
        "fidelity-shares",
        "Shares of pairs",
        "The first flow's share of the goodput in each run (of two alike, the larger), and the mean (bar).",
        spec_of(chart),
        ("c", "m", "v"),
        tuple(rows),
    )

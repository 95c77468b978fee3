"""How figures look, and how they are written: one description each, drawn interactively by the page, and by
`save` as SVG, PNG or PDF.

Lines differ in dash and bars in lightness besides colour (Okabe and Ito's palette), so that figures survive
printing in grey.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.report.draw import FORMATS, draw
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 4), (1, 3))
IN_THE_DARK = {
    BLUE: "#4aa8e8", SKY: "#b3e0ff", VERMILION: "#ff8c42", "#444444": "#c4c4c4", "#777777": "#a5a5a5",
}  # fmt: skip
"""Colours too dark for a dark page, with what stands for them there."""
WIDTH = 860
"""Width of a figure, all its columns together, in CSS pixels."""


@dataclass(frozen=True)
class DrawnFigure:
    """A figure: a Vega-Lite description without its data, and the data as columns and rows."""

    id: str
    title: str
    caption: str
    spec: Mapping[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def vega_lite(self, theme: str = "light") -> dict[str, Any]:
        """The whole Vega-Lite specification."""
        values = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {**self.spec, "data": {"values": values}, "config": THEMES[theme]}

    def to_json(self) -> str:
        """For the page, which joins columns, rows and theme itself."""
        found = {"spec": self.spec, "columns": self.columns, "rows": self.rows}
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def save(figure: DrawnFigure, file: Path, *, scale: float = 2.0) -> Path:
    """Writes a figure as SVG, PNG or PDF, by the file's suffix. `scale` is for PNG.

    Raises:
        ValueError: for another suffix.
    """
    check_suffix(file)
    description = json.dumps(figure.vega_lite(), ensure_ascii=False)
    draw(description, {file.suffix: file}, scale=scale)
    return file


def check_suffix(file: Path) -> None:
    """Raises ValueError if a figure cannot be written as such a file."""
    if file.suffix not in FORMATS:
        raise ValueError(f"a figure is written as .svg, .png or .pdf, not {file.suffix!r}")


def _theme(ink: str, faint: str) -> dict[str, Any]:
    font = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
    return {
        "font": font,
        "background": None,
        "view": {"stroke": faint},
        "axis": {
            "labelColor": ink, "titleColor": ink, "gridColor": faint, "domainColor": ink, "tickColor": ink,
            "titleFontWeight": "normal", "labelFontSize": 11, "titleFontSize": 12, "gridOpacity": 0.6,
        },
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "labelFontWeight": "bold"},
        "legend": {
            "labelColor": ink, "titleColor": ink, "orient": "top", "title": None, "labelFontSize": 12,
            "symbolStrokeWidth": 2.5, "symbolSize": 260, "labelLimit": 400, "columnPadding": 18,
        },
        "title": {"color": ink},
        "text": {"color": ink},
        "rule": {"color": ink},
        "line": {"strokeWidth": 1.7, "strokeCap": "butt"},
    }  # fmt: skip


THEMES = {"light": _theme("#1b1b1b", "#d9d9d9"), "dark": _theme("#e8e8e8", "#454a50")}


def bars(
    id_: str, title: str, caption: str, rows: Sequence[tuple[Any, ...]], *, y: str, kinds: Sequence[str]
) -> DrawnFigure:
    classes = list(dict.fromkeys(row[0] for row in rows))
    panels = list(dict.fromkeys(row[3] for row in rows))
    # From dark to light, so that bars tell apart in grey too.
    colours = [
        "#444444" if kind == "published" else (BLUE, ORANGE, GREEN)[i % 3] for i, kind in enumerate(kinds)
    ]
    base = {
        "x": channel("c:N", sort=classes, title=None, axis={"labelAngle": 0, "labelLimit": 160}),
        "xOffset": channel("k:N", sort=list(kinds)),
    }
    bars = {
        "mark": {"type": "bar"},
        "encoding": {
            **base,
            "y": channel("v:Q", title=y, scale={"zero": True}),
            "color": channel("k:N", sort=list(kinds), scale={"domain": list(kinds), "range": colours}),
            "tooltip": [
                channel("c:N", title="class"), channel("k:N", title="what"), channel("v:Q", title=y),
            ],
        },
    }  # fmt: skip
    whiskers = {
        "mark": {"type": "rule", "strokeWidth": 1.4},
        "encoding": {**base, "y": channel("lo:Q", title=y), "y2": {"field": "hi"}},
        "transform": filtered("isValid(datum.lo) && datum.hi > datum.lo"),
    }
    width = min(WIDTH / max(1, len(panels)) - 60, 60 + 90 * len(classes))
    chart = layer([bars, whiskers], width=width, height=210)
    if len(panels) > 1:
        column = channel("p:N", sort=panels, title=None)
        resolve = {"scale": {"y": "independent"}}
        chart = {"facet": {"column": column}, "spec": chart, "spacing": 40, "resolve": resolve}
    return DrawnFigure(id_, title, caption, whole(chart), ("c", "v", "k", "p", "lo", "hi"), tuple(rows))


def lines(
    id_: str,
    title: str,
    caption: str,
    rows: Sequence[tuple[Any, ...]],
    *,
    y: str,
    series: Sequence[str],
    colours: Sequence[str],
    facets: Sequence[str] = ("",),
    height: int,
    x: str = "time, s",
    end: float | None = None,
) -> DrawnFigure:
    """Lines over time: one a series, a row of panels a facet, a column a mode. Rows are (t, value, series,
    facet, mode); the axis ends at `end`, by default at the last point."""
    modes = list(dict.fromkeys(row[4] for row in rows))
    palette = [
        "#777777" if name == "capacity" else colours[i % len(colours)] for i, name in enumerate(series)
    ]
    dashes = [
        [1, 0] if name == "capacity" else list(DASHES[i % len(DASHES)]) for i, name in enumerate(series)
    ]
    width = WIDTH - 90 if len(modes) < 2 else (WIDTH - 80) / len(modes)
    right = max((row[0] for row in rows), default=1) if end is None else end
    # A little room, so that a line at the top (a limit, a capacity) does not hide in the frame.
    top = 1.06 * max((row[1] for row in rows), default=1) or 1
    encoding = {
        "x": channel("t:Q", title=x, scale={"domain": [0, right], "nice": False}, axis={"tickCount": 8}),
        "y": channel("v:Q", title=y, scale={"domain": [0, top], "nice": False}, axis={"tickCount": 5}),
        "color": channel("s:N", sort=list(series), scale={"domain": list(series), "range": palette}),
        "strokeDash": channel("s:N", sort=list(series), scale={"domain": list(series), "range": dashes}),
        "tooltip": [channel("s:N", title="what"), channel("t:Q", title=x), channel("v:Q", title=y)],
    }
    mark = {"type": "line", "interpolate": "linear", "clip": True}
    chart: Spec = {"mark": mark, "encoding": encoding, "width": width, "height": height}
    facet: Spec = {}
    if len(facets) > 1:
        header = {"labelAngle": 0, "labelOrient": "top", "labelAnchor": "start"}
        facet["row"] = channel("f:N", sort=list(facets), title=None, header=header)
    if len(modes) > 1:
        facet["column"] = channel("m:N", sort=modes, title=None)
    if facet:
        chart = {"facet": facet, "spec": chart, "spacing": 14}
        if len(facets) > 1:
            chart["resolve"] = {"axis": {"x": "shared"}}
    return DrawnFigure(id_, title, caption, whole(chart), ("t", "v", "s", "f", "m"), tuple(rows))


def spec_of(chart: Any) -> dict[str, Any]:
    """An Altair chart of the rows named ``source`` as a description without theme: handy for a single figure,
    too slow where there are many (`streamgauge.report.vega`)."""
    import altair as alt

    with alt.data_transformers.enable(consolidate_datasets=False):
        spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    return spec

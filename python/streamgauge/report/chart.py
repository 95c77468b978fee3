"""How figures look, and how they are written: one description each, drawn interactively by the page, and by
`save` as SVG, PNG or PDF.

Lines differ in dash and bars in lightness besides colour (Okabe and Ito's palette), so that figures survive
printing in grey.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.report.draw import FORMATS, draw
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 4), (1, 3))
INK = "#1b1b1b"
FAINT = "#d9d9d9"
IN_THE_DARK = {
    BLUE: "#4aa8e8", SKY: "#b3e0ff", VERMILION: "#ff8c42", "#444444": "#c4c4c4", "#777777": "#a5a5a5",
    INK: "#e8e8e8", FAINT: "#454a50",
}  # fmt: skip
"""Colours too dark for a dark page, with their replacements there: pages have them in their style."""
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
    notes: str = ""
    """Further remarks, which pages fold away."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """Further parts on a page, in no file: ``single``, the courses of single trials, and ``window``, the data
    of a table over any stretch of time (templates/series.js describes the contents)."""

    def vega_lite(self, theme: str = "light") -> dict[str, Any]:
        """Returns the whole Vega-Lite specification."""
        values = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {**self.spec, "data": {"values": values}, "config": THEMES[theme]}

    def to_json(self) -> str:
        """For the page, which joins data and theme itself: `data` has an array a column, as runs where that
        is shorter, ``[[value, how many], ...]``."""
        data = [_packed([row[place] for row in self.rows]) for place in range(len(self.columns))]
        found = {"spec": self.spec, "columns": self.columns, "data": data}
        if "single" in self.beside:
            found["single"] = self.beside["single"]
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """For notebooks: Vega-Lite, and a picture for those that draw none."""
        from vl_convert import vegalite_to_svg

        major = self.spec["$schema"].rpartition("/v")[2].partition(".")[0]
        drawn = self.vega_lite()
        return {
            f"application/vnd.vegalite.v{major}+json": drawn,
            "image/svg+xml": vegalite_to_svg(drawn),
            "text/plain": f"{self.title}. {self.caption} {self.notes}".rstrip(),
        }


def _packed(values: list[Any]) -> list[Any]:
    """Returns a column, as runs where that is shorter."""
    runs = [[value, len(list(run))] for value, run in itertools.groupby(values)]
    return runs if 3 * len(runs) < len(values) or any(isinstance(value, str) for value in values) else values


def dash_of(place: int) -> list[int]:
    """Returns the dash of a line by its place: where colours come again, dashes are others."""
    return list(DASHES[(place + place // len(DASHES)) % len(DASHES)])


def rounded(value: float, digits: int = 4) -> float:
    """Rounds to this number of significant digits: enough to draw, and it keeps the page small."""
    return float(f"{value:.{digits}g}")


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
    """Raises ValueError if a figure cannot be drawn as such a file."""
    if file.suffix not in FORMATS:
        raise ValueError(f"a figure is written as .svg, .png or .pdf, not {file.suffix!r}")


def _theme(ink: str, faint: str) -> dict[str, Any]:
    font = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
    return {
        "font": font,
        "background": "transparent",
        # Screen readers read the figure's title, not each point.
        "aria": False,
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


THEMES = {"light": _theme(INK, FAINT), "dark": _theme(IN_THE_DARK[INK], IN_THE_DARK[FAINT])}


def bars(
    id_: str, title: str, caption: str, rows: Sequence[tuple[Any, ...]], *, y: str, kinds: Sequence[str]
) -> DrawnFigure:
    """Bars from zero with their intervals, a panel a metric or mode. Rows are (class, value, kind, panel,
    low, high); `y` titles the axis where the panels do not."""
    classes = list(dict.fromkeys(row[0] for row in rows))
    panels = list(dict.fromkeys(row[3] for row in rows))
    # From dark to light, which keeps bars distinct in grey too.
    colours = [
        "#444444" if kind == "published" else (BLUE, ORANGE, GREEN)[i % 3] for i, kind in enumerate(kinds)
    ]
    width = min(WIDTH / max(1, len(panels)) - 70, 60 + 90 * len(classes))
    # Names that would overrun one another stand aslant.
    longest = max((len(str(name)) for name in classes), default=0)
    aslant = 6.2 * longest > width / max(1, len(classes))
    turned = {"labelAngle": -35, "labelAlign": "right"} if aslant else {"labelAngle": 0}
    base = {
        "x": channel("class:N", sort=classes, title=None, axis={"labelLimit": 160, **turned}),
        "xOffset": channel("kind:N", sort=list(kinds)),
    }
    # One kind of bar needs no legend.
    legend = {} if len(kinds) > 1 else {"legend": None}
    colour = channel("kind:N", sort=list(kinds), scale={"domain": list(kinds), "range": colours}, **legend)
    charts = []
    for panel in panels:
        mine = f"datum.panel == {json.dumps(panel, ensure_ascii=False)}"
        axis = y or panel
        drawn = {
            "mark": {"type": "bar"},
            "encoding": {
                **base,
                "y": channel("value:Q", title=axis, scale={"zero": True}),
                "color": colour,
                "tooltip": [
                    channel("class:N", title="of"), channel("kind:N", title="what"),
                    channel("value:Q", title=axis), channel("low:Q", title="from"),
                    channel("high:Q", title="to"),
                ],
            },
        }  # fmt: skip
        whiskers = {
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "encoding": {**base, "y": channel("low:Q", title=axis), "y2": {"field": "high"}},
            "transform": filtered("isValid(datum.low) && datum.high > datum.low"),
        }
        heading = {"title": {"text": panel, "fontSize": 12}} if y and len(panels) > 1 else {}
        has_ends = any(row[3] == panel and row[4] is not None for row in rows)
        one = layer([drawn, whiskers] if has_ends else [drawn], width=round(width), height=210)
        charts.append({**one, **heading, "transform": filtered(mine)})
    chart = {"hconcat": charts, "spacing": 26, "resolve": {"scale": {"color": "shared"}}}
    return DrawnFigure(
        id_,
        title,
        caption,
        whole(chart),
        ("class", "value", "kind", "panel", "low", "high"),
        tuple(tuple(rounded(one, 6) if isinstance(one, float) else one for one in row) for row in rows),
    )


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
    """Lines over time: one a series, a row of panels a facet, a column a mode. Rows are (time in s, value,
    series, facet, mode); the axis ends at `end`, by default at the last point."""
    modes = list(dict.fromkeys(row[4] for row in rows))
    palette = [
        "#777777" if name == "capacity" else colours[i % len(colours)] for i, name in enumerate(series)
    ]
    dashes = [[5, 3] if name == "capacity" else dash_of(i) for i, name in enumerate(series)]
    width = WIDTH - 90 if len(modes) < 2 else (WIDTH - 80) / len(modes)
    right = max((row[0] for row in rows), default=1) if end is None else end
    # A little room, so that a line at the top (a limit, a capacity) does not hide in the frame.
    top = 1.06 * max((row[1] for row in rows), default=1) or 1
    legend = {"legend": {"symbolType": "stroke"} if len(series) > 1 else None}
    names = list(series)
    encoding = {
        "x": channel("time_s:Q", title=x, scale={"domain": [0, right], "nice": False}, axis={"tickCount": 8}),
        "y": channel("value:Q", title=y, scale={"domain": [0, top], "nice": False}, axis={"tickCount": 5}),
        "color": channel("series:N", sort=names, scale={"domain": names, "range": palette}, **legend),
        "strokeDash": channel("series:N", sort=names, scale={"domain": names, "range": dashes}, **legend),
        "tooltip": [
            channel("series:N", title="what"), channel("time_s:Q", title=x), channel("value:Q", title=y),
        ],
    }  # fmt: skip
    mark = {"type": "line", "interpolate": "linear", "clip": True}
    chart: Spec = {"mark": mark, "encoding": encoding, "width": width, "height": height}
    facet: Spec = {}
    if len(facets) > 1:
        header = {"labelAngle": 0, "labelOrient": "top", "labelAnchor": "start"}
        facet["row"] = channel("panel:N", sort=list(facets), title=None, header=header)
    if len(modes) > 1:
        facet["column"] = channel("mode:N", sort=modes, title=None)
    if facet:
        chart = {"facet": facet, "spec": chart, "spacing": 14}
        if len(facets) > 1:
            chart["resolve"] = {"axis": {"x": "shared"}}
    return DrawnFigure(
        id_, title, caption, whole(chart), ("time_s", "value", "series", "panel", "mode"), tuple(rows)
    )


def spec_of(chart: Any) -> dict[str, Any]:
    """Returns an Altair chart of the rows named ``source`` as a description without theme: handy for a single
    figure, too slow where there are many (`streamgauge.report.vega`)."""
    import altair as alt

    with alt.data_transformers.enable(consolidate_datasets=False):
        spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    return spec

"""Common parts of a paper's figures over trials: panels beside one another, their axes, and marks for the
paper's text in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.checks.published import published_value
from streamgauge.claims.dimension import NUMBER, Dimension
from streamgauge.paper.distances import Bounded
from streamgauge.paper.published import PaperFigure, scenarios_of
from streamgauge.paper.reading import Reading
from streamgauge.report.chart import BLUE, GREEN, INK, PURPLE, VERMILION, WIDTH, rounded
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

__all__ = [
    "COLUMNS",
    "PANEL_COLUMNS",
    "DrawnPanels",
    "PanelAxis",
    "PanelRows",
    "across",
    "axis_channel",
    "axis_of",
    "bound_rows",
    "bounded_words",
    "counted_trials",
    "grid",
    "panel_of",
    "parts_of",
    "scaled",
    "series_channels",
    "shown_number",
    "width_of",
]

PANEL_COLUMNS = ("panel", "series", "part", "x", "y", "label")
"""Columns of a figure's rows. `part` is ``curve``, ``point``, ``line``, ``bound``, ``published``, or the
place of a name of one of the last two."""
PanelRows = list[tuple[Any, ...]]
_COLOURS = (BLUE, VERMILION, GREEN, PURPLE)
_DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 2), (2, 2), (9, 3, 2, 3))
_GREY = "#777777"
_DIAMOND: Spec = {
    "type": "point",
    "shape": "diamond",
    "filled": False,
    "size": 110,
    "strokeWidth": 1.8,
    "opacity": 1,
}
_BESIDE = ("right", "left", "below", "up")
_SHAPES = ("circle", "triangle-up", "square", "cross")
_GAP, _AXIS, _BETWEEN = 20, 62, 92
"""Room between panels, for the numbers and title at the left of one, and between those below one another."""
_NUMBERS, _ROWS = 42, 44
"""The same for more than two in a row, with titles of axes at the first and the last alone."""


@dataclass(frozen=True)
class DrawnPanels:
    """A figure's description and data, and the details of them in its caption."""

    spec: Spec
    rows: tuple[tuple[Any, ...], ...]
    told: str
    notes: str = ""


@dataclass(frozen=True)
class PanelAxis:
    """An axis as a paper has it."""

    title: str
    scale: float
    """Canonical units in one of the axis's."""
    unit: str
    log: bool
    domain: tuple[float, float] | None
    """In the axis's unit."""

    @property
    def words(self) -> str:
        """Returns its text."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


def axis_of(data: Mapping[str, Any]) -> PanelAxis:
    """Returns an axis of a figure: ``title``, ``unit``, ``log`` and ``domain``, the last in its unit."""
    unit = data.get("unit", "")
    scale = published_value(f"1 {unit}")[0] if unit else 1.0
    domain = data.get("domain")
    shown = data.get("shown", unit)
    return PanelAxis(
        data["title"], scale, shown, data.get("log", False), (domain[0], domain[1]) if domain else None
    )


def scaled(text: Any, axis: PanelAxis) -> float:
    """Returns a number that the paper's text has, in the axis's unit; a number without a unit is in it
    already."""
    value, dimension = published_value(text)
    plain: tuple[Dimension | None, ...] = (None, NUMBER)
    return value if dimension in plain else value / axis.scale


def across(figure: PaperFigure, reading: Reading) -> list[tuple[Mapping[str, Any], str, str]]:
    """Returns the figure's panels in each mode in which all of it was run: the panel, the mode, and a name of
    its own."""
    panels = figure.more["panels_of"]
    drawn = [one for panel in panels for one in panel.get("curves") or panel["points"]]
    scenarios = {scenario for one in drawn for scenario in scenarios_of(one)}
    modes = [mode for mode in reading.modes if all(_was_run(reading, one, mode) for one in scenarios)]
    found = []
    for panel in panels:
        for mode in modes:
            parts = [panel.get("label", ""), reading.words(mode) if len(modes) > 1 else ""]
            found.append((panel, mode, ", ".join(part for part in parts if part)))
    return found


def _was_run(reading: Reading, scenario: str, mode: str) -> bool:
    entry = reading.by_id.get(scenario)
    group = entry.group(mode) if entry else None
    return group is not None and bool(group.valid)


COLUMNS = 2
"""Panels in a row, unless a figure has its own number."""


def width_of(panels: int, columns: int = COLUMNS) -> float:
    """Returns the width of each of the panels, with no more than `columns` in a row."""
    columns = min(panels, columns)
    if columns > 2:
        return (WIDTH - _AXIS - 10 - (columns - 1) * _NUMBERS) / columns
    return WIDTH - _AXIS - 10 if columns == 1 else (WIDTH - _GAP) / 2 - _AXIS - 6


def grid(panels: Sequence[Spec], columns: int = COLUMNS) -> Spec:
    """Panels beside one another, with one legend for all; more than two in a row have room for numbers alone
    between them."""
    if len(panels) == 1:
        return whole(panels[0])
    shared = {"color": "shared", "strokeDash": "shared", "shape": "shared"}
    # Frames are aligned, however wide their numbers are.
    spacing = {"row": _BETWEEN, "column": _AXIS + _GAP}
    if columns > 2:
        spacing = {"row": _ROWS, "column": _NUMBERS}
    return whole(
        {
            "concat": list(panels),
            "columns": columns,
            "bounds": "flush",
            "spacing": spacing,
            "resolve": {"scale": shared},
        }
    )


def panel_of(name: str, parts: Sequence[Spec], *, width: float, height: float, told: str = "") -> Spec:
    """Returns one panel: its parts drawn from its own rows, with its name and its details above."""
    mine = f"datum.panel == {json.dumps(name, ensure_ascii=False)}"
    spec = {**layer(parts, width=round(width), height=height), "transform": filtered(mine)}
    if name or told:
        spec["title"] = {
            "text": name or told, "anchor": "start", "frame": "group", "fontSize": 12, "offset": 6,
            "fontWeight": "bold" if name else "normal",
            **({"subtitle": told, "subtitleFontSize": 11, "subtitleColor": INK} if name and told else {}),
        }  # fmt: skip
    return spec


def axis_channel(name: str, axis: PanelAxis, domain: tuple[float, float] | None) -> Spec:
    """Returns the encoding of ``x`` or ``y``."""
    scale: Spec = {"type": "log"} if axis.log else {}
    if domain is not None:
        scale |= {"domain": list(domain), "nice": False}
    ticks: Spec = {"tickCount": 6}
    if axis.log:
        ticks |= {"format": "~g", "labelOverlap": "greedy"}
    return channel(f"{name}:Q", title=axis.words, scale=scale, axis=ticks)


def series_channels(names: Sequence[str]) -> dict[str, Spec]:
    """Colour, dash and shape of each series; a lone one has no legend."""
    sides: dict[str, list[Any]] = {
        "color": list(_COLOURS), "strokeDash": [list(dash) for dash in _DASHES], "shape": list(_SHAPES),
    }  # fmt: skip
    legend: Spec = {"legend": {"symbolSize": 160} if len(names) > 1 else None}
    return {
        side: channel(
            "series:N",
            sort=list(names),
            scale={"domain": list(names), "range": kinds[: len(names)]},
            **legend,
        )
        for side, kinds in sides.items()
    }


def parts_of(
    x: Spec, y: Spec, names: Sequence[str], kinds: set[str], *, line: str, size: float
) -> list[Spec]:
    """Curves, points, bounds and the paper's marks, as far as a panel has them.

    Args:
        kinds: the parts that the panel's rows have.
        line: interpolation of a curve between points.
        size: of points.
    """
    both, series = {"x": x, "y": y}, series_channels(names)
    tooltip = [
        channel("series:N", title="of"), channel("x:Q", title=x["title"]), channel("y:Q", title=y["title"]),
        channel("label:N", title="which"),
    ]  # fmt: skip
    in_colour = filtered("datum.series != ''")
    found: dict[str, list[Spec]] = {
        "bound": [
            {
                "mark": {"type": "line", "strokeDash": [4, 3], "strokeWidth": 1.2, "color": _GREY},
                "encoding": {**both, "detail": channel("label:N")},
            }
        ],
        "line": [
            {
                "mark": {"type": "line", "strokeWidth": 1.3, "clip": True, "color": INK},
                "encoding": {**both, "detail": channel("series:N")},
            }
        ],
        "curve": [
            {
                "mark": {"type": "line", "interpolate": line, "clip": True},
                "encoding": {**both, "color": series["color"], "strokeDash": series["strokeDash"]},
            }
        ],
        "point": [
            {
                "mark": {"type": "point", "filled": False, "size": size, "strokeWidth": 1.1, "opacity": 0.75},
                "encoding": {**both, "color": series["color"], "shape": series["shape"], "tooltip": tooltip},
                # Whole where it is on an axis: clipping would cut it.
                "transform": filtered(*(_within(side, both[side]["scale"]) for side in ("x", "y"))),
            }
        ],
        "published": [
            {"mark": _DIAMOND, "encoding": {**both, "color": series["color"], "tooltip": tooltip},
             "transform": in_colour},
            {"mark": {**_DIAMOND, "color": INK}, "encoding": {**both, "tooltip": tooltip},
             "transform": filtered("datum.series == ''")},
        ],
        **{f"bound name {side}": [_name(both, side, _GREY, 2)] for side in _BESIDE},
        **{f"published name {side}": [_name(both, side, INK, 7)] for side in _BESIDE},
    }  # fmt: skip
    drawn = []
    for part, specs in found.items():
        if part in kinds:
            for spec in specs:
                tests = filtered(f"datum.part == '{part}'") + spec.get("transform", [])
                drawn.append({**spec, "transform": tests})
    return drawn


def _within(side: str, scale: Spec) -> str:
    """Returns a test of whether a point is inside the range of its axis."""
    if "domain" not in scale:
        return "true"
    low, high = scale["domain"]
    return f"datum.{side} >= {low} && datum.{side} <= {high}"


def _name(both: Spec, side: str, colour: str, room: float) -> Spec:
    """Returns a name beside its place: to the ``right`` or ``left`` of it and above, or ``below`` to the
    right; for a vertical line (``up``), beside its end."""
    mark = {
        "type": "text", "align": "right" if side == "left" else "left",
        "baseline": "top" if side in ("below", "up") else "bottom", "dx": -room if side == "left" else room,
        "dy": 3 if side in ("below", "up") else -3, "fontSize": 10, "color": colour,
    }  # fmt: skip
    return {"mark": mark, "encoding": {**both, "text": channel("label:N")}}


def bound_rows(
    name: str, label: str, begin: tuple[float, float], end: tuple[float, float], side: str = "right"
) -> PanelRows:
    """Returns a dashed line, named at its ``right`` or ``left`` end, near the right one (``within``), or
    beside its upper one (``up``)."""
    near = (0.95 * end[0] + 0.05 * begin[0], 0.95 * end[1] + 0.05 * begin[1])
    named = {"right": end, "left": begin, "within": near, "up": end}[side]
    beside = {"left": "right", "up": "up"}.get(side, "left")
    places = [("bound", begin), ("bound", end), (f"bound name {beside}", named)]
    return [(name, "", part, shown_number(x), shown_number(y), label) for part, (x, y) in places]


def bounded_words(found: Bounded, unit: str = "", *, digits: int = 2, is_signed: bool = False) -> str:
    """Returns ``0.12 [0.05, 0.20]``, with a unit after it."""

    def one(value: float) -> str:
        if is_signed:
            return f"{value:.{digits}f}".replace("-", "−")
        # Never 1.3e+02.
        return f"{rounded(value, digits):g}" if unit else f"{value:.{digits}f}"

    text = f"{one(found.value)} [{one(found.low)}, {one(found.high)}]"
    return f"{text} {unit}" if unit else text


def counted_trials(counts: Sequence[int], lacking: int) -> str:
    """Returns ``n = 158 each; 3 without a value are left out``."""
    low, high = min(counts), max(counts)
    text = f"n = {low}" if low == high else f"n = {low} to {high}"
    if len(counts) > 1:
        text += " each"
    left = f"; {lacking} without a value {'is' if lacking == 1 else 'are'} left out" if lacking else ""
    return f"{text}{left}"


def shown_number(value: float) -> float:
    """Returns a number of a row."""
    return rounded(value, 6)

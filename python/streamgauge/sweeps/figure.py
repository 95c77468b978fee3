"""The figures of a sweep: curves, and a heat map where two axes are numbers.

Each shows the subject flows, a panel for each metric, at the mean over a point's valid trials with its
95 % interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamgauge.claims.dimension import NUMBER, pick_unit, show, show_in
from streamgauge.claims.names import METRICS
from streamgauge.report import DrawnFigure, Saving
from streamgauge.report.chart import COLOURS, DASHES, WIDTH
from streamgauge.report.vega import Spec, channel, filtered, layer, whole
from streamgauge.scenario.over import Axis, Scale
from streamgauge.scenario.settings import short_addresses
from streamgauge.sweeps.run import FOLDER, SweepResult
from streamgauge.sweeps.table import SweepRow

__all__ = ["curves", "figures", "heat_map", "spans_decades", "write_files"]

_MOST_BARS = 12
"""Most points on a line with bars; with more their intervals are a band."""
_MOST_LINES = 6
"""Number of distinct colours in the palette."""
_MOST_ACROSS = 5
"""Panels in a row, if another axis has fewer values."""
_LEAST_WIDTH = 96.0
"""Width of a panel, in CSS pixels."""
_ROW_HEIGHT, _HEIGHT = 110, 200
"""Heights of a panel in several rows, and of one alone."""
_GAP = 18
"""Between panels."""
_SAID_SIZES = (10.5, 9.0)
"""Sizes of the letters in the cells of a heat map, the largest that fits."""
_LETTER = 0.62
"""How wide a letter is, of its size."""
_LEAST_CELLS = 3
"""Values of each axis from which on a heat map is drawn."""
_SEQUENTIAL = "viridis"
_DARK = 0.55
"""The part of a heat map's colours that are too dark for black letters."""
_COLUMNS = ("x", "y", "s", "across", "down", "m", "v", "lo", "hi", "said", "dark")

Row = tuple[Any, ...]


def figures(result: SweepResult) -> list[DrawnFigure]:
    """Returns the one that shows most first: a heat map of two axes of numbers that have many values, else
    curves. None without a measurement."""
    if not result.shown:
        return []
    grid = _numeric(result.axes, least=_LEAST_CELLS)
    if len(grid) < 2:
        return [curves(result)]
    made = [curves(result), heat_map(result)]
    return made[::-1] if len(grid[1]) > _MOST_LINES else made


def write_files(result: SweepResult, *, drawn: bool = True) -> list[Path]:
    """Writes table and, if they are to be drawn, figures into ``OUT/sweep``; returns the files. Figures that
    are there already, and would be the same, are not drawn again.

    Raises:
        OSError: if one cannot be written.
        CannotRunError: if a process that draws ends.
    """
    folder = result.out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{result.name}.csv"]
    result.frame().write_csv(files[0])
    if not drawn:
        return files
    with Saving() as saving:
        for figure in figures(result):
            saving.add(figure, [folder / f"{figure.id}{suffix}" for suffix in (".svg", ".png")])
        return files + saving.wait()


def curves(result: SweepResult) -> DrawnFigure:
    """Returns a line for each value of the second axis over the first; points where that has no numbers."""
    numeric = _numeric(result.axes)
    varying = [axis for axis in result.axes if len(axis) > 1]
    across = (numeric or varying or list(result.axes))[0]
    scale = across.scale() if across in numeric else None
    names: Sequence[Any] = across.labels if scale is None else scale.numbers
    others = _others(result, [across])
    line, panels = (others[0] if others else None), _Panels.of(others[1:])
    place = result.axes.index(across)
    units = _units(result)
    rows: list[Row] = [
        (
            names[row.point.at[place]], "", "" if line is None else line.of(row), *panels.place(row),
            *_values(row, units), "", False,
        )
        for row in result.shown
    ]  # fmt: skip
    x = _across(across, scale, _short(result)[across.address])
    frame = _Frame(result, f"{result.name}", rows, panels, side_by_side=len(units) > 1, margin=80)
    plots = {name: _lines(result, name, unit, x, len(across), line, frame) for name, unit in units.items()}
    up = {name: unit.name for name, unit in units.items()}
    return frame.figure(plots, x["title"], up, intervals=True)


def heat_map(result: SweepResult) -> DrawnFigure:
    """Returns the mean at each point of two axes of numbers, by colour and, where it fits, in figures."""
    first, second = _numeric(result.axes)[:2]
    panels = _Panels.of(_others(result, [first, second]))
    units = _units(result)
    across, up = (result.axes.index(axis) for axis in (first, second))
    columns, lines = _cell_names(first), _cell_names(second)
    spans: dict[str, tuple[float, float]] = {}
    for row in result.shown:
        mean = _mean(row)
        low, high = spans.get(row.measured.metric, (mean, mean))
        spans[row.measured.metric] = min(low, mean), max(high, mean)
    frame = _Frame(result, f"{result.name}-map", (), panels, side_by_side=len(units) > 1, margin=120)
    said, size, has_intervals = _said_in_cells(result, units, frame.width / len(first))
    rows: list[Row] = []
    for row, text in zip(result.shown, said, strict=True):
        low, high = spans[row.measured.metric]
        dark = _mean(row) < low + _DARK * (high - low) or low == high
        x, y = columns[row.point.at[across]], lines[row.point.at[up]]
        rows.append((x, y, "", *panels.place(row), *_values(row, units), text, dark))
    frame = replace(frame, rows=rows)
    short = _short(result)
    titles = [_axis_title(axis, axis.scale(), short[axis.address]) for axis in (first, second)]
    plots = {name: _cells(name, unit, first, second, titles, frame, size) for name, unit in units.items()}
    return frame.figure(plots, titles[0], dict.fromkeys(plots, titles[1]), intervals=has_intervals)


@dataclass(frozen=True)
class _Unit:
    """The unit in which a metric is drawn."""

    scale: float
    """Canonical units in one."""
    name: str


@dataclass(frozen=True)
class _Dimension:
    """A difference between rows: the values of an axis, scenarios, or metrics."""

    title: str
    values: list[str]
    of: Callable[[SweepRow], str]


@dataclass(frozen=True)
class _Panels:
    """Panels in columns and rows: differences between a figure's rows besides those within each panel."""

    across: _Dimension | None
    down: _Dimension | None

    @classmethod
    def of(cls, dimensions: Sequence[_Dimension]) -> _Panels:
        """Returns the dimension with the most values that fit beside one another across; all others down."""
        if not dimensions:
            return cls(None, None)
        by_size = sorted(dimensions, key=lambda one: (len(one.values) <= _MOST_ACROSS, len(one.values)))
        across = by_size[-1]
        rest = [one for one in dimensions if one is not across]
        if len(rest) < 2:
            return cls(across, rest[0] if rest else None)

        def of(row: SweepRow) -> str:
            return ", ".join(f"{one.title} {one.of(row)}" for one in rest)

        names = [
            ", ".join(f"{one.title} {value}" for one, value in zip(rest, values, strict=True))
            for values in itertools.product(*(one.values for one in rest))
        ]
        return cls(across, _Dimension("", names, of))

    def place(self, row: SweepRow) -> tuple[str, str]:
        """Returns a row's column and row of panels."""
        return tuple("" if one is None else one.of(row) for one in (self.across, self.down))  # type: ignore[return-value]

    @property
    def columns(self) -> int:
        """Returns the number of panels side by side."""
        return 1 if self.across is None else len(self.across.values)

    @property
    def is_one(self) -> bool:
        """Returns whether there is a single panel."""
        return self.across is None


@dataclass(frozen=True)
class _Frame:
    """Frame of the plots: a part for each metric, in each a panel for each combination of the rest."""

    result: SweepResult
    id: str
    rows: Sequence[Row]
    panels: _Panels
    side_by_side: bool
    margin: int

    @property
    def columns(self) -> int:
        """Number of columns of parts."""
        return 2 if self.side_by_side and self.panels.is_one else 1

    @property
    def width(self) -> float:
        """Width of a panel, in CSS pixels."""
        if self.panels.is_one:
            return max(120.0, WIDTH / self.columns - self.margin)
        beside = 40 + 7 * max(map(len, self.panels.down.values)) if self.panels.down is not None else 0
        room = WIDTH - self.margin - beside - _GAP * (self.panels.columns - 1)
        return max(_LEAST_WIDTH, room / self.panels.columns)

    @property
    def height(self) -> int:
        """Height of a panel."""
        return _HEIGHT if self.panels.down is None else _ROW_HEIGHT

    def figure(
        self, plots: dict[str, Spec], across: str, up: dict[str, str], *, intervals: bool
    ) -> DrawnFigure:
        """Returns the figure of these plots, each of a metric, that show `intervals` or means alone.

        Args:
            plots: by metric.
            across: the title of their horizontal axis.
            up: that of the vertical one, by metric.
            intervals: whether it shows these.
        """
        result = self.result
        *most, last = (axis.address for axis in result.axes)
        over = f"{', '.join(most)} and {last}" if most else last
        title = f"{', '.join(result.scenarios)} over {over}"
        caption = _caption(result, intervals=intervals)
        sizes = {"fontSize": 13, "subtitleFontSize": 11, "offset": 12}
        chart: Spec = {
            "concat": [self._titled(metric, plot, across, up[metric]) for metric, plot in plots.items()],
            "columns": self.columns,
            "title": {"text": title, "subtitle": caption, "anchor": "start", **sizes},
            # Lines mean the same in all panels; of colours that are numbers each metric has its own.
            "resolve": {"scale": {"x": "independent", "y": "independent"}},
        }
        if self.columns > 1:  # plots in a row have one height, for any labels
            chart |= {"bounds": "flush", "spacing": {"row": 80, "column": self.margin}}
        if self.id.endswith("-map"):
            chart["resolve"]["scale"]["color"] = "independent"
        return DrawnFigure(self.id, title, caption, whole(chart), _COLUMNS, tuple(self.rows))

    def _titled(self, metric: str, plot: Spec, across: str, up: str) -> Spec:
        shown = (row for row in self.result.shown if row.measured.metric == metric)
        names = list(dict.fromkeys(map(_subject, shown)))
        of = f", {names[0]}" if len(names) == 1 and names[0] else ""
        title: Spec = {"text": f"{METRICS[metric].title}{of}", "anchor": "start", "fontSize": 12, "offset": 8}
        title["frame"] = "group"
        keep = filtered(f"datum.m === '{metric}'")
        if self.panels.is_one:
            return {**plot, "title": title, "transform": keep}
        facets = {"column": _facet("across", self.panels.across)}
        if self.panels.down is not None:
            facets["row"] = _facet("down", self.panels.down)
            title["text"] += f" (up: {up})" if up else ""
        grid = {"facet": facets, "spec": plot, "title": title, "transform": keep, "spacing": _GAP}
        # Each axis has its title once, for any number of panels.
        below = {"text": across, "orient": "bottom", "anchor": "middle", "fontSize": 11, "offset": 8}
        return {"concat": [grid], "title": {**below, "fontWeight": "normal"}}


def _facet(field: str, dimension: _Dimension | None) -> Spec:
    assert dimension is not None
    down = (
        {"labelAngle": 0, "labelAlign": "left", "titleAngle": 0, "labelPadding": 14}
        if field == "down"
        else {}
    )
    header = {"labelLimit": 240, "labelFontWeight": "normal", "labelPadding": 4, "titlePadding": 2, **down}
    return channel(
        f"{field}:N",
        sort=dimension.values,
        title=dimension.title or None,
        header={**header, "titleFontSize": 11},
    )


def _lines(
    result: SweepResult,
    metric: str,
    unit: _Unit,
    x: Spec,
    points: int,
    line: _Dimension | None,
    frame: _Frame,
) -> Spec:
    """Draws one metric over the points of the first axis, a line for each value of the second."""
    continuous = x["type"] == "quantitative"
    told_up = unit.name if frame.panels.down is None else ""
    axis = {"title": told_up or None, "scale": _upwards(result, metric, unit), "axis": {"tickCount": 5}}
    base: Spec = {"x": x if frame.panels.is_one else {**x, "title": None}, "y": channel("v:Q", **axis)}
    if line is not None:
        base |= _told_apart(line, dashes=continuous)
        if not continuous:
            base["xOffset"] = channel("s:N", sort=line.values)
    plain = {key: what for key, what in base.items() if key != "strokeDash"}
    colour = {} if line is not None else {"color": COLOURS[0]}
    many = continuous and points > _MOST_BARS
    marks = _intervals(plain, axis, colour, band=many)
    if continuous:
        marks.append({"mark": {"type": "line", **colour}, "encoding": base})
    told = f"{METRICS[metric].title}, {unit.name}".removesuffix(", ")
    tooltip = [channel("x:N", title=x["title"])]
    tooltip += [channel("s:N", title=line.title)] if line is not None else []
    tooltip += [channel("v:Q", title=told), channel("lo:Q", title="low"), channel("hi:Q", title="high")]
    point = {"type": "point", "filled": True, "opacity": 1, "size": 16 if many else 36, **colour}
    marks.append({"mark": point, "encoding": {**plain, "tooltip": tooltip}})
    return layer(marks, width=frame.width, height=frame.height)


def _intervals(plain: Spec, axis: Spec, colour: Spec, *, band: bool) -> list[Spec]:
    """Returns a band, or bars with caps."""
    known = filtered("isValid(datum.lo)")
    both = {**plain, "y": channel("lo:Q", **axis), "y2": {"field": "hi"}}
    if band:
        return [{"mark": {"type": "area", "opacity": 0.22, **colour}, "encoding": both, "transform": known}]
    marks: list[Spec] = [
        {"mark": {"type": "rule", "strokeWidth": 1.2, **colour}, "encoding": both, "transform": known}
    ]
    cap = {"type": "tick", "orient": "horizontal", "size": 7, "thickness": 1.2, **colour}
    for end in ("lo", "hi"):
        at_end = {**plain, "y": channel(f"{end}:Q", **axis)}
        marks.append({"mark": cap, "encoding": at_end, "transform": known})
    return marks


def _cells(
    metric: str,
    unit: _Unit,
    first: Axis,
    second: Axis,
    titles: Sequence[str],
    frame: _Frame,
    size: float,
) -> Spec:
    height = min(360, max(120, 30 * len(second))) if frame.panels.down is None else 24 * len(second)
    x, y = titles
    base = {
        "x": channel(
            "x:N",
            sort=_cell_names(first),
            title=x if frame.panels.is_one else None,
            axis={"labelAngle": 0, "labelOverlap": True, "labelSeparation": 5},
        ),
        "y": channel(
            "y:N",
            sort=_cell_names(second)[::-1],
            title=y if frame.panels.down is None else None,
            axis={"labelOverlap": True},
        ),
    }
    legend = {"title": unit.name or None, "orient": "right", "gradientLength": min(height, 150)}
    colour = channel("v:Q", scale={"scheme": _SEQUENTIAL}, legend=legend)
    told = f"{METRICS[metric].title}, {unit.name}".removesuffix(", ")
    tooltip = [channel("x:N", title=x), channel("y:N", title=y), channel("v:Q", title=told)]
    tooltip += [channel("lo:Q", title="low"), channel("hi:Q", title="high")]
    ink = {"condition": {"test": "datum.dark", "value": "#ffffff"}, "value": "#1b1b1b"}
    text = {**base, "text": {"field": "said"}, "color": ink}
    marks: list[Spec] = [
        {"mark": {"type": "rect"}, "encoding": {**base, "color": colour, "tooltip": tooltip}},
        {"mark": {"type": "text", "fontSize": size}, "encoding": text},
    ]
    return layer(marks, width=frame.width, height=height)


def _numeric(axes: Sequence[Axis], *, least: int = 2) -> list[Axis]:
    return [axis for axis in axes if len(axis) >= least and axis.scale() is not None]


def _others(result: SweepResult, drawn: Sequence[Axis]) -> list[_Dimension]:
    """Returns the other differences between the rows, axes first."""

    def value_of(axis: Axis) -> Callable[[SweepRow], str]:
        place = result.axes.index(axis)
        return lambda row: axis.labels[row.point.at[place]]

    short = _short(result)
    found = [
        _Dimension(short[axis.address], list(axis.labels), value_of(axis))
        for axis in result.axes
        if axis not in drawn and len(axis) > 1
    ]
    names = list(dict.fromkeys(map(_subject, result.shown)))
    pairs = {(row.measured.metric, _subject(row)) for row in result.shown}
    if len(pairs) > len({metric for metric, _ in pairs}):
        found.append(_Dimension("flow", names, _subject))
    if len(result.scenarios) > 1:
        found.append(_Dimension("scenario", result.scenarios, lambda row: row.point.scenario.id))
    return found


def _subject(row: SweepRow) -> str:
    return row.measured.flow or row.measured.stage or ""


def _short(result: SweepResult) -> dict[str, str]:
    """Returns the axes' addresses by their ends; one alone as it is."""
    addresses = [axis.address for axis in result.axes]
    return short_addresses(addresses) if len(addresses) > 1 else {one: one for one in addresses}


def _mean(row: SweepRow) -> float:
    assert row.interval is not None
    return row.interval.mean


def _units(result: SweepResult) -> dict[str, _Unit]:
    """Returns for each metric that is shown the unit in which it is drawn."""
    most: dict[str, float] = {}
    for row in result.shown:
        most[row.measured.metric] = max(most.get(row.measured.metric, 0.0), abs(_mean(row)))
    return {name: _Unit(*pick_unit(value, METRICS[name].dimension)) for name, value in most.items()}


def _values(row: SweepRow, units: dict[str, _Unit]) -> tuple[str, float, float | None, float | None]:
    """Metric, mean and ends of the interval, in its unit."""
    name, ends = row.measured.metric, row.ends
    scale = units[name].scale
    low, high = (None, None) if ends is None else (ends[0] / scale, ends[1] / scale)
    return name, _mean(row) / scale, low, high


def _said_in_cells(
    result: SweepResult, units: dict[str, _Unit], width: float
) -> tuple[list[str], float, bool]:
    """Returns the text of each cell of a heat map, the size of its letters, and whether that has intervals:
    means with intervals if all fit in a cell's width, else means, else nothing."""
    size = _SAID_SIZES[0]
    for has_intervals in (True, False):
        said = [_said(row, units[row.measured.metric], has_intervals) for row in result.shown]
        longest = max(map(len, said))
        for size in _SAID_SIZES:
            if _LETTER * size * longest + 4 <= width:
                return said, size, has_intervals
    return [""] * len(result.shown), size, False


def _said(row: SweepRow, unit: _Unit, has_interval: bool) -> str:
    """Returns the mean in a cell, with its interval on request."""
    assert row.interval is not None
    mean, half = row.interval.mean / unit.scale, (row.interval.half_width or 0.0) / unit.scale
    if not has_interval or not half:
        return show(mean, None, NUMBER).mean
    decimals = max(0, 3 - len(str(int(abs(mean)))))
    shown = show_in(mean, half, decimals, signed=METRICS[row.measured.metric].signed)
    return " ".join(filter(None, (shown.mean, shown.interval)))


def _upwards(result: SweepResult, metric: str, unit: _Unit) -> Spec:
    """Returns the range from 0 to a little above all values; for a metric that may be below zero, down to its
    least value."""
    if METRICS[metric].signed:
        return {"zero": True}
    shown = [row for row in result.shown if row.measured.metric == metric]
    most = max(max(_mean(row), row.ends[1] if row.ends else 0.0) for row in shown) / unit.scale
    return {"domain": [0, 1.06 * most or 1], "nice": False}


def _across(axis: Axis, scale: Scale | None, name: str) -> Spec:
    """Returns the first axis."""
    title = _axis_title(axis, scale, name)
    if scale is None:
        return channel("x:N", sort=list(axis.labels), title=title, axis={"labelAngle": 0, "labelLimit": 160})
    numbers = sorted(scale.numbers)
    decades = spans_decades(numbers)
    margin = 0.04 * (numbers[-1] - numbers[0])
    domain = (
        [numbers[0] / 1.12, numbers[-1] * 1.12] if decades else [numbers[0] - margin, numbers[-1] + margin]
    )
    ticks: Spec = {"labelExpr": "'' + datum.value", "labelOverlap": True}
    if len(numbers) <= _MOST_BARS:
        ticks["values"] = numbers
    kind = {"type": "log" if decades else "linear", "domain": domain, "nice": False, "zero": False}
    return channel("x:Q", title=title, scale=kind, axis=ticks)


def _axis_title(axis: Axis, scale: Scale | None, name: str) -> str:
    """Returns ``queue (droptail), kB``."""
    if scale is None:
        return name
    words = f" ({scale.words})" if scale.words else ""
    return f"{name}{words}, {scale.unit}".removesuffix(", ")


def _cell_names(axis: Axis) -> list[str]:
    """Returns the values of an axis of numbers as names of columns."""
    scale = axis.scale()
    return list(axis.labels) if scale is None else [f"{number:.12g}" for number in scale.numbers]


def spans_decades(numbers: Sequence[float]) -> bool:
    """Returns whether numbers, which ascend, are to be drawn on a logarithmic axis: a hundredfold range, or
    steps that grow with them over an eightfold one."""
    if numbers[0] <= 0 or len(numbers) < 3:
        return False
    gaps = [after - before for before, after in itertools.pairwise(numbers)]
    growing = gaps[-1] == max(gaps) and max(gaps) >= 4 * min(gaps)
    return numbers[-1] >= 100 * numbers[0] or (numbers[-1] >= 8 * numbers[0] and growing)


def _told_apart(line: _Dimension, *, dashes: bool) -> Spec:
    """Colour, and dash where there are lines, by the values of a dimension."""
    legend: Spec = {"title": line.title, "columns": 4 if max(map(len, line.values)) > 14 else 8}
    legend |= {"symbolType": "stroke"} if dashes else {"symbolType": "circle", "symbolSize": 70}
    legend["symbolOpacity"] = 1
    names = {"sort": line.values, "legend": legend}
    if len(line.values) > _MOST_LINES:
        scale = {"scheme": _SEQUENTIAL, "domain": line.values}
        return {"color": {"field": "s", "type": "ordinal", "scale": scale, **names}}
    told: Spec = {"color": channel("s:N", scale=_range(line.values, COLOURS), **names)}
    if dashes:
        told["strokeDash"] = channel("s:N", scale=_range(line.values, [list(one) for one in DASHES]), **names)
    return told


def _range(values: Sequence[str], of: Sequence[Any]) -> Spec:
    return {"domain": list(values), "range": list(of[: len(values)])}


def _caption(result: SweepResult, *, intervals: bool) -> str:
    counts = sorted({row.interval.n for row in result.shown if row.interval is not None})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    modes = " and ".join(dict.fromkeys(row.point.mode for row in result.shown))
    invalid = sum({id(row.point): row.invalid for row in result.shown}.values())
    left_out = f"; {invalid} invalid left out" if invalid else ""
    drawn = ", with 95 % intervals" if intervals else ""
    impossible = len(result.left_out)
    left_out += f"; {impossible} combination{'' if impossible == 1 else 's'} left out" if impossible else ""
    return f"Means over valid trials in {modes}, {n}{drawn if counts[-1] > 1 else ''}{left_out}"

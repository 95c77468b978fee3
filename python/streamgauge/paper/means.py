"""A paper's figure of means: a metric over the varied value or for each case, and the levels shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.checks.published import published_value
from streamgauge.claims.dimension import DATA, PERCENT, RATE, pick_unit
from streamgauge.metrics import METRICS
from streamgauge.metrics.levels import time_at
from streamgauge.paper.machines import look_of
from streamgauge.paper.published import PaperFigure
from streamgauge.paper.reading import Reading
from streamgauge.report.chart import BLUE, GREEN, INK, PURPLE, VERMILION, WIDTH, rounded
from streamgauge.report.model import Group
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

__all__ = ["COLUMNS", "Drawn", "axis", "draw_means"]

COLUMNS = ("panel", "x", "series", "whose", "value", "low", "high")
"""Columns of a figure's rows. In a panel of levels `series` is the case and `x` the level, kb/s."""
_COLOURS = (BLUE, GREEN, VERMILION, PURPLE)
_WIDTH, _HEIGHT = (WIDTH - 150) / 2, 210
_LEVELS = "time shown, %"
_NAMES_ABREAST = 4
"""Most names that are level below bars."""


@dataclass(frozen=True)
class MeansCase:
    """A scenario of such a figure."""

    series: str
    x: str
    scenario: str


@dataclass(frozen=True)
class Drawn:
    """A figure's description and data."""

    spec: Spec
    rows: tuple[tuple[Any, ...], ...]
    trials: tuple[int, ...]
    """Levels of each case and mode."""


def draw_means(figure: PaperFigure, reading: Reading) -> Drawn | None:
    """Panel by panel as `figure.more` has them; None if a case has no valid trial."""
    more = figure.more
    cases = [
        MeansCase(series, x, scenario.format(x=x))
        for series, scenario in more["series"].items()
        for x in more.get("xs", [""])
    ]
    groups = {}
    for case in cases:
        entry = reading.by_id.get(case.scenario)
        groups[case.scenario] = [group for group in entry.groups if group.valid] if entry else []
        if not groups[case.scenario]:
            return None
    rows: list[tuple[Any, ...]] = []
    panels = []
    for one in more["panels_of"]:
        if one["draw"] == "levels":
            chosen = [case for case in cases if case.x == one.get("x", "")]
            title = f"{_LEVELS}, {one['title']}" if "title" in one else _LEVELS
            rows += _level_rows(title, chosen, groups, more["flow"], reading)
            panels.append(_levels(title, rows))
        else:
            unit, scale = axis(one["metric"])
            title = f"{one['title']}, {unit}"
            rows += _mean_rows(title, one, cases, groups, more["flow"], scale)
            names = list(more["series"])
            if "xs" in more:
                panels.append(_over(title, more["x"], more["xs"], names, reading.modes, is_first=not panels))
            else:
                there = {row[3] for row in rows if row[0] == title}
                whose = [one for one in (*reading.modes, "paper") if one in there]
                panels.append(_each(title, names, whose))
    lines = [panels[at : at + 2] for at in range(0, len(panels), 2)]
    apart = {"resolve": {"scale": {"color": "independent", "xOffset": "independent"}}}
    stack = [{"hconcat": line, "spacing": 40, **apart} for line in lines]
    spec = whole({"vconcat": stack, "spacing": 24, **apart})
    counts = tuple(len(group.valid) for found in groups.values() for group in found)
    return Drawn(spec, tuple(rows), counts)


def axis(metric: str) -> tuple[str, float]:
    """Returns a metric's unit as papers on bit rates have it, and canonical units in one."""
    dimension = METRICS[metric].dimension
    usual = {RATE: (1e3, "kb/s"), PERCENT: (0.01, "%"), DATA: (8e3, "kB")}
    scale, unit = usual.get(dimension) or pick_unit(1.0, dimension)
    return unit, scale


def _mean_rows(
    title: str,
    panel: Mapping[str, Any],
    cases: Sequence[MeansCase],
    groups: Mapping[str, Sequence[Group]],
    flow: str,
    scale: float,
) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for case in cases:
        for group in groups[case.scenario]:
            found = group.over(panel["metric"], flow)
            if found is not None:
                ends = [None if end is None else rounded(end / scale, 6) for end in (found.low, found.high)]
                rows.append((title, case.x, case.series, group.mode, rounded(found.mean / scale, 6), *ends))
        said = panel.get("published", {}).get(case.series, {}).get(case.x)
        if said is not None:
            value = rounded(published_value(said)[0] / scale, 6)
            rows.append((title, case.x, case.series, "paper", value, None, None))
    return rows


def _level_rows(
    title: str, cases: Sequence[MeansCase], groups: Mapping[str, Sequence[Group]], flow: str, reading: Reading
) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for case in cases:
        for group in groups[case.scenario]:
            shares: list[dict[float, float]] = []
            for trial in group.each():
                series = trial.flows[flow].series
                told = series.get("shown_level") or series.get("level")
                held_s = {} if told is None else time_at(told)
                total_s = sum(held_s.values())
                if total_s > 0:
                    shares.append({level: 100 * length / total_s for level, length in held_s.items()})
            for level in sorted({level for share in shares for level in share}):
                mean = sum(share.get(level, 0.0) for share in shares) / len(shares)
                named = len(reading.modes) > 1
                name = f"{case.series}, {group.mode}" if named else case.series
                rows.append((title, rounded(level / 1e3, 6), name, group.mode, rounded(mean, 6), None, None))
    return rows


def _of(title: str) -> list[Spec]:
    return filtered(f"datum.panel == {json.dumps(title, ensure_ascii=False)}")


def _tooltip(x: str, value: str) -> list[Spec]:
    return [
        channel("series:N", title="over"), channel("whose:N"), channel("x:N", title=x),
        channel("value:Q", title=value), channel("low:Q", title="from"), channel("high:Q", title="to"),
    ]  # fmt: skip


def _parts(
    base: Spec, title: str, names: Sequence[str], modes: Sequence[str], legend: Spec | None
) -> list[Spec]:
    """Returns intervals, our means, and the paper's values."""
    colours = {"domain": list(names), "range": list(_COLOURS[: len(names)])}
    colour = channel("series:N", scale=colours, legend=legend)
    low = channel("low:Q", title=title)
    shapes = {"domain": [*modes, "paper"], "range": [*(look_of(mode)[1] for mode in modes), "diamond"]}
    shape = channel("whose:N", scale=shapes, legend=None)
    value = {**base, "y": channel("value:Q", title=title, scale={"zero": True})}
    return [
        {
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "encoding": {**base, "y": low, "y2": {"field": "high"}, "color": colour},
            "transform": filtered("isValid(datum.low)"),
        },
        {
            "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
            "encoding": {**value, "color": colour, "shape": shape},
            "transform": filtered("datum.whose != 'paper'"),
        },
        {
            "mark": {"type": "point", "filled": False, "size": 70, "strokeWidth": 1.6, "color": INK},
            "encoding": {**value, "shape": shape},
            "transform": filtered("datum.whose == 'paper'"),
        },
    ]


def _beside(names: Sequence[str]) -> Spec:
    """Points of one place beside one another, near its middle."""
    return {"type": "point", "domain": list(names), "padding": 2}


def _over(
    title: str, x: str, xs: Sequence[str], names: Sequence[str], modes: Sequence[str], *, is_first: bool
) -> Spec:
    """Draws a line a series over the varied value; the first panel has the legend of all."""
    base: Spec = {
        "x": channel("x:N", sort=list(xs), title=x, axis={"labelAngle": 0}),
        "xOffset": channel("series:N", sort=list(names), scale=_beside(names)),
        "tooltip": _tooltip(x, title),
    }
    parts = _parts(base, title, names, modes, {"title": None, "orient": "top"} if is_first else None)
    dashes = {"domain": list(modes), "range": [look_of(mode)[2] for mode in modes]}
    line = {
        "mark": {"type": "line", "strokeWidth": 1.4},
        "encoding": {
            **{key: part for key, part in base.items() if key != "tooltip"},
            "y": channel("value:Q", title=title),
            "color": parts[0]["encoding"]["color"],
            "strokeDash": channel("whose:N", legend=None, scale=dashes),
        },
        "transform": filtered("datum.whose != 'paper'"),
    }
    return {**layer([line, *parts], width=_WIDTH, height=_HEIGHT), "transform": _of(title)}


def _each(title: str, names: Sequence[str], whose: Sequence[str]) -> Spec:
    """Returns a point a series."""
    base: Spec = {
        "x": channel("series:N", sort=list(names), title=None, axis={"labelAngle": 0}),
        "xOffset": channel("whose:N", scale=_beside(whose)),
        "tooltip": _tooltip("case", title),
    }
    modes = [one for one in whose if one != "paper"]
    return {
        **layer(_parts(base, title, names, modes, None), width=_WIDTH, height=_HEIGHT),
        "transform": _of(title),
    }


def _levels(title: str, rows: Sequence[tuple[Any, ...]]) -> Spec:
    """Bars of 100 %, a part for each level, the lowest at the foot."""
    names = list(dict.fromkeys(row[2] for row in rows if row[0] == title))
    levels = sorted({row[1] for row in rows if row[0] == title})
    colour = channel(
        "x:N", type="ordinal", sort=levels, scale={"domain": levels, "scheme": "viridis"},
        legend={"orient": "right", "title": "kb/s"},
    )  # fmt: skip
    # Names that have no room beside one another stand aslant.
    angle = 0 if len(names) <= _NAMES_ABREAST else -40
    return {
        "mark": {"type": "bar", "stroke": "white", "strokeWidth": 0.5},
        "width": _WIDTH - 60,
        "height": _HEIGHT,
        "transform": _of(title),
        "encoding": {
            "x": channel("series:N", sort=names, title=None, axis={"labelAngle": angle}),
            "y": channel("value:Q", title=title, stack="zero", scale={"domain": [0, 100]}),
            "color": colour,
            "order": channel("x:Q"),
            "tooltip": [
                channel("series:N", title="over"), channel("x:N", title="level, kb/s"),
                channel("value:Q", title=_LEVELS),
            ],
        },
    }  # fmt: skip

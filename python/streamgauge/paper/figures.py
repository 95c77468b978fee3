"""A paper's figures in its own form: its axes, units and panels, sim and emu side by side, published means
beside ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from streamgauge.checks.published import published_value
from streamgauge.claims.dimension import RATE, say_exactly
from streamgauge.metrics import METRICS, Interval, TrialMetrics
from streamgauge.paper.course import draw_course
from streamgauge.paper.distributions import draw_distribution
from streamgauge.paper.gaps import draw_gaps
from streamgauge.paper.gathering import gathered
from streamgauge.paper.ladders import draw_ladders
from streamgauge.paper.machines import look_of
from streamgauge.paper.means import COLUMNS, axis, draw_means
from streamgauge.paper.panels import PANEL_COLUMNS
from streamgauge.paper.published import Panel, Paper, PaperFigure
from streamgauge.paper.reading import Reading
from streamgauge.paper.scatter import draw_scatter
from streamgauge.paper.sequence import draw_sequence
from streamgauge.paper.sweep import SWEEP_COLUMNS, draw_sweep
from streamgauge.report.chart import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH,
    DrawnFigure,
    rounded,
)
from streamgauge.report.courses import Courses, How, band_words
from streamgauge.report.model import Group, listed
from streamgauge.report.multiples import colour_scale, multiples
from streamgauge.report.plots import Column, Plot, PlotBlock, PlotLine, Threshold
from streamgauge.report.timeline import capacity_steps
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

__all__ = ["TRAILING_S", "draw"]

TRAILING_S = 2.0
"""Span of the trailing mean of a line over time: nothing shows before it happens."""
_SUBJECTS = (BLUE, GREEN, PURPLE, SKY)
_RIVALS = (VERMILION, ORANGE, "#444444")
_GREY = "#777777"
_BARS = ((BLUE, SKY, "#9fd0ea"), (VERMILION, ORANGE, "#f0c27a"), (GREEN, PURPLE, "#8fd0b8"))
"""For each series of bars, in each mode that is there."""
_TEXT = ", the paper's text"
_PUBLISHED_BARS = ("#444444", "#777777", "#aaaaaa")
_MEANS_WIDTH = 150
_MEANS_ROOM = _MEANS_WIDTH + 50
_PAPER = "◇"
_MOST_NAMED = 3
"""Most origins of means for which the caption has room."""
Rows = list[tuple[Any, ...]]
Shown = dict[str, list[tuple[str, Group, TrialMetrics, Courses]]]
"""By scenario, for each mode: the mode, its trials, the first of them, and the courses of all. Emu on each
machine is a mode of its own (`streamgauge.paper.machines`)."""


def draw(paper: Paper, figure: PaperFigure, reading: Reading) -> DrawnFigure | None:
    """Returns a figure; None if an experiment of it has no valid trial."""
    if figure.draw == "bars":
        return _bars(paper, figure, reading)
    if figure.draw == "means":
        return _means_of_cases(paper, figure, reading)
    if figure.draw in ("distribution", "scatter", "course", "ladders", "sweep", "gaps", "sequence"):
        return _over_trials(paper, figure, reading)
    shown: Shown = {}
    for panel in figure.panels:
        entry = reading.by_id.get(panel.scenario)
        groups = [entry.group(mode) for mode in reading.modes] if entry else []
        found = [_read(group) for group in groups if group and group.valid]
        if not found:
            return None
        shown[panel.scenario] = found
    return (_jain if figure.draw == "jain" else _rates)(paper, figure, reading, shown)


def _read(group: Group) -> tuple[str, Group, TrialMetrics, Courses]:
    """Returns the courses of all trials of a mode, each read once."""
    first = group.shown
    assert first is not None
    wanted: list[tuple[str, How]] = [("throughput", "trailing"), ("loss_rate", "trailing"), ("jain", "value")]
    trailing = max(1, round(TRAILING_S / first.grid.sample_s))
    courses = Courses(group.numbers.samples, wanted, trailing=trailing)
    for trial in group.each():
        courses.add(trial)
    return group.mode, group, first, courses


def _named(paper: Paper, figure: PaperFigure, reading: Reading) -> tuple[str, str, str]:
    """Id, title and the caption's first sentence."""
    name = f"{reading.name}-" if reading.name else ""
    said = f"{figure.caption}." + (f" Reading {reading.name}: {reading.meaning}." if name else "")
    return f"{paper.id}-{name}{figure.id}", figure.title, said


def _labels(trial: TrialMetrics) -> dict[str, str]:
    """Flows by the names that lines have, the same in every panel, in the scenario's order."""
    return {name: name.upper() for name, flow in trial.flows.items() if not flow.info.is_ping}


def _colours(shown: Shown) -> dict[str, str]:
    """By label: subjects first, in colours of their own."""
    roles = {
        label: trial.flows[flow].info.role
        for found in shown.values()
        for _, _, trial, _ in found
        for flow, label in _labels(trial).items()
    }
    subjects = [label for label, role in roles.items() if role != "rival"]
    rivals = [label for label, role in roles.items() if role == "rival"]
    found = {label: _SUBJECTS[i % len(_SUBJECTS)] for i, label in enumerate(subjects)}
    return found | {label: _RIVALS[i % len(_RIVALS)] for i, label in enumerate(rivals)}


def _rates(paper: Paper, figure: PaperFigure, reading: Reading, shown: Shown) -> DrawnFigure:
    """Throughput and loss rate of each flow over time, the capacity in grey; on the right the run's means."""
    colours = _colours(shown) | {"capacity": _GREY}
    blocks = []
    for panel in figure.panels:
        plots = _rate_plots(panel, shown)
        rows, origins = _mean_rows(paper, panel, shown, plots, reading)
        flows = [label for label in colours if any(row[2] == label for row in rows)]
        aside = _means(plots, flows, origins, colours)
        blocks.append(PlotBlock(plots, _columns(panel, shown, reading), _end_s(panel, shown), aside, rows))
    id_, title, said = _named(paper, figure, reading)
    return multiples(
        id_,
        title,
        _noted(f"{said} {_drawn(shown, reading)} {_beside(shown, blocks, reading)}", figure),
        blocks,
        colours,
        notes=_samples(shown),
        aside_width=_MEANS_ROOM,
    )


def _columns(panel: Panel, shown: Shown, reading: Reading) -> list[Column]:
    return [
        Column(
            mode,
            ", ".join(part for part in (panel.label, reading.words(mode), _n(courses.trials, first)) if part),
        )
        for mode, _, first, courses in shown[panel.scenario]
    ]


def _n(trials: int, first: TrialMetrics) -> str:
    return f"n = {trials}" if trials > 1 else f"one trial (seed {first.seed})"


def _rate_plots(panel: Panel, shown: Shown) -> list[Plot]:
    """Throughput above loss rate."""
    found = shown[panel.scenario]
    flows = {flow: label for _, _, trial, _ in found for flow, label in _labels(trial).items()}
    of = f"{panel.label}: " if panel.label else ""
    plots = []
    for metric, name, height in (("throughput", "throughput", 130), ("loss_rate", "loss rate", 60)):
        unit, scale = axis(metric)
        lines = [
            PlotLine(label, courses)
            for flow, label in flows.items()
            if (
                courses := {
                    mode: course
                    for mode, _, _, read in found
                    if (course := read.course(flow, metric, "trailing")) is not None
                }
            )
        ]
        shown_as = f"{name}, mean of the last {TRAILING_S:g} s, {unit}"
        bounds = _capacity(found) if metric == "throughput" else ()
        plots.append(Plot(f"{of}{shown_as}", height, scale, lines, bounds, shown=shown_as))
    return plots


def _capacity(found: Sequence[tuple[str, Group, TrialMetrics, Courses]]) -> list[Threshold]:
    corners = {mode: steps for mode, _, trial, _ in found if (steps := capacity_steps(trial))}
    if not corners:
        return []
    values = {value for steps in corners.values() for _, value in steps}
    said = f"capacity {'up to ' if len(values) > 1 else ''}{say_exactly(max(values), RATE)}"
    return [Threshold("capacity", said, corners)]


def _mean_rows(
    paper: Paper, panel: Panel, shown: Shown, plots: Sequence[Plot], reading: Reading
) -> tuple[Rows, list[str]]:
    """Returns means of the run, ours and the paper's, and their origins."""
    rows: Rows = []
    for plot, metric in zip(plots, ("throughput", "loss_rate"), strict=True):
        for mode, group, trial, _ in shown[panel.scenario]:
            for flow, label in _labels(trial).items():
                if (mean := group.over(metric, flow)) is not None:
                    rows.append(_mean(plot.title, mode, label, "mean", mean, plot.scale, metric))
        row = paper.published(panel.scenario)
        for one in row.flows if row else ():
            value = rounded(one.values[metric] / plot.scale, 6)
            rows.append((plot.title, "paper", one.flow.upper(), "mean", None, None, value, None, None))
    return rows, _origins(rows, reading)


def _origins(rows: Rows, reading: Reading) -> list[str]:
    """Returns the origins of the means: the paper, and each mode."""
    there = {row[1] for row in rows}
    return [origin for origin in ("paper", *reading.modes) if origin in there]


def _mean(
    panel: str, origin: str, series: str, part: str, found: Interval, scale: float, metric: str
) -> tuple[Any, ...]:
    low, high = (None if end is None else rounded(end / scale, 6) for end in (found.low, found.high))
    if low is not None and not METRICS[metric].signed:
        low = max(0.0, low)
    return (panel, origin, series, part, None, None, rounded(found.mean / scale, 6), low, high)


def _end_s(panel: Panel, shown: Shown) -> float:
    """Returns where a panel's time ends, the same in every mode."""
    return max(float(read.edges_s[-1]) for _, _, _, read in shown[panel.scenario])


def _means(plots: Sequence[Plot], flows: Sequence[str], origins: Sequence[str], colours: Any) -> Spec:
    """Published and measured means beside each plot, a row a flow: as high as the plots and their titles."""
    stack = [_mean_plot(plot, flows, origins, colours) for plot in plots]
    # The room between two is needed for the axis below the first.
    return {"vconcat": stack, "spacing": 8, "resolve": {"scale": {"yOffset": "independent"}}}


def _mean_plot(plot: Plot, flows: Sequence[str], origins: Sequence[str], colours: Any) -> Spec:
    unit = plot.title.rpartition(", ")[2]
    unit = f"mean, {unit}" if unit != plot.title else "mean"
    mine = f"datum.panel == {json.dumps(plot.title, ensure_ascii=False)} && datum.part == 'mean'"
    base: Spec = {
        "y": channel(
            "series:N", sort=list(flows), scale={"domain": list(flows)}, title=None, axis={"grid": True}
        ),
        "yOffset": channel("mode:N", scale={"domain": list(origins)}),
        "tooltip": [
            channel("series:N", title="flow"), channel("mode:N", title="whose"),
            channel("value:Q", title=unit), channel("low:Q", title="from"), channel("high:Q", title="to"),
        ],
    }  # fmt: skip
    colour = channel("series:N", scale=colour_scale(colours), legend=None)
    shapes = ["diamond" if one == "paper" else look_of(one)[1] for one in origins]
    shape = channel("mode:N", scale={"domain": list(origins), "range": shapes}, legend=None)
    value = {**base, "x": channel("value:Q", title=None, scale={"zero": True}, axis={"tickCount": 4})}
    whiskers = {
        "mark": {"type": "rule", "strokeWidth": 1.6},
        "encoding": {**base, "x": channel("low:Q", title=None), "x2": {"field": "high"}, "color": colour},
        "transform": filtered("isValid(datum.low)"),
    }
    theirs = {
        "mark": {"type": "point", "filled": False, "size": 46, "strokeWidth": 1.5, "color": "#444444"},
        "encoding": {**value, "shape": shape},
        "transform": filtered("datum.mode == 'paper'"),
    }
    ours = {
        "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
        "encoding": {**value, "shape": shape, "color": colour},
        "transform": filtered("datum.mode != 'paper'"),
    }
    told = ", ".join(f"{_PAPER if one == 'paper' else look_of(one)[0]} {one}" for one in origins)
    heading = f"{unit}: {told}"
    if len(origins) > _MOST_NAMED:
        heading = f"{told}, {unit.rpartition(', ')[2]}"
    above = {
        "text": heading, "anchor": "start", "frame": "group", "fontSize": 11,
        "fontWeight": "normal", "offset": 4, "color": INK,
    }  # fmt: skip
    parts = [whiskers, theirs, ours]
    return {
        **layer(parts, width=_MEANS_WIDTH, height=max(plot.height - 22, 14 * len(flows))),
        "title": above,
        "transform": filtered(mine),
    }


def _jain(paper: Paper, figure: PaperFigure, reading: Reading, shown: Shown) -> DrawnFigure:
    """Returns the index in each sample; on the right that of the means over the run, and the paper's."""
    band = figure.more.get("band")
    colours = {"JFI": BLUE}
    blocks = []
    for panel in figure.panels:
        courses = {
            mode: course
            for mode, _, _, read in shown[panel.scenario]
            if (course := read.course("", "jain")) is not None
        }
        title = f"{panel.label}: JFI in each sample" if panel.label else "JFI in each sample"
        under = [_range(*band)] if band else []
        lines = [PlotLine("JFI", courses)]
        plot = Plot(title, 110, 1.0, lines, top=1.02, under=under, shown="JFI in each sample")
        rows: Rows = [
            _mean(title, mode, "JFI", "mean", mean, 1.0, "jain")
            for mode, group, _, _ in shown[panel.scenario]
            if (mean := group.over("jain")) is not None
        ]
        row = paper.published(panel.scenario)
        if row is not None and row.jain is not None:
            rows.append((title, "paper", "JFI", "mean", None, None, row.jain, None, None))
        aside = _means([plot], ["JFI"], _origins(rows, reading), colours)
        blocks.append(PlotBlock([plot], _columns(panel, shown, reading), _end_s(panel, shown), aside, rows))
    id_, title, said = _named(paper, figure, reading)
    of_means = _beside(shown, blocks, reading, "the index of the means over the run")
    text = f"{said} {_drawn(shown, reading)} {of_means}"
    return multiples(
        id_,
        title,
        _noted(text, figure),
        blocks,
        colours,
        notes=f"{_samples(shown)} The index counts the flows that have started.",
        aside_width=_MEANS_ROOM,
    )


def _range(low: float, high: float) -> Spec:
    """Returns a range that the paper's text names, shaded."""
    scale = {"domain": [0, 1.02], "nice": False}
    return {
        "data": {"values": [{"low": low, "high": high}]},
        "mark": {"type": "rect", "color": _GREY, "opacity": 0.15},
        "encoding": {"y": channel("low:Q", title=None, scale=scale), "y2": {"field": "high"}},
    }


def _bars(paper: Paper, figure: PaperFigure, reading: Reading) -> DrawnFigure | None:
    """Draws means by experiment and series, a panel a metric, each beside the paper's value."""
    rows: Rows = []
    both = len(reading.modes) > 1
    for one in figure.more["bars"]:
        entry = reading.by_id.get(one["scenario"])
        if entry is None or not any(group.valid for group in entry.groups):
            return None
        for metric in figure.more["metrics"]:
            unit, scale = axis(metric)
            panel = f"{METRICS[metric].title.lower()}, {unit}"
            for group in entry.groups:
                found = group.over(metric, one["flow"])
                if found is not None:
                    whose = reading.words(group.mode) if both else "ours"
                    name = f"{one['series']}, {whose}"
                    mean = _mean(panel, group.mode, name, "bar", found, scale, metric)
                    rows.append((panel, one["x"], name, *mean[6:]))
            if metric in one:
                value = rounded(published_value(one[metric])[0] / scale, 6)
                rows.append((panel, one["x"], f"{one['series']}{_TEXT}", value, None, None))
    xs = list(dict.fromkeys(row[1] for row in rows))
    names, palette = _bar_colours(figure, reading, {row[2] for row in rows})
    charts = []
    for panel in dict.fromkeys(row[0] for row in rows):
        mine = f"datum.panel == {json.dumps(panel, ensure_ascii=False)}"
        here = [name for name in names if any(row[0] == panel and row[2] == name for row in rows)]
        base = {
            "x": channel("experiment:N", sort=xs, title=figure.more["x"], axis={"labelAngle": 0}),
            "xOffset": channel("series:N", sort=here, scale={"domain": here}),
        }
        height = channel("value:Q", title=panel, scale={"zero": True})
        bars = {
            "mark": {"type": "bar"},
            "encoding": {
                **base,
                "y": height,
                "color": channel("series:N", sort=names, scale={"domain": names, "range": palette}),
                "tooltip": [
                    channel("series:N", title="whose"), channel("experiment:N", title=figure.more["x"]),
                    channel("value:Q", title=panel), channel("low:Q", title="from"),
                    channel("high:Q", title="to"),
                ],
            },
        }  # fmt: skip
        whiskers = {
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "encoding": {**base, "y": channel("low:Q", title=panel), "y2": {"field": "high"}},
            "transform": filtered("isValid(datum.low)"),
        }
        # A small number beside large ones, or 0, is seen by its figure.
        told = {
            "mark": {"type": "text", "dy": -6, "fontSize": 10},
            "encoding": {**base, "y": height, "text": channel("value:Q")},
            "transform": filtered("indexof(datum.series, 'the paper') >= 0"),
        }
        parts: list[Spec] = [bars]
        parts += [whiskers] if any(row[0] == panel and row[4] is not None for row in rows) else []
        parts += [told] if any(name.endswith(_TEXT) for name in here) else []
        one_chart = layer(parts, width=(WIDTH - 150) / 2, height=230)
        charts.append({**one_chart, "transform": filtered(mine)})
    resolve = {"scale": {"color": "shared", "xOffset": "independent"}}
    chart = whole({"hconcat": charts, "spacing": 30, "resolve": resolve})
    id_, heading, said = _named(paper, figure, reading)
    text = f"{said} Ours: means over the trials"
    if any(row[4] is not None for row in rows):
        text += (
            f", with 95 % intervals ({_counted([len(g.valid) for e in reading.entries for g in e.groups])})"
        )
    columns = ("panel", "experiment", "series", "value", "low", "high")
    return DrawnFigure(id_, heading, _noted(f"{text}.", figure), chart, columns, tuple(rows))


def _means_of_cases(paper: Paper, figure: PaperFigure, reading: Reading) -> DrawnFigure | None:
    found = draw_means(figure, reading)
    if found is None:
        return None
    id_, heading, said = _named(paper, figure, reading)
    told = [f"{look_of(mode)[0]} {reading.words(mode)}" for mode in reading.modes]
    text = f"{said} {', '.join(told)}: means over the trials with 95 % intervals ({_counted(found.trials)})"
    if any(row[3] == "paper" for row in found.rows):
        text += "; ◇ what the paper's text says"
    return DrawnFigure(id_, heading, _noted(f"{text}.", figure), found.spec, COLUMNS, found.rows)


def _over_trials(paper: Paper, figure: PaperFigure, reading: Reading) -> DrawnFigure | None:
    """Returns a figure of single trials or clips."""
    match figure.draw:
        case "distribution":
            found = draw_distribution(figure, reading, gathered(paper, reading))
        case "scatter":
            found = draw_scatter(figure, reading, gathered(paper, reading))
        case "course":
            found = draw_course(figure, reading)
        case "gaps":
            found = draw_gaps(figure, reading)
        case "sequence":
            found = draw_sequence(figure, reading)
        case "sweep":
            found = draw_sweep(figure, reading, gathered(paper, reading))
        case _:
            found = draw_ladders(figure, reading)
    if found is None:
        return None
    id_, title, said = _named(paper, figure, reading)
    columns = SWEEP_COLUMNS if figure.draw == "sweep" else PANEL_COLUMNS
    return DrawnFigure(
        id_, title, _noted(f"{said} {found.told}", figure), found.spec, columns, found.rows, found.notes
    )


def _bar_colours(figure: PaperFigure, reading: Reading, there: set[str]) -> tuple[list[str], list[str]]:
    """Returns names of bars in their order, each series' own beside the paper's, and their colours."""
    found: dict[str, str] = {}
    modes = reading.modes
    for i, name in enumerate(dict.fromkeys(one["series"] for one in figure.more["bars"])):
        for j, mode in enumerate(modes):
            whose = reading.words(mode) if len(modes) > 1 else "ours"
            colours = _BARS[i % len(_BARS)]
            found[f"{name}, {whose}"] = colours[j % len(colours)]
        found[f"{name}{_TEXT}"] = _PUBLISHED_BARS[i % len(_PUBLISHED_BARS)]
    known = {name: colour for name, colour in found.items() if name in there}
    return list(known), list(known.values())


def _drawn(shown: Shown, reading: Reading) -> str:
    """Returns the meaning of lines and bands."""
    counts = {mode: courses.trials for found in shown.values() for mode, _, _, courses in found}
    bands = {mode: band_words(n) for mode, n in counts.items() if n > 1}
    if not bands:
        return "One trial is drawn."
    told = "; ".join(f"{reading.words(mode)}: {words}" for mode, words in bands.items())
    return f"Medians over all valid trials, with bands ({told})."


def _samples(shown: Shown) -> str:
    """Returns the meaning of a point."""
    found = next(iter(shown.values()))
    step, sample_s = max(courses.step for _, _, _, courses in found), found[0][2].grid.sample_s
    return (
        f"A point is {step * sample_s:g} s long." if step > 1 else f"A point is a sample of {sample_s:g} s."
    )


def _beside(
    shown: Shown, blocks: Sequence[PlotBlock], reading: Reading, what: str = "the means over the run"
) -> str:
    """Returns the parts on the right, as far as they exist."""
    rows = [row for block in blocks for row in block.aside_rows]
    ours = [mode for mode in _origins(rows, reading) if mode != "paper"]
    told = f"On the right {what}: {listed([f'{look_of(mode)[0]} {reading.words(mode)}' for mode in ours])}"
    if any(row[7] is not None for row in rows):
        counts = [len(group.valid) for found in shown.values() for _, group, _, _ in found]
        told += f" with 95 % intervals ({_counted(counts)})"
    if any(row[1] == "paper" for row in rows):
        told += f", {_PAPER} the paper"
    return f"{told}."


def _counted(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"n = {low}" if low == high else f"n = {low} to {high}"


def _noted(text: str, figure: PaperFigure) -> str:
    return f"{text} {figure.note}".rstrip()

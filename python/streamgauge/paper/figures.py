"""A paper's figures in its own form: its axes, units and panels, sim and emu side by side, published means
beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamgauge.checks.evaluate import published_value
from streamgauge.claims.dimension import PERCENT, RATE, pick_unit
from streamgauge.metrics import METRICS, Interval, TrialMetrics
from streamgauge.metrics.grid import Floats
from streamgauge.paper.published import Panel, Paper, PaperFigure
from streamgauge.paper.reading import Reading
from streamgauge.report.chart import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, WIDTH, DrawnFigure
from streamgauge.report.figures import capacity_steps
from streamgauge.report.model import Group
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

__all__ = ["draw"]

_INK = "#444444"
_FAINT = "#777777"
_SUBJECTS = (BLUE, GREEN, PURPLE, SKY)
_RIVALS = (VERMILION, ORANGE, _INK)
_BARS = ((BLUE, SKY), (VERMILION, ORANGE), (GREEN, PURPLE))
"""For each series of bars, in sim and in emu where both are there."""
_STRIPS = (("tp", "throughput", 150), ("lr", "loss_rate", 60))
"""What a panel of rates has from above: kind of rows, metric, height."""
_MEANS_WIDTH = 150
_SHORT = {"throughput": "throughput"}
"""Titles of axes that differ from the metrics'."""
_SMOOTH_S = 5.0
"""Length of the running mean that is drawn over the samples, which alone are hard to tell apart."""
_COLUMNS = ("k", "p", "m", "t", "v", "s", "lo", "hi")
"""Of a row: kind, panel, mode or origin, time in s, value, flow, ends of an interval."""
Rows = list[tuple[Any, ...]]
Shown = dict[str, list[tuple[str, Group, TrialMetrics]]]
"""By scenario, for each mode: the mode, its trials, and the one that is drawn."""


def draw(paper: Paper, figure: PaperFigure, reading: Reading) -> DrawnFigure | None:
    """A figure; None if an experiment of it has no valid trial."""
    if figure.draw == "bars":
        return _bars(paper, figure, reading)
    shown: Shown = {}
    for panel in figure.panels:
        entry = reading.by_id.get(panel.scenario)
        groups = [entry.group(mode) for mode in reading.modes] if entry else []
        found = [(group.mode, group, group.shown) for group in groups if group and group.shown]
        if not found:
            return None
        shown[panel.scenario] = found
    return (_jain if figure.draw == "jain" else _rates)(paper, figure, reading, shown)


def _named(paper: Paper, figure: PaperFigure, reading: Reading) -> tuple[str, str, str]:
    """Id, title and the caption's first sentence."""
    preset = f"{reading.preset}-" if reading.preset else ""
    said = f"{figure.caption}." + (f" Preset {reading.preset}: {reading.meaning}." if preset else "")
    return f"{paper.id}-{preset}{figure.id}", figure.title, said


def _labels(trial: TrialMetrics) -> dict[str, str]:
    """Flows by the names that lines have, the same in every panel, in the scenario's order."""
    return {name: name.upper() for name, flow in trial.flows.items() if not flow.info.is_ping}


def _colours(shown: Shown) -> dict[str, str]:
    """By label: subjects first, in colours of their own."""
    roles = {
        label: trial.flows[flow].info.role
        for found in shown.values()
        for _, _, trial in found
        for flow, label in _labels(trial).items()
    }
    subjects = [label for label, role in roles.items() if role != "rival"]
    rivals = [label for label, role in roles.items() if role == "rival"]
    found = {label: _SUBJECTS[i % len(_SUBJECTS)] for i, label in enumerate(subjects)}
    return found | {label: _RIVALS[i % len(_RIVALS)] for i, label in enumerate(rivals)}


def _middles(trial: TrialMetrics) -> Floats:
    edges = trial.grid.edges_ns / 1e9
    return (edges[:-1] + edges[1:]) / 2


def _course(kind: str, panel: str, mode: str, label: str, trial: TrialMetrics, values: Floats) -> Rows:
    """Every sample of a series as rows."""
    return [
        (kind, panel, mode, round(float(t), 3), round(float(v), 4), label, None, None)
        for t, v in zip(_middles(trial), values, strict=True)
        if np.isfinite(v)
    ]


def _smoothed(samples: Floats, trial: TrialMetrics) -> Floats:
    """The mean of the `_SMOOTH_S` around each sample; at the ends, of what there is of them."""
    half = max(1, round(_SMOOTH_S / trial.grid.sample_s / 2))
    sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(samples))])
    at = np.arange(len(samples))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(samples))
    return np.asarray((sums[high] - sums[low]) / (high - low))


def _mean(kind: str, panel: str, origin: str, label: str, found: Interval, scale: float) -> tuple[Any, ...]:
    ends = [None if end is None else round(end / scale, 4) for end in (found.low, found.high)]
    return (kind, panel, origin, None, round(found.mean / scale, 4), label, *ends)


def _axis(metric: str) -> tuple[str, float]:
    """A metric's axis as papers on bit rates have it: its title, and canonical units in one of its own."""
    dimension = METRICS[metric].dimension
    scale, unit = {RATE: (1e3, "kb/s"), PERCENT: (0.01, "%")}.get(dimension) or pick_unit(1.0, dimension)
    return f"{_SHORT.get(metric, METRICS[metric].title.lower())}, {unit}".removesuffix(", "), scale


def _top(rows: Rows, kind: str, panel: str) -> float:
    return 1.06 * max((row[4] for row in rows if row[0] == kind and row[1] == panel), default=0) or 1.0


def _where(*tests: str) -> str:
    return " && ".join(tests)


def _is(field: str, value: str) -> str:
    return f"datum.{field} == '{value}'"


def _rates(paper: Paper, figure: PaperFigure, reading: Reading, shown: Shown) -> DrawnFigure:
    """Throughput and loss rate of each flow over time, the capacity in grey; on the right the run's means."""
    rows = [row for panel in figure.panels for row in _rate_rows(paper, panel, shown)]
    colours = _colours(shown)
    colour = channel(
        "s:N",
        scale={"domain": [*colours, "capacity"], "range": [*colours.values(), _FAINT]},
        legend={"title": None, "orient": "top", "symbolType": "stroke"},
    )
    many = len(reading.modes)
    width = (WIDTH - _MEANS_WIDTH - 130 - 45 * (many - 1)) / many
    charts = []
    for panel in figure.panels:
        sides = [
            _over_time(panel, mode, rows, _end_s(panel, shown), colour, width, first=i == 0, many=many > 1)
            for i, (mode, _, _) in enumerate(shown[panel.scenario])
        ]
        flows = [label for label in colours if any(r[1] == panel.label and r[5] == label for r in rows)]
        means = [
            _means(
                kind,
                panel.label,
                flows,
                reading.modes,
                colour,
                (_MEANS_WIDTH, height),
                f"mean {_axis(metric)[0]}",
            )
            for kind, metric, height in _STRIPS
        ]
        apart = {"scale": {"yOffset": "independent"}}
        sides.append({"vconcat": means, "spacing": 6, "resolve": apart})
        charts.append({"hconcat": sides, "spacing": 18, "resolve": apart})
    resolve = {"scale": {"color": "shared", "yOffset": "independent"}}
    chart = whole({"vconcat": charts, "spacing": 22, "resolve": resolve})
    id_, title, said = _named(paper, figure, reading)
    right = f"On the right the means over the run, {_whiskers(shown)}."
    lines_are = f"Thin: each sample; thick: {_SMOOTH_S:g} s around it; dashed: the capacity."
    text = f"{said} {_drawn(shown)} {lines_are} {right}"
    return DrawnFigure(id_, title, _noted(text, figure), chart, _COLUMNS, tuple(rows))


def _rate_rows(paper: Paper, panel: Panel, shown: Shown) -> Rows:
    """A panel's samples, running means, capacity, and means of the run, ours and the paper's."""
    rows: Rows = []
    for mode, group, trial in shown[panel.scenario]:
        for flow, label in _labels(trial).items():
            for kind, metric, _ in _STRIPS:
                samples = trial.flows[flow].series[metric].samples() / 1e3
                rows += _course(kind, panel.label, mode, label, trial, samples)
                if kind == "tp":
                    smooth = _smoothed(samples, trial)
                    rows += _course("smooth", panel.label, mode, label, trial, smooth)
                mean = group.over(metric, flow)
                if mean is not None:
                    rows.append(_mean(f"mean-{kind}", panel.label, mode, label, mean, 1e3))
        rows += [("cap", panel.label, mode, t, v, "capacity", None, None) for t, v in capacity_steps(trial)]
    row = paper.published(panel.scenario)
    for one in row.flows if row else ():
        for kind, metric, _ in _STRIPS:
            value = round(one.values[metric] / 1e3, 2)
            rows.append((f"mean-{kind}", panel.label, "paper", None, value, one.flow.upper(), None, None))
    return rows


def _end_s(panel: Panel, shown: Shown) -> float:
    """Where a panel's time ends, the same in every mode."""
    return max(float(trial.grid.edges_ns[-1]) / 1e9 for _, _, trial in shown[panel.scenario])


def _title(panel: Panel, mode: str, many: bool) -> str:
    return ", ".join(part for part in (panel.label, mode if many else "") if part)


def _over_time(
    panel: Panel, mode: str, rows: Rows, end_s: float, colour: Spec, width: float, *, first: bool, many: bool
) -> Spec:
    """Throughput above loss rate, of one mode; `first` has the axes' titles, one of `many` says its mode."""
    tops = {kind: _top(rows, kind, panel.label) for kind, _, _ in _STRIPS}
    # A capacity that the flows come near to is shown; one that is far above would flatten them.
    widest = _top(rows, "cap", panel.label)
    tops["tp"] = max(tops["tp"], widest if widest <= 1.6 * tops["tp"] else 0)
    here = _where(_is("p", panel.label), _is("m", mode))
    stacked = []
    for kind, metric, height in _STRIPS:
        above = kind == "tp"
        x = _time(end_s, labels=False, title=None) if above else _time(end_s)
        y = channel(
            "v:Q",
            title=_axis(metric)[0] if first else None,
            scale={"domain": [0, tops[kind]], "nice": False},
            axis={"tickCount": 5 if above else 3},
        )

        def line(what: str, of: Spec, **look: Any) -> Spec:
            mark = {"type": "line", **look}
            return {"mark": mark, "encoding": of, "transform": filtered(_where(_is("k", what), here))}

        encoding = {"x": x, "y": y, "color": colour}
        lines = line(kind, encoding, strokeWidth=0.8, opacity=0.4 if above else 0.75)
        size: Spec = {"width": width, "height": height}
        if not above:
            stacked.append({**lines, **size})
            continue
        # Clipping doubles what a picture costs: only what may leave the panel.
        leaves = {"clip": True} if widest > tops[kind] else {}
        capacity = line("cap", encoding, strokeWidth=1.3, strokeDash=[5, 3], **leaves)
        smooth = line("smooth", encoding, strokeWidth=1.9)
        if title := _title(panel, mode, many):
            size["title"] = _heading(title)
        stacked.append(layer([capacity, lines, smooth], **size))
    return {"vconcat": stacked, "spacing": 6}


def _time(end_s: float, **axis: Any) -> Spec:
    """The axis of a trial's time."""
    scale = {"domain": [0, end_s], "nice": False}
    return channel("t:Q", title="time, s", scale=scale, axis={"tickCount": 10, **axis})


def _heading(title: str) -> Spec:
    return {"text": title, "anchor": "start", "fontSize": 12, "fontWeight": "bold"}


def _means(
    kind: str, panel: str, flows: list[str], modes: list[str], colour: Spec, size: tuple[int, int], title: str
) -> Spec:
    """Published and measured means, a line a flow."""
    origins = ["paper", *modes]
    mine = _where(_is("k", f"mean-{kind}"), _is("p", panel))
    base: Spec = {
        "y": channel("s:N", sort=flows, scale={"domain": flows}, title=None, axis={"grid": True}),
        "yOffset": channel("m:N", scale={"domain": origins}),
        "tooltip": [
            channel("s:N", title="flow"), channel("m:N", title="whose"), channel("v:Q", title=title),
        ],
    }  # fmt: skip
    shape = channel(
        "m:N",
        title=None,
        scale={"domain": origins, "range": ["diamond", "circle", "triangle-up"][: len(origins)]},
        legend={
            "title": None,
            "orient": "top",
            "symbolSize": 60,
            "symbolStrokeWidth": 1.5,
            "symbolStrokeColor": _INK,
            "symbolFillColor": "transparent",
        },
    )
    value = {**base, "x": channel("v:Q", title=title, scale={"zero": True}, axis={"tickCount": 4})}
    whiskers = {
        "mark": {"type": "rule", "strokeWidth": 1.6},
        "encoding": {**base, "x": channel("lo:Q", title=title), "x2": {"field": "hi"}, "color": colour},
        "transform": filtered(mine, "isValid(datum.lo)"),
    }
    theirs = {
        "mark": {"type": "point", "filled": False, "size": 46, "strokeWidth": 1.5, "color": _INK},
        "encoding": {**value, "shape": shape},
        "transform": filtered(mine, _is("m", "paper")),
    }
    ours = {
        "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
        "encoding": {**value, "shape": shape, "color": colour},
        "transform": filtered(mine, "datum.m !== 'paper'"),
    }
    return layer([whiskers, theirs, ours], width=size[0], height=size[1])


def _jain(paper: Paper, figure: PaperFigure, reading: Reading, shown: Shown) -> DrawnFigure:
    """The index in each sample, with its mean and the paper's."""
    rows: Rows = []
    band = figure.more.get("band")
    for panel in figure.panels:
        row = paper.published(panel.scenario)
        for mode, group, trial in shown[panel.scenario]:
            if band:
                rows.append(("band", panel.label, mode, None, None, None, band[0], band[1]))
            rows += _course("jain", panel.label, mode, "in each sample", trial, trial.jain_samples)
            mean = group.over("jain")
            if mean is not None:
                rows.append(_mean("mean", panel.label, mode, "of the means, ours", mean, 1.0))
            if row is not None and row.jain is not None:
                rows.append(("mean", panel.label, mode, None, row.jain, "of the means, paper", None, None))
    names = ["in each sample", "of the means, ours", "of the means, paper"]
    colour = channel(
        "s:N",
        scale={"domain": names, "range": [BLUE, VERMILION, _INK]},
        legend={"title": None, "orient": "top", "symbolType": "stroke"},
    )
    dash = channel("s:N", scale={"domain": names, "range": [[1, 0], [7, 3], [2, 2]]}, legend=None)
    scale = {"domain": [0, 1.02], "nice": False}
    y = channel("v:Q", title="JFI", scale=scale, axis={"tickCount": 5})
    encoding = {"y": y, "color": colour, "strokeDash": dash}
    shade = {"y": channel("lo:Q", title="JFI", scale=scale), "y2": {"field": "hi"}}
    many = len(reading.modes)
    width = (WIDTH - 90 - 60 * (many - 1)) / many
    charts = []
    for panel in figure.panels:
        sides = []
        for mode, _, _ in shown[panel.scenario]:

            def part(kind: str, mark: Spec, of: Spec, where: tuple[str, str] = (panel.label, mode)) -> Spec:
                here = _where(_is("p", where[0]), _is("m", where[1]))
                return {"mark": mark, "encoding": of, "transform": filtered(_where(_is("k", kind), here))}

            layers = [part("band", {"type": "rect", "color": _FAINT, "opacity": 0.15}, shade)] if band else []
            time = _time(_end_s(panel, shown))
            layers.append(part("jain", {"type": "line", "strokeWidth": 1.1}, {**encoding, "x": time}))
            layers.append(part("mean", {"type": "rule", "strokeWidth": 1.6}, encoding))
            head = _heading(_title(panel, mode, many > 1))
            sides.append(layer(layers, width=width, height=150, title=head))
        charts.append({"hconcat": sides, "spacing": 18})
    resolve = {"scale": {"color": "shared", "strokeDash": "shared"}}
    chart = whole({"vconcat": charts, "spacing": 18, "resolve": resolve})
    id_, title, said = _named(paper, figure, reading)
    means = "; ".join(
        f"{panel.label}: "
        + ", ".join(f"{mode} {group.say('jain')}" for mode, group, _ in shown[panel.scenario])
        for panel in figure.panels
    )
    text = (
        f"{said} The index in each sample, over the flows that have started. Lines across: the index of the "
        f"means over the run ({means}; ± half the 95 % interval) and the paper's. {_drawn(shown)}"
    )
    return DrawnFigure(id_, title, _noted(text, figure), chart, _COLUMNS, tuple(rows))


def _bars(paper: Paper, figure: PaperFigure, reading: Reading) -> DrawnFigure | None:
    """Means by experiment and series, a panel a metric, with what the paper says of them."""
    rows: Rows = []
    both = len(reading.modes) > 1
    for one in figure.more["bars"]:
        entry = reading.by_id.get(one["scenario"])
        if entry is None or not any(group.valid for group in entry.groups):
            return None
        for metric in figure.more["metrics"]:
            scale = _axis(metric)[1]
            for group in entry.groups:
                found = group.over(metric, one["flow"])
                if found is not None:
                    name = f"{one['series']}, {group.mode}" if both else one["series"]
                    rows.append(_mean("bar", metric, one["x"], name, found, scale))
                    if metric in one:
                        value = published_value(one[metric])[0] / scale
                        rows.append(("said", metric, one["x"], None, value, name, None, None))
    xs = list(dict.fromkeys(row[2] for row in rows))
    series = list(dict.fromkeys(one["series"] for one in figure.more["bars"]))
    colours = {
        f"{name}, {mode}" if both else name: _BARS[i % len(_BARS)][j]
        for i, name in enumerate(series)
        for j, mode in enumerate(reading.modes)
    }
    names, palette = list(colours), list(colours.values())
    charts = []
    for metric in figure.more["metrics"]:
        title = _axis(metric)[0]
        mine = _is("p", metric)
        base = {
            "x": channel("m:N", sort=xs, title=figure.more["x"], axis={"labelAngle": 0}),
            "xOffset": channel("s:N", sort=names),
        }
        bars = {
            "mark": {"type": "bar"},
            "encoding": {
                **base,
                "y": channel("v:Q", title=title, scale={"zero": True}),
                "color": channel("s:N", sort=names, scale={"domain": names, "range": palette}),
                "tooltip": [
                    channel("s:N", title="player"), channel("m:N", title=figure.more["x"]),
                    channel("v:Q", title=title),
                ],
            },
            "transform": filtered(mine, _is("k", "bar")),
        }  # fmt: skip
        whiskers = {
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "encoding": {**base, "y": channel("lo:Q", title=title), "y2": {"field": "hi"}},
            "transform": filtered(mine, "isValid(datum.lo)"),
        }
        layers: list[Spec] = [bars, whiskers]
        if any(row[0] == "said" and row[1] == metric for row in rows):
            look = {"shape": "diamond", "filled": False, "size": 60, "strokeWidth": 1.8, "color": _INK}
            in_text = {
                "mark": {"type": "point", **look},
                "encoding": {**base, "y": channel("v:Q", title=title)},
                "transform": filtered(mine, _is("k", "said")),
            }
            layers.append(in_text)
        charts.append(layer(layers, width=(WIDTH - 150) / 2, height=230))
    chart = whole({"hconcat": charts, "spacing": 30, "resolve": {"scale": {"color": "shared"}}})
    id_, heading, said = _named(paper, figure, reading)
    counts = sorted({len(group.valid) for entry in reading.entries for group in entry.groups})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    text = f"{said} Means over the runs; whiskers are 95 % intervals ({n}); ◇: what the paper's text says."
    return DrawnFigure(id_, heading, _noted(text, figure), chart, _COLUMNS, tuple(rows))


def _drawn(shown: Shown) -> str:
    """Which trial is drawn, in which samples."""
    first = next(iter(shown.values()))
    seeds = ", ".join(f"{mode} seed {trial.seed}" for mode, _, trial in first)
    return f"One trial is drawn ({seeds}), in samples of {first[0][2].grid.sample_s:g} s."


def _whiskers(shown: Shown) -> str:
    counts = sorted({len(group.valid) for found in shown.values() for _, group, _ in found})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    return f"● sim, ▲ emu with 95 % intervals ({n}), ◇ the paper"


def _noted(text: str, figure: PaperFigure) -> str:
    return f"{text} {figure.note}".rstrip()

"""Subjects of a comparison beside one another: over time, how they differ, how their trials are spread."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.claims.dimension import pick_unit
from streamgauge.compare import Comparison
from streamgauge.metrics import METRICS
from streamgauge.metrics.grid import Floats
from streamgauge.report.chart import COLOURS, DrawnFigure, dash_of, rounded
from streamgauge.report.courses import Courses, GroupCourse, How, band_words
from streamgauge.report.model import Entry, Group
from streamgauge.report.modes import ModeRead, column_of, end_of, greatest, plot_of_time
from streamgauge.report.multiples import colour_scale, multiples
from streamgauge.report.plots import Plot, PlotBlock, PlotLine
from streamgauge.report.vega import Spec, channel, layer, whole

__all__ = ["SideBySide", "side_by_side"]

_OF_FLOWS: tuple[tuple[str, How], ...] = (
    ("receiver_rate", "value"), ("path_delay", "value"), ("buffer", "value"), ("level", "value"),
    ("freeze_time", "share"), ("stall_time", "share"), ("sending_time", "share"),
)  # fmt: skip
_OF_STAGES: tuple[tuple[str, How], ...] = (("queue", "value"),)
_MOST_SCENARIOS = 8
"""Most scenarios of a comparison that are drawn; each of the others has a figure of its own further down."""
_FEWEST_PAIRS = 2


@dataclass(frozen=True)
class SideBySide:
    """The figures of a comparison, one of each kind for each of its scenarios."""

    over_time: tuple[DrawnFigure, ...]
    differences: tuple[DrawnFigure, ...]
    distributions: tuple[DrawnFigure, ...]


@dataclass(frozen=True)
class _Subject:
    """A subject's trials of a scenario, read."""

    name: str
    read: ModeRead
    flow: str
    """The subject flow."""
    seeds: tuple[int, ...]
    """Values of the repetitions with trials in `GroupCourse.single`, in its order."""


def side_by_side(found: Sequence[Comparison], entries: Sequence[Entry]) -> SideBySide:
    """Draws every comparison, in the mode that answers for a scenario. Every valid trial is read once
    more."""
    by_id = {entry.id: entry for entry in entries}
    over_time, differences, distributions = [], [], []
    for place, comparison in enumerate(found):
        colours = dict(zip(comparison.subjects, itertools.cycle(COLOURS), strict=False))
        for scenario in comparison.scenarios[:_MOST_SCENARIOS]:
            mode = comparison.best_mode(scenario)
            subjects = _read(comparison, scenario, mode, by_id)
            # The same words may name scenarios of two comparisons.
            slug = f"compared-{place + 1}-{re.sub(r'[^A-Za-z0-9]+', '-', scenario).strip('-')}"
            where = f"{scenario}, {mode}" if len(comparison.scenarios) > 1 else mode
            if len(subjects) > 1:
                over_time.append(_over_time(slug, where, mode, subjects, colours))
                if (drawn := _differences(slug, where, comparison.baseline, subjects, colours)) is not None:
                    differences.append(drawn)
            if (drawn := _distributions(slug, where, comparison, scenario, mode, colours)) is not None:
                distributions.append(drawn)
    return SideBySide(tuple(over_time), tuple(differences), tuple(distributions))


def _read(comparison: Comparison, scenario: str, mode: str, entries: Mapping[str, Entry]) -> list[_Subject]:
    """Returns the subjects that have a valid trial and one subject flow."""
    found = []
    for subject in comparison.subjects:
        entry = entries.get(comparison.entries.get((subject, scenario, mode), ""))
        group = None if entry is None else entry.group(mode)
        if entry is None or group is None or not group.valid or (first := group.shown) is None:
            continue
        flows = [
            name for name, info in group.numbers.infos.items() if info.role == "subject" and not info.is_ping
        ]
        if len(flows) != 1:
            continue
        courses = Courses(group.numbers.samples, _OF_FLOWS, _OF_STAGES)
        for trial in group.each():
            courses.add(trial)
        found.append(_Subject(subject, ModeRead(group, first, courses), flows[0], _seeds(group)))
    return found


def _seeds(group: Group) -> tuple[int, ...]:
    return tuple(trial.seed if trial.replaces is None else trial.replaces for trial in group.valid)


def _course(subject: _Subject, metric: str, how: How = "value") -> GroupCourse | None:
    courses = subject.read.courses
    if metric == "queue":
        stages = [label for label in subject.read.first.stages if not label.startswith("up.")]
        return courses.course(stages[0], metric, how) if stages else None
    return courses.course(subject.flow, metric, how)


def _lines(subjects: Sequence[_Subject], mode: str, metric: str) -> list[PlotLine]:
    found = []
    for one in subjects:
        if (course := _course(one, metric)) is not None:
            found.append(PlotLine(one.name, {mode: course}))
    return found


def _over_time(
    slug: str, where: str, mode: str, subjects: Sequence[_Subject], colours: Mapping[str, str]
) -> DrawnFigure:
    """Draws median and band of each subject: rate, queue, delay, buffer, and freezes."""
    plots: list[Plot] = []
    received = _lines(subjects, mode, "receiver_rate")
    scale, unit = (1e6, "Mbit/s") if greatest(received) >= 1e7 else (1e3, "kbit/s")
    plots.append(Plot(f"Received, {unit}", 84, scale, received))
    if queued := _lines(subjects, mode, "queue"):
        plots.append(Plot("Queue, kB", 50, 8e3, queued))
    for metric in ("path_delay", "buffer"):
        if lines := _lines(subjects, mode, metric):
            plots.append(plot_of_time(METRICS[metric].title, lines, 50))
    shown = dict(colours)
    bars = []
    for metric, ending in (("freeze_time", "frozen"), ("stall_time", "stalled")):
        for one in subjects:
            course = _course(one, metric, "share")
            if course is not None and course.greatest() > 0:
                name = f"{one.name} {ending}"
                shown[name] = colours[one.name]
                bars.append(PlotLine(name, {mode: course}, part="bar"))
    if bars:
        plots.append(Plot("Frozen or stalled, share of the trials", 15 * len(bars), 0.01, bars))
    reads = {one.name: one.read for one in subjects}
    column = column_of(mode, subjects[0].read)
    shaded = f" Shaded: {column.period_words}." if column.periods else ""
    counts = sorted({one.read.courses.trials for one in subjects})
    bands = band_words(counts[0])
    said = f"Medians over the valid trials; bands {bands}." if bands else "One trial each."
    return multiples(
        f"{slug}-time",
        f"Over time, {where}",
        f"{said}{shaded}",
        [PlotBlock(plots, [column], end_of(reads))],
        {
            name: colour
            for name, colour in shown.items()
            if any(name == line.series for p in plots for line in p.lines)
        },
    )


def _paired(ours: _Subject, theirs: _Subject, metric: str) -> tuple[Floats, Floats] | None:
    """Differences of trials with the same seed, [pair, point], and the points' times in s."""
    mine, other = _course(ours, metric), _course(theirs, metric)
    if mine is None or other is None or mine.single.shape[1] != other.single.shape[1]:
        return None
    rows = dict(zip(theirs.seeds, other.single, strict=False))
    both = [row - rows[seed] for seed, row in zip(ours.seeds, mine.single, strict=False) if seed in rows]
    return (np.array(both), mine.times_s) if len(both) >= _FEWEST_PAIRS else None


_DIFFERENT = (
    ("receiver_rate", "Received", 1e3, "kbit/s"),
    ("queue", "Queue", 8e3, "kB"),
    ("path_delay", "One-way delay", 1e-3, "ms"),
    ("buffer", "Media buffered", 1.0, "s"),
)


def _differences(
    slug: str, where: str, baseline: str, subjects: Sequence[_Subject], colours: Mapping[str, str]
) -> DrawnFigure | None:
    """Returns each subject less the baseline, seed by seed."""
    base = next((one for one in subjects if one.name == baseline), None)
    others = [one for one in subjects if one.name != baseline]
    if base is None:
        return None
    rows: list[tuple[object, ...]] = []
    pairs = set()
    for metric, title, scale, unit in _DIFFERENT:
        for one in others:
            found = _paired(one, base, metric)
            if found is None:
                continue
            values, times = found
            pairs.add(len(values))
            known = np.isfinite(values).sum(axis=0) >= len(values) / 2
            # A time without any known value has no quantile.
            there = np.flatnonzero(known)
            low, middle, high = np.nanquantile(values[:, there], [0.025, 0.5, 0.975], axis=0)
            for place, at in enumerate(there):
                numbers = (rounded(float(part[place]) / scale) for part in (middle, low, high))
                rows.append((f"{title}, {unit}", one.name, rounded(float(times[at]), 6), *numbers))
    if not rows:
        return None
    panels = list(dict.fromkeys(str(row[0]) for row in rows))
    base_encoding = {
        "x": channel("time_s:Q", title="time, s", axis={"tickCount": 8}),
        "color": channel("series:N", scale=colour_scale({one.name: colours[one.name] for one in others}),
                         legend=None if len(others) == 1 else {"orient": "top"}),
    }  # fmt: skip
    y = channel("value:Q", title=None, axis={"tickCount": 4})
    chart = layer(
        [
            {"mark": {"type": "rule", "color": "#777777"}, "encoding": {"y": {"datum": 0}}},
            {"mark": {"type": "area", "opacity": 0.18},
             "encoding": {**base_encoding, "y": channel("low:Q", title=None), "y2": {"field": "high"}}},
            {"mark": {"type": "line"}, "encoding": {**base_encoding, "y": y}},
        ],
        width=640,
        height=70,
    )  # fmt: skip
    spec = _facets("row", panels, chart)
    few = f"{min(pairs)} pairs" if len(pairs) == 1 else f"{min(pairs)} to {max(pairs)} pairs"
    who = " and ".join(one.name for one in others) if len(others) < 3 else "each"
    caption = (
        f"{who} less {baseline}, seed by seed: medians of {few}, bands from the 2.5th to the 97.5th "
        "percentile. Above the line there is more of it than with the baseline."
    )
    columns = ("panel", "series", "time_s", "value", "low", "high")
    return DrawnFigure(f"{slug}-difference", f"Difference, {where}", caption, spec, columns, tuple(rows))


def _distributions(
    slug: str, where: str, comparison: Comparison, scenario: str, mode: str, colours: Mapping[str, str]
) -> DrawnFigure | None:
    """Draws for each metric that varies the share of trials at or below a value, a step a trial."""
    rows: list[tuple[object, ...]] = []
    for metric in comparison.metrics(scenario, mode):
        mine = [
            row
            for row in comparison.rows
            if (row.scenario, row.mode, row.metric) == (scenario, mode, metric.name)
        ]
        values = [value for row in mine for _, value in row.values]
        if len(values) < 2 * _FEWEST_PAIRS or np.ptp(values) <= 1e-9 * max(map(abs, values)):
            continue
        scale, unit = pick_unit(max(map(abs, values)), metric.dimension)
        panel = f"{metric.short}, {unit}" if unit else metric.short
        span = float(np.ptp(values)) / scale
        for row in mine:
            ordered = sorted(value / scale for _, value in row.values)
            if not ordered:
                continue
            steps = [
                (ordered[0], 0.0),
                *((value, (place + 1) / len(ordered)) for place, value in enumerate(ordered)),
            ]
            steps.append((max(values) / scale + 0.02 * span, 1.0))
            rows += [
                (panel, row.subject, rounded(value, 6), rounded(100 * share), place)
                for place, (value, share) in enumerate(steps)
            ]
    if not rows:
        return None
    panels = list(dict.fromkeys(str(row[0]) for row in rows))
    shown = {name: colour for name, colour in colours.items() if any(row[1] == name for row in rows)}
    dashes = {"domain": list(shown), "range": [dash_of(place) for place in range(len(shown))]}
    shares = {"values": [0, 50, 100]}
    chart = {
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {
            "x": channel("value:Q", title=None, scale={"zero": False, "nice": True}, axis={"tickCount": 4}),
            "y": channel("share_percent:Q", title="trials, %", scale={"domain": [0, 100]}, axis=shares),
            "color": channel("series:N", scale=colour_scale(shown), legend={"orient": "top"}),
            "strokeDash": channel("series:N", scale=dashes),
            "order": channel("step:Q"),
        },
        "width": 165,
        "height": 80,
    }  # fmt: skip
    spec = _facets("wrap", panels, chart)
    caption = (
        "The share of valid trials with that value or less, a step a trial; what never varies is left out."
    )
    columns = ("panel", "series", "value", "share_percent", "step")
    return DrawnFigure(f"{slug}-distribution", f"Distribution, {where}", caption, spec, columns, tuple(rows))


def _facets(how: str, panels: Sequence[str], chart: Spec) -> Spec:
    """Returns a plot for each panel with axes of its own: below one another, or four a line."""
    header = {"labelOrient": "top", "labelAnchor": "start", "labelFontWeight": "normal", "title": None}
    facet = channel("panel:N", sort=list(panels), title=None, header=header)
    if how == "row":
        facets: Spec = {"facet": {"row": {**facet, "header": {**header, "labelAngle": 0}}}}
        resolve: Spec = {"scale": {"y": "independent"}, "axis": {"x": "shared"}}
    else:
        facets = {"facet": facet, "columns": 4}
        resolve = {"scale": {"x": "independent"}}
    return whole({**facets, "spec": chart, "spacing": 14, "resolve": resolve})

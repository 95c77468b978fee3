"""A scenario's figures: events over time, over all of its trials, and those that it declares itself."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import TIME
from streamgauge.claims.names import is_event, is_known, named
from streamgauge.metrics import TrialMetrics
from streamgauge.report.asked import (
    Distributions,
    SamplePairs,
    distribution,
    has,
    mean_bars,
    plotted,
    scatter,
)
from streamgauge.report.chart import COLOURS, DrawnFigure
from streamgauge.report.courses import Courses
from streamgauge.report.model import Entry
from streamgauge.report.modes import (
    ModeRead,
    Read,
    column_of,
    drawn_words,
    end_of,
    line_of,
    plot_of_time,
    points_words,
)
from streamgauge.report.multiples import multiples
from streamgauge.report.own_figures import FIGURES, AskedFigure, drawn
from streamgauge.report.plots import Plot, PlotBlock, PlotLine
from streamgauge.report.timeline import DRAWN, OF_FLOWS, OF_STAGES, WINDOW, over_time

__all__ = ["for_entry"]


def for_entry(entry: Entry) -> list[DrawnFigure]:
    """Returns a scenario's figures: over time the sent, received and lost bits, the queue, round-trip times
    and the viewer's experience; and those that the scenario itself declares. Every valid trial is read once,
    one after the other."""
    groups = [group for group in entry.groups if group.valid]
    if not groups:
        return []
    wanted = [_Wanted.of(i, one) for i, one in enumerate(entry.scenario.get("figures") or [])]
    series = [one for one in wanted if one is not None and one.draw == "series"]
    others = [one for one in wanted if one is not None and one.draw != "series"]
    more = list(dict.fromkeys(metric for one in series for metric in one.metrics))
    samples = max(group.numbers.samples for group in groups)
    firsts = {group.mode: first for group in groups if (first := group.shown) is not None}
    told = {
        metric: _told(metric, firsts.values()) for one in wanted if one is not None for metric in one.metrics
    }
    read: dict[str, ModeRead] = {}
    apart: dict[int, dict[str, Distributions | SamplePairs]] = {one.place: {} for one in others}
    for group in groups:
        courses = Courses(
            samples,
            dict.fromkeys([*OF_FLOWS, *((metric, "value") for metric in more)]),
            dict.fromkeys([*OF_STAGES, *((metric, "value") for metric in more)]),
            WINDOW.values(),
        )
        first = firsts[group.mode]
        for one in others:
            subjects, metrics = one.subjects(first), [told[metric] for metric in one.metrics]
            if one.draw == "cdf":
                apart[one.place][group.mode] = Distributions(metrics, subjects)
            elif one.draw == "scatter" and len(metrics) == 2:
                apart[one.place][group.mode] = SamplePairs(metrics, subjects, len(group.valid))
        readers = [courses, *(found[group.mode] for found in apart.values() if group.mode in found)]
        for trial in group.each():
            for reader in readers:
                reader.add(trial)
        read[group.mode] = ModeRead(group, first, courses)
    besides = [plot for one in series if not one.like for plot in _by_metric(one, told, read)]
    made: list[DrawnFigure | None] = [over_time(entry, read, besides)]
    made += [_in_the_form_of(entry, one, told, read) for one in series if one.like]
    made += [_other(entry, one, told, read, apart[one.place]) for one in others if one.draw in _KINDS]
    made += [_of_package(entry, one, told, read) for one in others if one.draw in FIGURES]
    return [figure for figure in made if figure is not None]


_KINDS = ("bars", "cdf", "scatter")
"""Kinds of `_other`."""


def _of_package(entry: Entry, wanted: _Wanted, told: Told, read: Read) -> DrawnFigure | None:
    """Returns a figure that an installed package draws."""
    subjects = dict.fromkeys(name for one in read.values() for name in wanted.subjects(one.first))
    asked = AskedFigure(
        id=f"{entry.slug}-asked-{wanted.place}",
        title=wanted.title,
        metrics=tuple(told[metric] for metric in wanted.metrics),
        subjects=tuple(subjects),
        groups=tuple(one.group for one in read.values()),
    )
    return drawn(wanted.draw, asked)


@dataclass(frozen=True)
class _Wanted:
    """A figure that a scenario declares."""

    place: int
    draw: str
    metrics: tuple[str, ...]
    by: str
    like: str
    """The paper's figure that it reproduces; empty without one."""
    given: str
    """Its title, if the scenario has one."""

    @classmethod
    def of(cls, place: int, wanted: Mapping[str, Any]) -> _Wanted | None:
        """Returns None for a table, which is elsewhere, and for unknown kinds."""
        metrics = tuple(str(name) for name in wanted.get("of") or [] if is_known(str(name)))
        if not metrics or wanted.get("draw") == "table":
            return None
        return cls(
            place=place,
            draw=str(wanted.get("draw")),
            metrics=metrics,
            by=str(wanted.get("by", "flow")),
            like=str(wanted.get("like") or ""),
            given=str(wanted.get("title") or ""),
        )

    @property
    def title(self) -> str:
        """Returns the scenario's, or the metrics' names."""
        names = [named(name).title for name in self.metrics]
        by = " by flow" if self.by == "flow" and not self.is_of_trial else ""
        return self.given or f"{names[0]}{''.join(f' and {name.lower()}' for name in names[1:])}{by}"

    @property
    def is_of_trial(self) -> bool:
        """Returns whether all of its metrics are of the whole trial."""
        return all(named(name).of == "trial" for name in self.metrics)

    @property
    def said(self) -> str:
        """For a caption."""
        return f" In the form of {self.like}." if self.like else ""

    def subjects(self, trial: TrialMetrics) -> list[str]:
        """Flows or stages; pings only where nothing but round-trip times is asked for."""
        if self.is_of_trial:
            return [""]
        if self.by == "stage":
            return list(trial.stages)
        return [
            name for name, flow in trial.flows.items() if not flow.info.is_ping or self.metrics == ("rtt",)
        ]


Told = Mapping[str, Metric]


def _told(metric: str, trials: Iterable[TrialMetrics]) -> Metric:
    """Returns a metric; for an event with its dimension, as in the first flow that has it."""
    found = named(metric)
    if is_event(metric):
        for flow in (flow for trial in trials for flow in trial.flows.values()):
            if metric in flow.series:
                return replace(found, dimension=flow.dimension(metric))
    return found


def _asked_line(name: str, read: Read, subject: str, metric: Metric) -> PlotLine | None:
    """Returns a line of a declared figure, in the modes where it has the metric's dimension."""
    mine = {mode: one for mode, one in read.items() if has(one.first, metric, subject)}
    return line_of(name, mine, subject, metric.name)


def _in_the_form_of(entry: Entry, wanted: _Wanted, told: Told, read: Read) -> DrawnFigure | None:
    """Returns a figure of the scenario's source: a plot a flow, a line a metric."""
    scale, _, title = plotted(told[wanted.metrics[0]])
    names = {metric: told[metric].title.lower() for metric in wanted.metrics}
    plots = []
    subjects = dict.fromkeys(name for one in read.values() for name in wanted.subjects(one.first))
    for subject in subjects:
        lines = [
            line
            for metric, name in names.items()
            if (line := _asked_line(name, read, subject, told[metric])) is not None
        ]
        unit = title.rpartition(", ")[2] if ", " in title else title
        if lines:
            plots.append(Plot(f"{subject or 'all'}, {unit}", 110, scale, lines, alike="all"))
    if not plots:
        return None
    known = {mode for plot in plots for line in plot.lines for mode in line.courses}
    columns = [replace(column_of(mode, one), periods=()) for mode, one in read.items() if mode in known]
    colours = dict(zip(names.values(), itertools.cycle(COLOURS), strict=False))
    return multiples(
        f"{entry.slug}-asked-{wanted.place}",
        wanted.title,
        drawn_words(read) + wanted.said + _not_known(read, known),
        [PlotBlock(plots, columns, end_of(read))],
        colours,
        notes=points_words(read),
    )


def _other(
    entry: Entry,
    wanted: _Wanted,
    told: Told,
    read: Read,
    found: Mapping[str, Distributions | SamplePairs],
) -> DrawnFigure | None:
    """Returns a distribution, a scatter or bars."""
    id_ = f"{entry.slug}-asked-{wanted.place}"
    subjects = list(dict.fromkeys(name for one in read.values() for name in wanted.subjects(one.first)))
    metrics = [told[metric] for metric in wanted.metrics]
    if wanted.draw == "bars":
        made = mean_bars(entry, id_, wanted.title, wanted.said, metrics, subjects)
        known = {
            group.mode
            for group in entry.groups
            for subject in subjects
            if any(group.over(metric, subject) is not None for metric in wanted.metrics)
        }
    elif wanted.draw == "cdf":
        each = {mode: one for mode, one in found.items() if isinstance(one, Distributions)}
        made = distribution(id_, wanted.title, wanted.said, metrics, subjects, each)
        known = {mode for mode, one in each.items() if one.found}
    else:
        pairs = {mode: one for mode, one in found.items() if isinstance(one, SamplePairs)}
        made = scatter(id_, wanted.title, wanted.said, metrics, pairs) if pairs else None
        known = {mode for mode, samples in pairs.items() if samples.found}
    return None if made is None else replace(made, caption=made.caption + _not_known(read, known))


def _not_known(read: Read, known: Collection[str]) -> str:
    lacking = [mode for mode in read if mode not in known]
    return f" Not known in {' and '.join(lacking)}." if lacking else ""


def _by_metric(wanted: _Wanted, told: Told, read: Read) -> list[Plot]:
    """Returns a scenario's declared plots over time, a plot a metric, without those that are drawn anyway."""
    plots = []
    subjects = dict.fromkeys(name for one in read.values() for name in wanted.subjects(one.first))
    for metric in wanted.metrics:
        if metric in DRAWN:
            continue
        known = told[metric]
        lines = [
            line
            for subject in subjects
            if (line := _asked_line(subject or "all", read, subject, known)) is not None
        ]
        if lines:
            scale, _, title = plotted(known)
            is_time = known.dimension == TIME
            plots.append(plot_of_time(known.title, lines) if is_time else Plot(title, 56, scale, lines))
    return plots

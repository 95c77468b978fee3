"""Data that a paper's figures and tables read of trials: all of it in one pass, which reads each trial
once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from streamgauge.checks.values import Unmeasurable, holds, value_of
from streamgauge.claims.expression import parse, parse_value
from streamgauge.claims.syntax import Predicate, Term
from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.grid import Floats
from streamgauge.paper.distances import Sample
from streamgauge.paper.published import Paper, PaperFigure, SharesTable, cases_of, scenarios_of
from streamgauge.paper.reading import Reading
from streamgauge.report.model import Entry, Group
from streamgauge.scenario.recorded import members_of

__all__ = ["Gathered", "TrialValues", "Want", "gathered", "population", "time_of", "wanted"]


@dataclass(frozen=True)
class Want:
    """Something of each trial of a scenario: a ``value`` of the claims language, whether a ``statement`` is
    true, or the ``ratios`` of a series' consecutive samples (``receiver_rate.udp``)."""

    scenario: str
    what: Literal["value", "statement", "ratios"]
    text: str


@dataclass
class TrialValues:
    """A scenario's valid trials in a mode, and the requested values of each; values are canonical."""

    seeds: list[int] = field(default_factory=list)
    clips: list[int] = field(default_factory=list)
    """Which member of the population each played; its seed where there is none."""
    values: dict[str, list[float]] = field(default_factory=dict)
    """NaN where there is none."""
    truths: dict[str, list[bool | None]] = field(default_factory=dict)
    ratios: dict[str, list[Floats]] = field(default_factory=dict)

    def sample(self, text: str) -> Sample:
        """Returns a value of every trial that has it."""
        values = np.array(self.values[text], dtype=np.float64)
        known = ~np.isnan(values)
        return Sample(values[known], np.array(self.clips, dtype=np.int64)[known])

    def all_ratios(self, series: str) -> Sample:
        """Returns the ratios of all trials."""
        found = self.ratios[series]
        clips = np.repeat(np.array(self.clips, dtype=np.int64), [len(one) for one in found])
        return Sample(np.concatenate(found) if found else np.empty(0), clips)


Gathered = Mapping[tuple[str, str], TrialValues]
"""By scenario and mode."""


def gathered(paper: Paper, reading: Reading) -> Gathered:
    """Returns all that is wanted of a reading's trials, read when it is asked for first."""
    kept = reading.kept.get(paper.id)
    # A paper that is cut down has other tables.
    if kept is None or kept[0] is not paper:
        kept = reading.kept[paper.id] = (paper, _gather(list(wanted(paper)), reading))
    found: Gathered = kept[1]
    return found


def wanted(paper: Paper) -> Iterator[Want]:
    """Yields the values that tables and figures read of single trials."""
    for table in paper.tables:
        if isinstance(table, SharesTable):
            for scenario in dict.fromkeys(scenario for row in table.rows for scenario in row.scenarios):
                for column in table.columns:
                    yield Want(scenario, "statement", column.that)
                if table.where:
                    yield Want(scenario, "statement", table.where)
    for figure in paper.figures:
        if figure.draw in ("distribution", "scatter"):
            yield from _of_figure(figure)
        elif figure.draw == "sweep":
            for panel in figure.more["panels_of"]:
                for _, scenario in cases_of(figure, panel):
                    for text in panel["series"].values():
                        yield Want(scenario, "value", text)


def _of_figure(figure: PaperFigure) -> Iterator[Want]:
    for panel in figure.more["panels_of"]:
        for curve in panel.get("curves", ()):
            for scenario in scenarios_of(curve):
                if "value" in curve:
                    yield Want(scenario, "value", curve["value"])
                elif "ratios" in curve:
                    yield Want(scenario, "ratios", curve["ratios"])
        for points in panel.get("points", ()):
            yield Want(points["scenario"], "value", points["x"])
            yield Want(points["scenario"], "value", points["y"])


def population(entry: Entry) -> Sequence[Mapping[str, Any]]:
    """Returns the members of a scenario's population, as it was run; none if it has none."""
    members: Sequence[Mapping[str, Any]] = (entry.scenario.get("population") or {}).get("members") or ()
    return members


def _gather(wants: Sequence[Want], reading: Reading) -> dict[tuple[str, str], TrialValues]:
    found = {}
    for scenario in dict.fromkeys(want.scenario for want in wants):
        entry = reading.by_id.get(scenario)
        mine = list(dict.fromkeys(want for want in wants if want.scenario == scenario))
        for group in entry.groups if entry else ():
            if group.valid:
                assert entry is not None
                found[scenario, group.mode] = _read(group, mine, members_of(entry.scenario))
    return found


def _read(group: Group, wants: Sequence[Want], members: int | None) -> TrialValues:
    trials = TrialValues()
    for trial in group.each():
        trials.seeds.append(trial.seed)
        trials.clips.append((trial.seed - 1) % members + 1 if members else trial.seed)
        for want in wants:
            match want.what:
                case "value":
                    trials.values.setdefault(want.text, []).append(_value(want.text, trial))
                case "statement":
                    trials.truths.setdefault(want.text, []).append(_truth(want.text, trial))
                case "ratios":
                    trials.ratios.setdefault(want.text, []).append(_ratios(want.text, trial))
    return trials


@cache
def _parsed_value(text: str) -> Term:
    return parse_value(text)


@cache
def _parsed(text: str) -> Predicate:
    return parse(text).root


def _value(text: str, trial: TrialMetrics) -> float:
    try:
        return value_of(_parsed_value(text), {"": trial})
    except Unmeasurable:
        return float("nan")


def time_of(text: str, trial: TrialMetrics) -> float:
    """Returns a time of a trial by the claims language, ``buffering_end.wsm``, in s; NaN where it has
    none."""
    return _value(text, trial)


def _truth(text: str, trial: TrialMetrics) -> bool | None:
    try:
        return holds(_parsed(text), {"": trial})
    except Unmeasurable:
        return None


def _ratios(text: str, trial: TrialMetrics) -> Floats:
    """Returns for each whole sample of the window its ratio to the one before it, from the first to the last
    that is not 0; none where both are 0."""
    metric, _, subject = text.partition(".")
    try:
        values = trial.series(metric, subject).samples()
    except KeyError:
        return np.empty(0)
    part, widths = trial.grid.slice(), trial.grid.widths_s
    whole = np.abs(widths - trial.grid.sample_s) < 1e-9
    values = np.nan_to_num(values)[part][whole[part]]
    sends = np.flatnonzero(values > 0)
    if len(sends) < 2:
        return np.empty(0)
    values = values[sends[0] : sends[-1] + 1]
    before, now = values[:-1], values[1:]
    some = (before > 0) | (now > 0)
    with np.errstate(divide="ignore"):
        return np.asarray(now[some] / before[some])

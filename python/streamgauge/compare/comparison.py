"""Subjects compared: each metric's mean, difference to the baseline, verdict and rank, like with like
alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

from streamgauge.claims.dimension import json_value
from streamgauge.compare.conditions import conditions_of, differences, key_of, neighbours_of
from streamgauge.compare.labels import scenario_labels
from streamgauge.compare.metrics import COMPARED, ComparedMetric, Margin, MetricSide, harm
from streamgauge.compare.origin import TrialsOrigin, origins_apart
from streamgauge.compare.statistics import CONFIDENCE, Estimate, holm, paired, unpaired
from streamgauge.metrics.interval import interval

__all__ = ["ComparedRow", "Comparison", "DifferenceVerdict", "SubjectTrials", "compare", "with_harm"]

DifferenceVerdict = Literal["better", "worse", "equal", "undecided"]
"""Of a subject against the baseline."""


@dataclass(frozen=True, kw_only=True)
class SubjectTrials:
    """The trials of one subject in one scenario and mode."""

    subject: str
    id: str
    """What the scenario is called, with what was set."""
    scenario: Mapping[str, Any]
    """In normalised form, as it ran."""
    mode: str
    trials: Mapping[int, Mapping[str, float]]
    """What `metrics.take_from` gives of each valid trial, by the seed of its repetition."""
    invalid: int = 0
    """Repetitions without a valid trial."""
    base: Mapping[str, Any] | None = None
    """The scenario before that in it which is compared was varied, if somebody did: conditions are its."""
    of: str = ""
    """Scenarios of one name are one, whatever they are called; by `id` if empty."""
    origin: TrialsOrigin | None = None
    """What made them; None if nobody said."""
    note: str = ""
    """What became of invalid ones; see `streamgauge.campaign.invalid`."""

    @property
    def conditions(self) -> dict[str, Any]:
        """What all subjects of a scenario have in common."""
        return conditions_of(self.base if self.base is not None else self.scenario)

    @property
    def has_flow_under_test(self) -> bool:
        """Whether there is one; without, it is its neighbours alone."""
        flows = self.scenario.get("flows") or {}
        return any(flow.get("role", "subject") == "subject" for flow in flows.values())


@dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """One metric of one subject in one scenario and mode; numbers are in canonical units."""

    subject: str
    scenario: str
    mode: str
    metric: str
    value: float | None
    """The mean over the valid trials that know it; None if none does."""
    interval: tuple[float, float] | None
    """That of the mean by Student's t, as everywhere else; None for fewer than two trials."""
    n: int
    invalid: int
    rank: int | None = None
    """1 plus how many subjects are better beyond doubt and by more than the margin; None if not known."""
    difference: float | None = None
    """To the baseline, as value less value; None of the baseline itself."""
    difference_interval: tuple[float, float] | None = None
    pairs: int = 0
    """How many seeds both have; of unpaired samples the smaller's size."""
    paired: bool = True
    verdict: DifferenceVerdict | None = None
    """None of the baseline itself."""
    margin: float | None = None
    """Differences up to this are practically equal."""
    probability: float | None = None
    """Of data so far from no difference without one, corrected for the number of rows."""
    method: str = "none"
    no_variation: bool = False
    """All trials have the same value."""
    same_difference: bool = False
    """The difference is the same in every pair: that it has no error is no confidence."""
    values: tuple[tuple[int, float], ...] = ()
    """(seed of the repetition, value) of each valid trial."""
    why: str = ""
    """What a row that is undecided lacks."""

    @property
    def about(self) -> ComparedMetric:
        """Title, side, dimension of the metric."""
        return COMPARED[self.metric]

    @property
    def side(self) -> MetricSide:
        """Whose metric it is."""
        return self.about.side

    def to_json(self) -> dict[str, Any]:
        """Its place in ``streamgauge.compare/1``: values in JSON's units, null for what is not known or has
        no bound."""
        unit = json_value(0.0, self.about.dimension)[1]
        return {
            "subject": self.subject,
            "scenario": self.scenario,
            "mode": self.mode,
            "metric": self.metric,
            "side": self.side,
            "unit": unit,
            "value": self._out(self.value),
            "interval": self._ends(self.interval),
            "n": self.n,
            "invalid": self.invalid,
            "rank": self.rank,
            "difference": self._out(self.difference),
            "difference_interval": self._ends(self.difference_interval),
            "pairs": self.pairs,
            "paired": self.paired,
            "margin": self._out(self.margin),
            "probability": self.probability,
            "method": self.method,
            "no_variation": self.no_variation,
            "same_difference": self.same_difference,
            "verdict": self.verdict,
            "why": self.why or None,
            "values": [[seed, self._out(value)] for seed, value in self.values],
        }

    def _out(self, value: float | None) -> float | None:
        if value is None or not math.isfinite(value):
            return None
        return json_value(value, self.about.dimension)[0]

    def _ends(self, ends: tuple[float, float] | None) -> list[float | None] | None:
        return None if ends is None else [self._out(ends[0]), self._out(ends[1])]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What came of comparing subjects."""

    subjects: tuple[str, ...]
    baseline: str
    scenarios: tuple[str, ...]
    """By their labels, in order: those in which the baseline and another subject ran under equal
    conditions."""
    modes: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    not_comparable: tuple[str, ...] = ()
    """Sentences that say what was left out, and why."""
    answer: tuple[str, ...] = ()
    """Sentences, the verdict first."""
    notes: tuple[str, ...] = ()
    """Sentences on the trials themselves: invalid ones, further seeds in their place, and what made those of
    subjects otherwise."""
    entries: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """What a scenario of a subject in a mode is called where its trials are: (subject, scenario, mode) to
    id."""

    def row(self, subject: str, scenario: str, mode: str, metric: str) -> ComparedRow | None:
        """The row of these; None if there is none."""
        return self._by_key.get((subject, scenario, mode, metric))

    @property
    def _by_key(self) -> Mapping[tuple[str, str, str, str], ComparedRow]:
        found = self.__dict__.get("_rows_by_key")
        if found is None:
            found = {(row.subject, row.scenario, row.mode, row.metric): row for row in self.rows}
            self.__dict__["_rows_by_key"] = found
        return found

    @property
    def decided(self) -> bool:
        """Whether every difference is."""
        verdicts = {row.verdict for row in self.rows} - {None}
        return bool(verdicts) and "undecided" not in verdicts

    @property
    def mostly_invalid(self) -> list[tuple[str, str, str]]:
        """(subject, scenario, mode) of whose repetitions more than a third have no valid trial."""
        counted: dict[tuple[str, str, str], tuple[int, int]] = {}
        for row in self.rows:
            key = (row.subject, row.scenario, row.mode)
            counted[key] = (row.invalid, max(row.n, counted.get(key, (0, 0))[1]))
        return [key for key, (invalid, valid) in counted.items() if 3 * invalid > invalid + valid]

    def metrics(self, scenario: str, mode: str) -> list[ComparedMetric]:
        """Those that any subject knows there, in the order of tables."""
        known = {
            row.metric
            for row in self.rows
            if (row.scenario, row.mode) == (scenario, mode) and row.value is not None
        }
        return [metric for metric in COMPARED.values() if metric.name in known]

    def best_mode(self, scenario: str) -> str:
        """The mode that answers for a scenario: emulation where all subjects have a valid trial in it."""
        for mode in ("emu", "sim"):
            mine = [row for row in self.rows if (row.scenario, row.mode) == (scenario, mode)]
            if mine and {row.subject for row in mine if row.n} == {
                row.subject for row in self.rows if row.scenario == scenario
            }:
                return mode
        return next(row.mode for row in self.rows if row.scenario == scenario)

    def viewer_metrics(self) -> tuple[ComparedMetric, ComparedMetric] | None:
        """The viewer's two metrics that every subject knows in every scenario of its answering mode and that
        tell most: first how the picture moves, then what is missing or late; None without two."""
        known = None
        for scenario in self.scenarios:
            mode = self.best_mode(scenario)
            mine = [row for row in self.rows if (row.scenario, row.mode) == (scenario, mode)]
            for subject in dict.fromkeys(row.subject for row in mine):
                has = {row.metric for row in mine if row.subject == subject and row.value is not None}
                known = has if known is None else known & has
        viewer = [
            metric for metric in COMPARED.values() if metric.side == "viewer" and metric.name in (known or ())
        ]
        return (viewer[0], viewer[1]) if len(viewer) >= 2 else None

    def to_json(self) -> dict[str, Any]:
        """``streamgauge.compare/1``."""
        return {
            "schema": "streamgauge.compare/1",
            "subjects": list(self.subjects),
            "baseline": self.baseline,
            "confidence": CONFIDENCE,
            "rows": [row.to_json() for row in self.rows],
            "answer": list(self.answer),
            "not_comparable": list(self.not_comparable),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class _Block:
    """The cases of one scenario in one mode, by subject."""

    label: str
    mode: str
    cases: Mapping[str, SubjectTrials]


@dataclass(frozen=True)
class _Measured:
    """A row without its verdict, and the difference that decides it; None of the baseline's."""

    row: ComparedRow
    estimate: Estimate | None = None


def compare(
    cases: Sequence[SubjectTrials],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    margins: Mapping[str, Margin] | None = None,
    looks: int = 1,
) -> Comparison:
    """Compares subjects in every scenario under whose conditions the baseline and another ran.

    Cases without a flow under test are the neighbours alone, by whom harm is reckoned. Differences are paired
    by seed where at least two seeds, and half of the smaller sample, are in both. A row is *better* or
    *worse* if a difference of zero is refuted at 5 %, corrected for all rows by Holm's method; *equal* if a
    difference beyond the margin is, likewise corrected (equal goes before better and worse: what differs by
    less than the margin does not matter); else *undecided*.

    Args:
        cases: the trials, in the order in which subjects are told.
        baseline: the subject that the others are held against; the first if None.
        metrics: only these, by name; all if empty.
        margins: of metrics by name, in place of their own.
        looks: how often data like these are looked at before it is decided, which divides the 5 %.

    Raises:
        ValueError: if there is no such baseline or metric.
    """
    tested = [case for case in cases if case.has_flow_under_test]
    subjects = tuple(dict.fromkeys(case.subject for case in tested))
    if baseline is None:
        baseline = subjects[0] if subjects else ""
    if baseline not in subjects:
        raise ValueError(f"the baseline {baseline!r} is none of {', '.join(subjects)}")
    if unknown := [name for name in metrics if name not in COMPARED]:
        raise ValueError(f"no compared metric is called {unknown[0]!r}; there are {', '.join(COMPARED)}")
    chosen = [COMPARED[name] for name in COMPARED if not metrics or name in metrics]
    blocks, left_out = _blocks(with_harm(cases), baseline)
    measured = [one for block in blocks for one in _rows(block, subjects, baseline, chosen, margins or {})]
    judged = _judged(measured, 0.05 / looks)
    return Comparison(
        subjects=subjects,
        baseline=baseline,
        scenarios=tuple(dict.fromkeys(block.label for block in blocks)),
        modes=tuple(dict.fromkeys(block.mode for block in blocks)),
        rows=tuple(judged),
        not_comparable=tuple(left_out),
        notes=tuple(dict.fromkeys(note for block in blocks for note in _notes(block, baseline))),
        entries={
            (subject, block.label, block.mode): case.id
            for block in blocks
            for subject, case in block.cases.items()
        },
    )


def with_harm(cases: Sequence[SubjectTrials]) -> list[SubjectTrials]:
    """The cases with a flow under test, with harm in each trial whose neighbours ran alone with the same
    seed; in one that has it already it stays."""
    tested = [case for case in cases if case.has_flow_under_test]
    return _harmed(tested, [case for case in cases if not case.has_flow_under_test])


def _harmed(cases: Sequence[SubjectTrials], alone: Sequence[SubjectTrials]) -> list[SubjectTrials]:
    by_key = {(case.mode, key_of(neighbours_of(case.scenario))): case for case in alone}
    found = []
    for case in cases:
        other = by_key.get((case.mode, key_of(neighbours_of(case.scenario))))
        if other is not None:
            trials = {}
            for seed, read in case.trials.items():
                has = seed in other.trials and "harm" not in read
                done = harm(read, other.trials[seed]) if has else math.nan
                trials[seed] = {**read, "harm": done} if math.isfinite(done) else read
            case = replace(case, trials=trials)
        found.append(case)
    return found


def _blocks(cases: Sequence[SubjectTrials], baseline: str) -> tuple[list[_Block], list[str]]:
    """Cases by mode and conditions, those with the baseline and another; and what is left out, in words."""
    groups: dict[tuple[str, str], dict[str, SubjectTrials]] = {}
    for case in cases:
        key = (case.mode, f"{case.of}\n{key_of(case.conditions)}")
        place = 2
        # The same subject may have two scenarios of one kind, of which no other has the second.
        while case.subject in groups.get(key, {}):
            key = (key[0], f"{key[1].partition(chr(0))[0]}\0{place}")
            place += 1
        groups.setdefault(key, {})[case.subject] = case
    # A subject alone has nothing to be held against, and its values all the same.
    fewest = min(2, len({case.subject for case in cases}))
    kept = [(mode, mine) for (mode, _), mine in groups.items() if baseline in mine and len(mine) >= fewest]
    compared = {id(case) for _, mine in kept for case in mine.values()}
    left_out = _sentences([case for case in cases if id(case) not in compared], cases, baseline)
    by_ids: dict[tuple[str, ...], list[tuple[str, dict[str, SubjectTrials]]]] = {}
    for mode, mine in kept:
        by_ids.setdefault(tuple(sorted({case.of or case.id for case in mine.values()})), []).append(
            (mode, mine)
        )
    labels = scenario_labels(list(by_ids))
    blocks = [
        _Block(label, mode, mine)
        for label, found in zip(labels, by_ids.values(), strict=True)
        for mode, mine in found
    ]
    return sorted(blocks, key=lambda block: block.mode != "sim"), left_out


def _sentences(missed: Sequence[SubjectTrials], cases: Sequence[SubjectTrials], baseline: str) -> list[str]:
    """Why cases stand in no comparison, each once, the nearest of the baseline's named."""
    found: dict[str, None] = {}
    for case in missed:
        if case.subject == baseline:
            continue
        others = [other for other in cases if other.subject == baseline and other.mode == case.mode]
        if not others:
            modes = (
                " and ".join(sorted({other.mode for other in cases if other.subject == baseline}))
                or "no mode"
            )
            ran = f"it ran in {case.mode} and {baseline} in {modes}"
            found[f"{case.id} ({case.subject}) is not comparable, because {ran}."] = None
            continue
        apart = {id(other): differences(case.conditions, other.conditions) for other in others}
        nearest = min(others, key=lambda other: len(apart[id(other)]))
        said = [
            f"{address} is {mine} in the one and {theirs} in the other"
            for address, mine, theirs in apart[id(nearest)][:2]
        ]
        more = len(apart[id(nearest)]) - 2
        because = "; ".join(said) + (f"; {more} more differences" if more > 0 else "")
        because = because or f"{baseline} has no further scenario like it"
        found[
            f"{case.id} ({case.subject}) and {nearest.id} ({baseline}) are not comparable, because {because}."
        ] = None
    return list(found)


def _notes(block: _Block, baseline: str) -> Iterable[str]:
    """What is to be told of the trials of a block."""
    theirs = block.cases[baseline]
    for subject, case in block.cases.items():
        if case.note:
            yield f"{subject} in {block.label} ({block.mode}): {case.note}."
        if subject != baseline:
            yield from origins_apart(block.mode, baseline, theirs.origin, subject, case.origin)


def _rows(
    block: _Block,
    subjects: Sequence[str],
    baseline: str,
    metrics: Iterable[ComparedMetric],
    margins: Mapping[str, Margin],
) -> list[_Measured]:
    """The rows of a scenario and mode, verdicts to come; metrics that nobody knows have none."""
    found: list[_Measured] = []
    order = [subject for subject in subjects if subject in block.cases]
    for metric in metrics:
        values = {
            subject: {
                seed: read[metric.name] for seed, read in sorted(case.trials.items()) if metric.name in read
            }
            for subject, case in block.cases.items()
        }
        if not any(values.values()):
            continue
        theirs = values[baseline]
        about = math.fsum(theirs.values()) / len(theirs) if theirs else 0.0
        margin = margins.get(metric.name, metric.margin)
        ranks = _ranks(metric, values, margin.about(about))
        for subject in order:
            mine = values[subject]
            row = ComparedRow(
                subject=subject,
                scenario=block.label,
                mode=block.mode,
                metric=metric.name,
                value=None,
                interval=None,
                n=len(mine),
                invalid=block.cases[subject].invalid,
                rank=ranks.get(subject),
                margin=margin.about(about),
                values=tuple(mine.items()),
            )
            if mine:
                own = interval(list(mine.values()))
                ends = None if own.low is None or own.high is None else (own.low, own.high)
                row = replace(row, value=own.mean, interval=ends, no_variation=own.no_variation)
            found.append(_Measured(row) if subject == baseline else _against(row, mine, theirs, baseline))
    return found


def _against(
    row: ComparedRow, mine: Mapping[int, float], theirs: Mapping[int, float], baseline: str
) -> _Measured:
    """The row with its difference to the baseline, undecided."""
    if not mine or not theirs:
        who = row.subject if not mine else baseline
        return _Measured(replace(row, verdict="undecided", why=f"no valid trial of {who} knows it"))
    found, is_paired = _difference(mine, theirs)
    row = replace(
        row,
        difference=found.mean,
        difference_interval=found.interval,
        pairs=found.n,
        paired=is_paired,
        method=found.method,
        same_difference=found.no_variation,
        verdict="undecided",
        why="one repetition has no interval" if found.interval is None else "more repetitions may decide it",
    )
    return _Measured(row, found)


def _difference(mine: Mapping[int, float], theirs: Mapping[int, float]) -> tuple[Estimate, bool]:
    """The difference of means, and whether it is paired by seed."""
    both = [seed for seed in mine if seed in theirs]
    fewest = min(len(mine), len(theirs))
    if len(both) == fewest or (len(both) >= 2 and 2 * len(both) >= fewest):
        return paired([mine[seed] for seed in both], [theirs[seed] for seed in both]), True
    return unpaired(list(mine.values()), list(theirs.values())), False


def _ranks(
    metric: ComparedMetric, values: Mapping[str, Mapping[int, float]], margin: float
) -> dict[str, int]:
    """The subjects' ranks by one metric: worse is who is so at 5 %, corrected for the number of pairs."""
    known = {subject: mine for subject, mine in values.items() if mine}
    pairs = list(combinations(known, 2))
    estimates = [_difference(known[a], known[b])[0] for a, b in pairs]
    beaten = dict.fromkeys(known, 0)
    for (a, b), one in zip(pairs, _told_apart(estimates, [margin] * len(pairs), metric, 0.05), strict=True):
        if one in ("better", "worse"):
            beaten[a if one == "worse" else b] += 1
    return {subject: 1 + count for subject, count in beaten.items()}


def _told_apart(
    estimates: Sequence[Estimate],
    margins: Sequence[float],
    metrics: ComparedMetric | Sequence[ComparedMetric],
    level: float,
) -> list[DifferenceVerdict]:
    """A verdict on each difference: the two families of probabilities, of a difference and of one beyond the
    margin, are each corrected for their number. Where nothing varied the value itself decides."""
    refuted = holm([one.probability for one in estimates])
    close = holm([one.within(margin) for one, margin in zip(estimates, margins, strict=True)])
    each = [metrics] * len(estimates) if isinstance(metrics, ComparedMetric) else metrics
    found: list[DifferenceVerdict] = []
    for one, margin, metric, chance, near in zip(estimates, margins, each, refuted, close, strict=True):
        by_direction: DifferenceVerdict = "better" if (one.mean > 0) == (metric.better == "more") else "worse"
        if one.no_variation:
            found.append("equal" if abs(one.mean) <= margin else by_direction)
        elif near is not None and near <= level:
            found.append("equal")
        else:
            found.append(by_direction if chance is not None and chance <= level else "undecided")
    return found


def _judged(measured: Sequence[_Measured], level: float) -> list[ComparedRow]:
    """The rows with verdicts."""
    asked = [(one.row, one.estimate) for one in measured if one.estimate is not None]
    estimates = [estimate for _, estimate in asked]
    verdicts = iter(
        zip(
            _told_apart(
                estimates, [row.margin or 0.0 for row, _ in asked], [row.about for row, _ in asked], level
            ),
            holm([one.probability for one in estimates]),
            strict=True,
        )
    )
    found = []
    for one in measured:
        row = one.row
        if one.estimate is not None:
            verdict, chance = next(verdicts)
            why = row.why if verdict == "undecided" else ""
            row = replace(row, verdict=verdict, probability=chance, why=why)
        found.append(row)
    return found

"""Parts and result of a comparison: trials of subjects, rows with verdicts, the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from streamgauge.claims.dimension import json_value
from streamgauge.compare.conditions import conditions_of
from streamgauge.compare.metrics import COMPARED, ComparedMetric, MetricSide
from streamgauge.compare.origin import TrialsOrigin
from streamgauge.compare.statistics import CONFIDENCE

__all__ = ["ComparedRow", "Comparison", "DifferenceVerdict", "SubjectTrials"]

DifferenceVerdict = Literal["better", "worse", "equal", "undecided"]
"""Verdict on a subject against the baseline."""


@dataclass(frozen=True, kw_only=True)
class SubjectTrials:
    """The trials of one subject in one scenario and mode."""

    subject: str
    id: str
    """The scenario's name, with its settings."""
    scenario: Mapping[str, Any]
    """In normalised form, as it ran."""
    mode: str
    trials: Mapping[int, Mapping[str, float]]
    """Result of `metrics.take_from` for each valid trial, by the seed of its repetition."""
    invalid: int = 0
    """Repetitions without a valid trial."""
    base: Mapping[str, Any] | None = None
    """The scenario before its compared part was varied, if it was: conditions are its."""
    of: str = ""
    """Scenarios of one name are one, whatever they are called; by `id` if empty."""
    origin: TrialsOrigin | None = None
    """Makers of them; None if unknown."""
    note: str = ""
    """Outcome of invalid ones; see `streamgauge.campaign.invalid`."""

    @property
    def conditions(self) -> dict[str, Any]:
        """Returns the common conditions of all subjects of a scenario."""
        return conditions_of(self.base if self.base is not None else self.scenario)

    @property
    def has_flow_under_test(self) -> bool:
        """Returns whether there is one; without, it is its neighbours alone."""
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
    """The mean over the valid trials that have it; None if none does."""
    interval: tuple[float, float] | None
    """That of the mean by Student's t, as everywhere else; None for fewer than two trials."""
    n: int
    invalid: int
    rank: int | None = None
    """1 plus how many subjects are better beyond doubt and by more than the margin, but never before that of
    a better value: a wide interval alone raises none. None if not known."""
    beaten_by: tuple[str, ...] = ()
    """Those subjects."""
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
    """Probability of data this far from no difference without one, corrected for the number of rows."""
    method: str = "none"
    no_variation: bool = False
    """All trials have the same value."""
    same_difference: bool = False
    """The difference is the same in every pair: that it has no error is no confidence."""
    values: tuple[tuple[int, float], ...] = ()
    """(seed of the repetition, value) of each valid trial."""
    why: str = ""
    """Reason of an undecided row."""
    without: float | None = None
    """For a delay the share of packets that were lost, which have none and are not in it."""

    @property
    def about(self) -> ComparedMetric:
        """Title, side, dimension of the metric."""
        return COMPARED[self.metric]

    @property
    def ranked_by_value(self) -> bool:
        """Returns whether its rank is that of a better value, and no subject is better beyond doubt."""
        return self.rank is not None and self.rank > 1 and not self.beaten_by

    @property
    def side(self) -> MetricSide:
        """Returns the side of its metric."""
        return self.about.side

    def to_json(self) -> dict[str, Any]:
        """Returns its place in ``streamgauge.compare/1``: values in JSON's units, null for unknown and
        unbounded ones."""
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
            "beaten_by": list(self.beaten_by),
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
            "without": self.without,
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
    """Result of comparing subjects."""

    subjects: tuple[str, ...]
    baseline: str
    scenarios: tuple[str, ...]
    """By their labels, in order: those in which the baseline and another subject ran under equal
    conditions."""
    modes: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    not_comparable: tuple[str, ...] = ()
    """Sentences on the omitted parts, with reasons."""
    answer: tuple[str, ...] = ()
    """Sentences, the verdict first."""
    notes: tuple[str, ...] = ()
    """Sentences on the trials themselves: invalid ones, further seeds in their place, and different makers of
    subjects' trials."""
    entries: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """Name of a subject's scenario in a mode in the folder of its trials: (subject, scenario, mode) to id."""

    def row(self, subject: str, scenario: str, mode: str, metric: str) -> ComparedRow | None:
        """Returns the row of these; None if there is none."""
        return self._by_key.get((subject, scenario, mode, metric))

    @cached_property
    def _by_key(self) -> Mapping[tuple[str, str, str, str], ComparedRow]:
        return {(row.subject, row.scenario, row.mode, row.metric): row for row in self.rows}

    @property
    def decided(self) -> bool:
        """Returns whether every difference is."""
        verdicts = {row.verdict for row in self.rows} - {None}
        return bool(verdicts) and "undecided" not in verdicts

    @property
    def mostly_invalid(self) -> list[tuple[str, str, str]]:
        """Returns (subject, scenario, mode) with more than a third of their repetitions without a valid
        trial."""
        counted: dict[tuple[str, str, str], tuple[int, int]] = {}
        for row in self.rows:
            key = (row.subject, row.scenario, row.mode)
            counted[key] = (row.invalid, max(row.n, counted.get(key, (0, 0))[1]))
        return [key for key, (invalid, valid) in counted.items() if 3 * invalid > invalid + valid]

    def metrics(self, scenario: str, mode: str) -> list[ComparedMetric]:
        """Returns those that any subject has there, in the order of tables."""
        known = {
            row.metric
            for row in self.rows
            if (row.scenario, row.mode) == (scenario, mode) and row.value is not None
        }
        return [metric for metric in COMPARED.values() if metric.name in known]

    def best_mode(self, scenario: str) -> str:
        """Returns the mode that answers for a scenario: emulation where all subjects have a valid trial in
        it."""
        for mode in ("emu", "sim"):
            mine = [row for row in self.rows if (row.scenario, row.mode) == (scenario, mode)]
            if mine and {row.subject for row in mine if row.n} == {
                row.subject for row in self.rows if row.scenario == scenario
            }:
                return mode
        return next(row.mode for row in self.rows if row.scenario == scenario)

    def to_json(self) -> dict[str, Any]:
        """Returns ``streamgauge.compare/1``."""
        return {
            "schema": "streamgauge.compare/1",
            "subjects": list(self.subjects),
            "baseline": self.baseline,
            "confidence": CONFIDENCE,
            "rows": [row.to_json() for row in self.rows],
            "answer": list(self.answer),
            "not_comparable": list(self.not_comparable),
            "notes": list(self.notes),
            "entries": [
                {"subject": subject, "scenario": scenario, "mode": mode, "id": id_}
                for (subject, scenario, mode), id_ in self.entries.items()
            ],
        }

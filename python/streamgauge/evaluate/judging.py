"""Rows of an evaluation: a value with its interval, and the verdict that a bound gives.

Probabilities are corrected for the number of rows by Holm's method, those of a difference and those of one
beyond a margin each by themselves, as in a comparison. A value that is the same for each seed has no
probability: the value decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from streamgauge.compare.statistics import Estimate, holm, single
from streamgauge.evaluate.question import AuthorWords, Bound, CriterionQuestion, SameAs, ValueEnds
from streamgauge.evaluate.running import TrialsRan

__all__ = ["EvaluatedRow", "EvaluationVerdict", "judge"]

EvaluationVerdict = Literal["pass", "fail", "equal", "undecided", "words"]
_LEVEL: Final = 0.05


@dataclass(frozen=True)
class EvaluatedRow:
    """A row of the result."""

    question: CriterionQuestion
    values: tuple[float, ...]
    """Values of the seeds that have one, in the row's unit."""
    interval: tuple[float | None, float | None] | None
    verdict: EvaluationVerdict
    why: str
    """Reason of an undecided row, or a fault."""

    @property
    def value(self) -> float | None:
        """Returns the mean over the seeds."""
        return float(np.mean(self.values)) if self.values else None

    def to_json(self) -> dict[str, Any]:
        """Returns its place in ``streamgauge.evaluation/1``."""
        asked = self.question
        return {
            "criterion": asked.criterion,
            "source": asked.source,
            "condition": asked.condition,
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "unit": asked.unit,
            "bound": bound_words(asked.bound, asked.unit),
            "verdict": self.verdict,
            "n": len(self.values),
            "why": self.why or asked.note,
        }


@dataclass(frozen=True)
class _Measured:
    question: CriterionQuestion
    values: tuple[float, ...]
    fault: str
    missing: str


def judge(
    questions: Sequence[CriterionQuestion], ran: TrialsRan, seeds: int, *, looks: int = 1
) -> list[EvaluatedRow]:
    """Returns a row for each question, in their order.

    Args:
        questions: those of a suite.
        ran: results of their trials.
        seeds: how often each trial ran.
        looks: how often data like these are looked at before they are taken, which divides the 5 %.
    """
    measured = [_measure(one, ran, seeds) for one in questions]
    chances = _chances(measured)
    return [_row(one, chances.get(place), _LEVEL / looks) for place, one in enumerate(measured)]


def _measure(question: CriterionQuestion, ran: TrialsRan, seeds: int) -> _Measured:
    values: list[float] = []
    fault = missing = ""
    if question.value is None:
        return _Measured(question, (), "", "")
    for seed in range(1, seeds + 1):
        keys = [(trial.scenario.id, seed) for trial in question.trials]
        broken = [
            ran.faults[key]
            for key, trial in zip(keys, question.trials, strict=True)
            if key in ran.faults and trial.has_controller
        ]
        if broken:
            fault = fault or broken[0].words
            continue
        if not all(key in ran.readings for key in keys):
            reasons = [ran.invalid[key] for key in keys if key in ran.invalid]
            missing = f"invalid trial: {reasons[0]}" if reasons else "it lacks a trial, which did not run"
            continue
        with np.errstate(all="ignore"):
            value = question.value([ran.readings[key] for key in keys])
        if math.isfinite(value):
            values.append(value)
        else:
            missing = "there is nothing to measure, such as a flow that delivered nothing"
    return _Measured(question, tuple(values), fault, missing)


def _tests(bound: Bound, values: Sequence[float]) -> list[Estimate]:
    """Returns estimates of the distance to each end of a bound, above zero within it. A compared value may be
    worse by no more than the margin; how much better it is does not matter."""
    if isinstance(bound, SameAs):
        sign = 1 if bound.better == "more" else -1
        return [single([sign * value + bound.margin for value in values])]
    found = []
    if isinstance(bound, ValueEnds):
        if bound.low is not None:
            found.append(single([value - bound.low for value in values]))
        if bound.high is not None:
            found.append(single([bound.high - value for value in values]))
    return found


_Chances = tuple[list[Estimate], list[float | None], float | None]
"""Distances to a bound, their corrected probabilities, and that of a difference beyond the margin."""


def _chances(measured: Sequence[_Measured]) -> dict[int, _Chances]:
    """Returns the chances of each row that is tested, by its place."""
    tested = {
        place: _tests(one.question.bound, one.values)
        for place, one in enumerate(measured)
        if one.values and not isinstance(one.question.bound, AuthorWords)
    }
    every = [(place, estimate) for place, estimates in tested.items() for estimate in estimates]
    refuted = holm([estimate.probability for _, estimate in every])
    compared = {
        place: single(measured[place].values).within(bound.margin)
        for place in tested
        if isinstance(bound := measured[place].question.bound, SameAs)
    }
    near = dict(zip(compared, holm(list(compared.values())), strict=True))
    chances: dict[int, list[float | None]] = {}
    for (place, _), chance in zip(every, refuted, strict=True):
        chances.setdefault(place, []).append(chance)
    return {place: (estimates, chances[place], near.get(place)) for place, estimates in tested.items()}


def _row(one: _Measured, chances: _Chances | None, level: float) -> EvaluatedRow:
    asked = one.question
    interval = _interval(single(one.values)) if one.values else None
    if one.fault:
        return EvaluatedRow(asked, one.values, interval, "fail", f"the control failed: {one.fault}")
    if isinstance(asked.bound, AuthorWords):
        return EvaluatedRow(asked, one.values, interval, "words", "")
    if chances is None:
        return EvaluatedRow(asked, (), None, "undecided", one.missing or asked.note)
    estimates, refuted, near = chances
    verdict = _held(estimates, refuted, level)
    if isinstance(asked.bound, SameAs) and _is_equal(asked.bound, one.values, near, level):
        verdict = "equal"
    why = ""
    if verdict == "undecided":
        why = "a second seed" if len(one.values) < 2 else "more seeds, such as by --until decided"
        why = f"it lacks {why}"
    return EvaluatedRow(asked, one.values, interval, verdict, why)


def _interval(estimate: Estimate) -> tuple[float | None, float | None] | None:
    if estimate.interval is None:
        return None
    low, high = (end if math.isfinite(end) else None for end in estimate.interval)
    return low, high


def _held(estimates: Sequence[Estimate], refuted: Sequence[float | None], level: float) -> EvaluationVerdict:
    """Inside all ends beyond doubt, outside one beyond doubt, or neither."""
    sides: list[EvaluationVerdict] = []
    for estimate, chance in zip(estimates, refuted, strict=True):
        decided = estimate.no_variation or (chance is not None and chance <= level)
        # A value that lies on the bound for each seed holds it.
        inside: EvaluationVerdict = "pass" if estimate.mean >= 0 else "fail"
        sides.append(inside if decided else "undecided")
    if "fail" in sides:
        return "fail"
    return "undecided" if "undecided" in sides else "pass"


def _is_equal(bound: SameAs, values: Sequence[float], near: float | None, level: float) -> bool:
    """Returns whether a difference beyond the margin is refuted, either way."""
    estimate = single(values)
    if estimate.no_variation:
        return abs(estimate.mean) <= bound.margin
    return near is not None and near <= level


def bound_words(bound: Bound, unit: str) -> str:
    """Returns a bound in words, with its author."""
    suffix = "" if unit == "1" else f" {unit}"
    match bound:
        case SameAs():
            side = "below" if bound.better == "more" else "above"
            return f"at most {bound.margin:g}{suffix} {side} {bound.than} (our margin)"
        case ValueEnds(low=None, high=high):
            return f"at most {high:g}{suffix} ({bound.whose})"
        case ValueEnds(low=low, high=None):
            return f"at least {low:g}{suffix} ({bound.whose})"
        case ValueEnds(low=low, high=high):
            return f"{low:g} to {high:g}{suffix} ({bound.whose})"
        case AuthorWords():
            return bound.task


def counted(rows: Sequence[EvaluatedRow]) -> Mapping[str, int]:
    """Returns how many rows have each verdict."""
    verdicts = [row.verdict for row in rows]
    return {name: verdicts.count(name) for name in ("pass", "fail", "equal", "undecided", "words")}

"""Questions that are scenarios of the catalogue: each check is a row, run with another control."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.checks.values import Unmeasurable, leaves, value_of
from streamgauge.claims.dimension import JSON_UNITS, PERCENT
from streamgauge.claims.expression import parse
from streamgauge.claims.syntax import Relation, Term
from streamgauge.claims.typing import dimension_of
from streamgauge.evaluate.question import CriterionQuestion, SeedReadings, SuiteTrial, ValueEnds
from streamgauge.evaluate.trials import MINE, ControlBed
from streamgauge.scenario import Scenario, load
from streamgauge.systems.tcp import MARKS

__all__ = ["shipped_questions", "unit_of", "value_by"]

_CHEAP_ROWS = 20_000.0
"""Approximate rows of a case of the appendix, for the estimate of its time."""


@dataclass(frozen=True)
class _Read:
    """A trial with leaves that have been read, as terms access it."""

    readings: SeedReadings
    seed: int = 0

    def reading(self, leaf: Term) -> float:
        """Returns a leaf in its canonical unit. Raises Unmeasurable."""
        found = self.readings(str(leaf))
        if found != found:
            raise Unmeasurable(f"{leaf} has nothing to measure")
        return found / 100 if dimension_of(leaf) == PERCENT else found


def shipped_questions(
    bed: ControlBed, pattern: str, source: str, *, whose: str = "our bound"
) -> Iterator[CriterionQuestion]:
    """Yields a question for each check of the scenarios; ``source`` has ``{}`` for the scenario's label."""
    for scenario in load(pattern, mutants=False):
        if scenario.unsupported(bed.mode) is not None:
            continue
        label = scenario.title.partition(": ")[2] or scenario.title
        for check in scenario.checks.values():
            root = parse(check.that).root
            if isinstance(root, Relation):
                yield _question(bed, scenario, label, check.title or check.that, root, source, whose)


def _question(
    bed: ControlBed, scenario: Scenario, label: str, title: str, root: Relation, source: str, whose: str
) -> CriterionQuestion:
    unit, factor = unit_of(root.left)
    end = factor * value_of(root.right, {})
    at_most = root.operator in ("<", "<=")
    bound = ValueEnds(high=end, whose=whose) if at_most else ValueEnds(low=end, whose=whose)
    trial = _with_control(bed, scenario, [str(leaf) for _, leaf in leaves(root.left)])
    return CriterionQuestion(
        title,
        source.format(label),
        f"{scenario.id}; {root.left}",
        bound,
        (trial,),
        value_by(root.left, factor),
        unit,
    )


def value_by(term: Term, factor: float) -> Callable[[Sequence[SeedReadings]], float]:
    """Returns a term's value in one seed's trial, times the factor; NaN where there is none."""

    def value(reads: Sequence[SeedReadings]) -> float:
        try:
            return factor * value_of(term, {"": _Read(reads[0])})
        except Unmeasurable:
            return float("nan")

    return value


def unit_of(term: Term) -> tuple[str, float]:
    """Returns a unit that reads well, and the factor from the canonical one."""
    unit, factor = JSON_UNITS.get(dimension_of(term), ("1", 1.0))
    return {"bps": ("Mbit/s", 1e-6), "s": ("ms", 1e3), "percent": ("%", 100.0)}.get(unit, (unit, factor))


def _with_control(bed: ControlBed, scenario: Scenario, readings: Sequence[str]) -> SuiteTrial:
    """Returns the scenario with the control in place of its own in the subject flows."""
    data: dict[str, Any] = scenario.normalised()
    for key in ("checks", "assumed", "figures", "source", "id"):
        data.pop(key, None)
    for name, flow in data["flows"].items():
        if name.startswith(MINE):
            flow["congestion_control"] = bed.control
            if MARKS.get(bed.control) == "counts":
                flow["ecn"] = "l4s"
    digest = hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=8).hexdigest()
    made = Scenario.model_validate({"id": f"evaluate/{digest}", **data})
    return SuiteTrial(made, tuple(readings), True, _CHEAP_ROWS)

"""Questions of a suite: the trials of each, the computation of a value, and the bound on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from streamgauge.scenario import Scenario

__all__ = [
    "AuthorWords",
    "Bound",
    "CriterionQuestion",
    "SameAs",
    "SeedReadings",
    "SuiteTrial",
    "Value",
    "ValueEnds",
    "rows_of",
]

Value = Callable[[Sequence["SeedReadings"]], float]
"""Value of one seed's trials."""


class SeedReadings:
    """Measurements of one trial, by metric and flow."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = values

    def __call__(self, text: str) -> float:
        """Returns a reading by its text, such as ``goodput.mine1``; NaN where it has none."""
        return self._values.get(text, float("nan"))

    def each(self, metric: str, group: str) -> list[float]:
        """Returns a metric of all flows of a group: of ``mine``, those called mine1, mine2 and so on."""
        begin = f"{metric}.{group}"
        return [value for name, value in self._values.items() if _is_one_of(name, begin)]

    def total(self, metric: str, group: str) -> float:
        """Their sum; NaN if there is none."""
        found = self.each(metric, group)
        return float(np.sum(found)) if found else float("nan")

    def mean(self, metric: str, group: str) -> float:
        """Their mean; NaN if there is none."""
        found = self.each(metric, group)
        return float(np.mean(found)) if found else float("nan")


def _is_one_of(name: str, begin: str) -> bool:
    rest = name.removeprefix(begin)
    return rest != name and (not rest or rest.isdecimal())


@dataclass(frozen=True, eq=False)
class SuiteTrial:
    """A scenario, and the values that are read of it."""

    scenario: Scenario
    readings: tuple[str, ...]
    has_controller: bool
    """Whether the control under evaluation sends in it."""
    rows: float
    """About how long its record is."""


@dataclass(frozen=True)
class ValueEnds:
    """The value lies between two ends; either may be open."""

    low: float | None = None
    high: float | None = None
    whose: str = "our bound"
    """Origin: ``our bound``, or the document that states it."""


@dataclass(frozen=True)
class SameAs:
    """The value is a difference to a reference in its place; a small one does not matter."""

    margin: float
    better: Literal["more", "less"]
    than: str = "cubic in its place"


@dataclass(frozen=True)
class AuthorWords:
    """No number judges it: the author has to."""

    task: str


Bound = ValueEnds | SameAs | AuthorWords


@dataclass(frozen=True, eq=False)
class CriterionQuestion:
    """One row of the result."""

    criterion: str
    source: str
    condition: str
    bound: Bound
    trials: tuple[SuiteTrial, ...] = ()
    value: Value | None = None
    """Value of one seed's trials, in their order; None where there is nothing to measure."""
    unit: str = "1"
    note: str = field(default="")
    """Further remarks for a reader, such as why nothing ran."""


def rows_of(questions: Iterable[CriterionQuestion], seeds: int) -> float:
    """About how many rows all trials have, each counted once."""
    trials = {trial.scenario.id: trial.rows for question in questions for trial in question.trials}
    return seeds * sum(trials.values())

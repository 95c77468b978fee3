"""Values that checks read of a trial: a number for each leaf of their expressions, which frees a campaign
from keeping its trials' metrics to judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.checks.values import Unmeasurable, leaves, measured
from streamgauge.claims.expression import parse
from streamgauge.claims.syntax import Term
from streamgauge.metrics.result import TrialMetrics

__all__ = ["READING", "Leaves", "Number", "TrialReadings", "leaves_of", "take"]

READING = 1
"""Raised when a leaf of the same text would have another number of the same metrics."""

Number = float | str
"""A leaf's value in canonical units, or why it has none."""

Leaves = Mapping[str, Term]
"""The leaves to read of a trial, bare (`streamgauge.checks.values.bare`), by their text."""


@dataclass(frozen=True, eq=False)
class TrialReadings:
    """One trial as checks read it."""

    scenario: str
    mode: str
    seed: int
    valid: bool
    why: tuple[str, ...]
    numbers: Mapping[str, Number]
    metrics: Callable[[], TrialMetrics | None]
    """Gives all metrics, for a leaf that was not among those read."""

    def reading(self, leaf: Term) -> float:
        """Returns a leaf's value. Raises Unmeasurable."""
        found = self.numbers.get(str(leaf))
        if found is None:
            whole = self.metrics()
            if whole is None:
                raise Unmeasurable(f"{leaf}: seed {self.seed} of {self.scenario} left no metrics")
            return measured(leaf, whole)
        if isinstance(found, str):
            raise Unmeasurable(found)
        return found


def leaves_of(scenarios: Iterable[Any]) -> dict[str, dict[str, Term]]:
    """Returns the leaves that the checks of these scenarios read, by the id of the scenario of their
    trials."""
    found: dict[str, dict[str, Term]] = {}
    for scenario in scenarios:
        for check in scenario.checks.values():
            for other, leaf in leaves(parse(check.that).root):
                found.setdefault(other or scenario.id, {})[str(leaf)] = leaf
    return found


def take(trial: TrialMetrics, wanted: Leaves) -> dict[str, Number]:
    """Reads the leaves of one trial."""
    return {text: _number(leaf, trial) for text, leaf in wanted.items()}


def _number(leaf: Term, trial: TrialMetrics) -> Number:
    try:
        return measured(leaf, trial)
    except Unmeasurable as error:
        return str(error)

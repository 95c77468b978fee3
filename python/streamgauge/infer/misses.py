"""How far each claim is from holding, by means over a few seeds.

A comparison that holds by the mean misses by 0, any other by its relative distance from its bound, at most
1. A check misses by the mean over its comparisons, a claim by the mean over its checks. A claim is *whole*
if every check of it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from streamgauge.checks import TrialReadings
from streamgauge.checks.of_trials import OverTrials, has_trials
from streamgauge.checks.values import Repetition, Unmeasurable, value_of
from streamgauge.claims.expression import parse
from streamgauge.claims.syntax import Chain, Logical, Negation, Predicate, Reference, Relation
from streamgauge.metrics.grid import Floats
from streamgauge.paper import Paper
from streamgauge.paper.numbered import claim_of
from streamgauge.scenario import Scenario
from streamgauge.scenario.recorded import members_of

__all__ = ["ClaimedCheck", "ClaimedChecks", "claimed_checks", "miss_of"]

Readings = Mapping[str, Sequence[TrialReadings]]
"""The trials of each scenario that checks read."""

#: An equality where more is claimed misses by little, and does miss.
_LEAST_MISS: Final = 1e-3
_OPPOSITE: Final = {">=": "<", ">": "<=", "<=": ">", "<": ">="}


@dataclass(frozen=True)
class ClaimedCheck:
    """A check of a numbered claim."""

    claim: str
    scenario: str
    check: str
    root: Predicate
    members: int | None
    """How many members the scenario's population has, each played in turn."""

    def miss(self, readings: Readings) -> float:
        """From 0, it holds, to 1."""
        reads = {node.scenario for node in self.root.walk() if isinstance(node, Reference) and node.scenario}
        names = {"": self.scenario, **{name: name for name in sorted(reads)}}
        trials = {key: {one.seed: one for one in readings.get(name, ())} for key, name in names.items()}
        seeds = set.intersection(*(set(mine) for mine in trials.values()))
        if not seeds:
            return 1.0
        repetitions: list[Repetition] = [
            {key: mine[seed] for key, mine in trials.items()} for seed in sorted(seeds)
        ]
        return miss_of(self.root, repetitions, OverTrials(repetitions, self.members))


@dataclass(frozen=True)
class ClaimedChecks:
    """All checks of a paper's numbered claims."""

    each: tuple[ClaimedCheck, ...]

    @property
    def claims(self) -> list[str]:
        """Returns the claims that have a check, in the paper's order."""
        return sorted({one.claim for one in self.each}, key=_number)

    def misses(self, readings: Readings) -> Floats:
        """Returns the miss of each check, [check]."""
        return np.array([one.miss(readings) for one in self.each])

    def by_claim(self, misses: Floats) -> dict[str, float]:
        """Returns the mean miss over each claim's checks; 0 only if all of them hold."""
        found: dict[str, list[float]] = {claim: [] for claim in self.claims}
        for one, miss in zip(self.each, misses, strict=True):
            found[one.claim].append(float(miss))
        return {claim: float(np.mean(mine)) for claim, mine in found.items()}


def _number(claim: str) -> tuple[str, int]:
    head, _, end = claim.rpartition("-")
    return head, int(end)


def claimed_checks(paper: Paper, scenarios: Iterable[Scenario]) -> ClaimedChecks:
    """Returns the checks of a paper's numbered claims in these scenarios, without those of experiments that
    it never did."""
    found = [
        ClaimedCheck(claim, scenario.id, name, parse(check.that).root, members)
        for scenario in scenarios
        if paper.did(scenario.id)
        for members in [members_of(scenario.normalised())]
        for name, check in scenario.checks.items()
        if (claim := claim_of(paper, name)) is not None and "sim" in (check.modes or ("sim",))
    ]
    return ClaimedChecks(tuple(found))


def miss_of(root: Predicate, repetitions: Sequence[Repetition], over: OverTrials) -> float:
    """By how much a statement misses over these repetitions, from 0, it holds by the mean, to 1."""
    return _miss(root, repetitions, over, negated=False)


def _miss(node: Predicate, repetitions: Sequence[Repetition], over: OverTrials, *, negated: bool) -> float:
    match node:
        case Relation():
            return _relation(node, repetitions, over, negated=negated)
        case Chain():
            parts = [_miss(link, repetitions, over, negated=negated) for link in node.links]
            return min(parts) if negated else float(np.mean(parts))
        case Negation():
            return _miss(node.operand, repetitions, over, negated=not negated)
        case Logical():
            parts = [_miss(side, repetitions, over, negated=negated) for side in (node.left, node.right)]
            both = (node.operator == "and") is not negated
            return float(np.mean(parts)) if both else min(parts)
    raise TypeError(f"{type(node).__name__} is no predicate")


def _relation(node: Relation, repetitions: Sequence[Repetition], over: OverTrials, *, negated: bool) -> float:
    if negated and node.operator in _OPPOSITE:
        return _relation(replace(node, operator=_OPPOSITE[node.operator]), repetitions, over, negated=False)
    try:
        left, right = _sides(node, repetitions, over)
    except Unmeasurable:
        return 1.0
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return 1.0
    apart = left - right
    strictly = node.operator in (">", "<")
    match node.operator:
        case ">=" | ">":
            margin = float(np.mean(apart))
        case "<=" | "<":
            margin = float(np.mean(-apart))
        case _:
            within = np.zeros(len(right))
            if node.within is not None:
                size = node.within.canonical
                within = np.abs(right) * size if node.within.unit == "%" else np.full(len(right), size)
            margin = float(min(np.mean(within - apart), np.mean(within + apart)))
            if (node.operator == "!=") is not negated:
                margin, strictly = -margin, True
    if margin > 0 or (margin == 0 and not strictly):
        return 0.0
    scale = max(float(np.mean(np.abs(left))), float(np.mean(np.abs(right))), 1e-300)
    return float(min(1.0, max(_LEAST_MISS, -margin / scale)))


def _sides(node: Relation, repetitions: Sequence[Repetition], over: OverTrials) -> tuple[Floats, Floats]:
    if has_trials(node):
        return over.value(node.left)[:1], over.value(node.right)[:1]
    left, right = (
        np.array([value_of(side, repetition) for repetition in repetitions])
        for side in (node.left, node.right)
    )
    return left, right

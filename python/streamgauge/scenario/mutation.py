"""Mutants of a check as a scenario has them: the mechanism removed, or another stimulus."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Literal

from streamgauge.scenario.expect import Check
from streamgauge.scenario.shape import Shape

__all__ = ["MutantKind", "kind_of", "mutants_of", "without_mechanism"]

MutantKind = Literal["mechanism", "stimulus"]
"""A *mechanism* mutant changes a parameter, a rule or the system of a subject. A *stimulus* mutant changes
path, cross traffic or content alone."""
_OF_A_SYSTEM = ("parameters", "system", "traffic", "congestion_control", "ecn")


def kind_of(scenario: Shape, addresses: Iterable[str]) -> MutantKind:
    """Returns the kind of a mutant that changes these addresses."""
    return "mechanism" if any(_of_a_subject(scenario, address) for address in addresses) else "stimulus"


def mutants_of(check: Check) -> dict[Literal["breaks", "without"], dict[str, object]]:
    """Returns each mutant of a check by its key; empty if it has none."""
    found: dict[Literal["breaks", "without"], dict[str, object]] = {}
    if check.breaks:
        found["breaks"] = check.breaks
    if check.without:
        found["without"] = check.without
    return found


def without_mechanism(scenario: Shape) -> list[str]:
    """Returns the predicted checks of a scenario with a subject, of which no mutant removes a mechanism."""
    if not any(flow.role == "subject" for flow in scenario.flows.values()):
        return []
    return [
        name
        for name, check in scenario.checks.items()
        if check.origin == "predicted"
        and not any(kind_of(scenario, mutant) == "mechanism" for mutant in mutants_of(check).values())
    ]


def _of_a_subject(scenario: Shape, address: str) -> bool:
    parts = address.split(".")
    if len(parts) < 3 or parts[0] != "flows" or parts[2] not in _OF_A_SYSTEM:
        return False
    return any(
        flow.role == "subject" and fnmatch.fnmatchcase(name, parts[1])
        for name, flow in scenario.flows.items()
    )

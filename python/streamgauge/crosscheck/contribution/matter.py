"""The crosscheck of contribution: a program of others in emu, and our machine of its protocol in sim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from streamgauge.crosscheck.compared import CrosscheckMatter, Mutant, Variant
from streamgauge.crosscheck.contribution.cases import (
    CONDITIONS,
    FLOW,
    SUBJECTS,
    ContributionCase,
    cases,
)
from streamgauge.crosscheck.contribution.measure import keep_contribution
from streamgauge.crosscheck.contribution.quantities import quantity
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower, override
from streamgauge.systems.registry import SYSTEMS

__all__ = ["MUTANTS", "SWITCHES", "contribution_matter", "varied"]

_OF_HOSTS: Final = "host_jitter"

_WRONG: Final[Sequence[tuple[str, str, Variant]]] = (
    ("no repair", "lost packets are never sent again", {"retransmission": "off"}),
    ("each report", "a packet is sent again at each report of its loss", {"retransmission": "aggressive"}),
    ("half the latency", "the receiver waits half as long", {"latency": "40 ms"}),
    ("one report", "a loss is reported once", {"periodic_nak": "off"}),
    ("slow reports", "losses are reported again after 2 s", {"nak_interval": "2 s"}),
    ("one request", "a missing packet is asked for once", {"max_retries": 1}),
)
"""Deliberate faults of a machine of ours that has these parameters: name, words, and the parameters."""

MUTANTS: Final = tuple(
    Mutant(f"{subject}: {name}", words, f"{subject}/*", variant)
    for subject, ours in SUBJECTS.items()
    for name, words, variant in _WRONG
    if set(variant) <= set(SYSTEMS[ours].parameters)
)

SWITCHES: Final[Mapping[str, Variant]] = {
    "host_jitter 1 ms": {_OF_HOSTS: "1 ms"},
    "host_jitter 5 ms": {_OF_HOSTS: "5 ms"},
    "aggressive repair": {"retransmission": "aggressive"},
}
"""One mechanism each."""


def varied(case: ContributionCase, variant: Variant) -> ContributionCase:
    """Returns the case with something about our machine or sim's hosts changed.

    Raises:
        ScenarioError: if sim has no such thing.
    """
    changes: dict[str, Any] = {
        key if key == _OF_HOSTS else f"flows.{FLOW}.sim.parameters.{key}": value
        for key, value in variant.items()
    }
    try:
        scenario = override(case.scenario, changes, drop_checks=True)
        lower(scenario, "sim", 1)
    except (ValidationError, ValueError) as error:
        said = " ".join(str(error).split())
        if isinstance(error, ValidationError):
            said = "; ".join(str(detail["msg"]) for detail in error.errors(include_url=False))
        raise ScenarioError(f"{case.id}: {said}") from None
    return replace(case, scenario=scenario)


def _about(
    case: ContributionCase, sim: Sequence[Mapping[str, Any]], emu: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns its conditions."""
    del sim, emu
    return {"conditions": case.conditions, "subject": case.subject}


def contribution_matter(conditions: int = CONDITIONS) -> CrosscheckMatter:
    """Returns everything that it has of its own, with at least `conditions` conditions of each system."""
    many = max(conditions, CONDITIONS)
    return CrosscheckMatter(
        name="contribution",
        schema="streamgauge.crosscheck-contribution/1",
        cases=lambda quick: cases(quick=quick, conditions=many),
        such_as="'srt-libsrt/*' or '*/03'",
        quantity=quantity,
        keeper=keep_contribution,
        vary=varied,
        mutants=MUTANTS,
        switches=SWITCHES,
        about=_about,
    )

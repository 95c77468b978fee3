"""The crosscheck of systems: each system of ours in sim compared with itself on real sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from streamgauge.crosscheck.compared import CrosscheckMatter, Mutant, Variant
from streamgauge.crosscheck.systems.cases import CONDITIONS, FLOW, RIVAL, SystemsCase, case_id, cases
from streamgauge.crosscheck.systems.measure import keep_system
from streamgauge.crosscheck.systems.quantities import quantity
from streamgauge.crosscheck.tcp import OF_LINUX_6_1
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower, override
from streamgauge.scenario.values import nearest
from streamgauge.systems.compared import COMPARED
from streamgauge.systems.registry import GREEDY_TCP
from streamgauge.systems.tcp import MECHANISMS

__all__ = ["MUTANTS", "SWITCHES", "patterns_of", "systems_matter", "varied"]

_OF_HOSTS: Final = "host_jitter"
_OF_TCP: Final = "tcp."
"""Before a parameter that is of every TCP there is, the one beside included."""
_BESIDE: Final = "beside."
"""Before a parameter of the greedy TCP beside the system."""

MUTANTS: Final = tuple(
    Mutant(f"{name}: {one.name}", one.words, f"{name}/*", one.told)
    for name, played in COMPARED.items()
    for one in played.wrong
)

SWITCHES: Final[Mapping[str, Variant]] = {
    "host_jitter 1 ms": {_OF_HOSTS: "1 ms"},
    "host_jitter 5 ms": {_OF_HOSTS: "5 ms"},
    **{f"without {name}": {f"{_OF_TCP}without": [name]} for name in MECHANISMS},
    "delayed_ack 200 ms": {f"{_OF_TCP}delayed_ack": "200 ms"},
    "hystart off": {f"{_OF_TCP}hystart": "off"},
    "as Linux 6.1": {f"{_OF_TCP}without": list(OF_LINUX_6_1)},
    "iperf3's exchange": {f"{_BESIDE}control_connection": True},
    "as Linux 6.1, iperf3's exchange": {
        f"{_OF_TCP}without": list(OF_LINUX_6_1),
        f"{_BESIDE}control_connection": True,
    },
}
"""One mechanism each: delayed hosts, and those of TCP; TCP differences of the kernel of virtual machines;
data beside it that begin three round trips later, as iperf3's; and both."""


def varied(case: SystemsCase, variant: Variant) -> SystemsCase:
    """Returns the case with something about its system, every TCP in it, the greedy TCP beside it or sim's
    hosts changed.

    Raises:
        ScenarioError: if sim has no such thing, nothing in the case runs over TCP, or none is beside it.
    """
    changes: dict[str, Any] = {}
    for key, value in variant.items():
        if key == _OF_HOSTS:
            changes[key] = value
        elif key.startswith(_OF_TCP):
            mine = [name for name, flow in _over_tcp(case).items() if flow]
            if not mine:
                raise ScenarioError(f"{case.id}: nothing runs over TCP")
            changes |= {f"flows.{name}.parameters.{key.removeprefix(_OF_TCP)}": value for name in mine}
        elif key.startswith(_BESIDE):
            if not _over_tcp(case).get(RIVAL):
                raise ScenarioError(f"{case.id}: no TCP is beside it")
            changes[f"flows.{RIVAL}.parameters.{key.removeprefix(_BESIDE)}"] = value
        else:
            changes[f"flows.{FLOW}.parameters.{key}"] = value
    try:
        scenario = override(case.scenario, changes, drop_checks=True)
        lower(scenario, "sim", 1)
    except (ValidationError, ValueError) as error:
        said = " ".join(str(error).split())
        if isinstance(error, ValidationError):
            said = "; ".join(str(detail["msg"]) for detail in error.errors(include_url=False))
        raise ScenarioError(f"{case.id}: {said}") from None
    return replace(case, scenario=scenario)


def _over_tcp(case: SystemsCase) -> dict[str, bool]:
    """By flow, whether its data runs over TCP."""
    from streamgauge.systems.machines import MACHINES, is_on_tcp

    flow = case.scenario.flows[FLOW]
    machine = MACHINES[COMPARED[case.subject].system]
    told = flow.parameters.get("transport")
    media = is_on_tcp(str(told)) if told is not None else machine.media_over == "tcp"
    beside = case.scenario.flows.get(RIVAL)
    return {FLOW: media, **({RIVAL: beside.traffic == GREEDY_TCP} if beside is not None else {})}


def patterns_of(systems: str | None, conditions: int) -> list[str]:
    """Returns the ids of the first conditions of these systems.

    Args:
        systems: names, with commas between them; None for all.
        conditions: how many of each.

    Raises:
        ScenarioError: for a name that is none of them.
    """
    names = list(COMPARED) if systems is None else [name.strip() for name in systems.split(",")]
    for name in names:
        if name not in COMPARED:
            close = nearest(name, list(COMPARED))
            hint = f"did you mean '{close}'?" if close else f"they are {', '.join(COMPARED)}"
            raise ScenarioError(f"--systems {systems}: no system is called '{name}'", hint=hint)
    return [case_id(name, number) for name in names for number in range(1, conditions + 1)]


def _about(
    case: SystemsCase, sim: Sequence[Mapping[str, Any]], emu: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns its conditions."""
    del sim, emu
    return {"conditions": case.conditions, "subject": case.subject}


def systems_matter(conditions: int = CONDITIONS) -> CrosscheckMatter:
    """Returns everything that it has of its own, with at least `conditions` conditions of each system."""
    many = max(conditions, CONDITIONS)
    return CrosscheckMatter(
        name="systems",
        schema="streamgauge.crosscheck-systems/1",
        cases=lambda quick: cases(quick=quick, conditions=many),
        such_as="'rtp/*' or '*/03'",
        quantity=quantity,
        keeper=keep_system,
        vary=varied,
        mutants=MUTANTS,
        switches=SWITCHES,
        about=_about,
    )

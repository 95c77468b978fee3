"""The crosscheck of adaptive bit rate: sim's rule and player held against the real player."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final

from pydantic import ValidationError

from streamgauge.crosscheck.abr.cases import FLOW, AbrCase, cases
from streamgauge.crosscheck.abr.measure import keep_session
from streamgauge.crosscheck.abr.quantities import quantity
from streamgauge.crosscheck.compared import CrosscheckMatter, Mutant, Variant
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower, override
from streamgauge.systems.adapter import FlowSetup
from streamgauge.systems.adapters import adapter_for
from streamgauge.systems.registry import Mode

__all__ = ["ABR", "MUTANTS", "SWITCHES", "varied"]

LESS_A_SEGMENT: Final = "buffer less a segment"
"""A key of a variant: the player holds so much less."""
ONLY: Final = "only"
"""Another: it is of the cases alone whose ids this glob matches."""
_STAND_IN: Final = f"flows.{FLOW}.sim.parameters"

MUTANTS: Final = (
    Mutant(
        "bola-is-throughput",
        "the throughput rule runs where BOLA is asked for",
        "dashjs-bola/*",
        {"rule": "dashjs-throughput"},
    ),
    Mutant("no-safety-factor", "levels may need all of the throughput", "*", {"safety_factor": 1.0}),
    Mutant("no-abandonment", "no segment is given up", "*", {"abandonment": "off"}),
    Mutant(
        "hlsjs-is-vlc",
        "VLC's rule, which looks at the buffer, runs where hls.js's is asked for",
        "hlsjs/*",
        {"rule": "vlc-3"},
    ),
    Mutant(
        "shaka-is-exoplayer",
        "ExoPlayer's rule runs where Shaka's is asked for",
        "shaka/*",
        {"rule": "exoplayer"},
    ),
)

SWITCHES: Final[Mapping[str, Variant]] = {
    LESS_A_SEGMENT: {LESS_A_SEGMENT: True},
    "abandonment off": {"abandonment": "off"},
    "start at 499 kbit/s": {ONLY: "hlsjs/*", "initial_rate": "499 kbit/s"},
    "host_jitter 5 ms": {"host_jitter": "5 ms"},
}
"""One mechanism each. A player that asks only while a whole segment more fits into its buffer holds as much
as one whose buffer is less by that. What is packaged declares the level of 500 kbit/s as what it came to,
502: hls.js, which takes 500 kbit/s for the throughput at first, begins one level lower than in sim."""


REAL_SWITCHES: Final[Mapping[str, Variant]] = {"fast_switch off": {"fast_switch": "off"}}
"""What sim's player has not: dash.js fetches again at a higher level what it holds."""


def varied(case: AbrCase, variant: Variant) -> AbrCase:
    """The case with something about its simulated player changed: parameters of system `dash`, besides
    `LESS_A_SEGMENT` and the scenario's own ``host_jitter``.

    Raises:
        ScenarioError: if the simulated player does not know what is to be changed, or it is of others `ONLY`.
    """
    changes: dict[str, Any] = {}
    for key, value in variant.items():
        if key == LESS_A_SEGMENT:
            changes[f"{_STAND_IN}.buffer"] = f"{case.buffer_s - case.segment_s} s"
        elif key == ONLY:
            if not fnmatchcase(case.id, value):
                raise ScenarioError(f"{case.id}: its player has no such thing")
        elif key == "host_jitter":
            changes[key] = value
        else:
            changes[f"{_STAND_IN}.{key}"] = value
    return _overridden(case, changes, "sim")


def _really_varied(case: AbrCase, variant: Variant) -> AbrCase:
    """The same of the real player, by the parameters of its system. Also raises if it is so already."""
    if variant.items() <= case.scenario.flows[FLOW].parameters.items():
        raise ScenarioError(f"{case.id}: its player is told so already")
    return _overridden(
        case, {f"flows.{FLOW}.parameters.{key}": value for key, value in variant.items()}, "emu"
    )


def _overridden(case: AbrCase, changes: Mapping[str, Any], mode: Mode) -> AbrCase:
    try:
        scenario = override(case.scenario, dict(changes), drop_checks=True)
        lower(scenario, mode, 1)
    except (ValidationError, ValueError) as error:
        said = " ".join(str(error).split())
        if isinstance(error, ValidationError):
            said = "; ".join(str(detail["msg"]) for detail in error.errors(include_url=False))
        raise ScenarioError(f"{case.id}: {said}") from None
    return replace(case, scenario=scenario)


def _program_lacks(case: AbrCase, way: str | None) -> str | None:
    """Which program of the case's player this machine has not, and where it is from; None if it has all."""
    del way
    flow = case.scenario.flows[FLOW]
    assert flow.registered is not None
    setup = FlowSetup(name=FLOW, index=0, system=flow.registered.name, parameters=flow.parameters)
    for program in adapter_for(setup).programs:
        if program.needed(setup) and program.find() is None:
            remedy = program.remedy or f"install {program.packages}"
            return f"{program.name} is missing; {remedy}"
    return None


def _about(
    case: AbrCase, sim: Sequence[Mapping[str, Any]], emu: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Its conditions, and what one session in each mode asked for."""
    return {
        "conditions": case.conditions,
        "levels_bps": list(case.levels_bps),
        "segment_s": case.segment_s,
        "asked": {mode: some[0]["asked"] for mode, some in (("sim", sim), ("emu", emu)) if some},
    }


ABR: Final = CrosscheckMatter(
    name="abr",
    schema="streamgauge.crosscheck-abr/1",
    cases=lambda quick: cases(quick=quick),
    such_as="'dashjs/*' or '*/square'",
    quantity=quantity,
    keeper=keep_session,
    vary=varied,
    mutants=MUTANTS,
    switches=SWITCHES,
    real_switches=REAL_SWITCHES,
    vary_real=_really_varied,
    lacking=_program_lacks,
    about=_about,
)
"""Everything that it has of its own."""

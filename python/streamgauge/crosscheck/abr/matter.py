"""The crosscheck of adaptive bit rate: sim's rule and player held against the real player."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final

from pydantic import ValidationError

from streamgauge.crosscheck.abr.cases import FLOW, AbrCase, cases, with_files
from streamgauge.crosscheck.abr.measure import keep_session
from streamgauge.crosscheck.abr.quantities import quantity
from streamgauge.crosscheck.abr.shares import sentences
from streamgauge.crosscheck.compared import CrosscheckMatter, Mutant, Variant
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower, override
from streamgauge.systems.adapter import FlowSetup
from streamgauge.systems.adapters import adapter_for

__all__ = ["ABR", "MUTANTS", "SWITCHES", "varied"]

ONLY: Final = "only"
"""A key of a variant: it is of the cases alone whose ids this glob matches."""
_STAND_IN: Final = f"flows.{FLOW}.sim.parameters"

MUTANTS: Final = (
    Mutant(
        "bola-is-throughput",
        "the throughput rule runs where BOLA is asked for",
        "dashjs-bola/*",
        {"rule": "dashjs-throughput"},
    ),
    Mutant("no-safety-factor", "levels may need all of the throughput", "*", {"safety_factor": 1.0}),
    Mutant("no-abandonment", "no segment is given up", "*-square", {"abandonment": "off"}),
    Mutant("no-fast-switch", "no held segment is replaced", "dashjs/*", {"fast_switch": "off"}),
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
    "abandonment off": {"abandonment": "off"},
    "fits_whole off": {ONLY: "dashjs*", "fits_whole": "off"},
    "host_jitter 5 ms": {"host_jitter": "5 ms"},
}
"""One mechanism each."""


def varied(case: AbrCase, variant: Variant) -> AbrCase:
    """Returns the case with a change of its simulated player: parameters of system `dash`, or the scenario's
    own ``host_jitter``.

    Raises:
        ScenarioError: if the simulated player does not know the parameter, or it is of others `ONLY`.
    """
    changes: dict[str, Any] = {}
    for key, value in variant.items():
        if key == ONLY:
            if not fnmatchcase(case.id, value):
                raise ScenarioError(f"{case.id}: its player has no such thing")
        elif key == "host_jitter":
            changes[key] = value
        else:
            changes[f"{_STAND_IN}.{key}"] = value
    try:
        scenario = override(case.scenario, changes, drop_checks=True)
        lower(scenario, "sim", 1)
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
    """Its conditions, and the requests of one session in each mode."""
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
    such_as="'dashjs/*' or '*-square'",
    quantity=quantity,
    keeper=keep_session,
    vary=varied,
    mutants=MUTANTS,
    switches=SWITCHES,
    lacking=_program_lacks,
    prepared=with_files,
    about=_about,
    closing=sentences,
)
"""Everything that it has of its own."""

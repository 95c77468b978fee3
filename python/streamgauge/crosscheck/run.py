"""The crosscheck: cases in sim and in emu, rows, mutants, explanations, one document."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import streamgauge
from streamgauge.campaign import EmuSettings, Progress
from streamgauge.campaign.machine import why_not
from streamgauge.crosscheck.compared import ComparedCase, CrosscheckMatter, Found
from streamgauge.crosscheck.explain import explain
from streamgauge.crosscheck.mutants import try_mutants
from streamgauge.crosscheck.rows import rows_of
from streamgauge.crosscheck.stored import measured_before
from streamgauge.crosscheck.tcp import TCP
from streamgauge.crosscheck.trials import Bench, CaseRuns
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.record.provenance import collect
from streamgauge.scenario import lower
from streamgauge.scenario.values import nearest
from streamgauge.systems.registry import Mode

__all__ = [
    "MAY_BE_UNEXPLAINED",
    "CrosscheckRequest",
    "crosscheck",
    "overall",
    "ran_on",
    "select",
    "with_trials",
]

MAY_BE_UNEXPLAINED: Final = 2
"""Rows that may be unexplained before the whole fails."""

OF_MIXES: Final = 4
"""How many times as many trials a distribution needs as a mean."""


@dataclass(frozen=True, kw_only=True)
class CrosscheckRequest:
    """Request for a crosscheck."""

    out: Path
    """Where records go; a rerun resumes there."""
    matter: CrosscheckMatter = TCP
    """Subject of the comparison."""
    patterns: Sequence[str] = ()
    """Globs of cases' ids; all without any."""
    quick: bool = False
    trials: int | None = None
    """Valid real trials of a case, instead of as many as it has (`with_trials`)."""
    ns3: bool = False
    """With ns-3 as a third column."""
    reference: Mode = "emu"
    """``sim`` compares the simulator with itself under other seeds, which tests the comparison."""
    emu: EmuSettings = field(default_factory=EmuSettings)
    real: Mapping[str, CaseRuns] = field(default_factory=dict)
    """Real trials that an earlier run left, by the case's id (`streamgauge.crosscheck.stored`)."""
    progress: Callable[[Progress], None] | None = None


def crosscheck(request: CrosscheckRequest) -> dict[str, Any]:
    """Runs everything and returns the document, in its matter's schema (docs/fidelity.md).

    Raises:
        ScenarioError: for a glob that matches no case.
        CannotRunError: if this machine cannot run a mode that is needed, or has not the ns-3 asked for.
    """
    matter = request.matter
    wanted = select(matter, request.patterns, quick=request.quick)
    if request.trials is not None:
        wanted = with_trials(wanted, request.trials)
    if request.ns3:
        if matter.third is None or matter.require_third is None:
            raise ScenarioError(
                f"--with ns3: it has nothing to compare in crosscheck {matter.name}; leave it out"
            )
        matter.require_third()
    runs_real = any(case.id not in request.real for case in wanted)
    for mode in dict.fromkeys(("sim", request.reference) if runs_real else ("sim",)):
        lacking = why_not(mode, way=request.emu.way)
        if lacking is not None:
            raise CannotRunError(f"this machine cannot run {mode}: {lacking}")
    began, load = time.monotonic(), os.getloadavg()[0]
    able, skipped = _able(wanted, request)
    if request.reference == "emu":
        able = [matter.prepared(case) for case in able]
    bench = Bench(matter, request.out, request.emu, request.progress, request.reference, request.real)
    found = bench.run(able)
    third: Mapping[str, Sequence[Found]] = {}
    if request.ns3 and matter.third is not None and not bench.interrupted:
        third = matter.third(able, request.out / "ns3")
    rows = [
        row
        for case in able
        if found[case.id][0].taken and found[case.id][1].taken
        for row in rows_of(matter, case, *found[case.id], third.get(case.id))
    ]
    mutants: list[dict[str, Any]] = []
    if not bench.interrupted:
        mutants = try_mutants(bench, able, found, rows)
    if not bench.interrupted:
        rows = explain(bench, able, found, rows)
    document: dict[str, Any] = {
        "schema": matter.schema,
        "verdict": "",
        "rows": [row.to_json() for row in rows],
        "mutants": mutants,
        "cases": [_about(matter, case, found[case.id]) for case in able],
        "skipped": skipped,
        "not_asked": _not_asked(matter, wanted, quick=request.quick),
        "quick": request.quick,
        "reference": request.reference,
        "interrupted": bench.interrupted,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "duration_s": time.monotonic() - began,
        "load_average": [load, os.getloadavg()[0]],
        "cpus": os.cpu_count(),
        **ran_on(found.values(), request.reference),
        "streamgauge": streamgauge.__version__,
        **{key: value for key, value in collect().items() if key in ("cpu", "commit", "machine", "host")},
    }
    earlier = [case.id for case in able if case.id in request.real]
    if earlier:
        document["real_of"] = measured_before(request.real, earlier)
    document["verdict"] = overall(document)
    return document


def select(matter: CrosscheckMatter, patterns: Sequence[str], *, quick: bool = False) -> list[Any]:
    """Returns the cases with ids that match one of the globs; all without any.

    Raises:
        ScenarioError: if a glob matches none.
    """
    everything = matter.cases(quick)
    chosen: set[str] = set()
    for pattern in patterns:
        matching = {case.id for case in everything if fnmatchcase(case.id, pattern)}
        if not matching:
            close = nearest(pattern, [case.id for case in everything])
            hint = f"did you mean '{close}'?" if close else f"such as {matter.such_as}"
            raise ScenarioError(f"--case {pattern}: no case has such an id", hint=hint)
        chosen |= matching
    return [case for case in everything if not patterns or case.id in chosen]


def with_trials(wanted: Sequence[Any], trials: int) -> list[Any]:
    """Returns the cases with `trials` valid real trials each, `OF_MIXES` times as many of those that are
    compared as distributions, and with as many simulated ones for each of these as without."""
    found = []
    for case in wanted:
        emu = trials * (OF_MIXES if case.is_mix else 1)
        found.append(replace(case, emu=emu, sim=max(2, round(case.sim * emu / case.emu))))
    return found


def ran_on(found: Iterable[tuple[CaseRuns, CaseRuns]], reference: Mode) -> dict[str, Any]:
    """Returns the kernels of the real trials, by their own records: earlier ones may be of another kernel,
    and a virtual machine has its own; and the description of that machine, None without one."""
    records = [told for _, runs in found for told in runs.provenance] if reference == "emu" else []
    guests = [told["virtual_machine"] for told in records if "virtual_machine" in told]
    own = [told["kernel"] for told in records if "virtual_machine" not in told]
    kernels = sorted({*own, *(guest["kernel"] for guest in guests)}) or [platform.release()]
    speeds = sorted({guest["instructions_per_s"] for guest in guests})
    machine = {
        **{key: sorted({guest[key] for guest in guests}) for key in ("qemu", "image")},
        "instructions_per_s": speeds,
    }
    return {"kernel": ", ".join(kernels), "virtual_machine": machine if guests else None}


def overall(document: dict[str, Any]) -> str:
    """Returns ``fail`` if a mutant survives or more rows than may be are unexplained; ``inconclusive`` if a
    row is, or a case or mutant could not be run, or it was cut short; else ``pass``."""
    verdicts = [row["verdict"] for row in document["rows"]]
    rejected = [mutant["rejected"] for mutant in document["mutants"]]
    if verdicts.count("unexplained") > MAY_BE_UNEXPLAINED or False in rejected:
        return "fail"
    unsure = "inconclusive" in verdicts or None in rejected or document["skipped"] or not verdicts
    return "inconclusive" if unsure or document["interrupted"] else "pass"


def _not_asked(matter: CrosscheckMatter, wanted: Sequence[ComparedCase], *, quick: bool) -> list[str]:
    """Returns the ids of the cases that there are besides."""
    asked = {case.id for case in wanted}
    return [case.id for case in matter.cases(quick) if case.id not in asked]


def _able(
    wanted: Sequence[ComparedCase], request: CrosscheckRequest
) -> tuple[list[ComparedCase], list[dict[str, str]]]:
    """Returns the cases that both modes can run here, and the others with the reason."""
    able: list[ComparedCase] = []
    skipped: list[dict[str, str]] = []
    for case in wanted:
        why: str | None = None
        for mode in dict.fromkeys(("sim", request.reference)):
            try:
                lower(case.scenario, mode, 1)
            except ScenarioError as error:
                why = str(error).removeprefix(f"{case.scenario.id} ")
        if why is None and request.reference == "emu" and case.id not in request.real:
            why = request.matter.lacking(case, request.emu.way)
        if why is None:
            able.append(case)
        else:
            skipped.append({"case": case.id, "why": why})
    return able, skipped


def _about(matter: CrosscheckMatter, case: ComparedCase, runs: tuple[CaseRuns, CaseRuns]) -> dict[str, Any]:
    """Returns a case in the document: the number of runs, the invalid ones, and its matter's own keys."""
    sim, emu = runs
    return {
        "id": case.id,
        "kind": case.kind,
        "title": case.scenario.title,
        "wanted": {"sim": case.sim, "emu": case.emu},
        "valid": {"sim": len(sim.taken), "emu": len(emu.taken)},
        "invalid": [{"seed": seed, "why": why} for seed, why in emu.invalid],
        "quantities": {"sim": sim.quantities, "emu": emu.quantities},
        **matter.about(case, sim.taken, emu.taken),
    }

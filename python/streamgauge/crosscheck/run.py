"""The crosscheck: cases in sim and in emu, rows, mutants, explanations, one document."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import streamgauge
from streamgauge.campaign import EmuSettings, Progress
from streamgauge.campaign.machine import why_not
from streamgauge.crosscheck import ns3
from streamgauge.crosscheck.cases import Case, cases, select
from streamgauge.crosscheck.explain import explain
from streamgauge.crosscheck.mutants import try_mutants
from streamgauge.crosscheck.rows import rows_of
from streamgauge.crosscheck.trials import Bench, CaseRuns
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.record.provenance import collect
from streamgauge.scenario import lower
from streamgauge.systems.registry import GREEDY_TCP, Mode

__all__ = ["MAY_BE_UNEXPLAINED", "SCHEMA", "CrosscheckRequest", "crosscheck", "overall"]

SCHEMA: Final = "streamgauge.crosscheck/1"
MAY_BE_UNEXPLAINED: Final = 2
"""Rows that may be unexplained before the whole fails."""


@dataclass(frozen=True, kw_only=True)
class CrosscheckRequest:
    """What is asked for."""

    out: Path
    """Where records go; a rerun resumes there."""
    patterns: Sequence[str] = ()
    """Globs of cases' ids; all without any."""
    quick: bool = False
    ns3: bool = False
    """With ns-3 as a third column."""
    reference: Mode = "emu"
    """``sim`` compares the simulator with itself under other seeds, which tests the comparison."""
    emu: EmuSettings = field(default_factory=EmuSettings)
    progress: Callable[[Progress], None] | None = None


def crosscheck(request: CrosscheckRequest) -> dict[str, Any]:
    """Runs everything and returns the document, schema `streamgauge.crosscheck/1` (docs/fidelity.md).

    Raises:
        ScenarioError: for a glob that matches no case.
        CannotRunError: if this machine cannot run a mode that is needed, or has not the ns-3 asked for.
    """
    wanted = select(request.patterns, quick=request.quick)
    if request.ns3:
        ns3.require()
    for mode in dict.fromkeys(("sim", request.reference)):
        lacking = why_not(mode, way=request.emu.way)
        if lacking is not None:
            raise CannotRunError(f"this machine cannot run {mode}: {lacking}")
    began, load = time.monotonic(), os.getloadavg()[0]
    able, skipped = _able(wanted, request)
    bench = Bench(request.out, request.emu, request.progress, request.reference)
    found = bench.run(able)
    third = ns3.column(able, request.out / "ns3") if request.ns3 and not bench.interrupted else {}
    rows = [
        row
        for case in able
        if found[case.id][0].taken and found[case.id][1].taken
        for row in rows_of(case, *found[case.id], third.get(case.id))
    ]
    mutants: list[dict[str, Any]] = []
    if not bench.interrupted:
        mutants = try_mutants(bench, able, found, rows)
    if not bench.interrupted:
        rows = explain(bench, able, found, rows)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": "",
        "rows": [row.to_json() for row in rows],
        "mutants": mutants,
        "cases": [_about(case, found[case.id]) for case in able],
        "skipped": skipped,
        "not_asked": _not_asked(wanted, quick=request.quick),
        "quick": request.quick,
        "reference": request.reference,
        "interrupted": bench.interrupted,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "duration_s": time.monotonic() - began,
        "load_average": [load, os.getloadavg()[0]],
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "streamgauge": streamgauge.__version__,
        **{key: value for key, value in collect().items() if key in ("cpu", "commit", "machine", "host")},
    }
    document["verdict"] = overall(document)
    return document


def overall(document: dict[str, Any]) -> str:
    """``fail`` if a mutant survives or more rows than may be are unexplained; ``inconclusive`` if a row is,
    or a case or mutant could not be run, or it was cut short; else ``pass``."""
    verdicts = [row["verdict"] for row in document["rows"]]
    rejected = [mutant["rejected"] for mutant in document["mutants"]]
    if verdicts.count("unexplained") > MAY_BE_UNEXPLAINED or False in rejected:
        return "fail"
    unsure = "inconclusive" in verdicts or None in rejected or document["skipped"] or not verdicts
    return "inconclusive" if unsure or document["interrupted"] else "pass"


def _not_asked(wanted: Sequence[Case], *, quick: bool) -> list[str]:
    """The ids of the cases that there are besides."""
    asked = {case.id for case in wanted}
    return [case.id for case in cases(quick=quick) if case.id not in asked]


def _able(wanted: Sequence[Case], request: CrosscheckRequest) -> tuple[list[Case], list[dict[str, str]]]:
    """The cases that both modes can run here, and the others with the reason."""
    able: list[Case] = []
    skipped: list[dict[str, str]] = []
    for case in wanted:
        why: str | None = None
        for mode in dict.fromkeys(("sim", request.reference)):
            try:
                lower(case.scenario, mode, 1)
            except ScenarioError as error:
                why = str(error).removeprefix(f"{case.scenario.id} ")
        if why is None and request.reference == "emu":
            why = _kernel_lacks(case, request.emu.way)
        if why is None:
            able.append(case)
        else:
            skipped.append({"case": case.id, "why": why})
    return able, skipped


def _kernel_lacks(case: Case, way: str | None) -> str | None:
    """Why this machine's kernel cannot run the case's congestion controls; None if it can."""
    from streamgauge.emu import controls
    from streamgauge.emu.options import EmuOptions

    flows = case.scenario.flows.values()
    asked = {flow.congestion_control or "cubic" for flow in flows if flow.traffic == GREEDY_TCP}
    chosen = EmuOptions(way=way).chosen_way
    return next((why for name in sorted(asked) if (why := controls.lacking(name, chosen)) is not None), None)


def _about(case: Case, runs: tuple[CaseRuns, CaseRuns]) -> dict[str, Any]:
    """A case in the document: how many runs, which were invalid, and one run's windows in each mode."""
    sim, emu = runs
    return {
        "id": case.id,
        "kind": case.kind,
        "title": case.scenario.title,
        "wanted": {"sim": case.sim, "emu": case.emu},
        "valid": {"sim": len(sim.taken), "emu": len(emu.taken)},
        "invalid": [{"seed": seed, "why": why} for seed, why in emu.invalid],
        "quantities": {"sim": sim.quantities, "emu": emu.quantities},
        "window_s": [time / 1e9 for time in case.window_ns],
        "windows": {
            mode: some.taken[0]["windows"]
            for mode, some in (("sim", sim), ("emu", emu))
            if some.taken and case.kind == "single"
        },
    }

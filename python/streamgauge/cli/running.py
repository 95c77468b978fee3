"""``run`` and ``reproduce``."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamgauge.campaign import (
    Alternative,
    CampaignResult,
    EmuSettings,
    MutantResult,
    run,
    run_alternatives,
    run_mutants,
    score,
)
from streamgauge.campaign.machine import choose_mode
from streamgauge.cli.progress import Bar
from streamgauge.cli.tables import print_result
from streamgauge.scenario import Scenario, find
from streamgauge.scenario.lower import Keep, lower
from streamgauge.systems.registry import Mode

__all__ = ["INTERRUPTED", "STATUS", "Request", "all_lower", "chosen_out", "run_command"]

STATUS = {"pass": 0, "fail": 1, "inconclusive": 2}
INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked on the command line."""

    names: Sequence[str]
    mode: Mode | None
    seed: int | None
    repeat: int | None
    settings: Sequence[str]
    out: Path
    keep: Keep
    way: str | None
    capture: bool
    jobs: int
    as_json: bool
    mutants: bool = False
    robust: bool = False


def run_command(request: Request) -> int:
    """Runs, prints, and returns the exit status."""
    scenarios = find(request.names, settings=request.settings)
    modes: dict[str, Sequence[Mode]] = {
        scenario.id: [choose_mode(scenario, request.mode, way=request.way)] for scenario in scenarios
    }
    first_seed = 1 if request.seed is None else request.seed
    repeat = 1 if request.seed is not None and request.repeat is None else request.repeat
    all_lower(scenarios, modes, first_seed)
    out = chosen_out(request)
    emu = EmuSettings(way=request.way, capture=request.capture, jobs=request.jobs)
    with Bar() as bar:
        result = run(
            scenarios,
            modes,
            out,
            first_seed=first_seed,
            repeat=repeat,
            settings=request.settings,
            keep=request.keep,
            emu=emu,
            progress=bar.update,
        )
        mutants: list[MutantResult] | None = None
        if request.mutants and not result.interrupted:
            mutants, _ = run_mutants(
                result, first_seed=first_seed, repeat=repeat, keep=request.keep, emu=emu, progress=bar.update
            )
        alternatives: list[Alternative] | None = None
        if request.robust and not result.interrupted:
            alternatives = run_alternatives(
                result, first_seed=first_seed, repeat=repeat, keep=request.keep, emu=emu, progress=bar.update
            )
    if request.as_json:
        _print_json(result, mutants, alternatives)
    else:
        print_result(result, mutants, alternatives)
    if result.interrupted:
        kept = f"{len(result.outcomes)} of {result.planned} trials are kept in {out}"
        print(f"streamgauge: interrupted; {kept}; the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    status = STATUS[result.verdict]
    if mutants and any(not one.killed for one in mutants):
        # A check that its mutant does not break proves nothing.
        status = max(status, 1) if any(one.verdict == "pass" for one in mutants) else max(status, 2)
    return status


def all_lower(scenarios: Sequence[Scenario], modes: dict[str, Sequence[Mode]], seed: int) -> None:
    """Whatever cannot be planned is refused before the first trial starts."""
    for scenario in scenarios:
        for mode in modes[scenario.id]:
            lower(scenario, mode, seed)


def chosen_out(request: Request) -> Path:
    """Changed scenarios keep their ids, so by default they go to a folder of their own."""
    if request.settings and request.out == Path("runs"):
        said = "\n".join(sorted(request.settings)).encode()
        return Path("runs") / f"set-{hashlib.blake2b(said, digest_size=4).hexdigest()}"
    return request.out


def _print_json(
    result: CampaignResult, mutants: list[MutantResult] | None, alternatives: list[Alternative] | None
) -> None:
    data = result.to_json()
    if mutants is not None:
        data["mutants"] = [one.to_json() for one in mutants]
        data["mutation_score"] = score(mutants)
    if alternatives is not None:
        data["alternatives"] = [one.to_json() for one in alternatives]
    json.dump(data, sys.stdout, indent=2, allow_nan=False)
    print()

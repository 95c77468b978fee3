"""``run``, and ``reproduce`` of scenarios."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.campaign import (
    Alternative,
    CampaignResult,
    EmuSettings,
    Extra,
    MutantResult,
    run,
    run_alternatives,
    run_mutants,
    score,
)
from streamgauge.campaign.junit import write_run_junit
from streamgauge.campaign.machine import LibraryLackingError, ModeChoice, choose_mode
from streamgauge.campaign.summary import write_run_summary
from streamgauge.cli.elsewhere import Elsewhere
from streamgauge.cli.gating import GateFiles, written
from streamgauge.cli.options import REPLACE
from streamgauge.cli.output import remark
from streamgauge.cli.progress import Bar
from streamgauge.cli.status import INTERRUPTED, STATUS, VERDICT
from streamgauge.cli.tables import MOST_READ, answer_to, print_result
from streamgauge.errors import ScenarioError, StreamGaugeError
from streamgauge.qlog import write_qlogs
from streamgauge.scenario import Scenario, find
from streamgauge.scenario.lower import Keep, lower
from streamgauge.scenario.paper_readings import READING, readings_of
from streamgauge.scenario.settings import set_folder
from streamgauge.systems.registry import Mode

__all__ = [
    "Ran",
    "RunRequest",
    "carry_out",
    "chosen_modes",
    "chosen_out",
    "here",
    "interrupted",
    "run_command",
    "status_of",
    "under_reading",
    "write_files",
]

_NAMED = 3
"""Most scenarios that are named with a mode; of more the number is given."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """Request on the command line."""

    names: Sequence[str]
    mode: Mode | None
    seed: int | None
    repeat: int | None
    settings: Sequence[str]
    out: Path
    keep: Keep
    way: str | None
    jobs: int
    as_json: bool
    replace: int | None = None
    verify: bool = False
    capture: bool = False
    qlog: bool = False
    mutants: bool = False
    robust: bool = False
    files: GateFiles = field(default_factory=GateFiles)
    """Files for CI."""
    machine: str = ""
    """A folder in ``out``, for trials of a virtual machine."""
    brought: tuple[Path, ...] = ()
    """Files copied into a virtual machine."""
    elsewhere: Elsewhere | None = None
    """Where trials run, and records go, if not here; ``out`` is its folder."""

    @property
    def first_seed(self) -> int:
        """Returns the first repetition's."""
        return 1 if self.seed is None else self.seed

    @property
    def replacements(self) -> int:
        """Returns the number of further seeds that may replace an invalid trial of emu. An explicit --seed is
        never replaced."""
        if self.replace is not None:
            return self.replace
        return REPLACE if self.seed is None else 0

    @property
    def repetitions(self) -> int | None:
        """Returns how many; each scenario's own number if None. A seed alone is one."""
        return 1 if self.seed is not None and self.repeat is None else self.repeat


@dataclass(frozen=True)
class Ran:
    """Results of a request; mutants and alternatives are None where not requested, or not finished."""

    result: CampaignResult
    mutants: list[MutantResult] | None
    alternatives: list[Alternative] | None
    interrupted: bool


def run_command(request: RunRequest) -> int:
    """Runs, prints, and returns the exit status."""
    request.files.prepare()
    if request.qlog and (request.keep == "metrics" or request.elsewhere is not None):
        raise ScenarioError(
            "qlog needs the events of each record here", key="--qlog", hint="leave out --keep and --on"
        )
    scenarios = here(request, find(request.names, settings=request.settings))
    out = chosen_out(request)
    ran = carry_out(request, scenarios, chosen_modes(request, scenarios), out)
    if request.qlog:
        for outcome in ran.result.outcomes:
            if outcome.digest is not None:
                write_qlogs(outcome.job.directory)
    there = request.elsewhere
    where = str(out) if there is None else there.where(out)
    if there is not None and (request.as_json or len(ran.result.outcomes) <= MOST_READ):
        there.fetch(ran.result)
    if request.as_json:
        _print_json(ran, there)
        answer = answer_to(ran.result) if request.files.summary is not None else ""
    else:
        answer = print_result(ran.result, ran.mutants, ran.alternatives, where=where)
    write_files(request.files, ran, answer)
    if ran.interrupted:
        kept = sum(outcome.counts for outcome in ran.result.outcomes)
        return interrupted(f"{kept} of {ran.result.planned} trials are kept in {where}")
    return status_of([ran.result.verdict], ran.mutants)


def under_reading(names: Sequence[str], settings: Sequence[str], reading: str | None) -> list[str]:
    """Returns the settings with that of the reading; without it where it leaves all scenarios as they are
    written.

    Raises ScenarioError if a scenario's paper has no such reading.
    """
    if reading is None:
        return list(settings)
    papers = {scenario.id.partition("/")[0] for scenario in find(names, settings=settings, mutants=False)}
    # All are queried: one without the reading is an error, at any place.
    changes = {readings_of(paper).changes(reading) for paper in sorted(papers)}
    return [*settings, f"{READING}={reading}"] if True in changes else list(settings)


def write_files(files: GateFiles, ran: Ran, answer: str) -> None:
    """Writes files for CI: JUnit XML and a summary, with the verdict of the exit status."""
    verdict = VERDICT[status_of([ran.result.verdict], ran.mutants)]
    if ran.interrupted and verdict == "pass":
        verdict = "inconclusive"
    written(files.junit, lambda f: write_run_junit(ran.result, f, ran.mutants, stopped=ran.interrupted))
    written(
        files.summary,
        lambda f: write_run_summary(
            ran.result, f, verdict, answer=answer, mutants=ran.mutants, stopped=ran.interrupted
        ),
    )


def here(request: RunRequest, scenarios: Sequence[Scenario], *, quiet: bool = False) -> list[Scenario]:
    """Returns the scenarios without those of a group that need a library which this build lacks; prints the
    left out ones with the reason on stderr unless `quiet`.

    Those that the request names, and groups without a scenario that can run, stay: the choice of a mode
    refuses them.
    """
    able = None if request.elsewhere is None else request.elsewhere.cluster.why_not
    left: dict[str, list[str]] = {}
    for scenario in scenarios:
        try:
            choose_mode(scenario, request.mode, way=request.way, elsewhere=able)
        except LibraryLackingError as error:
            left.setdefault(error.why, []).append(scenario.id)
        except StreamGaugeError:
            continue  # that choice is made again, and refused there
    named = {name for names in left.values() for name in names} - set(request.names)
    kept = [scenario for scenario in scenarios if scenario.id not in named]
    if not kept:
        return list(scenarios)
    if not quiet:
        for why, names in left.items():
            if without := [name for name in names if name in named]:
                remark(f"left out: {', '.join(without)}: {why}")
    return kept


def chosen_modes(
    request: RunRequest, scenarios: Sequence[Scenario], *, quiet: bool = False
) -> dict[str, Sequence[Mode]]:
    """Returns each scenario's, by id; prints them with the reason on stderr unless `quiet`. Refuses scenarios
    that cannot be planned, before the first trial starts.

    Raises ScenarioError if a scenario cannot run so, CannotRunError if the machine cannot.
    """
    able = None if request.elsewhere is None else request.elsewhere.cluster.why_not
    choices = {
        scenario.id: choose_mode(scenario, request.mode, way=request.way, elsewhere=able)
        for scenario in scenarios
    }
    for scenario in scenarios:
        lower(scenario, choices[scenario.id].mode, request.first_seed)
    if not quiet:
        for line in modes_in_words(choices):
            remark(line)
    return {name: [chosen.mode] for name, chosen in choices.items()}


def modes_in_words(choices: Mapping[str, ModeChoice]) -> list[str]:
    """Returns a line for each mode and reason, with the scenarios that run so: ``mode emu for today/x: this
    machine can; supported are emu and sim, in this order``."""
    groups: dict[ModeChoice, list[str]] = {}
    for name, chosen in choices.items():
        groups.setdefault(chosen, []).append(name)
    lines = []
    for chosen, names in groups.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        lines.append(f"mode {chosen.mode} for {', '.join(names[:_NAMED])}{more}: {chosen.why}")
    return lines


def carry_out(
    request: RunRequest,
    scenarios: Sequence[Scenario],
    modes: Mapping[str, Sequence[Mode]],
    out: Path,
    *,
    extras: Mapping[str, Extra] | None = None,
) -> Ran:
    """Runs the trials, and the requested mutants and alternatives. Ctrl-C ends it early, with a message.

    `extras` are kept of the trials of some scenarios, by id."""
    emu = EmuSettings(
        way=request.way,
        capture=request.capture,
        jobs=request.jobs,
        replace=request.replacements,
        brought=request.brought,
    )
    first_seed, repeat, keep = request.first_seed, request.repetitions, request.keep
    mutants: list[MutantResult] | None = None
    alternatives: list[Alternative] | None = None
    cluster = None
    if request.elsewhere is not None:
        cluster = request.elsewhere.cluster
        request.elsewhere.prepare(scenarios, modes, seed=first_seed, way=request.way)
    with Bar() as bar:
        result = run(
            scenarios,
            dict(modes),
            out,
            first_seed=first_seed,
            repeat=repeat,
            settings=request.settings,
            keep=keep,
            extras=extras,
            emu=emu,
            verify=request.verify,
            cluster=cluster,
            progress=bar.update,
        )
        stopped = result.interrupted
        try:
            if request.mutants and not stopped:
                mutants, _ = run_mutants(
                    result,
                    first_seed=first_seed,
                    repeat=repeat,
                    keep=keep,
                    emu=emu,
                    verify=request.verify,
                    cluster=cluster,
                    progress=bar.update,
                )
            if request.robust and not stopped:
                alternatives = run_alternatives(
                    result,
                    first_seed=first_seed,
                    repeat=repeat,
                    keep=keep,
                    emu=emu,
                    verify=request.verify,
                    cluster=cluster,
                    progress=bar.update,
                )
        except KeyboardInterrupt:
            stopped = True
    if request.elsewhere is not None:
        request.elsewhere.tell()
    return Ran(result, mutants, alternatives, stopped)


def interrupted(kept: str) -> int:
    """Prints the kept results, and returns the exit status."""
    remark(f"interrupted; {kept}; the same command resumes")
    return INTERRUPTED


def status_of(verdicts: Sequence[str], mutants: Sequence[MutantResult] | None) -> int:
    """Returns the exit status of the worst verdict. A check that its mutant does not break proves nothing:
    one that passes under it counts as failed, one that is undecided."""
    missed = [one.verdict for one in mutants or () if not one.killed]
    if "fail" in verdicts or "pass" in missed:
        return STATUS["fail"]
    return STATUS["inconclusive" if "inconclusive" in verdicts or missed else "pass"]


def chosen_out(request: RunRequest) -> Path:
    """Changed scenarios keep their ids, so they go to a folder of their own, as do trials of another
    machine."""
    return request.out / request.machine / set_folder(request.settings)


def _print_json(ran: Ran, there: Elsewhere | None) -> None:
    data = ran.result.to_json()
    if there is not None:
        there.directories(data["trials"])
    if ran.mutants is not None:
        data["mutants"] = [one.to_json() for one in ran.mutants]
        data["mutation_score"] = score(ran.mutants)
    if ran.alternatives is not None:
        data["alternatives"] = [one.to_json() for one in ran.alternatives]
    json.dump(data, sys.stdout, indent=2, allow_nan=False)
    print()

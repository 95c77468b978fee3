"""Runs many trials: sim on all cores, emu one at a time or as many as asked; finished ones are kept in every
case."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from streamgauge.campaign.aside import printed_aside
from streamgauge.campaign.board import Board, Progress
from streamgauge.campaign.earlier import SetAside, set_aside
from streamgauge.campaign.folder import writing
from streamgauge.campaign.index import Index
from streamgauge.campaign.judging import Judging
from streamgauge.campaign.layout import campaign_of, remove_leftovers
from streamgauge.campaign.plan import Extra, Job, check_trials, fitting, jobs_for, with_dependencies
from streamgauge.campaign.pool import Pool
from streamgauge.campaign.replacing import as_left, further, in_order
from streamgauge.campaign.trial import EmuSettings, Outcome, disk_errors, indexed, reuse, run_job
from streamgauge.campaign.work import tasks_of
from streamgauge.campaign.workers import Watcher, run_all
from streamgauge.checks import (
    CheckResult,
    Leaves,
    leaves_of,
)
from streamgauge.errors import StreamGaugeError
from streamgauge.processors import processors
from streamgauge.scenario import Scenario
from streamgauge.scenario.lower import Keep
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from streamgauge.campaign.cluster import Cluster
    from streamgauge.emu.concurrency import ConcurrentTrials

__all__ = ["CampaignResult", "Progress", "Verdict", "run", "run_jobs"]

Verdict = Literal["pass", "fail", "inconclusive"]
# Exit status of errors that mean "inconclusive": a process of the trial died, no input is wrong.
_BROKEN = 2
# From how many simulated trials on processes are worth their start, which takes each a second of a processor.
# On two cores a trial of hessler/ftp-* takes threads, which wait for one another, 11 ms, and processes 8 ms.
_POOL_FROM = 200


@dataclass(frozen=True)
class CampaignResult:
    """Results of a campaign in memory; the records are on disk."""

    scenarios: tuple[Scenario, ...]
    outcomes: tuple[Outcome, ...]
    checks: tuple[CheckResult, ...]
    out: Path
    wall_s: float
    interrupted: bool = False
    planned: int = 0
    wanted: frozenset[str] = field(default_factory=frozenset)
    set_aside: tuple[SetAside, ...] = ()
    """Trials of other experiments that lay where these were to go."""

    @property
    def simulated_s(self) -> float:
        """Trial time covered, s."""
        return sum(outcome.simulated_s for outcome in self.outcomes)

    @property
    def verdict(self) -> Verdict:
        """Returns the run's: a failed check fails it; more than a third of a scenario's trials invalid, an
        undecided check or an interruption leaves it inconclusive."""
        if any(check.verdict == "fail" for check in self.checks):
            return "fail"
        if self.interrupted or any(check.verdict == "inconclusive" for check in self.checks):
            return "inconclusive"
        if not self.outcomes or self.mostly_invalid():
            return "inconclusive"
        return "pass"

    def mostly_invalid(self) -> list[tuple[str, Mode, int, int]]:
        """Returns scenarios with more than a third of their repetitions invalid: (id, mode, invalid, all)."""
        groups: dict[tuple[str, Mode], list[bool]] = {}
        for outcome in self.outcomes:
            if not outcome.counts:
                continue
            groups.setdefault((outcome.job.scenario.id, outcome.job.mode), []).append(outcome.valid)
        found = []
        for (scenario, mode), valid in groups.items():
            invalid = valid.count(False)
            if 3 * invalid > len(valid):
                found.append((scenario, mode, invalid, len(valid)))
        return found

    def to_json(self) -> dict[str, Any]:
        """Returns ``streamgauge.run/1``."""
        return {
            "schema": "streamgauge.run/1",
            "trials": [outcome.to_json() for outcome in self.outcomes],
            "checks": [check.to_json() for check in self.checks],
            "set_aside": [one.to_json() for one in self.set_aside],
            "simulated_s": self.simulated_s,
            "wall_s": self.wall_s,
        }


def run(
    scenarios: Sequence[Scenario],
    modes: dict[str, Sequence[Mode]],
    out: Path,
    *,
    first_seed: int = 1,
    repeat: int | None = None,
    settings: Iterable[str] = (),
    keep: Keep = "packets",
    extras: Mapping[str, Extra] | None = None,
    emu: EmuSettings | None = None,
    verify: bool = False,
    cluster: Cluster | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> CampaignResult:
    """Runs every trial of the scenarios, and of those that their checks read, and evaluates the checks.

    Args:
        scenarios: the scenarios.
        modes: the modes of each scenario, by id.
        out: folder of the records; equal trials there are not run again, and those of another experiment with
            the same id are kept in ``earlier`` there.
        first_seed: the first repetition's seed.
        repeat: number of repetitions; each scenario's own number if ``None``.
        settings: settings of the scenarios, ``ADDRESS=VALUE``: written into the records, and applied to
            scenarios that only a check asks for where they fit. Each set needs an ``out`` of its own, such as
            ``out / streamgauge.scenario.settings.set_folder(settings)``.
        keep: how much of each record is stored.
        extras: further data kept of the trials of some scenarios, by id.
        emu: how emu runs; `EmuSettings.jobs` is the number of its concurrent trials.
        verify: read existing records in full, and run damaged ones again; without, existing trials are
            trusted.
        cluster: its workers run the trials instead of this machine.
        progress: called after each trial and at each message, from this thread.

    Raises StreamGaugeError if a trial cannot run; Ctrl-C ends it early and sets ``interrupted``.
    """
    began = time.monotonic()
    settings = list(settings)
    everything = with_dependencies(scenarios, settings=settings)
    wanted = frozenset(scenario.id for scenario in scenarios)
    asked: dict[str, list[Mode]] = {scenario.id: list(modes[scenario.id]) for scenario in scenarios}
    for scenario in everything:
        if scenario.id not in asked:
            # A check compares within a mode: the scenarios that it reads run in all of them.
            every = dict.fromkeys(mode for chosen in asked.values() for mode in chosen)
            asked[scenario.id] = [mode for mode in every if scenario.unsupported(mode) is None]
    check_trials(
        repeat if repeat is not None else getattr(scenario.repetitions, mode)
        for scenario in everything
        for mode in asked[scenario.id]
    )
    more = extras or {}
    jobs = [
        replace(job, extra=more[scenario.id]) if scenario.id in more else job
        for scenario in everything
        for mode in asked[scenario.id]
        for job in jobs_for(
            scenario,
            mode,
            out,
            first_seed=first_seed,
            repeat=repeat,
            settings=settings if scenario.id in wanted else fitting(scenario.id, settings),
            set_with=settings,
        )
    ]
    judged = [scenario for scenario in everything if scenario.id in wanted]
    judging = Judging(judged, jobs, settings)
    with writing(out, jobs) as index:
        with disk_errors(out):
            moved = set_aside(jobs, index)
        outcomes, interrupted = run_jobs(
            jobs,
            keep=keep,
            emu=emu or EmuSettings(),
            leaves=leaves_of(judged),
            index=index,
            judging=judging,
            verify=verify,
            cluster=cluster,
            progress=progress,
        )
    return CampaignResult(
        scenarios=tuple(everything),
        outcomes=tuple(outcomes),
        checks=tuple(judging.checks(outcomes)),
        out=out,
        wall_s=time.monotonic() - began,
        interrupted=interrupted,
        planned=len(jobs),
        wanted=wanted,
        set_aside=tuple(moved),
    )


def run_jobs(
    jobs: Sequence[Job],
    *,
    keep: Keep,
    emu: EmuSettings,
    leaves: Mapping[str, Leaves] | None = None,
    index: Index | None = None,
    judging: Judging | None = None,
    verify: bool = False,
    cluster: Cluster | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[list[Outcome], bool]:
    """Runs jobs, in their order for the caller; returns the finished ones, and whether Ctrl-C cut it short.

    A replaced trial is followed by its replacement (`EmuSettings.replace`). ``leaves`` are read of the
    trials' metrics, by the scenario's id; ``index`` is that of the common folder; ``judging`` receives each
    new trial; ``verify`` and ``cluster`` as in `run`.
    """
    for out in {campaign_of(job.directory) for job in jobs}:
        remove_leftovers(out)
    leaves = leaves or {}
    board = Board(jobs, progress)
    work = _Work(keep, emu, leaves, index, judging, board, cluster)
    own = {job.directory for job in jobs}
    lines: dict[Job, list[Outcome]] = {}
    pending: dict[Job, Job] = {}
    for job in jobs:
        found = as_left(job, keep, own, leaves.get(job.scenario.id), index=index, verify=verify)
        if found is None:
            pending[job] = job
        else:
            lines[job] = found
            board.finished(job, valid=any(one.valid for one in found), timed=False)
    interrupted = False
    for left in range(emu.replace, -1, -1):
        done: dict[Job, Outcome] = {}
        try:
            todo = list(pending.values())
            _simulate_all([job for job in todo if job.mode == "sim"], work, done)
            _emulate_all([job for job in todo if job.mode == "emu"], work, done)
        except KeyboardInterrupt:
            interrupted = True
            _after_interruption(list(pending.values()), work, done)
        for job, tried in pending.items():
            if tried in done:
                lines.setdefault(job, []).append(done[tried])
        if interrupted or not left:
            break
        pending = {
            job: further(tried, own)
            for job, tried in pending.items()
            if job.mode == "emu" and not done[tried].valid
        }
        for job in pending.values():
            board.add(job)
    return in_order(jobs, lines), interrupted


@dataclass(frozen=True)
class _Work:
    """Common data of all trials of a run."""

    keep: Keep
    emu: EmuSettings
    leaves: Mapping[str, Leaves]
    index: Index | None
    judging: Judging | None
    board: Board
    cluster: Cluster | None

    def watcher(self, done: dict[Job, Outcome], *, quiet: bool = False) -> Watcher:
        """Returns a watcher that informs the board; a quiet one only of finished trials."""
        started = (lambda _: None) if quiet else self.board.started
        return Watcher(started=started, said=self.board.said, finished=partial(self.finished, done))

    def finished(self, done: dict[Job, Outcome], job: Job, outcome: Outcome) -> None:
        """A trial is done."""
        self.keep_outcome(done, job, outcome)
        self.board.finished(job, valid=outcome.valid)

    def keep_outcome(self, done: dict[Job, Outcome], job: Job, outcome: Outcome) -> None:
        """Keeps the outcome of a finished trial, without a message."""
        done[job] = outcome
        row = indexed(outcome)
        if self.index is not None and row is not None:
            self.index.add(job.directory, row)
        if self.judging is not None:
            self.judging.finished(outcome)


def _after_interruption(jobs: Sequence[Job], work: _Work, done: dict[Job, Outcome]) -> None:
    """A process that a second Ctrl-C killed cleaned nothing up, and did not report its last trial."""
    for out in {campaign_of(job.directory) for job in jobs}:
        remove_leftovers(out)
    for job in jobs:
        if job.mode == "sim" and job not in done:
            there = reuse(job, work.keep, work.leaves.get(job.scenario.id))
            if there is not None:
                work.keep_outcome(done, job, replace(there, reused=False))


def _simulate_all(jobs: list[Job], work: _Work, done: dict[Job, Outcome]) -> None:
    """Sim trials on all cores: in processes, or, where those are not worth their start, in threads; the
    simulator itself runs without Python's lock."""
    cores = processors()
    watcher = work.watcher(done, quiet=True)
    if work.cluster is not None:
        work.cluster.run_all(jobs, tasks_of(work.keep, work.leaves), work.emu, watcher)
        return
    if cores == 1 or len(jobs) < _POOL_FROM:
        with printed_aside():
            run_all(jobs, cores, lambda job, _say: _run(job, work), watcher)
        return
    task = tasks_of(work.keep, work.leaves)
    with Pool() as pool:
        run_all(jobs, cores, lambda job, _say: pool.perform(task(job)).outcome(job), watcher, force=pool.stop)


def _run(
    job: Job,
    work: _Work,
    say: Callable[[str], None] = lambda _: None,
    concurrent: ConcurrentTrials | None = None,
) -> Outcome:
    leaves = work.leaves.get(job.scenario.id)
    return run_job(job, keep=work.keep, emu=work.emu, say=say, leaves=leaves, concurrent=concurrent)


def _emulate_all(jobs: list[Job], work: _Work, done: dict[Job, Outcome]) -> None:
    """Emu trials: one at a time, each under the machine's lock, or `EmuSettings.jobs` at once under one hold
    of it.

    Ctrl-C, and a trial that cannot run at all, end those under way; nothing of them stays.
    """
    board, at_once = work.board, work.emu.jobs
    if work.cluster is not None:
        work.cluster.run_all(jobs, tasks_of(work.keep, work.leaves), work.emu, work.watcher(done))
        return
    if at_once == 1 or not jobs:
        for job in jobs:
            board.started(job)
            work.finished(done, job, _emulate(job, work, partial(board.said, job)))
        return
    from streamgauge.emu.concurrency import ConcurrentTrials
    from streamgauge.emu.lock import machine_lock  # Linux alone has it
    from streamgauge.emu.options import EmuOptions

    board.at_once = at_once
    # Virtual machines do not disturb each other's or other trials' time.
    alone: AbstractContextManager[int] = nullcontext(-1)
    if not EmuOptions(way=work.emu.way).virtual:
        alone = machine_lock(board.say)
    with alone as lock:
        concurrent = ConcurrentTrials(lock, at_once)

        def emulate(job: Job, say: Callable[[str], None]) -> Outcome:
            return _emulate(job, work, say, concurrent)

        run_all(jobs, at_once, emulate, work.watcher(done), cancel=concurrent.stop)


def _emulate(
    job: Job, work: _Work, say: Callable[[str], None], concurrent: ConcurrentTrials | None = None
) -> Outcome:
    """Returns an emu trial. One that broke on the way counts as invalid and leaves the others to run."""
    try:
        return _run(job, work, say, concurrent)
    except StreamGaugeError as error:
        if error.exit_status != _BROKEN or (concurrent is not None and concurrent.stopped):
            raise
        return Outcome(job=job, valid=False, why=(str(error),), digest=None, wall_s=0.0)

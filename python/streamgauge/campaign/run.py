"""Running many trials: sim on all cores, emu one at a time or as many as asked, what finished kept whatever
happens."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from streamgauge.campaign.earlier import SetAside, set_aside
from streamgauge.campaign.layout import remove_leftovers
from streamgauge.campaign.plan import Job, fitting, jobs_for, with_dependencies
from streamgauge.campaign.replacing import as_left, further, in_order
from streamgauge.campaign.trial import EmuSettings, Outcome, disk_errors, run_job
from streamgauge.campaign.workers import Watcher, run_all
from streamgauge.checks import CheckResult, InvalidTrial, evaluate_all
from streamgauge.errors import StreamGaugeError
from streamgauge.scenario import Scenario
from streamgauge.scenario.lower import Keep
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from streamgauge.emu.concurrency import ConcurrentTrials

__all__ = ["CampaignResult", "Progress", "Verdict", "run", "run_jobs"]

Verdict = Literal["pass", "fail", "inconclusive"]
# Exit status of errors that say "inconclusive": a process of the trial died, nobody's input is wrong.
_BROKEN = 2
# What a trial costs, s: sim altogether by experience, emu besides its own time.
_SIM_S, _EMU_EXTRA_S = 0.5, 6.0


@dataclass(frozen=True)
class Progress:
    """How far a campaign is. ``left_s`` is an estimate, ``None`` before there is anything to go by."""

    done: int
    total: int
    left_s: float | None
    now: str
    running: tuple[str, ...] = ()
    """The trials under way, a line each."""


@dataclass(frozen=True)
class CampaignResult:
    """What a campaign leaves in memory; the records are on disk."""

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
        """The run's: a failed check fails it; more than a third of a scenario's trials invalid, an undecided
        check or an interruption leaves it inconclusive."""
        if any(check.verdict == "fail" for check in self.checks):
            return "fail"
        if self.interrupted or any(check.verdict == "inconclusive" for check in self.checks):
            return "inconclusive"
        if not self.outcomes or self.mostly_invalid():
            return "inconclusive"
        return "pass"

    def mostly_invalid(self) -> list[tuple[str, Mode, int, int]]:
        """Scenarios of whose repetitions more than a third is invalid: (id, mode, invalid, all)."""
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
        """``streamgauge.run/1``."""
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
    emu: EmuSettings | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> CampaignResult:
    """Runs every trial of the scenarios, and of those that their checks read, and evaluates the checks.

    Args:
        scenarios: what to run.
        modes: the modes of each scenario, by id.
        out: where records go; trials that lie there already and are the same are not run again, and those of
            another experiment with the same id are kept in ``earlier`` there.
        first_seed: the first repetition's seed.
        repeat: how many repetitions; each scenario's own number if ``None``.
        settings: what was set in the scenarios, ``ADDRESS=VALUE``: written into the records, and applied to
            scenarios that only a check asks for where they fit. Each set wants an ``out`` of its own, such as
            ``out / streamgauge.scenario.settings.set_folder(settings)``.
        keep: how much of each record is stored.
        emu: how emu runs; `EmuSettings.jobs` says how many of its trials at once.
        progress: called after each trial and when there is something to say, from this thread.

    Raises StreamGaugeError if a trial cannot run; Ctrl-C ends it early and is told by ``interrupted``.
    """
    began = time.monotonic()
    settings = list(settings)
    everything = with_dependencies(scenarios, settings=settings)
    wanted = frozenset(scenario.id for scenario in scenarios)
    asked: dict[str, list[Mode]] = {scenario.id: list(modes[scenario.id]) for scenario in scenarios}
    for scenario in everything:
        if scenario.id not in asked:
            # A check compares within a mode, so what it reads runs in all of them.
            every = dict.fromkeys(mode for chosen in asked.values() for mode in chosen)
            asked[scenario.id] = [mode for mode in every if scenario.unsupported(mode) is None]
    jobs = [
        job
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
    with disk_errors(out):
        moved = set_aside(jobs)
    outcomes, interrupted = run_jobs(jobs, keep=keep, emu=emu or EmuSettings(), progress=progress)
    judged = [scenario for scenario in everything if scenario.id in wanted]
    return CampaignResult(
        scenarios=tuple(everything),
        outcomes=tuple(outcomes),
        checks=tuple(evaluate_all(judged, measured(outcomes), settings=settings)),
        out=out,
        wall_s=time.monotonic() - began,
        interrupted=interrupted,
        planned=len(jobs),
        wanted=wanted,
        set_aside=tuple(moved),
    )


def measured(outcomes: Iterable[Outcome]) -> list[Any]:
    """The trials as checks read them; one that left nothing to measure counts as invalid."""
    found: list[Any] = []
    for outcome in outcomes:
        if outcome.metrics is not None and outcome.counts:
            found.append(outcome.metrics)
        elif outcome.counts or outcome.replaced_by is not None:
            job = outcome.job
            found.append(InvalidTrial(job.scenario.id, job.mode, job.seed, outcome.why, outcome.replaced_by))
    return found


def run_jobs(
    jobs: Sequence[Job],
    *,
    keep: Keep,
    emu: EmuSettings,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[list[Outcome], bool]:
    """Runs jobs, in their order for the caller; returns what finished, and whether Ctrl-C cut it short.

    After a trial that was replaced comes the one that stands for it (`EmuSettings.replace`).
    """
    for out in {job.directory.parent.parent.parent for job in jobs}:
        remove_leftovers(out)
    board = _Board(jobs, progress)
    own = {job.directory for job in jobs}
    lines: dict[Job, list[Outcome]] = {}
    pending: dict[Job, Job] = {}
    for job in jobs:
        found = as_left(job, keep, own)
        if found is None:
            pending[job] = job
        else:
            lines[job] = found
            board.finished(job, timed=False)
    interrupted = False
    for left in range(emu.replace, -1, -1):
        done: dict[Job, Outcome] = {}
        try:
            todo = list(pending.values())
            _simulate_all([job for job in todo if job.mode == "sim"], keep, emu, board, done)
            _emulate_all([job for job in todo if job.mode == "emu"], keep, emu, board, done)
        except KeyboardInterrupt:
            interrupted = True
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


def _simulate_all(
    jobs: list[Job], keep: Keep, emu: EmuSettings, board: _Board, done: dict[Job, Outcome]
) -> None:
    """Sim trials on all cores: the simulator runs without Python's lock."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def simulate(job: Job, _say: Callable[[str], None]) -> Outcome:
        return run_job(job, keep=keep, emu=emu, say=lambda _: None)

    run_all(jobs, cores, simulate, _watcher(board, done, quiet=True))


def _emulate_all(
    jobs: list[Job], keep: Keep, emu: EmuSettings, board: _Board, done: dict[Job, Outcome]
) -> None:
    """Emu trials: one at a time, each under the machine's lock, or `emu.jobs` at once under one hold of it.

    Ctrl-C, and a trial that cannot run at all, end those under way; nothing of them stays.
    """
    if emu.jobs == 1 or not jobs:
        for job in jobs:
            board.started(job)
            done[job] = _emulate(job, keep, emu, lambda words, job=job: board.said(job, words))  # type: ignore[misc]
            board.finished(job)
        return
    from streamgauge.emu.concurrency import ConcurrentTrials
    from streamgauge.emu.lock import machine_lock  # Linux alone has it

    board.at_once = emu.jobs
    with machine_lock(board.say) as lock:
        concurrent = ConcurrentTrials(lock, emu.jobs)

        def emulate(job: Job, say: Callable[[str], None]) -> Outcome:
            return _emulate(job, keep, emu, say, concurrent)

        run_all(jobs, emu.jobs, emulate, _watcher(board, done), cancel=concurrent.stop)


def _emulate(
    job: Job,
    keep: Keep,
    emu: EmuSettings,
    say: Callable[[str], None],
    concurrent: ConcurrentTrials | None = None,
) -> Outcome:
    """An emu trial. One that broke on the way counts as invalid and leaves the others to run."""
    try:
        return run_job(job, keep=keep, emu=emu, say=say, concurrent=concurrent)
    except StreamGaugeError as error:
        if error.exit_status != _BROKEN or (concurrent is not None and concurrent.stopped):
            raise
        return Outcome(job=job, valid=False, why=(str(error),), digest=None, metrics=None, wall_s=0.0)


def _watcher(board: _Board, done: dict[Job, Outcome], *, quiet: bool = False) -> Watcher:
    def finished(job: Job, outcome: Outcome) -> None:
        done[job] = outcome
        board.finished(job)

    return Watcher(started=(lambda _: None) if quiet else board.started, said=board.said, finished=finished)


class _Board:
    """Keeps count, estimates the time left, tells the caller."""

    def __init__(self, jobs: Sequence[Job], tell: Callable[[Progress], None] | None) -> None:
        self.tell = tell
        self.total = len(jobs)
        self.done = 0
        self.left = {job: self._cost(job) for job in jobs}
        self.began = time.monotonic()
        self.timed_cost = 0.0
        #: How many emu trials may run at once.
        self.at_once = 1
        #: Wall time for a unit of cost, s: a guess until something has finished.
        self.pace: float | None = None
        #: Trials under way: since when, and what each said last.
        self.running: dict[Job, tuple[float, str]] = {}

    @staticmethod
    def _cost(job: Job) -> float:
        return _SIM_S if job.mode == "sim" else job.seconds + _EMU_EXTRA_S

    @staticmethod
    def _name(job: Job) -> str:
        return f"{job.scenario.id} {job.mode} seed {job.seed}"

    def add(self, job: Job) -> None:
        """One more, in the place of an invalid one."""
        self.total += 1
        self.left[job] = self._cost(job)
        self.say(f"{job.scenario.id} {job.mode} seed {job.replaces} is invalid; seed {job.seed} in its place")

    def started(self, job: Job) -> None:
        self.running[job] = (time.monotonic(), "")
        self.say(self._name(job))

    def said(self, job: Job, words: str) -> None:
        self.running[job] = (self.running[job][0], words)
        self.say(words)

    def finished(self, job: Job, *, timed: bool = True) -> None:
        self.done += 1
        self.running.pop(job, None)
        cost = self.left.pop(job)
        if timed:
            # Costs are guesses; how they have held so far, and how far others have come, corrects them.
            self.timed_cost += cost
            now = time.monotonic()
            under_way = sum(min(now - since, self._cost(one)) for one, (since, _) in self.running.items())
            self.pace = (now - self.began) / (self.timed_cost + under_way)
        self.say(self._name(job))

    def say(self, now: str) -> None:
        if self.tell is None:
            return
        self.tell(
            Progress(
                done=self.done,
                total=self.total,
                left_s=self._left_s(),
                now=now,
                running=tuple(
                    f"{self._name(job)}: {words}" if words else self._name(job)
                    for job, (_, words) in self.running.items()
                ),
            )
        )

    def _left_s(self) -> float | None:
        if self.pace is None and not any(job.mode == "emu" for job in self.left):
            return None
        pace = self.pace if self.pace is not None else 1.0 / self.at_once
        left = pace * sum(self.left.values())
        for job, (since, _) in self.running.items():
            left -= min((time.monotonic() - since) / self.at_once, pace * self.left[job])
        return left

"""Runs the trials of an evaluation, each once; a fault of one ends no other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from streamgauge.campaign import EmuSettings, Progress
from streamgauge.campaign.folder import writing
from streamgauge.campaign.index import Index
from streamgauge.campaign.plan import Job, jobs_for
from streamgauge.campaign.pool import Pool
from streamgauge.campaign.replacing import as_left
from streamgauge.campaign.run import run_jobs
from streamgauge.campaign.trial import Outcome, indexed, run_job
from streamgauge.campaign.work import tasks_of
from streamgauge.campaign.workers import Watcher, run_all
from streamgauge.checks import Leaves
from streamgauge.checks.values import leaves
from streamgauge.claims.dimension import PERCENT
from streamgauge.claims.expression import parse_value
from streamgauge.claims.typing import dimension_of
from streamgauge.errors import StreamGaugeError
from streamgauge.evaluate.faults import ControlFault, fault_of
from streamgauge.evaluate.question import CriterionQuestion, SeedReadings, SuiteTrial
from streamgauge.evaluate.rust_crate import CrateControl
from streamgauge.processors import processors
from streamgauge.systems.registry import Mode

__all__ = ["SECONDS_A_ROW", "TrialsRan", "estimated_s", "run_trials", "trials_of"]

SECONDS_A_ROW: Final = 1.3e-6
"""Seconds of a processor for each row of a record, measuring included (benches/evaluate.py)."""
_SECONDS_A_TRIAL: Final = 0.05
_EMU_EXTRA_S: Final = 6.0
_MOST_SLOW: Final = 3
"""Trials that end because a call did not return; the rest of such a control are not begun."""


@dataclass
class TrialsRan:
    """Results of trials, by scenario and seed."""

    readings: dict[tuple[str, int], SeedReadings] = field(default_factory=dict)
    faults: dict[tuple[str, int], ControlFault] = field(default_factory=dict)
    invalid: dict[tuple[str, int], str] = field(default_factory=dict)
    """Reasons of emulated trials that this machine could not carry."""
    trials: int = 0
    reused: int = 0
    interrupted: bool = False


def trials_of(questions: Iterable[CriterionQuestion]) -> list[SuiteTrial]:
    """Returns the trials of questions, each once, with the values that all of them read."""
    found: dict[str, SuiteTrial] = {}
    for trial in (trial for one in questions for trial in one.trials):
        known = found.get(trial.scenario.id)
        if known is not None:
            trial = replace(trial, readings=tuple(dict.fromkeys([*known.readings, *trial.readings])))
        found[trial.scenario.id] = trial
    return list(found.values())


def estimated_s(trials: Iterable[SuiteTrial], mode: Mode, seeds: int, slower: float = 1.0) -> float:
    """About how long trials take on this machine, if none lies there.

    Args:
        trials: each once.
        mode: where they run.
        seeds: how often each runs.
        slower: how much longer a row takes where the control under evaluation is a function of Python.
    """
    if mode == "emu":
        return sum(
            seeds * (trial.scenario.until.time.ns / 1e9 + _EMU_EXTRA_S)
            for trial in trials
            if trial.scenario.until.time
        )
    cost = sum(
        _SECONDS_A_TRIAL + SECONDS_A_ROW * trial.rows * (slower if trial.has_controller else 1.0)
        for trial in trials
    )
    return seeds * cost / processors()


def run_trials(
    trials: Sequence[SuiteTrial],
    mode: Mode,
    out: Path,
    *,
    seeds: int,
    crate: CrateControl | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> TrialsRan:
    """Runs every trial with seeds 1 to `seeds`, the first of all before any second; Ctrl-C ends it early."""
    found = TrialsRan()
    own_out = out if crate is None else out / f"crate-{crate.digest}"
    jobs_by_trial = [
        jobs_for(one.scenario, mode, own_out if one.has_controller else out, first_seed=1, repeat=seeds)
        for one in trials
    ]
    jobs = [mine[n] for n in range(seeds) for mine in jobs_by_trial]
    wanted = {one.scenario.id: _leaves(one.readings) for one in trials}
    own = {one.scenario.id for one in trials if one.has_controller}
    with writing(out, jobs) as index:
        if mode == "emu":
            _emulate(jobs, wanted, index, progress, found)
        else:
            _Simulated(jobs, wanted, own, index, progress, found, crate).run()
    found.trials = len(found.readings) + len(found.faults)
    return found


def _leaves(texts: Iterable[str]) -> Leaves:
    return {str(leaf): leaf for text in texts for _, leaf in leaves(parse_value(text))}


def _emulate(
    jobs: Sequence[Job],
    wanted: Mapping[str, Leaves],
    index: Index,
    progress: Callable[[Progress], None] | None,
    found: TrialsRan,
) -> None:
    outcomes, found.interrupted = run_jobs(
        jobs, keep="metrics", emu=EmuSettings(replace=2), leaves=wanted, index=index, progress=progress
    )
    for outcome in outcomes:
        job = outcome.job
        seed = job.seed if job.replaces is None else job.replaces
        if not outcome.valid:
            found.invalid.setdefault((job.scenario.id, seed), "; ".join(outcome.why))
        else:
            found.reused += outcome.reused
            found.readings[job.scenario.id, seed] = _read(outcome, wanted[job.scenario.id])


def _read(outcome: Outcome, leaves_read: Leaves) -> SeedReadings:
    """Shares as percentages; everything else in its canonical unit."""
    return SeedReadings(
        {
            text: value * (100.0 if dimension_of(leaves_read[text]) == PERCENT else 1.0)
            for text, value in outcome.readings.items()
            if isinstance(value, float | int)
        }
    )


class _Simulated:
    """Simulated trials in processes; an error in one is reported and does not affect the others."""

    def __init__(
        self,
        jobs: Sequence[Job],
        wanted: Mapping[str, Leaves],
        own: set[str],
        index: Index,
        progress: Callable[[Progress], None] | None,
        found: TrialsRan,
        crate: CrateControl | None,
    ) -> None:
        self._crate = crate
        self._jobs, self._wanted, self._own, self._index = jobs, wanted, own, index
        self._progress, self._found = progress, found
        self._done = self._timed = self._slow = 0
        self._began = time.monotonic()

    def run(self) -> None:
        """Runs the missing trials."""
        places = {job.directory for job in self._jobs}
        todo = []
        for job in self._jobs:
            left = as_left(job, "metrics", places, self._wanted[job.scenario.id], index=self._index)
            if left is None:
                todo.append(job)
                continue
            self._found.reused += 1
            self._take(job, left[-1])
        task = tasks_of("metrics", self._wanted)
        watcher = Watcher(started=lambda _: None, said=lambda *_: None, finished=self._finished)
        with Pool() as pool:

            def do(job: Job, _: Callable[[str], None]) -> Outcome:
                if self._slow >= _MOST_SLOW and job.scenario.id in self._own:
                    return _broken(
                        job,
                        "not begun, because calls of three trials did not return within 10 s",
                    )
                try:
                    if self._crate is not None and job.scenario.id in self._own:
                        return self._with_crate(job, self._crate)
                    return pool.perform(task(job)).outcome(job)
                except StreamGaugeError as error:
                    return _broken(job, str(error))

            try:
                run_all(todo, processors(), do, watcher, force=pool.stop)
            except KeyboardInterrupt:
                self._found.interrupted = True

    def _with_crate(self, job: Job, crate: CrateControl) -> Outcome:
        return run_job(
            job,
            keep="metrics",
            emu=EmuSettings(),
            say=lambda _: None,
            leaves=self._wanted[job.scenario.id],
            simulator=crate,
        )

    def _finished(self, job: Job, outcome: Outcome) -> None:
        row = indexed(outcome)
        if row is not None:
            self._index.add(job.directory, row)
        self._timed += 1
        self._take(job, outcome)
        if self._progress is not None:
            spent = time.monotonic() - self._began
            left = spent / self._timed * (len(self._jobs) - self._done)
            self._progress(Progress(self._done, len(self._jobs), left, ""))

    def _take(self, job: Job, outcome: Outcome) -> None:
        self._done += 1
        key = job.scenario.id, job.seed
        if outcome.valid:
            self._found.readings[key] = _read(outcome, self._wanted[job.scenario.id])
            return
        fault = fault_of("; ".join(outcome.why))
        self._slow += fault.is_slow
        self._found.faults[key] = fault


def _broken(job: Job, why: str) -> Outcome:
    return Outcome(job=job, valid=False, why=(why,), digest=None, wall_s=0.0)

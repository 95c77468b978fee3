"""Runs the compared scenarios, the neighbours alone beside them, until enough is decided."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.campaign import EmuSettings, Job, Outcome, Progress, jobs_for, run_jobs
from streamgauge.campaign.earlier import SetAside, set_aside
from streamgauge.campaign.folder import writing
from streamgauge.campaign.invalid import say_tried
from streamgauge.campaign.layout import campaign_of
from streamgauge.campaign.loaded import load
from streamgauge.campaign.trial import disk_errors
from streamgauge.compare.alone import alone
from streamgauge.compare.comparison import SubjectTrials
from streamgauge.compare.conditions import key_of
from streamgauge.compare.origin import origin_of_folders
from streamgauge.compare.subjects import AskedScenario, ComparedSubject
from streamgauge.compare.trials import ALONE, alone_beside, cases_of, focused_data, take
from streamgauge.metrics import TrialMetrics
from streamgauge.scenario import Scenario, override
from streamgauge.scenario.lower import Keep, lower
from streamgauge.scenario.settings import named
from streamgauge.systems.registry import Mode

__all__ = ["CollectedTrials", "Trials", "collect", "focused", "looks", "plan_of"]

BOTH = "sim and emu"
"""The mode of subjects that are modes."""


@dataclass(frozen=True, kw_only=True)
class Trials:
    """How the trials of a comparison run."""

    out: Path
    modes: Mapping[str, Sequence[Mode]]
    """Trials of each scenario, by its id."""
    first_seed: int = 1
    keep: Keep = "packets"
    emu: EmuSettings = field(default_factory=EmuSettings)
    verify: bool = False
    with_alone: bool = True
    """Run the neighbours alone as well, for harm."""
    flow: str | None = None
    """The subject flow, if its role does not show it."""


@dataclass(frozen=True)
class CollectedTrials:
    """Result of a look: the trials to compare, and remarks on them."""

    trials: list[SubjectTrials]
    outcomes: list[Outcome]
    set_aside: list[SetAside]
    interrupted: bool


@dataclass(frozen=True)
class _Planned:
    """A scenario of a subject in a mode, with its jobs."""

    subject: str
    asked: AskedScenario
    mode: Mode
    shown_mode: str
    jobs: tuple[Job, ...]


def focused(scenario: Scenario, flow: str | None) -> Scenario:
    """Returns the scenario with `flow` as the subject, and all others beside it."""
    if flow is None:
        return scenario
    roles = {f"flows.{name}.role": "subject" if name == flow else "rival" for name in scenario.flows}
    return override(scenario, roles)


def looks(first: int, most: int | None) -> list[int]:
    """After how many repetitions the data are looked at: twice as many each time, `most` at the end; once if
    None."""
    if most is None or most <= first:
        return [first if most is None else most]
    found = [first]
    while 2 * found[-1] < most:
        found.append(2 * found[-1])
    return [*found, most]


def plan_of(subjects: Sequence[ComparedSubject], how: Trials, repeat: int | None) -> list[_Planned]:
    """Returns every scenario to run, with its jobs; the neighbours alone of each once. Raises ScenarioError
    for scenarios that cannot run."""
    found: list[_Planned] = []
    known: dict[Path, Job] = {}

    def planned(subject: str, asked: AskedScenario, mode: Mode, shown: str, count: int) -> _Planned:
        jobs = jobs_for(
            asked.scenario,
            mode,
            how.out / asked.place,
            first_seed=how.first_seed,
            repeat=count,
            settings=asked.settings,
        )
        return _Planned(
            subject, asked, mode, shown, tuple(known.setdefault(job.directory, job) for job in jobs)
        )

    beside: dict[tuple[str, Mode], _Planned] = {}
    for one in subjects:
        for asked in one.asked:
            for mode in [one.mode] if one.mode is not None else how.modes[asked.scenario.id]:
                count = repeat or getattr(asked.scenario.repetitions, mode)
                shown = BOTH if one.mode is not None else mode
                # A scenario that cannot be planned is rejected before the first trial starts.
                lower(asked.scenario, mode, how.first_seed)
                found.append(planned(one.label, asked, mode, shown, count))
                rest = alone(focused(asked.scenario, how.flow)) if how.with_alone else None
                if rest is None or rest.unsupported(mode) is not None:
                    continue
                # Once for all subjects that have the same neighbours on the same path.
                by_itself = AskedScenario(scenario=rest, base=rest, place=asked.place / ALONE)
                # Neighbours that come at other times are other ones.
                told = rest.in_mode(mode).normalised()
                key = (key_of({**told, "id": "", "title": "", "question": ""}), mode)
                if key not in beside or len(beside[key].jobs) < count:
                    beside[key] = planned("", by_itself, mode, shown, count)
    return [*found, *beside.values()]


def collect(
    subjects: Sequence[ComparedSubject],
    how: Trials,
    *,
    repeat: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> CollectedTrials:
    """Runs the plan, loads existing trials, and returns the trials to compare.

    Raises:
        StreamGaugeError: if a trial cannot run, or a folder holds none.
    """
    planned = plan_of(subjects, how, repeat)
    jobs = list(dict.fromkeys(job for one in planned for job in one.jobs))
    moved: list[SetAside] = []
    outcomes: list[Outcome] = []
    interrupted = False
    if jobs:
        with writing(how.out, jobs) as index:
            with disk_errors(how.out):
                moved = set_aside(jobs, index)
            outcomes, interrupted = run_jobs(
                jobs, keep=how.keep, emu=how.emu, index=index, verify=how.verify, progress=progress
            )
    return CollectedTrials(
        [*_ran(planned, outcomes, how.flow), *_found(subjects, how.flow)], outcomes, moved, interrupted
    )


def _ran(planned: Iterable[_Planned], outcomes: Sequence[Outcome], flow: str | None) -> list[SubjectTrials]:
    """Returns the trials that ran, by subject, scenario and mode."""
    by_repetition: dict[tuple[Path, int], Outcome] = {}
    by_place: dict[Path, list[Outcome]] = {}
    for tried in outcomes:
        job = tried.job
        by_place.setdefault(job.directory.parent, []).append(tried)
        whose = (job.directory.parent, job.seed if job.replaces is None else job.replaces)
        if tried.valid or whose not in by_repetition:
            by_repetition[whose] = tried
    found = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for one in planned:
            read = {}
            invalid = 0
            data = one.asked.scenario.normalised()
            places = dict.fromkeys(job.directory.parent for job in one.jobs)
            tried_of = [by_repetition.get((job.directory.parent, job.seed)) for job in one.jobs]
            # Decoding them takes most of the time, and no interpreter.
            for job, outcome, metrics in zip(one.jobs, tried_of, pool.map(_read, tried_of), strict=True):
                if metrics is not None:
                    read[job.seed] = take(metrics, data, flow=flow if one.subject else None)
                elif outcome is not None:
                    invalid += 1
            found.append(
                SubjectTrials(
                    subject=one.subject,
                    id=_called(one),
                    scenario=_as_compared(one.asked.scenario, one, flow),
                    base=_as_compared(one.asked.base, one, flow),
                    mode=one.shown_mode,
                    trials=read,
                    invalid=invalid,
                    origin=origin_of_folders(job.directory for job in one.jobs if job.seed in read),
                    note="".join(say_tried([tried for place in places for tried in by_place.get(place, ())])),
                )
            )
    return found


def _read(outcome: Outcome | None) -> TrialMetrics | None:
    return outcome.metrics if outcome is not None and outcome.valid else None


def _as_compared(scenario: Scenario, one: _Planned, flow: str | None) -> dict[str, Any]:
    whole = scenario if one.mode != one.shown_mode else scenario.in_mode(one.mode)
    return dict(focused_data(whole.normalised(), flow if one.subject else None))


def _called(one: _Planned) -> str:
    return named(one.asked.scenario.id, one.asked.settings)


def _found(subjects: Sequence[ComparedSubject], flow: str | None) -> list[SubjectTrials]:
    """Returns the trials in the compared folders, and beside them."""
    found: list[SubjectTrials] = []
    for one in subjects:
        if one.directory is not None:
            trials = load(one.directory)
            found += cases_of(one.label, trials, flow=flow)
            campaigns = [campaign_of(trial.directory) for trial in trials if trial.directory is not None]
            found += alone_beside(campaigns)
    return found

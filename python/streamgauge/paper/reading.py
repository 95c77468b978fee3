"""A paper's experiments as they were run under one reading, in every mode with trials, emu on each machine by
itself (`streamgauge.paper.machines`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from streamgauge.campaign import Alternative, CampaignResult, MutantResult
from streamgauge.campaign.layout import sweep
from streamgauge.campaign.loaded import load_trials
from streamgauge.checks import CheckResult
from streamgauge.paper.machines import HERE, in_order, mode_on, words_of
from streamgauge.report.model import Entry, LoadedTrial, gather
from streamgauge.scenario import Scenario
from streamgauge.scenario.settings import taken_apart
from streamgauge.systems.registry import Mode

__all__ = ["Reading", "read"]


@dataclass(frozen=True)
class Reading:
    """One reading's trials, verdicts and further requested values."""

    name: str
    """Empty where a paper has one alone."""
    meaning: str
    entries: tuple[Entry, ...]
    mutants: tuple[MutantResult, ...] | None
    alternatives: tuple[Alternative, ...] | None
    trials: int
    """Trials of this run, those that were there already included."""
    reused: int
    wall_s: float
    """Time of this run's trials and checks, loading included, without mutants, alternatives and figures."""
    out: Path
    kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Values that `streamgauge.paper.gathering` has read of the trials, by paper."""

    @cached_property
    def by_id(self) -> dict[str, Entry]:
        """Entries by scenario."""
        return {entry.id: entry for entry in self.entries}

    @property
    def modes(self) -> list[str]:
        """Returns modes that have trials, in the order of columns."""
        return in_order(group.mode for entry in self.entries for group in entry.groups)

    def words(self, mode: str) -> str:
        """Returns the name of a mode's column."""
        return words_of(mode, self.modes)

    @property
    def checks(self) -> list[CheckResult]:
        """Returns every verdict."""
        return [check for entry in self.entries for check in entry.checks]


def read(
    results: Sequence[CampaignResult],
    name: str,
    meaning: str,
    *,
    wall_s: float,
    folders: Mapping[str, Path] | None = None,
    settings: Sequence[str] = (),
    mutants: Sequence[MutantResult] | None = None,
    alternatives: Sequence[Alternative] | None = None,
) -> Reading:
    """Reads the results of one run or several, and trials of the same scenarios in other modes and on other
    machines in their folders.

    Args:
        results: of the runs, each in one of the folders.
        name: of the reading under which they ran.
        meaning: its, in words.
        wall_s: how long they took.
        settings: that name the reading in records; empty if it is the scenarios as they are written.
        folders: by machine; that of the first result alone if not given, as this machine's.
        mutants: of their checks.
        alternatives: to their assumptions.
    """
    folders = folders or {HERE: results[0].out}
    scenarios = {scenario.id: scenario for result in results for scenario in result.scenarios}
    entries: dict[str, list[Entry]] = {}
    for machine, folder in folders.items():
        here = [result for result in results if result.out == folder]
        mine = [trial for result in here for trial in _made(result, settings)]
        ran = {trial.mode for trial in mine}
        others = [
            trial
            for trial in _beside(folder, ran, settings)
            if _same(trial, scenarios) and (machine == HERE or trial.mode == "emu")
        ]
        known = here[0].checks if len(here) == 1 and not others else None
        for entry in gather([*mine, *others], known) if mine or others else ():
            made = _on(entry, machine)
            entries.setdefault(made.id, []).append(made)
    order = list(scenarios)
    return Reading(
        name=name,
        meaning=meaning,
        entries=tuple(_joined(entries[id_]) for id_ in sorted(entries, key=order.index)),
        mutants=None if mutants is None else tuple(mutants),
        alternatives=None if alternatives is None else tuple(alternatives),
        trials=sum(len(result.outcomes) for result in results),
        reused=sum(outcome.reused for result in results for outcome in result.outcomes),
        wall_s=wall_s,
        out=results[0].out,
    )


def _made(result: CampaignResult, settings: Sequence[str]) -> list[LoadedTrial]:
    """Returns the trials of a run."""
    as_run = {
        (scenario.id, mode): scenario.in_mode(mode).normalised()
        for scenario in result.scenarios
        for mode in {outcome.job.mode for outcome in result.outcomes}
        if scenario.unsupported(mode) is None
    }
    return [
        LoadedTrial(
            header={
                "scenario": as_run[outcome.job.scenario.id, outcome.job.mode],
                "mode": outcome.job.mode,
                "seed": outcome.job.seed,
                "replaces": outcome.job.replaces,
                "set": list(settings),
                "validity": {"valid": outcome.valid, "why": list(outcome.why)},
            },
            provenance={},
            # One that broke left no folder.
            directory=None if outcome.digest is None else outcome.job.directory,
        )
        for outcome in result.outcomes
    ]


def _on(entry: Entry, machine: str) -> Entry:
    """Returns the same with modes as tables name them."""
    return replace(
        entry,
        id=taken_apart(entry.id)[0],
        groups=tuple(replace(group, mode=mode_on(group.mode, machine)) for group in entry.groups),
        checks=tuple(replace(check, mode=mode_on(check.mode, machine)) for check in entry.checks),
    )


def _joined(entries: Sequence[Entry]) -> Entry:
    """Returns one scenario's trials and verdicts of all machines."""
    groups = {group.mode: group for entry in entries for group in entry.groups}
    checks = [check for entry in entries for check in entry.checks]
    modes, ids = in_order(groups), list(dict.fromkeys(check.id for check in checks))
    places = {mode: place for place, mode in enumerate(modes)}
    checks.sort(key=lambda check: (ids.index(check.id), places.get(check.mode, len(places))))
    return replace(entries[0], groups=tuple(groups[mode] for mode in modes), checks=tuple(checks))


def _beside(folder: Path, modes: set[str], settings: Sequence[str]) -> list[LoadedTrial]:
    """Trials in the folder that these runs did not make: of other modes."""
    others = (one for one in sweep(folder) if one.parent.name.partition("=")[2] not in modes)
    # Nothing else lies in the folder of a machine and of settings by hand, which need not be repeated.
    return [
        replace(trial, header={**trial.header, "set": list(settings), "set_with": []}, provenance={})
        for trial in load_trials(others)
    ]


def _same(trial: LoadedTrial, scenarios: Mapping[str, Scenario]) -> bool:
    """Returns whether a trial is of one of these scenarios as they are now."""
    scenario = scenarios.get(trial.scenario)
    if scenario is None:
        return False
    mode: Mode = "sim" if trial.mode == "sim" else "emu"
    now = scenario.in_mode(mode).normalised()
    then = trial.header["scenario"]
    return all(now.get(key) == then.get(key) for key in ("path", "flows", "until", "measure"))

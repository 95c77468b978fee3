"""A paper's experiments as they were run under one preset, in every mode of which trials are there, emu on
each machine by itself (`streamgauge.paper.machines`)."""

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
from streamgauge.systems.registry import Mode

__all__ = ["Reading", "read"]


@dataclass(frozen=True)
class Reading:
    """One preset's trials, verdicts and what was asked of them besides."""

    preset: str
    """Empty where a paper has none."""
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
    """What `streamgauge.paper.gathering` has read of the trials, by paper."""

    @cached_property
    def by_id(self) -> dict[str, Entry]:
        """Entries by scenario."""
        return {entry.id: entry for entry in self.entries}

    @property
    def modes(self) -> list[str]:
        """Modes of which there are trials, as columns stand."""
        return in_order(group.mode for entry in self.entries for group in entry.groups)

    def words(self, mode: str) -> str:
        """What a mode's column is called."""
        return words_of(mode, self.modes)

    @property
    def checks(self) -> list[CheckResult]:
        """Every verdict."""
        return [check for entry in self.entries for check in entry.checks]


def read(
    results: Sequence[CampaignResult],
    preset: str,
    meaning: str,
    *,
    wall_s: float,
    folders: Mapping[str, Path] | None = None,
    mutants: Sequence[MutantResult] | None = None,
    alternatives: Sequence[Alternative] | None = None,
) -> Reading:
    """What one run or several left, and beside it what lies in their folders of the same scenarios in other
    modes and on other machines.

    Args:
        results: of the runs, each in one of the folders.
        preset: under which they ran.
        meaning: its, in words.
        wall_s: how long they took.
        folders: by machine; that of the first result alone if not given, as this machine's.
        mutants: of their checks.
        alternatives: to what they assume.
    """
    folders = folders or {HERE: results[0].out}
    scenarios = {scenario.id: scenario for result in results for scenario in result.scenarios}
    entries: dict[str, list[Entry]] = {}
    for machine, folder in folders.items():
        here = [result for result in results if result.out == folder]
        mine = [trial for result in here for trial in _made(result)]
        ran = {trial.mode for trial in mine}
        others = [
            trial
            for trial in _beside(folder, ran)
            if _same(trial, scenarios) and (machine == HERE or trial.mode == "emu")
        ]
        known = here[0].checks if len(here) == 1 and not others else None
        for entry in gather([*mine, *others], known) if mine or others else ():
            entries.setdefault(entry.id, []).append(_on(entry, machine))
    order = list(scenarios)
    return Reading(
        preset=preset,
        meaning=meaning,
        entries=tuple(_joined(entries[id_]) for id_ in sorted(entries, key=order.index)),
        mutants=None if mutants is None else tuple(mutants),
        alternatives=None if alternatives is None else tuple(alternatives),
        trials=sum(len(result.outcomes) for result in results),
        reused=sum(outcome.reused for result in results for outcome in result.outcomes),
        wall_s=wall_s,
        out=results[0].out,
    )


def _made(result: CampaignResult) -> list[LoadedTrial]:
    """The trials of a run."""
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
                "validity": {"valid": outcome.valid, "why": list(outcome.why)},
            },
            provenance={},
            # One that broke left no folder.
            directory=None if outcome.digest is None else outcome.job.directory,
        )
        for outcome in result.outcomes
    ]


def _on(entry: Entry, machine: str) -> Entry:
    """The same with modes as tables name them."""
    return replace(
        entry,
        groups=tuple(replace(group, mode=mode_on(group.mode, machine)) for group in entry.groups),
        checks=tuple(replace(check, mode=mode_on(check.mode, machine)) for check in entry.checks),
    )


def _joined(entries: Sequence[Entry]) -> Entry:
    """One scenario's trials and verdicts of all machines."""
    groups = {group.mode: group for entry in entries for group in entry.groups}
    checks = [check for entry in entries for check in entry.checks]
    modes, ids = in_order(groups), list(dict.fromkeys(check.id for check in checks))
    places = {mode: place for place, mode in enumerate(modes)}
    checks.sort(key=lambda check: (ids.index(check.id), places.get(check.mode, len(places))))
    return replace(entries[0], groups=tuple(groups[mode] for mode in modes), checks=tuple(checks))


def _beside(folder: Path, modes: set[str]) -> list[LoadedTrial]:
    """Trials in the folder that these runs did not make: of other modes."""
    others = (one for one in sweep(folder) if one.parent.name.partition("=")[2] not in modes)
    # Nothing else lies in the folder of a machine and what was set, so that it need not be said of each.
    return [
        replace(trial, header={**trial.header, "set": [], "set_with": []}, provenance={})
        for trial in load_trials(others)
    ]


def _same(trial: LoadedTrial, scenarios: Mapping[str, Scenario]) -> bool:
    """Whether a trial is of one of these scenarios as they are now."""
    scenario = scenarios.get(trial.scenario)
    if scenario is None:
        return False
    mode: Mode = "sim" if trial.mode == "sim" else "emu"
    now = scenario.in_mode(mode).normalised()
    then = trial.header["scenario"]
    return all(now.get(key) == then.get(key) for key in ("path", "flows", "until", "measure"))

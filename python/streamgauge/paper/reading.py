"""A paper's experiments as they were run under one preset, in every mode of which trials are there."""

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
        """Modes of which there are trials, sim first."""
        return [mode for mode in ("sim", "emu") if any(entry.group(mode) for entry in self.entries)]

    @property
    def checks(self) -> list[CheckResult]:
        """Every verdict."""
        return [check for entry in self.entries for check in entry.checks]


def read(
    result: CampaignResult,
    preset: str,
    meaning: str,
    *,
    wall_s: float,
    mutants: Sequence[MutantResult] | None = None,
    alternatives: Sequence[Alternative] | None = None,
) -> Reading:
    """What a run left, and beside it what lies in its folder of the same scenarios in the other mode."""
    scenarios = {scenario.id: scenario for scenario in result.scenarios}
    order = list(scenarios)
    as_run = {
        (scenario.id, mode): scenario.in_mode(mode).normalised()
        for scenario in result.scenarios
        for mode in {outcome.job.mode for outcome in result.outcomes}
        if scenario.unsupported(mode) is None
    }
    mine = [
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
    ran = {(trial.scenario, trial.mode) for trial in mine}
    others = [trial for trial in _beside(result.out, ran) if _same(trial, scenarios)]
    entries = gather([*mine, *others], None if others else result.checks)
    return Reading(
        preset=preset,
        meaning=meaning,
        entries=tuple(sorted(entries, key=lambda entry: order.index(entry.id))),
        mutants=None if mutants is None else tuple(mutants),
        alternatives=None if alternatives is None else tuple(alternatives),
        trials=len(result.outcomes),
        reused=sum(outcome.reused for outcome in result.outcomes),
        wall_s=wall_s,
        out=result.out,
    )


def _beside(out: Path, ran: set[tuple[str, str]]) -> list[LoadedTrial]:
    """Trials in the folder that this run did not make: of the other mode."""
    modes = {mode for _, mode in ran}
    others = (folder for folder in sweep(out) if folder.parent.name.partition("=")[2] not in modes)
    # Nothing else lies in the folder of what was set, so that it need not be said of each.
    return [
        replace(trial, header={**trial.header, "set": [], "set_with": []}) for trial in load_trials(others)
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

"""From trials in folders to the cases of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.campaign.invalid import Tried, say_invalid
from streamgauge.campaign.layout import sweep
from streamgauge.campaign.loaded import LoadedTrial, load_trials
from streamgauge.compare.comparison import SubjectTrials
from streamgauge.compare.metrics import take_from
from streamgauge.compare.origin import origin_of
from streamgauge.compare.shown import SHOWN_RATE, shown_rate
from streamgauge.errors import StreamGaugeError
from streamgauge.metrics import TrialMetrics
from streamgauge.scenario.settings import named

__all__ = ["ALONE", "alone_beside", "cases_of", "focused_data", "repetitions", "take"]

ALONE = Path("variations") / "alone"
"""Below a campaign's folder: its scenarios' neighbours alone."""


def take(metrics: TrialMetrics, scenario: Mapping[str, Any], *, flow: str | None = None) -> dict[str, float]:
    """Returns the compared metrics of a trial of a scenario (normalised); see
    `streamgauge.compare.metrics.take_from`."""

    def value(metric: str, name: str) -> float:
        try:
            if metric == SHOWN_RATE:
                return shown_rate(lambda other: value(other, name), scenario, name)
            return metrics.value(metric, name)
        except (KeyError, ValueError):
            return float("nan")

    infos = {name: found.info for name, found in metrics.flows.items()}
    return take_from(value, infos, flow=flow)


def repetitions(trials: Sequence[LoadedTrial]) -> tuple[dict[int, LoadedTrial], int]:
    """Returns for one scenario's trials in a mode the valid one of each repetition, by the seed that it has
    or replaces, and the number of repetitions without one."""
    found: dict[int, LoadedTrial] = {}
    asked = set()
    for trial in sorted(trials, key=lambda one: (one.replaces is not None, one.seed)):
        repetition = trial.seed if trial.replaces is None else trial.replaces
        asked.add(repetition)
        if trial.valid:
            found.setdefault(repetition, trial)
    return found, len(asked - set(found))


def cases_of(
    subject: str,
    trials: Iterable[LoadedTrial],
    *,
    flow: str | None = None,
    bases: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[SubjectTrials]:
    """Returns a subject's trials as cases, one for each scenario, set and mode. A trial that cannot be read
    counts as invalid.

    Args:
        subject: the compared subject.
        trials: valid and invalid ones.
        flow: the subject flow, if not the one with that role.
        bases: scenarios before their compared part was varied, by the id of the scenario.
    """
    groups: dict[tuple[str, str], list[LoadedTrial]] = {}
    for trial in trials:
        groups.setdefault((named(trial.scenario, trial.settings), trial.mode), []).append(trial)
    found = []
    for (id_, mode), mine in groups.items():
        valid, invalid = repetitions(mine)
        read: dict[int, dict[str, float]] = {}
        unread = []
        for seed, trial in valid.items():
            try:
                metrics = trial.metrics
            except (StreamGaugeError, OSError):
                metrics = None
            if metrics is None:
                invalid += 1
                unread.append(trial)
                continue
            read[seed] = take(metrics, trial.header["scenario"], flow=flow)
        scenario = focused_data(mine[0].header["scenario"], flow)
        base = None if bases is None else bases.get(str(scenario.get("id")))
        case = SubjectTrials(
            subject=subject,
            id=id_,
            scenario=scenario,
            mode=mode,
            trials=read,
            invalid=invalid,
            base=base,
            origin=origin_of((trial.header, trial.provenance) for trial in valid.values()),
            note=say_invalid(
                Tried(one.seed, one.replaces, False, ("its metrics cannot be read",))
                if any(one is other for other in unread)
                else Tried(one.seed, one.replaces, one.valid, one.why)
                for one in mine
            ),
        )
        found.append(case)
    return found


def focused_data(scenario: Mapping[str, Any], flow: str | None) -> Mapping[str, Any]:
    """Returns a normalised scenario with `flow`, if it has it, as the subject."""
    flows: Mapping[str, Any] = scenario.get("flows") or {}
    if flow is None or flow not in flows:
        return scenario
    roles = {name: {**one, "role": "subject" if name == flow else "rival"} for name, one in flows.items()}
    return {**scenario, "flows": roles}


def alone_beside(campaigns: Iterable[Path]) -> list[SubjectTrials]:
    """Returns the neighbours' trials that lie beside these campaigns' folders (`ALONE`); see
    `streamgauge.compare.alone`."""
    folders = [folder for out in dict.fromkeys(campaigns) for folder in sweep(out / ALONE)]
    return cases_of("", load_trials(folders))

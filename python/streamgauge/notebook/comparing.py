"""From trials to a comparison: which of them are of one subject, and under which conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from streamgauge.campaign.layout import campaign_of
from streamgauge.campaign.loaded import LoadedTrial
from streamgauge.compare import SubjectTrials, answered, compare
from streamgauge.compare.conditions import key_of, under_test
from streamgauge.compare.labels import subject_labels
from streamgauge.compare.trials import alone_beside, cases_of
from streamgauge.errors import StreamGaugeError
from streamgauge.notebook.compared import ComparedRuns, sound_metrics
from streamgauge.scenario.settings import named
from streamgauge.scenario.values import nearest

__all__ = ["compare_trials"]

_SYSTEM: Final = "system"
"""Subjects are the compared systems."""
_AS_IT_IS: Final = "as it is"
"""The subject in which an address was not set."""
_ALL_MODES: Final = "sim and emu"
"""The mode of subjects that are modes."""


def compare_trials(
    folders: Mapping[Path, Sequence[LoadedTrial]],
    *,
    baseline: str | None,
    by: str | None,
    metrics: Sequence[str],
    flow: str | None,
) -> ComparedRuns:
    """Compares trials; of several folders each is a subject. See `Runs.compare`.

    Raises:
        StreamGaugeError: if there are not two subjects, or no such baseline, metric or address.
    """
    sound_metrics(tuple(metrics))
    trials = [one for mine in folders.values() for one in mine]
    if len(folders) > 1:
        if by is not None:
            raise StreamGaugeError(f"by is '{by}', but of several folders each is a subject; leave it out")
        found = {str(folder): list(mine) for folder, mine in folders.items()}
    else:
        by, found = _subjects(trials, by)
    if baseline is not None and baseline not in found:
        close = nearest(baseline, found)
        remedy = f"did you mean '{close}'?" if close else f"the subjects are {', '.join(found)}"
        raise StreamGaugeError(f"there is no subject '{baseline}'; {remedy}")
    if by in (None, _SYSTEM, "scenario"):
        cases = [case for subject, mine in found.items() for case in cases_of(subject, mine, flow=flow)]
    else:
        cases = _varied(found, by, flow)
    campaigns = [campaign_of(one.directory) for one in trials if one.directory is not None]
    told = compare([*cases, *alone_beside(campaigns)], baseline=baseline, metrics=metrics)
    return ComparedRuns.of(answered(told))


def _subjects(trials: Sequence[LoadedTrial], by: str | None) -> tuple[str, dict[str, list[LoadedTrial]]]:
    """Returns the key that distinguishes trials of one campaign, by default the first with two values; and
    each subject's trials."""
    addresses = list(dict.fromkeys(one.partition("=")[0] for trial in trials for one in trial.settings))
    ways = [_SYSTEM, "scenario", "mode", *addresses]
    if by is not None and by not in ways:
        close = nearest(by, ways)
        remedy = f"did you mean '{close}'?" if close else f"there are {', '.join(ways)}"
        raise StreamGaugeError(f"by '{by}' these trials cannot be told apart; {remedy}")
    tried = [by] if by is not None else [_SYSTEM, *(addresses if len(addresses) == 1 else []), "mode"]
    for way in tried:
        found = _by(trials, way)
        if len(found) > 1:
            return way, found
    raise StreamGaugeError(
        f"there is nothing to compare: by {' or '.join(tried)} these trials are one subject; by=... "
        f"names their difference, one of {', '.join(ways)}"
    )


def _by(trials: Iterable[LoadedTrial], way: str) -> dict[str, list[LoadedTrial]]:
    """Trials by subject."""
    by_key: dict[str, list[LoadedTrial]] = {}
    for trial in trials:
        by_key.setdefault(_key(trial, way), []).append(trial)
    if way not in (_SYSTEM, "scenario"):
        return by_key
    ids = {key: [named(one.scenario, one.settings) for one in mine] for key, mine in by_key.items()}
    names = subject_labels(ids)
    return {names[key]: mine for key, mine in by_key.items()}


def _key(trial: LoadedTrial, way: str) -> str:
    """Returns the common key of the trials of a subject."""
    if way == "mode":
        return trial.mode
    if way == "scenario":
        return named(trial.scenario, trial.settings)
    if way != _SYSTEM:
        return dict(one.split("=", 1) for one in trial.settings).get(way, _AS_IT_IS)
    scenario = trial.header.get("scenario")
    return key_of(under_test(scenario)) if isinstance(scenario, Mapping) else str(scenario)


def _varied(found: Mapping[str, Sequence[LoadedTrial]], by: str, flow: str | None) -> list[SubjectTrials]:
    """Returns the trials of subjects that are modes or values: those that are alike but for that share their
    conditions."""
    cases: list[SubjectTrials] = []
    bases: dict[str, SubjectTrials] = {}
    for subject, mine in found.items():
        rest: dict[str, list[LoadedTrial]] = {}
        for trial in mine:
            rest.setdefault(_rest(trial, by), []).append(trial)
        for of, alike in rest.items():
            for case in cases_of(subject, alike, flow=flow):
                base = bases.setdefault(of, case).scenario
                cases.append(replace(case, base=base, of=of, mode=_ALL_MODES if by == "mode" else case.mode))
    return cases


def _rest(trial: LoadedTrial, by: str) -> str:
    """Returns the trial's scenario with its settings but for the address `by`."""
    return named(trial.scenario, [one for one in trial.settings if one.partition("=")[0] != by])

"""Comparable scenarios of a report: like with like, by their ids and their conditions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.campaign.layout import campaign_of
from streamgauge.compare import Comparison, SubjectTrials, answered, compare, take_from
from streamgauge.compare.conditions import conditions_of, key_of, under_test
from streamgauge.compare.labels import difference_labels, subject_labels
from streamgauge.compare.trials import alone_beside
from streamgauge.report.model import Entry, Group

__all__ = ["comparisons", "tells_all"]


def comparisons(entries: Sequence[Entry]) -> list[Comparison]:
    """Returns comparisons of scenarios that differ in the subject, or in the queue, and in nothing
    else.

    Those of the same subjects under several conditions are one comparison. The first subject is the baseline.
    """
    by_conditions: dict[str, list[Entry]] = {}
    for entry in entries:
        by_conditions.setdefault(key_of(conditions_of(entry.scenario)), []).append(entry)
    families: dict[tuple[str, ...], list[list[Entry]]] = {}
    for mine in by_conditions.values():
        subjects = [key_of(under_test(entry.scenario)) for entry in mine]
        if len(set(subjects)) < 2:
            continue
        # Two scenarios of the same subject and conditions differ in words alone, or in their metrics.
        kept = dict(zip(reversed(subjects), reversed(mine), strict=True))
        families.setdefault(tuple(sorted(kept)), []).append(
            [entry for entry in mine if entry in kept.values()]
        )
    return [_compared(blocks) for blocks in families.values()]


def tells_all(found: Comparison, entries: Sequence[Entry]) -> bool:
    """Returns whether a comparison's subjects are scenarios of these entries, each one's its own: of commits,
    modes and saved baselines they are not."""
    ids = {entry.id: {group.mode for group in entry.groups} for entry in entries}
    of: dict[str, set[str]] = {}
    for (subject, _, mode), id_ in found.entries.items():
        if mode not in ids.get(id_, ()):
            return False
        of.setdefault(id_, set()).add(subject)
    return bool(of) and all(len(subjects) == 1 for subjects in of.values())


def _compared(blocks: Sequence[Sequence[Entry]]) -> Comparison:
    ids: dict[str, list[str]] = {}
    for block in blocks:
        for entry in block:
            ids.setdefault(key_of(under_test(entry.scenario)), []).append(entry.id)
    labels = subject_labels(ids)
    if set(labels.values()) & set(ids):
        # Their ids are the same in every part: the subject's system differs.
        tested = [under_test(entry.scenario) for entry in blocks[0]]
        labels = difference_labels({key_of(one): one for one in tested})
    cases = [
        _case(labels[key_of(under_test(entry.scenario))], entry, group)
        for block in blocks
        for entry in block
        for group in entry.groups
    ]
    return answered(compare([*cases, *alone_beside(_campaigns(blocks))]))


def _case(subject: str, entry: Entry, group: Group) -> SubjectTrials:
    numbers = group.numbers
    seeds = [trial.seed if trial.replaces is None else trial.replaces for trial in group.valid]
    trials = {}
    for place, seed in enumerate(seeds):

        def value(metric: str, name: str, at: int = place) -> float:
            return float(numbers.column(metric, name)[at])

        trials[seed] = take_from(value, numbers.infos)
    asked = {trial.seed if trial.replaces is None else trial.replaces for trial in group.trials}
    return SubjectTrials(
        subject=subject,
        id=entry.id,
        # Conditions are the entry's, so that a stand-in's are no other ones.
        scenario=entry.scenario,
        mode=group.mode,
        trials=trials,
        invalid=len(asked - set(seeds)),
    )


def _campaigns(blocks: Sequence[Sequence[Entry]]) -> list[Path]:
    return [
        campaign_of(trial.directory)
        for block in blocks
        for entry in block
        for group in entry.groups
        for trial in group.trials[:1]
        if trial.directory is not None
    ]

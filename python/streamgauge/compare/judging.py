"""Compares subjects with the baseline, in every scenario with the same conditions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from streamgauge.compare.comparison import ComparedRow, Comparison, DifferenceVerdict, SubjectTrials
from streamgauge.compare.conditions import differences, key_of, neighbours_of
from streamgauge.compare.labels import scenario_labels
from streamgauge.compare.metrics import COMPARED, ComparedMetric, Margin, harm, left_out_of
from streamgauge.compare.origin import origins_apart
from streamgauge.compare.statistics import Estimate, holm, paired, unpaired
from streamgauge.metrics.interval import interval
from streamgauge.systems.on_demand import is_on_demand

__all__ = ["compare", "with_harm"]


@dataclass(frozen=True)
class _Block:
    """The cases of one scenario in one mode, by subject."""

    label: str
    mode: str
    cases: Mapping[str, SubjectTrials]


@dataclass(frozen=True)
class _Measured:
    """A row without its verdict, and the difference that decides it; None of the baseline's."""

    row: ComparedRow
    estimate: Estimate | None = None


def compare(
    cases: Sequence[SubjectTrials],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    margins: Mapping[str, Margin] | None = None,
    looks: int = 1,
) -> Comparison:
    """Compares subjects in every scenario that the baseline and another ran under the same conditions.

    Cases without a subject flow are the neighbours alone, the reference of harm. Differences are paired by
    seed where at least two seeds, and half of the smaller sample, are in both. A row is *better* or *worse*
    if a difference of zero is refuted at 5 %, corrected for all rows by Holm's method; *equal* if a
    difference beyond the margin is, likewise corrected (equal takes precedence over better and worse: a
    difference below the margin does not matter); else *undecided*.

    Args:
        cases: the trials, in the order of the subjects.
        baseline: the reference subject; the first if None.
        metrics: only these, by name; all that are not on request alone if empty.
        margins: of metrics by name, in place of their own.
        looks: how often data like these are looked at before it is decided, which divides the 5 %.

    Raises:
        ValueError: if there is no such baseline or metric.
    """
    tested = [case for case in cases if case.has_flow_under_test]
    subjects = tuple(dict.fromkeys(case.subject for case in tested))
    if baseline is None:
        baseline = subjects[0] if subjects else ""
    if baseline not in subjects:
        raise ValueError(f"the baseline {baseline!r} is none of {', '.join(subjects)}")
    if unknown := [name for name in metrics if name not in COMPARED]:
        raise ValueError(f"no compared metric is called {unknown[0]!r}; there are {', '.join(COMPARED)}")
    chosen = [one for one in COMPARED.values() if (one.name in metrics if metrics else not one.on_request)]
    if not metrics and all(_is_on_demand(case) for case in tested):
        chosen = [one for one in chosen if one.name != "live_latency"]
    blocks, left_out = _blocks(with_harm(cases), baseline)
    by_block = {id(block): _rows(block, subjects, baseline, chosen, margins or {}) for block in blocks}
    told = [block for block in blocks if by_block[id(block)]]
    silent = [
        f"{block.label} ({block.mode}) is not comparable, because no valid trial knows any of its metrics."
        for block in blocks
        if block not in told
    ]
    judged = _judged([one for block in told for one in by_block[id(block)]], 0.05 / looks)
    return Comparison(
        subjects=subjects,
        baseline=baseline,
        scenarios=tuple(dict.fromkeys(block.label for block in told)),
        modes=tuple(dict.fromkeys(block.mode for block in told)),
        rows=tuple(judged),
        not_comparable=(*left_out, *silent),
        notes=tuple(dict.fromkeys(note for block in blocks for note in _notes(block, baseline))),
        entries={
            (subject, block.label, block.mode): case.id
            for block in blocks
            for subject, case in block.cases.items()
        },
    )


def _is_on_demand(case: SubjectTrials) -> bool:
    """Returns whether all subject flows are films on demand, which are not behind anything."""
    flows = (case.scenario.get("flows") or {}).values()
    mine = [flow for flow in flows if flow.get("role", "subject") == "subject"]
    return all(is_on_demand(flow) for flow in mine)


def with_harm(cases: Sequence[SubjectTrials]) -> list[SubjectTrials]:
    """Returns the cases with a subject flow, with harm in each trial that has a trial of the neighbours
    alone with the same seed; existing harm stays."""
    tested = [case for case in cases if case.has_flow_under_test]
    return _harmed(tested, [case for case in cases if not case.has_flow_under_test])


def _harmed(cases: Sequence[SubjectTrials], alone: Sequence[SubjectTrials]) -> list[SubjectTrials]:
    by_key = {(case.mode, key_of(neighbours_of(case.scenario))): case for case in alone}
    found = []
    for case in cases:
        other = by_key.get((case.mode, key_of(neighbours_of(case.scenario))))
        if other is not None:
            trials = {}
            for seed, read in case.trials.items():
                has = seed in other.trials and "harm" not in read
                done = harm(read, other.trials[seed]) if has else math.nan
                trials[seed] = {**read, "harm": done} if math.isfinite(done) else read
            case = replace(case, trials=trials)
        found.append(case)
    return found


def _blocks(cases: Sequence[SubjectTrials], baseline: str) -> tuple[list[_Block], list[str]]:
    """Returns cases by mode and conditions, those with the baseline and another; and the omitted ones, in
    words."""
    groups: dict[tuple[str, str], dict[str, SubjectTrials]] = {}
    for case in cases:
        key = (case.mode, f"{case.of}\n{key_of(case.conditions)}")
        place = 2
        # The same subject may have two scenarios of one kind, while others lack the second.
        while case.subject in groups.get(key, {}):
            key = (key[0], f"{key[1].partition(chr(0))[0]}\0{place}")
            place += 1
        groups.setdefault(key, {})[case.subject] = case
    # A subject alone has no reference, but its values all the same.
    fewest = min(2, len({case.subject for case in cases}))
    kept = [(mode, mine) for (mode, _), mine in groups.items() if baseline in mine and len(mine) >= fewest]
    compared = {id(case) for _, mine in kept for case in mine.values()}
    left_out = _sentences([case for case in cases if id(case) not in compared], cases, baseline)
    by_ids: dict[tuple[str, ...], list[tuple[str, dict[str, SubjectTrials]]]] = {}
    for mode, mine in kept:
        by_ids.setdefault(tuple(sorted({case.of or case.id for case in mine.values()})), []).append(
            (mode, mine)
        )
    labels = scenario_labels(list(by_ids))
    blocks = [
        _Block(label, mode, mine)
        for label, found in zip(labels, by_ids.values(), strict=True)
        for mode, mine in found
    ]
    return sorted(blocks, key=lambda block: block.mode != "sim"), left_out


def _sentences(missed: Sequence[SubjectTrials], cases: Sequence[SubjectTrials], baseline: str) -> list[str]:
    """Returns why cases are in no comparison, each once, the nearest of the baseline's named."""
    found: dict[str, None] = {}
    for case in missed:
        if case.subject == baseline:
            continue
        others = [other for other in cases if other.subject == baseline and other.mode == case.mode]
        if not others:
            modes = (
                " and ".join(sorted({other.mode for other in cases if other.subject == baseline}))
                or "no mode"
            )
            ran = f"it ran in {case.mode} and {baseline} in {modes}"
            found[f"{case.id} ({case.subject}) is not comparable, because {ran}."] = None
            continue
        apart = {id(other): differences(case.conditions, other.conditions) for other in others}
        nearest = min(others, key=lambda other: len(apart[id(other)]))
        said = [
            f"{address} is {mine} in the one and {theirs} in the other"
            for address, mine, theirs in apart[id(nearest)][:2]
        ]
        more = len(apart[id(nearest)]) - 2
        because = "; ".join(said) + (f"; {more} more differences" if more > 0 else "")
        because = because or f"{baseline} has no further scenario like it"
        found[
            f"{case.id} ({case.subject}) and {nearest.id} ({baseline}) are not comparable, because {because}."
        ] = None
    return list(found)


def _notes(block: _Block, baseline: str) -> Iterable[str]:
    """Yields the remarks on the trials of a block."""
    theirs = block.cases[baseline]
    for subject, case in block.cases.items():
        if case.note:
            yield f"{subject} in {block.label} ({block.mode}): {case.note}."
        if subject != baseline:
            yield from origins_apart(block.mode, baseline, theirs.origin, subject, case.origin)


def _rows(
    block: _Block,
    subjects: Sequence[str],
    baseline: str,
    metrics: Iterable[ComparedMetric],
    margins: Mapping[str, Margin],
) -> list[_Measured]:
    """Returns the rows of a scenario and mode, without verdicts; metrics without any value have none."""
    found: list[_Measured] = []
    order = [subject for subject in subjects if subject in block.cases]
    losses = {
        subject: {"loss": math.fsum(known) / len(known)}
        for subject, case in block.cases.items()
        if (known := [read["loss"] for read in case.trials.values() if "loss" in read])
    }
    for metric in metrics:
        values = {
            subject: {
                seed: read[metric.name] for seed, read in sorted(case.trials.items()) if metric.name in read
            }
            for subject, case in block.cases.items()
        }
        if not any(values.values()):
            continue
        theirs = values[baseline]
        about = math.fsum(theirs.values()) / len(theirs) if theirs else 0.0
        margin = margins.get(metric.name, metric.margin)
        beaten = _beaten(metric, values, margin.about(about))
        ranks = _ranks(metric, values, beaten)
        for subject in order:
            mine = values[subject]
            row = ComparedRow(
                subject=subject,
                scenario=block.label,
                mode=block.mode,
                metric=metric.name,
                value=None,
                interval=None,
                n=len(mine),
                invalid=block.cases[subject].invalid,
                rank=ranks.get(subject),
                beaten_by=beaten.get(subject, ()),
                margin=margin.about(about),
                values=tuple(mine.items()),
            )
            if mine:
                own = interval(list(mine.values()))
                ends = None if own.low is None or own.high is None else (own.low, own.high)
                row = replace(
                    row,
                    value=own.mean,
                    interval=ends,
                    no_variation=own.no_variation,
                    without=left_out_of(metric.name, losses.get(subject, {})),
                )
            found.append(_Measured(row) if subject == baseline else _against(row, mine, theirs, baseline))
    return found


def _against(
    row: ComparedRow, mine: Mapping[int, float], theirs: Mapping[int, float], baseline: str
) -> _Measured:
    """Returns the row with its difference to the baseline, undecided."""
    if not mine or not theirs:
        who = row.subject if not mine else baseline
        return _Measured(replace(row, verdict="undecided", why=f"no valid trial of {who} knows it"))
    found, is_paired = _difference(mine, theirs)
    row = replace(
        row,
        difference=found.mean,
        difference_interval=found.interval,
        pairs=found.n,
        paired=is_paired,
        method=found.method,
        same_difference=found.no_variation,
        verdict="undecided",
        why="one repetition has no interval" if found.interval is None else "more repetitions may decide it",
    )
    return _Measured(row, found)


def _difference(mine: Mapping[int, float], theirs: Mapping[int, float]) -> tuple[Estimate, bool]:
    """Returns the difference of means, and whether it is paired by seed."""
    both = [seed for seed in mine if seed in theirs]
    fewest = min(len(mine), len(theirs))
    if len(both) == fewest or (len(both) >= 2 and 2 * len(both) >= fewest):
        return paired([mine[seed] for seed in both], [theirs[seed] for seed in both]), True
    return unpaired(list(mine.values()), list(theirs.values())), False


def _beaten(
    metric: ComparedMetric, values: Mapping[str, Mapping[int, float]], margin: float
) -> dict[str, tuple[str, ...]]:
    """Returns the subjects that beat each subject in one metric: worse means so at 5 %, corrected for the
    number of pairs."""
    known = {subject: mine for subject, mine in values.items() if mine}
    pairs = list(combinations(known, 2))
    estimates = [_difference(known[a], known[b])[0] for a, b in pairs]
    beaten: dict[str, list[str]] = {subject: [] for subject in known}
    for (a, b), one in zip(pairs, _told_apart(estimates, [margin] * len(pairs), metric, 0.05), strict=True):
        if one in ("better", "worse"):
            worse, better = (a, b) if one == "worse" else (b, a)
            beaten[worse].append(better)
    return {subject: tuple(others) for subject, others in beaten.items()}


def _ranks(
    metric: ComparedMetric,
    values: Mapping[str, Mapping[int, float]],
    beaten: Mapping[str, Sequence[str]],
) -> dict[str, int]:
    """Returns 1 plus the number of subjects that beat each, or the rank of a better value if that is further
    back: an unbeaten subject with scattered trials does not precede better ones."""
    sign = -1.0 if metric.better == "more" else 1.0
    means = {one: sign * math.fsum(values[one].values()) / len(values[one]) for one in beaten}
    found: dict[str, int] = {}
    furthest = 0
    for mean in sorted(set(means.values())):
        alike = [one for one in means if means[one] == mean]
        furthest = max(furthest, *(len(beaten[one]) for one in alike))
        found |= dict.fromkeys(alike, furthest)
    # Pairs may disagree with means if not all seeds are valid: one is first all the same.
    first = min(found.values(), default=0)
    return {one: 1 + rank - first for one, rank in found.items()}


def _told_apart(
    estimates: Sequence[Estimate],
    margins: Sequence[float],
    metrics: ComparedMetric | Sequence[ComparedMetric],
    level: float,
) -> list[DifferenceVerdict]:
    """Returns a verdict on each difference: the two families of probabilities, of a difference and of one
    beyond the margin, are each corrected for their number. Where nothing varied the value itself decides."""
    refuted = holm([one.probability for one in estimates])
    close = holm([one.within(margin) for one, margin in zip(estimates, margins, strict=True)])
    each = [metrics] * len(estimates) if isinstance(metrics, ComparedMetric) else metrics
    found: list[DifferenceVerdict] = []
    for one, margin, metric, chance, near in zip(estimates, margins, each, refuted, close, strict=True):
        by_direction: DifferenceVerdict = "better" if (one.mean > 0) == (metric.better == "more") else "worse"
        if one.no_variation:
            found.append("equal" if abs(one.mean) <= margin else by_direction)
        elif near is not None and near <= level:
            found.append("equal")
        else:
            found.append(by_direction if chance is not None and chance <= level else "undecided")
    return found


def _judged(measured: Sequence[_Measured], level: float) -> list[ComparedRow]:
    """Returns the rows with verdicts."""
    asked = [(one.row, one.estimate) for one in measured if one.estimate is not None]
    estimates = [estimate for _, estimate in asked]
    verdicts = iter(
        zip(
            _told_apart(
                estimates, [row.margin or 0.0 for row, _ in asked], [row.about for row, _ in asked], level
            ),
            holm([one.probability for one in estimates]),
            strict=True,
        )
    )
    found = []
    for one in measured:
        row = one.row
        if one.estimate is not None:
            verdict, chance = next(verdicts)
            why = row.why if verdict == "undecided" else ""
            row = replace(row, verdict=verdict, probability=chance, why=why)
        found.append(row)
    return found

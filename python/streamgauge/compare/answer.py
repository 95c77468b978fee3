"""What came of a comparison, in sentences: who serves the viewer best, by how much, how sure, and at whose
cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamgauge.compare.comparison import ComparedRow, Comparison
from streamgauge.compare.metrics import COMPARED, SIDES
from streamgauge.compare.words import say_difference, say_value

__all__ = ["MANY", "answered", "best_for_viewer", "has_viewer", "listed", "sentences"]

MANY = 6
"""Of more subjects a sentence names the best alone, and a table has a line for each."""
_MODE = {"sim": "simulated", "emu": "emulated"}


def answered(found: Comparison) -> Comparison:
    """The comparison with its answer."""
    return replace(found, answer=tuple(sentences(found)))


def sentences(found: Comparison) -> list[str]:
    """The verdict in a sentence, then for each scenario what each side says of each subject against the
    baseline, then what was not comparable."""
    if not found.scenarios:
        return list(found.not_comparable)
    if len(found.subjects) == 1:
        basis = _basis(found, found.scenarios)
        return [f"{found.baseline} is the only subject, so nothing is compared ({basis})."]
    return [_verdict(found), *_against_baseline(found), *_other_mode(found), *found.not_comparable]


def best_for_viewer(found: Comparison, scenario: str, mode: str) -> str | None:
    """Who serves the viewer best in a scenario: who is better than every other in one of the viewer's metrics
    at least, by rank, and worse in none; without such metrics, by those of the flow. None if nobody is."""
    rows = _ranked(found, scenario, mode)
    subjects = list(dict.fromkeys(row.subject for row in rows))
    ranks = {
        subject: {row.metric: row.rank for row in rows if row.subject == subject} for subject in subjects
    }
    for one in subjects:
        if len(subjects) > 1 and all(_beats(ranks[one], ranks[other]) for other in subjects if other != one):
            return one
    return None


def _ranked(found: Comparison, scenario: str, mode: str) -> list[ComparedRow]:
    """The rows that decide who is best: the viewer's, or else the flow's."""
    rows = [
        row for row in found.rows if (row.scenario, row.mode) == (scenario, mode) and row.rank is not None
    ]
    viewer = [row for row in rows if row.side == "viewer"]
    known = {row.metric for row in viewer}
    deciding = [row for row in viewer if row.about.said_by not in known]
    return deciding or [row for row in rows if row.side == "flow"]


def _beats(mine: dict[str, int | None], theirs: dict[str, int | None]) -> bool:
    both = [(mine[name], theirs[name]) for name in mine if name in theirs]
    no_worse = all(a is not None and b is not None and a <= b for a, b in both)
    return no_worse and any(a is not None and b is not None and a < b for a, b in both)


def _verdict(found: Comparison) -> str:
    """The first sentence."""
    best = {one: best_for_viewer(found, one, found.best_mode(one)) for one in found.scenarios}
    does = _does(found)
    if len(best) == 1:
        ((scenario, one),) = best.items()
        mode = found.best_mode(scenario)
        basis = _basis(found, [scenario])
        if one is None:
            return f"{_no_best(found, scenario, mode)} ({basis})."
        return f"{one} {does} best: {_telling(found, scenario, mode, one)} ({basis})."
    counts: dict[str, list[str]] = {}
    for scenario, one in best.items():
        if one is not None:
            counts.setdefault(one, []).append(scenario)
    basis = _basis(found, found.scenarios)
    rest = [scenario for scenario, one in best.items() if one is None]
    if not counts:
        return f"{_everywhere(found)} ({basis})."
    if len(counts) == 1 and not rest:
        return f"{next(iter(counts))} {does} best in all {len(best)} scenarios ({basis})."
    said = listed([f"{one} in {listed(mine)}" for one, mine in counts.items()])
    tail = f"; in {listed(rest)} nobody does in everything" if rest else ""
    whom = " for the viewer" if has_viewer(found) else ""
    return f"Best{whom} is {said}{tail} ({basis})."


def has_viewer(found: Comparison) -> bool:
    """Whether anything is known of what viewers see."""
    return any(row.side == "viewer" and row.value is not None for row in found.rows)


def _does(found: Comparison) -> str:
    return "serves the viewer" if has_viewer(found) else "does"


def _everywhere(found: Comparison) -> str:
    """Of several scenarios in none of which anybody is best: who is by which metric, and in which."""
    firsts: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for scenario in found.scenarios:
        for metric, first in _firsts(found, scenario, found.best_mode(scenario)).items():
            firsts.setdefault(metric, {}).setdefault(first, []).append(scenario)
    parts = [
        f"{_is_best(first, found)} by {COMPARED[metric].short} in {listed(scenarios)}"
        for metric, by_first in firsts.items()
        for first, scenarios in by_first.items()
    ]
    if parts:
        return f"Nobody {_does(found)} best in everything: {'; '.join(parts)}"
    others = [row for row in found.rows if row.verdict is not None]
    if others and all(row.verdict == "equal" for row in others):
        return f"{listed(found.subjects)} are practically equal in all scenarios"
    return f"It is not decided who {_does(found)} best in any scenario"


def _is_best(first: Sequence[str], found: Comparison) -> str:
    if len(first) > MANY:
        return f"{len(first)} of {len(found.subjects)} are best"
    return f"{listed(first)} {'is' if len(first) == 1 else 'are'} best"


def _firsts(found: Comparison, scenario: str, mode: str) -> dict[str, tuple[str, ...]]:
    """Who is best by each metric of `_ranked` in which not all are."""
    by_metric: dict[str, list[ComparedRow]] = {}
    for row in _ranked(found, scenario, mode):
        by_metric.setdefault(row.metric, []).append(row)
    best = {metric: tuple(row.subject for row in rows if row.rank == 1) for metric, rows in by_metric.items()}
    return {metric: first for metric, first in best.items() if len(first) < len(by_metric[metric])}


def _no_best(found: Comparison, scenario: str, mode: str) -> str:
    parts = []
    for metric, first in _firsts(found, scenario, mode).items():
        told = [
            f"{row.subject} {say_value(row)}"
            for row in found.rows
            if (row.scenario, row.mode, row.metric) == (scenario, mode, metric)
            and (len(found.subjects) <= MANY or row.subject in first)
        ]
        values = f" ({', '.join(told)})" if len(told) <= MANY else ""
        parts.append(f"{_is_best(first, found)} by {COMPARED[metric].short}{values}")
    if parts:
        return f"Nobody {_does(found)} best in everything: {'; '.join(parts)}"
    ranked = {row.metric for row in _ranked(found, scenario, mode)}
    others = [
        row
        for row in found.rows
        if row.verdict is not None and row.metric in ranked and (row.scenario, row.mode) == (scenario, mode)
    ]
    if others and all(row.verdict == "equal" for row in others):
        told = [COMPARED[name].short for name in dict.fromkeys(row.metric for row in others)]
        return f"{listed(found.subjects)} are practically equal: {listed(told)}"
    return f"It is not decided who {_does(found)} best"


def _telling(found: Comparison, scenario: str, mode: str, best: str) -> str:
    """The metrics by which the best is so, with everybody's values."""
    rows = _ranked(found, scenario, mode)
    parts = []
    for metric in dict.fromkeys(row.metric for row in rows):
        mine = {row.subject: row for row in rows if row.metric == metric}
        ours = mine.get(best)
        if ours is None or not any(row.rank and ours.rank and row.rank > ours.rank for row in mine.values()):
            continue
        rest = [row for subject, row in mine.items() if subject != best and row.value is not None]
        if len(mine) > MANY:
            sign = -1 if ours.about.better == "more" else 1
            rest = sorted(rest, key=lambda row: sign * (row.value or 0.0))[:1]
        others = [f"{row.subject} {say_value(row)}" for row in rest]
        parts.append(f"{COMPARED[metric].short} {say_value(ours)}, {listed(others)}")
    return "; ".join(parts[:3])


def _basis(found: Comparison, scenarios: Sequence[str]) -> str:
    """Mode, n and whether pairs were compared, of the modes that answer."""
    asked = {(scenario, found.best_mode(scenario)) for scenario in scenarios}
    rows = [row for row in found.rows if (row.scenario, row.mode) in asked and row.value is not None]
    if not rows:
        return "nothing measured"
    modes = list(dict.fromkeys(row.mode for row in rows))
    counts = sorted({row.n for row in rows})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    words = [listed([_MODE.get(mode, mode) for mode in modes]), n]
    pairs = {row.paired for row in rows if row.difference is not None}
    if counts[-1] < 2:
        words.append("so nothing is decided")
    elif pairs:
        how = "paired by seed" if all(pairs) else "paired in part" if any(pairs) else "unpaired"
        words.append(how)
    return ", ".join(words)


def _against_baseline(found: Comparison) -> list[str]:
    """A sentence a subject and side; of several scenarios which metrics differ, and in which."""
    said = []
    for subject in found.subjects:
        if subject == found.baseline:
            continue
        for side, words in SIDES.items():
            rows = [
                row
                for row in found.rows
                if row.subject == subject and row.side == side and row.mode == found.best_mode(row.scenario)
            ]
            text = _side(rows, found) if len(found.scenarios) == 1 else _over_scenarios(rows, found)
            if text:
                said.append(f"{subject} against {found.baseline}, {words}: {text}.")
    return said


def _over_scenarios(rows: Sequence[ComparedRow], found: Comparison) -> str:
    parts = []
    for verdict in ("better", "worse"):
        told = []
        for metric in dict.fromkeys(row.metric for row in rows):
            mine = [row for row in rows if row.metric == metric and row.verdict == verdict]
            if mine:
                most = max(mine, key=lambda row: abs(row.difference or 0.0))
                where = listed([row.scenario for row in mine])
                of = f", most in {most.scenario}" if len(mine) > 1 else ""
                told.append(f"{COMPARED[metric].short} in {where} ({say_difference(most)}{of})")
        if told:
            parts.append(f"{verdict} in {listed(told)}")
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("equal", "undecided")}
    words = {"equal": "practically equal", "undecided": "undecided"}
    judged = sum(row.verdict is not None for row in rows)
    rest = [f"{count} of {judged} {words[verdict]}" for verdict, count in counts.items() if count]
    return "; ".join([*parts, *([listed(rest)] if rest else [])])


def _side(rows: Sequence[ComparedRow], found: Comparison) -> str:
    parts = []
    for verdict in ("better", "worse"):
        told = []
        for row in rows:
            base = found.row(found.baseline, row.scenario, row.mode, row.metric)
            if row.verdict == verdict and base is not None:
                by = say_difference(row)
                told.append(
                    f"{COMPARED[row.metric].short} {say_value(row)} instead of {say_value(base)} ({by})"
                )
        if told:
            parts.append(f"{verdict} in {listed(told)}")
    for verdict, words in (("equal", "practically equal in"), ("undecided", "undecided in")):
        if names := [COMPARED[row.metric].short for row in rows if row.verdict == verdict]:
            parts.append(f"{words} {listed(names)}")
    return "; ".join(parts)


def _other_mode(found: Comparison) -> list[str]:
    """Whether the mode that does not answer says the same of what is decided in both."""
    same, otherwise = 0, []
    others = set()
    for row in found.rows:
        mode = found.best_mode(row.scenario)
        if row.mode != mode or row.verdict in (None, "undecided"):
            continue
        other = "sim" if mode == "emu" else "emu"
        beside = found.row(row.subject, row.scenario, other, row.metric)
        if beside is None or beside.verdict in (None, "undecided"):
            continue
        others.add(other)
        if beside.verdict == row.verdict:
            same += 1
        else:
            otherwise.append(f"{COMPARED[row.metric].short} of {row.subject}")
    if not others:
        return []
    name = "Simulation" if others == {"sim"} else "Emulation" if others == {"emu"} else "The other mode"
    text = f"{name} says the same of {same} of {same + len(otherwise)} differences that both decide"
    if otherwise:
        text += f", and otherwise of {listed(list(dict.fromkeys(otherwise)))}"
    return [f"{text}."]


def listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last

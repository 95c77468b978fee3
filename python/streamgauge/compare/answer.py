"""Result of a comparison, in sentences: the best subject for the viewer, by how much, how sure, and at the
cost of which others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamgauge.compare.comparison import ComparedRow, Comparison
from streamgauge.compare.metrics import COMPARED, SIDES
from streamgauge.compare.words import say_difference, say_value

__all__ = [
    "MANY",
    "WEIGHED",
    "answered",
    "best_for_viewer",
    "deciding_metrics",
    "has_viewer",
    "listed",
    "sentences",
]

MANY = 6
"""With more subjects a sentence names the best alone, and a table has a line for each."""
_FEW = 3
"""Most subjects of one metric that are named."""
WEIGHED = "qoe_lin"
"""The metric that weighs the whole experience of adaptive players' viewers."""
_MODE = {"sim": "simulated", "emu": "emulated"}


def answered(found: Comparison) -> Comparison:
    """Returns the comparison with its answer."""
    return replace(found, answer=tuple(sentences(found)))


def sentences(found: Comparison) -> list[str]:
    """Returns the verdict in a sentence, then for each scenario the view of each side on each subject against
    the baseline, then the incomparable ones."""
    if not found.scenarios:
        return list(found.not_comparable)
    if len(found.subjects) == 1:
        basis = _basis(found, found.scenarios)
        return [f"{found.baseline} is the only subject, so nothing is compared ({basis})."]
    return [_verdict(found), *_against_baseline(found), *_other_mode(found), *found.not_comparable]


def best_for_viewer(found: Comparison, scenario: str, mode: str) -> str | None:
    """Returns the subject that serves the viewer best in a scenario: it is better than every other beyond
    doubt in one of the viewer's metrics at least, and worse in none; without such metrics, by those of the
    flow. None if none is."""
    rows = _ranked(found, scenario, mode)
    subjects = list(dict.fromkeys(row.subject for row in rows))
    by = {subject: {row.metric: row for row in rows if row.subject == subject} for subject in subjects}
    for one in subjects:
        if len(subjects) > 1 and all(_beats(by[one], by[other]) for other in subjects if other != one):
            return one
    return None


def _ranked(found: Comparison, scenario: str, mode: str) -> list[ComparedRow]:
    """Returns the rows that decide the best subject: the viewer's, or else the flow's."""
    rows = [
        row for row in found.rows if (row.scenario, row.mode) == (scenario, mode) and row.rank is not None
    ]
    viewer = [row for row in rows if row.side == "viewer"]
    known = {row.metric for row in viewer}
    deciding = [row for row in viewer if row.about.said_by not in known]
    return deciding or [row for row in rows if row.side == "flow"]


def _beats(mine: Mapping[str, ComparedRow], theirs: Mapping[str, ComparedRow]) -> bool:
    """Returns whether the one is better than the other beyond doubt in a metric, and worse in none."""
    both = [(mine[name], theirs[name]) for name in mine if name in theirs]
    worse = any(b.subject in a.beaten_by for a, b in both)
    return not worse and any(a.subject in b.beaten_by for a, b in both)


def _verdict(found: Comparison) -> str:
    """Returns the first sentence."""
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
    tail = f"; in {listed(rest)} no subject is in everything" if rest else ""
    whom = " for the viewer" if has_viewer(found) else ""
    return f"Best{whom} is {said}{tail} ({basis})."


def has_viewer(found: Comparison) -> bool:
    """Returns whether anything is known of viewers' experience."""
    return any(row.side == "viewer" and row.value is not None for row in found.rows)


def _does(found: Comparison) -> str:
    return "serves the viewer" if has_viewer(found) else "does"


@dataclass(frozen=True)
class _Separation:
    """Subjects that a metric separates in a scenario."""

    metric: str
    first: ComparedRow
    """The best value."""
    level: tuple[ComparedRow, ...]
    """Those of the first rank, each without one that is better beyond doubt, by value."""
    rest: tuple[ComparedRow, ...]
    """All others, by value: a better subject is better beyond doubt, or than one of a better value."""

    @property
    def count(self) -> int:
        """Returns how many subjects it is known of."""
        return len(self.level) + len(self.rest)

    @property
    def beaten(self) -> list[ComparedRow]:
        """Returns those that the best value is better than beyond doubt."""
        return [row for row in self.rest if self.first.subject in row.beaten_by]

    @property
    def has_best(self) -> bool:
        """Returns whether one subject is better than all others."""
        return len(self.beaten) == self.count - 1


def _separations(found: Comparison, scenario: str, mode: str) -> list[_Separation]:
    """Returns each metric of `_ranked` that separates any: QoE first, where it is known, which weighs the
    whole experience; then in the order of tables."""
    by_metric: dict[str, list[ComparedRow]] = {}
    for row in _ranked(found, scenario, mode):
        if row.value is not None:
            by_metric.setdefault(row.metric, []).append(row)
    made = []
    for metric, rows in by_metric.items():
        sign = -1.0 if COMPARED[metric].better == "more" else 1.0
        rows.sort(key=lambda row: sign * (row.value or 0.0))
        first = rows[0]
        level = tuple(row for row in rows if row.rank == 1)
        rest = tuple(row for row in rows if row.rank != 1)
        if rest:
            made.append(_Separation(metric, first, level, rest))
    return sorted(made, key=lambda one: one.metric != WEIGHED)


def deciding_metrics(found: Comparison, scenario: str, mode: str) -> list[str]:
    """Returns the metrics that separate any subjects in a scenario and mode, in the answer's order."""
    return [one.metric for one in _separations(found, scenario, mode)]


def _everywhere(found: Comparison) -> str:
    """Returns for several scenarios without a best subject: the separations of each metric, and their
    places."""
    told: dict[str, list[str]] = {}
    for scenario in found.scenarios:
        for one in _separations(found, scenario, found.best_mode(scenario)):
            told.setdefault(_apart(one), []).append(scenario)
    if told:
        parts = [f"{text} in {listed(scenarios)}" for text, scenarios in told.items()]
        return "; ".join(parts)
    others = [row for row in found.rows if row.verdict is not None]
    if others and all(row.verdict == "equal" for row in others):
        return f"{listed(found.subjects)} are practically equal in all scenarios"
    return f"It is not decided who {_does(found)} best in any scenario"


def _apart(one: _Separation) -> str:
    """Returns ``udp is best by time frozen``, ``time frozen does not separate 9 of 10``."""
    short = COMPARED[one.metric].short
    if one.has_best:
        return f"{one.first.subject} is best by {short}"
    if one.count > MANY or len(one.level) > _FEW:
        if len(one.level) == 1:
            return f"{one.first.subject} is better than {len(one.beaten)} of {one.count - 1} by {short}"
        return f"{short} does not separate {len(one.level)} of {one.count}"
    worse = [row.subject for row in one.rest if row.beaten_by]
    level = [row.subject for row in one.level]
    head = f"{short} does not separate {listed(level)}" if len(level) > 1 else f"{level[0]} leads by {short}"
    return f"{head}; {listed(worse)} {'is' if len(worse) == 1 else 'are'} worse"


def _no_best(found: Comparison, scenario: str, mode: str) -> str:
    apart = _separations(found, scenario, mode)
    if apart:
        return f"{_head(apart)}: {'; '.join(_in_full(one) for one in apart)}"
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


def _head(apart: Sequence[_Separation]) -> str:
    """Returns the decision in brief: the best subject by metrics; without one, the first of the
    separations."""
    winners: dict[str, list[str]] = {}
    for one in apart:
        if one.has_best:
            winners.setdefault(one.first.subject, []).append(COMPARED[one.metric].short)
    if winners:
        (subject, metrics), *others = winners.items()
        told = [f"{subject} is best by {listed(metrics)}"]
        return ", ".join([*told, *(f"{other} by {listed(theirs)}" for other, theirs in others)])
    one = apart[0]
    if one.beaten and len(one.level) <= _FEW:
        short = COMPARED[one.metric].short
        return f"{one.first.subject} is better than {len(one.beaten)} of {one.count - 1} by {short}"
    text = _apart(one)
    return f"{text[0].upper()}{text[1:]}"


def _in_full(one: _Separation) -> str:
    """Returns a metric with its values."""
    short = COMPARED[one.metric].short
    if one.has_best:
        others = one.rest if one.count <= MANY else one.rest[:1]
        then = "" if one.count <= MANY else "then "
        return f"{short} {_with_value(one.first)}, {then}{listed([_with_value(row) for row in others])}"
    if len(one.level) > _FEW:
        ends = f"{say_value(one.level[0])} to {say_value(one.level[-1])}"
        parts = [f"{short} does not separate {len(one.level)} of {one.count} ({ends})"]
    elif len(one.level) > 1:
        parts = [f"{short} does not separate {listed([_with_value(row) for row in one.level])}"]
    else:
        parts = [f"{short} {_with_value(one.first)}"]
    worse = [row for row in one.rest if row.beaten_by]
    is_by_all = all(first.subject in row.beaten_by for row in worse for first in one.level)
    than = "" if is_by_all else " than one of these"
    if len(worse) > _FEW:
        parts.append(f"{len(worse)} others are worse{than}, {_with_value(worse[0])} the best of them")
    elif worse:
        parts.append(
            f"{listed([_with_value(row) for row in worse])} {'is' if len(worse) == 1 else 'are'} worse{than}"
        )
    loose = [row for row in one.rest if not row.beaten_by]
    if loose:
        names = listed([_with_value(row) for row in loose]) if len(loose) <= _FEW else f"{len(loose)} others"
        parts.append(f"{names} {'comes' if len(loose) == 1 else 'come'} after by value alone")
    return ", ".join(parts)


def _with_value(row: ComparedRow) -> str:
    return f"{row.subject} {say_value(row)}"


def _telling(found: Comparison, scenario: str, mode: str, best: str) -> str:
    """Returns the metrics by which the best is so, with everybody's values."""
    rows = _ranked(found, scenario, mode)
    parts = []
    for metric in dict.fromkeys(row.metric for row in rows):
        mine = {row.subject: row for row in rows if row.metric == metric}
        ours = mine.get(best)
        if ours is None or not any(best in row.beaten_by for row in mine.values()):
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
    """Returns a sentence a subject and side; of several scenarios which metrics differ, and in which."""
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
    """Returns whether the mode that does not answer agrees in all that is decided in both."""
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
    """Returns ``a``, ``a and b``, ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last

"""Which reading of a system explains the paper better, check by check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.checks import CheckResult
from streamgauge.checks.published import match_published, published_value
from streamgauge.paper.machines import in_order, mode_json, words_of
from streamgauge.paper.reading import Reading
from streamgauge.report.model import say_half
from streamgauge.terminal import lay_out

__all__ = [
    "CheckRow",
    "ComparedCheck",
    "check_rows",
    "columns_of",
    "compare",
    "comparison_text",
    "counted",
    "published_words",
    "short",
    "verdict",
]

_RANK = {"pass": 2, "inconclusive": 1, "fail": 0}
_NEARER = 0.05
"""Two readings with a smaller difference in their distances from the published numbers are equally near."""


@dataclass(frozen=True)
class ComparedCheck:
    """One check in one mode, emu on one machine, under every reading."""

    check: CheckResult
    """Its words; the verdict is the first reading's."""
    by_reading: dict[str, CheckResult]
    distance: dict[str, float | None]
    """Mean relative distance from the published numbers; None where there are none to match."""
    better: str
    """A reading's name; ``both`` or ``neither`` where verdicts and distances are alike."""

    def to_json(self) -> dict[str, Any]:
        """Returns its place in ``reproduce --json``."""
        return {
            "id": self.check.id,
            "scenario": self.check.scenario,
            **mode_json(self.check.mode),
            "title": self.check.title,
            "origin": self.check.origin,
            "strict": self.check.strict,
            "better": self.better,
            "readings": {
                name: {
                    "verdict": one.verdict,
                    "why": one.why,
                    "distance_percent": None
                    if self.distance[name] is None
                    else 100 * (self.distance[name] or 0.0),
                }
                for name, one in self.by_reading.items()
            },
        }


def compare(readings: Sequence[Reading]) -> list[ComparedCheck]:
    """Returns every check that was judged under all readings."""
    found = []
    for check in readings[0].checks:
        by_reading = {}
        for reading in readings:
            entry = reading.by_id.get(check.scenario)
            same = [
                one for one in entry.checks if (one.id, one.mode) == (check.id, check.mode)
            ] if entry else []  # fmt: skip
            if same:
                by_reading[reading.name] = same[0]
        if len(by_reading) == len(readings):
            distance = {name: _distance(one) for name, one in by_reading.items()}
            found.append(ComparedCheck(check, by_reading, distance, _better(by_reading, distance)))
    return found


def _distance(check: CheckResult) -> float | None:
    apart = []
    for key, value in match_published(check.values, check.published).items():
        theirs = published_value(check.published[key])[0]
        if theirs:
            apart.append(abs(value.interval.mean - theirs) / abs(theirs))
    return sum(apart) / len(apart) if apart else None


def _better(by_reading: dict[str, CheckResult], distance: dict[str, float | None]) -> str:
    best = max(_RANK[one.verdict] for one in by_reading.values())
    leading = [name for name, one in by_reading.items() if _RANK[one.verdict] == best]
    if len(leading) > 1 and all(distance[name] is not None for name in leading):
        least = min(distance[name] or 0.0 for name in leading)
        leading = [name for name in leading if (distance[name] or 0.0) <= least + _NEARER]
    if len(leading) == 1:
        return leading[0]
    return "both" if best == _RANK["pass"] else "neither"


def counted(compared: Sequence[ComparedCheck], names: Sequence[str]) -> str:
    """Returns how often which was better, a sentence or two for each mode."""
    of = _by_mode(compared)
    if len(of) > 1:
        return " ".join(f"In {words_of(mode, of)}: {counted(mine, names)}" for mode, mine in of.items())
    counts = {name: sum(one.better == name for one in compared) for name in (*names, "both", "neither")}
    verdicts = "; ".join(
        f"reading {name}: "
        + ", ".join(
            f"{sum(one.by_reading[name].verdict == verdict for one in compared)} {verdict}"
            for verdict in _RANK
        )
        for name in names
    )
    nearer = ", ".join(f"reading {name} in {counts[name]}" for name in names)
    return (
        f"{verdicts}. Of {len(compared)} checks {nearer} explains the paper better, both alike in "
        f"{counts['both']}, neither in {counts['neither']}."
    )


def _by_mode(compared: Sequence[ComparedCheck]) -> dict[str, list[ComparedCheck]]:
    modes = in_order(one.check.mode for one in compared)
    return {mode: [one for one in compared if one.check.mode == mode] for mode in modes}


def verdict(compared: Sequence[ComparedCheck], readings: Sequence[Reading]) -> str:
    """Returns the reading that explains the paper better, in a sentence: ``Reading described explains the
    paper better: it does so for 29 of 65 checks against 12 of reading sources; 44 hold under each.`` With
    several modes it names the mode, and has a part for each."""
    names = [reading.name for reading in readings]
    among = {mode for reading in readings for mode in reading.modes}
    told = {words_of(mode, among): _verdict(mine, names) for mode, mine in _by_mode(compared).items()}
    heads = {head for head, _ in told.values()}
    head = heads.pop() if len(heads) == 1 else "Which reading explains the paper better differs by mode"
    if len(told) > 1:
        return f"{head}: " + "; ".join(f"in {mode} {rest}" for mode, (_, rest) in told.items()) + "."
    (mode, (_, rest)), *_ = told.items()
    return f"{head} in {mode}: {rest}." if len(among) > 1 else f"{head}: {rest}."


def _verdict(compared: Sequence[ComparedCheck], names: Sequence[str]) -> tuple[str, str]:
    wins = {name: sum(one.better == name for one in compared) for name in names}
    held = {name: sum(one.by_reading[name].verdict == "pass" for one in compared) for name in names}
    best, *others = sorted(names, key=lambda name: (wins[name], held[name]), reverse=True)
    numbers = " and ".join(f"{wins[name]} of reading {name}" for name in others)
    if len(set(held.values())) == 1:
        holds = f"{held[best]} hold under each"
    else:
        holds = f"{held[best]} hold under reading {best}, " + ", ".join(
            f"{held[name]} under reading {name}" for name in others
        )
    if any((wins[name], held[name]) == (wins[best], held[best]) for name in others):
        return (
            "No reading explains the paper better",
            f"{wins[best]} of {len(compared)} checks each; {holds}",
        )
    return (
        f"Reading {best} explains the paper better",
        f"it does so for {wins[best]} of {len(compared)} checks against {numbers}; {holds}",
    )


@dataclass(frozen=True)
class CheckRow:
    """One check under every reading and in every mode in which it was judged."""

    check: CheckResult
    """Its words."""
    cells: dict[tuple[str, str], CheckResult]
    """By reading and mode."""
    better: str
    """A reading's name, ``both`` or ``neither``; where modes differ each with its own, and empty where it was
    not judged under all readings."""


def columns_of(readings: Sequence[Reading]) -> dict[tuple[str, str], str]:
    """Returns the columns of checks, by reading and mode, and their names: the mode where there are
    several."""
    among = {mode for reading in readings for mode in reading.modes}
    return {
        (reading.name, mode): f"{reading.name}, {words_of(mode, among)}" if len(among) > 1 else reading.name
        for reading in readings
        for mode in reading.modes
    }


def check_rows(compared: Sequence[ComparedCheck], readings: Sequence[Reading]) -> list[CheckRow]:
    """Returns every check once, in the order of the scenarios."""
    cells: dict[tuple[str, str], dict[tuple[str, str], CheckResult]] = {}
    for reading in readings:
        for check in reading.checks:
            cells.setdefault((check.scenario, check.id), {})[reading.name, check.mode] = check
    better: dict[tuple[str, str], dict[str, str]] = {}
    for one in compared:
        better.setdefault((one.check.scenario, one.check.id), {})[one.check.mode] = one.better
    rows = []
    for key, mine in cells.items():
        of = better.get(key, {})
        told = ", ".join(dict.fromkeys(of.values()))
        if len(set(of.values())) > 1:
            told = ", ".join(f"{mode} {name}" for mode, name in of.items())
        rows.append(CheckRow(next(iter(mine.values())), mine, told))
    return rows


def short(check: CheckResult) -> str:
    """Returns the measured value, with half its interval."""
    value = check.measured
    return "–" if value is None else say_half(value.interval, value.dimension, signed=value.signed)


def published_words(check: CheckResult) -> str:
    """Returns the paper's printed value, in a line."""
    told = [str(text) if key == "value" else f"{key} {text}" for key, text in check.published.items()]
    return ", ".join(told)


def comparison_text(
    compared: Sequence[ComparedCheck], readings: Sequence[Reading], columns: int | None = None
) -> str:
    """Returns the table for a terminal, no wider than `columns`."""
    names = [reading.name for reading in readings]
    named = columns_of(readings)
    rows = [["check", "scenario", "", *named.values(), "better"]]
    for one in check_rows(compared, readings):
        check = one.check
        found = [one.cells.get(place) for place in named]
        cells = ["–" if cell is None else f"{cell.verdict}: {short(cell)}" for cell in found]
        where = check.scenario.rpartition("/")[2]
        kind = "strict" if check.strict else "" if check.origin == "predicted" else check.origin
        rows.append([check.id, where, kind, *cells, one.better])
    head = "Which reading explains the paper better, check by check"
    laid = lay_out(rows, "l" * len(rows[0]), columns=columns, keys=3, indent=2)
    told = [text.plain for text in laid]
    return "\n".join([verdict(compared, readings), "", head, *told, "  " + counted(compared, names)])

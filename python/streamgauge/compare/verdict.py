"""Verdict of a comparison: the same in the exit status, JUnit XML and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamgauge.compare.answer import listed
from streamgauge.compare.comparison import ComparedRow, Comparison

__all__ = ["GateVerdict", "verdict_of"]


@dataclass(frozen=True)
class GateVerdict:
    """Verdict on all subjects against the baseline."""

    verdict: Literal["pass", "fail", "inconclusive"]
    why: str
    """In a sentence."""


def verdict_of(found: Comparison) -> GateVerdict:
    """It *fails* if any metric of any subject is worse than the baseline's. It is *inconclusive* if nothing
    is comparable, if more than a third of a subject's repetitions in a scenario and mode have no valid trial,
    or if no row is decided. Else it *passes*; undecided rows beside decided ones are reported. A subject
    alone, which becomes a baseline, passes if enough of its trials are valid."""
    others = [row for row in found.rows if row.verdict is not None]
    if worse := [row for row in others if row.verdict == "worse"]:
        return GateVerdict("fail", f"{_counted(len(worse))} worse: {_names(worse, found)}.")
    alone = len(found.subjects) == 1
    if not found.rows or not (others or alone):
        return GateVerdict("inconclusive", "Nothing is comparable.")
    if lost := found.mostly_invalid:
        where = listed([f"{subject} in {scenario} ({mode})" for subject, scenario, mode in lost])
        return GateVerdict(
            "inconclusive", f"More than a third of the repetitions of {where} have no valid trial."
        )
    if alone:
        return GateVerdict("pass", f"{found.baseline} is the only subject, and held against nothing.")
    undecided = [row for row in others if row.verdict == "undecided"]
    if len(undecided) == len(others):
        reasons = dict.fromkeys(row.why for row in undecided if row.why)
        return GateVerdict("inconclusive", f"Nothing is decided: {listed(list(reasons))}.")
    rest = f"; {_counted(len(undecided))} undecided: {_names(undecided, found)}" if undecided else ""
    return GateVerdict("pass", f"No metric is worse than the baseline's{rest}.")


def _counted(count: int) -> str:
    return "1 metric is" if count == 1 else f"{count} metrics are"


def _names(rows: list[ComparedRow], found: Comparison) -> str:
    """Returns the metrics, with subject and place if there are several."""
    several = len(found.subjects) > 2
    places = len({(row.scenario, row.mode) for row in found.rows}) > 1
    said = dict.fromkeys(
        row.about.short
        + (f" of {row.subject}" if several else "")
        + (f" in {row.scenario} ({row.mode})" if places else "")
        for row in rows
    )
    most = list(said)[:6]
    return listed([*most, f"{len(said) - 6} more"] if len(said) > 6 else most)

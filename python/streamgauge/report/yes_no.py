"""Answers yes or no to questions that ask for it, with the evidence.

In this order: the checks that decide a question of the catalogue (``questions.json``, which names them); for
a question about a share or about evenness, the metric that measures it. Whatever else a question asks,
nothing here guesses.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources

from streamgauge.claims.dimension import NUMBER, PERCENT, show
from streamgauge.metrics import Interval
from streamgauge.report.model import Entry, Group, labels, listed

__all__ = ["EVEN", "ITS_SHARE", "asks_yes_or_no", "deciding_checks", "yes_or_no"]

ITS_SHARE = 0.9
"""A flow with this much of its max-min fair share has it."""
EVEN = 0.95
"""Jain's index from which on flows share evenly."""
_TOLD = 4

_ASKS = re.compile(r"(?:Do|Does|Did|Is|Are|Was|Will|Would|Can|Could|Has|Have)\b")
_SHARE = re.compile(r"\bleaves? .*\bshare\b")
_EVEN = re.compile(r"\bshare\b.*\b(?:evenly|equally|fairly)\b")


def asks_yes_or_no(question: str) -> bool:
    """Returns whether a question can be answered by yes or no."""
    return bool(_ASKS.match(question))


@cache
def deciding_checks() -> Mapping[str, Sequence[str]]:
    """Returns questions of the catalogue, with the checks that mean yes if they pass."""
    file = resources.files("streamgauge.report") / "questions.json"
    found: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def yes_or_no(question: str, entries: Sequence[Entry], groups: Sequence[Group]) -> str:
    """Returns the answer to a question that its scenarios, each by a group of trials, ask; empty if it is
    none of yes or no, or nothing decides it."""
    if not asks_yes_or_no(question):
        return ""
    if question in deciding_checks():
        return _by_checks(deciding_checks()[question], entries, groups)
    if _SHARE.search(question):
        return _by_share(entries, groups)
    if _EVEN.search(question):
        return _by_evenness(entries, groups)
    return ""


def _by_checks(ids: Sequence[str], entries: Sequence[Entry], groups: Sequence[Group]) -> str:
    mine = [
        (entry, check)
        for entry, group in zip(entries, groups, strict=True)
        for check in entry.checks
        if check.id in ids and check.mode == group.mode
    ]
    held = [check for _, check in mine if check.verdict == "pass"]
    failed = [(entry, check) for entry, check in mine if check.verdict == "fail"]
    if not mine or (not held and not failed):
        return ""
    word = "No" if not held else "Yes" if len(held) == len(mine) else "In part"
    short = labels([entry.id for entry in entries])
    text = f"{word}: {len(held)} of {len(mine)} checks that decide it hold"
    if failed and held:
        told = [f"{check.id} in {short[entry.id]}" for entry, check in failed]
        more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
        text += f"; not {listed(told[:_TOLD]) if not more else ', '.join(told[:_TOLD]) + more}"
    return f"{text}."


def _by_share(entries: Sequence[Entry], groups: Sequence[Group]) -> str:
    def worst(entry: Entry, group: Group) -> tuple[str, Interval] | None:
        found = [(name, group.over("max_min_share", name)) for name in entry.names("rival")]
        known = [(name, value) for name, value in found if value is not None]
        return min(known, key=lambda one: one[1].mean, default=None)

    def words(name: str, value: Interval) -> str:
        return f"{name} {show(value.mean, value.half_width, PERCENT, 2, signed=False)}"

    said = "of its max-min fair share the worst off got "
    return _decided(entries, groups, worst, ITS_SHARE, words, said, f"{100 * ITS_SHARE:.0f} %")


def _by_evenness(entries: Sequence[Entry], groups: Sequence[Group]) -> str:
    def index(entry: Entry, group: Group) -> tuple[str, Interval] | None:
        found = group.over("jain")
        return None if found is None else ("", found)

    def words(_: str, value: Interval) -> str:
        return str(show(value.mean, value.half_width, NUMBER, signed=False))

    return _decided(entries, groups, index, EVEN, words, "Jain's index is ", f"{EVEN:g}")


def _decided(
    entries: Sequence[Entry],
    groups: Sequence[Group],
    read: Callable[[Entry, Group], tuple[str, Interval] | None],
    least: float,
    words: Callable[[str, Interval], str],
    said: str,
    bound: str,
) -> str:
    """Yes if the whole interval lies at `least` (`bound` in words) or above in every scenario, no if it lies
    below in every one."""
    short = labels([entry.id for entry in entries])
    verdicts, told = [], []
    for entry, group in zip(entries, groups, strict=True):
        found = read(entry, group)
        if found is None:
            continue
        value = found[1]
        # A single repetition has no interval, and so decides nothing.
        half = math.inf if value.half_width is None else value.half_width
        verdicts.append(
            "yes" if value.mean - half >= least else "no" if value.mean + half < least else "open"
        )
        where = f" in {short[entry.id]}" if len(entries) > 1 else ""
        told.append(f"{words(*found)}{where}")
    if not told:
        return ""
    word = {frozenset({"yes"}): "Yes", frozenset({"no"}): "No", frozenset({"open"}): "Not decided"}.get(
        frozenset(verdicts), "In part"
    )
    more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    text = listed(told) if not more else ", ".join(told[:_TOLD]) + more
    return f"{word}: {said}{text} (yes is said from {bound} on)."

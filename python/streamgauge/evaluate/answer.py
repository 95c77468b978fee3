"""The answer of an evaluation, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamgauge.compare.answer import listed
from streamgauge.evaluate.judging import EvaluatedRow, bound_words, counted
from streamgauge.evaluate.question import SameAs
from streamgauge.evaluate.running import TrialsRan

__all__ = ["sentences", "value_words"]

_MOST: Final = 12
"""Most rows that are printed one by one."""
_MODES: Final = {"sim": "simulated", "emu": "emulated"}


def sentences(
    control: str, suite: str, mode: str, rows: Sequence[EvaluatedRow], ran: TrialsRan, seeds: int
) -> list[str]:
    """Returns the findings, the failures first."""
    counts = counted(rows)
    judged = len(rows) - counts["words"]
    found = [
        f"{control} passes {counts['pass']} of {judged} judged rows of {suite}, equals the reference in "
        f"{counts['equal']}, fails {counts['fail']}; {counts['undecided']} are undecided "
        f"({_MODES.get(mode, mode)}, n = {seeds})."
    ]
    faults = list(dict.fromkeys(fault.words for fault in ran.faults.values()))
    if faults:
        others = f"; {len(faults) - 1} other faults" if len(faults) > 1 else ""
        found.append(f"It broke {len(ran.faults)} of {ran.trials} trials: {faults[0]}{others}.")
    failed = [row for row in rows if row.verdict == "fail" and not row.why]
    for row in failed[:_MOST]:
        asked = row.question
        bound = bound_words(asked.bound, asked.unit)
        found.append(f"It fails '{asked.criterion}' ({asked.source}): {value_words(row)}, {bound}.")
    if len(failed) > _MOST:
        found.append(f"{len(failed) - _MOST} more rows fail; the page lists them.")
    compared = [row for row in rows if isinstance(row.question.bound, SameAs)]
    if compared and all(row.verdict == "equal" for row in compared):
        found.append(f"It equals the reference in each of {len(compared)} comparisons.")
    if counts["undecided"]:
        names = list(dict.fromkeys(row.question.criterion for row in rows if row.verdict == "undecided"))
        more = [f"{len(names) - 6} more"] if len(names) > 6 else []
        found.append(f"Undecided: {listed([*names[:6], *more])}.")
    if counts["words"]:
        found.append(f"{counts['words']} criteria need the author's words; no figure judges them.")
    return found


def value_words(row: EvaluatedRow) -> str:
    """Returns ``12.3 % [11.9, 12.7]``; of a row without a value ``no value``."""
    if row.value is None:
        return "no value"
    unit = "" if row.question.unit == "1" else f" {row.question.unit}"
    text = f"{row.value:.3g}{unit}"
    if row.interval is None or row.interval[0] == row.interval[1]:
        return text
    low, high = ("open" if end is None else f"{end:.3g}" for end in row.interval)
    return f"{text} [{low}, {high}]"

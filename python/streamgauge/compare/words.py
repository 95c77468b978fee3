"""Comparisons in words: never more digits than the interval bears."""

from __future__ import annotations

import math

from streamgauge.claims.dimension import PERCENT, UNITS, number, say, show
from streamgauge.compare.comparison import ComparedRow

__all__ = ["RANK_NOTE", "say_difference", "say_rank", "say_value", "say_without", "verdict_words"]

RANK_NOTE = "* no other is better beyond doubt; it ranks behind a better value that another is better than"
"""Meaning of a rank with an asterisk."""


def say_value(row: ComparedRow) -> str:
    """Returns a row's mean with half its interval: ``37.1 ± 0.4 %``; for a delay with the part that it leaves
    out."""
    if row.value is None:
        return "not known"
    ends = _ends(row.interval)
    half = None if ends is None else (ends[1] - ends[0]) / 2
    shown = str(show(row.value, half, row.about.dimension, signed=row.about.signed))
    return ", ".join(filter(None, (shown, say_without(row))))


def say_without(row: ComparedRow) -> str:
    """Returns the part that a mean leaves out: ``36.4 % lost``; empty if that is nothing."""
    return f"{say(row.without, PERCENT)} lost" if row.without else ""


def say_rank(row: ComparedRow | None) -> str:
    """Returns a row's rank, with an asterisk where its value alone puts it there; empty if it is not
    known."""
    if row is None or row.rank is None:
        return ""
    return f"{row.rank}{'*' if row.ranked_by_value else ''}"


def say_difference(row: ComparedRow) -> str:
    """Returns a row's difference to the baseline with its sign and half its interval: ``-36.9 ± 0.4 points``;
    its interval's ends where they lie unevenly, ``-36.9 [-40.1, -35.2] points``; empty of the baseline."""
    if row.difference is None:
        return ""
    sign = "+" if row.difference > 0 else ""
    return f"{sign}{_difference(row, 1)}"


def _difference(row: ComparedRow, sign: int) -> str:
    """Returns the difference, turned about if `sign` is negative."""
    assert row.difference is not None
    mean, ends = sign * row.difference, _ends(row.difference_interval)
    if ends is not None and sign < 0:
        ends = -ends[1], -ends[0]
    half = None if ends is None else (ends[1] - ends[0]) / 2
    shown = show(mean, half, row.about.dimension)
    unit = "points" if row.about.dimension == PERCENT else shown.unit
    middle = f"± {shown.half}" if shown.half else ""
    if ends is not None and shown.half and _is_uneven(mean, ends) and (scale := _scale(mean, shown.mean)):
        decimals = len(shown.mean.partition(".")[2])
        low, high = (f"{end / scale:.{decimals}f}" for end in ends)
        middle = f"[{low}, {high}]"
    if row.difference_interval is not None and ends is None:
        middle = "(no bound)"
    return " ".join(part for part in (shown.mean, middle, unit) if part)


def verdict_words(row: ComparedRow) -> str:
    """Returns ``better by 36.9 ± 0.4 points``, ``practically equal``, ``undecided: ...``; empty of the
    baseline."""
    match row.verdict:
        case None:
            return ""
        case "equal":
            return "practically equal"
        case "undecided":
            return f"undecided: {row.why}" if row.why else "undecided"
        case _:
            by = _difference(row, 1 if (row.difference or 0) > 0 else -1)
            return f"{row.verdict} by {by}{', no variation' if row.same_difference else ''}"


def say_share(share: float) -> str:
    """Returns a probability: ``p < 0.001``, ``p = 0.03``."""
    return "p < 0.001" if share < 0.001 else f"p = {number(share, 1)}"


def _ends(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None or not all(map(math.isfinite, interval)) else interval


def _is_uneven(mean: float, ends: tuple[float, float]) -> bool:
    """Returns whether one end is further away than the other by a quarter or more."""
    below, above = mean - ends[0], ends[1] - mean
    return min(below, above) < 0.75 * max(below, above)


def _scale(value: float, text: str) -> float:
    """Returns canonical units in one of the unit of `value` in `text`; 0 without a unit."""
    plain = float(text.replace("\u202f", ""))
    # Units are powers of ten, or eight of them: the text's rounding must not show in the ends.
    if not plain:
        return 0.0
    near = value / plain
    return min((unit for unit, _ in UNITS.values()), key=lambda unit: abs(math.log(unit / near)))

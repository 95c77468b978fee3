"""Outcome of invalid trials, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streamgauge.campaign.trial import Outcome

__all__ = ["Tried", "say_invalid", "say_tried"]

_MOST_SEEDS = 6
_MOST_REASONS = 3


class Tried(NamedTuple):
    """A trial that ran."""

    seed: int
    replaces: int | None
    """Seed of the invalid trial that it replaces."""
    valid: bool
    why: Sequence[str]


def say_invalid(tried: Iterable[Tried]) -> str:
    """Returns, for one subject's trials in a scenario and mode, the further seeds that replace invalid ones,
    and the repetitions without a valid trial; empty if all were valid at once."""
    lines: dict[int, list[Tried]] = {}
    for one in sorted(tried, key=lambda one: (one.replaces is not None, one.seed)):
        lines.setdefault(one.seed if one.replaces is None else one.replaces, []).append(one)
    replaced = {}
    missing = []
    reasons: dict[str, None] = {}
    for repetition, line in sorted(lines.items()):
        reasons.update(dict.fromkeys(reason for one in line if not one.valid for reason in one.why))
        stands = next((one.seed for one in line if one.valid), None)
        if stands is None:
            missing.append(repetition)
        elif stands != repetition:
            replaced[repetition] = stands
    parts = []
    if replaced:
        said = _cut([f"seed {seed} by {by}" for seed, by in replaced.items()], _MOST_SEEDS)
        parts.append(f"{_of(replaced, lines)} replaced by further seeds ({said})")
    if missing:
        tries = max(len(lines[seed]) for seed in missing)
        said = _cut([f"seed {seed}" for seed in missing], _MOST_SEEDS)
        after = f" after {tries} tries" if tries > 1 else ""
        parts.append(f"{_of(missing, lines)} without a valid trial{after} ({said})")
    if not parts:
        return ""
    because = f", because {_cut(list(reasons), _MOST_REASONS, '; ')}" if reasons else ""
    return f"{' and '.join(parts)}{because}"


def say_tried(outcomes: Iterable[Outcome]) -> list[str]:
    """Returns the same of one scenario's trials in a mode that ran; one line or none."""
    said = say_invalid(Tried(one.job.seed, one.job.replaces, one.valid, one.why) for one in outcomes)
    return [said] if said else []


def _of(some: Sequence[int] | dict[int, int], every: dict[int, list[Tried]]) -> str:
    return f"{len(some)} of {len(every)} repetitions {'is' if len(some) == 1 else 'are'}"


def _cut(parts: Sequence[str], most: int, between: str = ", ") -> str:
    more = len(parts) - most
    return between.join(parts[:most]) + (f" and {more} more" if more > 0 else "")

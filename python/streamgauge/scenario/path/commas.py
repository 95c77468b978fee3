"""A missing comma between two keys of a direction: one value then holds the next key and its value."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["CHOICES", "KEYS", "queue_in_full", "split_pairs", "split_values"]

CHOICES = ("max(", "min(")
"""A limit that begins so is the greatest or the least of several."""

#: What one line may say of a direction, in the order that packets cross it.
KEYS = (
    "block",
    "loss",
    "corrupt",
    "duplicate",
    "mtu",
    "rate",
    "trace",
    "csv",
    "queue",
    "shaper",
    "layer",
    "delay",
    "jitter",
    "reorder",
)


def split_pairs(text: str) -> list[str]:
    """A line cut at its commas, but for those in round brackets."""
    return re.split(r",(?![^()]*\))", text)


def split_values(key: str, value: str) -> Sequence[tuple[str, str]]:
    """``key`` and its value up to the next key in it, then each of those with theirs; just ``(key, value)``
    if there is none. A few settings are called as a key is (``mtu`` of a queue), so a comma is missing only
    where it makes sense so and not as it stands."""
    found, words = [], [key]
    for word in value.split():
        if word in KEYS and len(words) > 1:
            found.append((words[0], " ".join(words[1:])))
            words = []
        words.append(word)
    return [*found, (words[0], " ".join(words[1:]))]


def queue_in_full(value: str) -> str:
    """A queue that is said by its limit alone is drop-tail."""
    is_limit = value[:1].isdigit() or value[:1] == "." or value.startswith(CHOICES)
    return f"droptail {value}" if is_limit else value

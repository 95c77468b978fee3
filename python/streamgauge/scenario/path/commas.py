"""A missing comma between two keys of a direction: one value then holds the next key and its value."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["CHOICES", "KEYS", "queue_in_full", "split_pairs", "split_values"]

CHOICES = ("max(", "min(")
"""A limit that begins so is the greatest or the least of several."""

#: Keys of a direction in one line, in the order that packets cross it.
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
    """Returns a line cut at its commas, but for those in round brackets."""
    return re.split(r",(?![^()]*\))", text)


def split_values(key: str, value: str) -> Sequence[tuple[str, str]]:
    """Returns ``key`` and its value up to the next key in it, then each of those with theirs; just ``(key,
    value)`` if there is none. A few settings have the name of a key (``mtu`` of a queue): a comma is missing
    only if the value is valid with it and not without it."""
    found, words = [], [key]
    for word in value.split():
        if word in KEYS and len(words) > 1:
            found.append((words[0], " ".join(words[1:])))
            words = []
        words.append(word)
    return [*found, (words[0], " ".join(words[1:]))]


def queue_in_full(value: str) -> str:
    """Returns a drop-tail queue for a bare limit."""
    is_limit = value[:1].isdigit() or value[:1] == "." or value.startswith(CHOICES)
    return f"droptail {value}" if is_limit else value

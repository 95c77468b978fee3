"""Bounds of a scenario's text, held before it is expanded.

A few lines of YAML can expand to more nodes than any memory holds: aliases of aliases, variants of variants.
No shipped scenario reaches a tenth of any bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

__all__ = [
    "LARGEST_TEXT_BYTES",
    "MOST_DEPTH",
    "MOST_EXTENDED",
    "MOST_REPETITIONS",
    "MOST_SAMPLES",
    "MOST_TRIALS",
    "LimitError",
    "check_text",
    "check_variants",
]

LARGEST_TEXT_BYTES: Final = 4_000_000
MOST_NODES: Final = 200_000
"""Keys, items and values, each as often as aliases repeat it; each 64 characters of a long text count too."""
MOST_DEPTH: Final = 60
MOST_VARIANTS: Final = 5_000
MOST_VARIANT_NODES: Final = 2_000_000
"""Nodes of all variants together."""
MOST_EXTENDED: Final = 20
"""Files that extend one another."""

MOST_SAMPLES: Final = 10_000_000
"""Samples of a metric, or of a flow's TCP, in a trial with a fixed end."""
MOST_REPETITIONS: Final = 100_000
"""Repetitions of a scenario in a mode: each is a folder."""
MOST_TRIALS: Final = 1_000_000
"""Trials of a run."""

_BRACKETS: Final = re.compile(r"[\[\]{}]")
_LETTERS_A_NODE: Final = 64


class LimitError(ValueError):
    """A text beyond a bound: why, and the line, from 1."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why, self.line = why, line


def check_text(text: str) -> None:
    """Raises LimitError for a text with data beyond the bounds of a scenario.

    Text that is no YAML is left to the parser, which finds the place.
    """
    if len(text) > LARGEST_TEXT_BYTES:
        raise LimitError(f"has {len(text)} characters; a scenario has at most {LARGEST_TEXT_BYTES}")
    if not _may_be_beyond(text):
        return
    yaml = YAML(typ="safe")
    try:
        _count(yaml.parse(text))
    except (YAMLError, RecursionError):
        return


def check_variants(axes: Sequence[Iterable[object]], nodes: int) -> None:
    """Raises LimitError for more variants, or more of `nodes` each, than are made of one file."""
    count = 1
    for axis in axes:
        count *= max(1, sum(1 for _ in axis))
        if count > MOST_VARIANTS:
            raise LimitError(f"has more than {MOST_VARIANTS} variants")
    if count * nodes > MOST_VARIANT_NODES:
        raise LimitError(f"has {count} variants of {nodes} keys; together at most {MOST_VARIANT_NODES}")


def _may_be_beyond(text: str) -> bool:
    """Returns whether the events of a text have to be counted: parsing every scenario twice would take
    time."""
    if len(text) > MOST_NODES or ("*" in text and "&" in text):
        return True
    depth = deepest = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    indent = max(len(line) - len(line.lstrip(" -?:\t")) for line in text.split("\n"))
    return deepest + indent // 2 > MOST_DEPTH


def _count(events: Iterable[object]) -> None:
    sizes: dict[str, int | None] = {}
    #: For each open node: its anchor and the number of nodes before it.
    opened: list[tuple[str | None, int]] = []
    nodes = 0
    for event in events:
        line = event.start_mark.line + 1 if isinstance(event, NodeEvent) else None
        if isinstance(event, AliasEvent):
            size = sizes.get(event.anchor, 1)
            if size is None:
                raise LimitError(f"the alias *{event.anchor} contains itself", line)
            nodes += size
        elif isinstance(event, ScalarEvent):
            size = 1 + len(event.value) // _LETTERS_A_NODE
            nodes += size
            if event.anchor is not None:
                sizes[event.anchor] = size
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            opened.append((event.anchor, nodes))
            if event.anchor is not None:
                sizes[event.anchor] = None
            nodes += 1
            if len(opened) > MOST_DEPTH:
                raise LimitError(f"is nested more than {MOST_DEPTH} levels deep", line)
        elif opened and type(event).__name__ in ("MappingEndEvent", "SequenceEndEvent"):
            anchor, before = opened.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before
        if nodes > MOST_NODES:
            raise LimitError(f"has more than {MOST_NODES} values, aliases counted", line)

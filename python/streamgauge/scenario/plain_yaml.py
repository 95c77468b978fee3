"""Plain YAML by libyaml, in a fifth of the time that Python's own parser takes.

The plain form is the form of nearly every scenario: one document of mappings, lists and scalars of the core
schema. Any other text, or a wrong one, is left to the parser whose errors have a place and a reason.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ruamel.yaml import YAML, __with_libyaml__
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

__all__ = ["Key", "Lines", "read_plain"]

Key = tuple[str | int, ...]
Lines = dict[Key, int]
"""The line of every key and item, from 1."""

_PLAIN: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "null", "str"))
_TOLD_APART: Final = re.compile(r"[\t\r\x85\u2028\u2029\ufeff]|^%|(?:^|[\s\[{,])!(?!=)", re.MULTILINE)
"""Characters on which the two parsers differ: white space, ends of lines, and directives, which may ask for
another version of YAML; and tags, which are not plain."""
_MOST_OPENED: Final = 1000


class _NotPlain(Exception):
    """The other parser's."""


def read_plain(text: str) -> tuple[dict[str, Any], Lines] | None:
    """Returns the data of a YAML text and its lines; ``None`` if it is not plain, or libyaml is not there."""
    # libyaml's stack grows with the depth of nested nodes, without a limit.
    opened = sum(text.count(sign) for sign in ("[", "{", "- ", "? "))
    if not __with_libyaml__ or opened > _MOST_OPENED or _TOLD_APART.search(text):
        return None
    yaml = YAML(typ="safe")
    try:
        root = yaml.compose(text)
        if not isinstance(root, MappingNode):
            return None
        reading = _Reading(yaml)
        return reading.read(root, ()), reading.lines
    except (YAMLError, ValueError, RecursionError, _NotPlain):
        return None


class _Reading:
    """State of reading one text."""

    def __init__(self, yaml: YAML) -> None:
        self.lines: Lines = {}
        self._scalar = yaml.constructor.construct_object
        self._around: set[int] = set()

    def read(self, node: Node, at: Key) -> Any:
        if isinstance(node, ScalarNode) and node.tag in _PLAIN:
            return self._scalar(node)
        # An alias may be inside its own anchor.
        if id(node) in self._around:
            raise _NotPlain
        self._around.add(id(node))
        found: dict[str, Any] | list[Any]
        if isinstance(node, MappingNode) and node.tag == "tag:yaml.org,2002:map":
            found = self._mapping(node, at)
        elif isinstance(node, SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            found = self._sequence(node, at)
        else:
            raise _NotPlain
        self._around.remove(id(node))
        return found

    def _sequence(self, node: SequenceNode, at: Key) -> list[Any]:
        made = []
        for index, item in enumerate(node.value):
            where = (*at, index)
            self.lines[where] = item.start_mark.line + 1
            made.append(self.read(item, where))
        return made

    def _mapping(self, node: MappingNode, at: Key) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, (line, value) in self._entries(node).items():
            where = (*at, name)
            self.lines[where] = line
            made[name] = self.read(value, where)
        return made

    def _entries(self, node: MappingNode) -> dict[str, tuple[int, Node]]:
        """Returns the line and the value of each key, after its own those that it takes over: these stand
        where it begins."""
        found: dict[str, tuple[int, Node]] = {}
        taken: Node | None = None
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge" and taken is None:
                taken = value
                continue
            if not isinstance(key, ScalarNode) or key.tag not in _PLAIN:
                raise _NotPlain
            name = str(self._scalar(key))
            if name in found:
                raise _NotPlain
            found[name] = key.start_mark.line + 1, value
        if isinstance(taken, MappingNode):
            for name, (_, value) in self._entries(taken).items():
                found.setdefault(name, (node.start_mark.line + 1, value))
        elif taken is not None:
            raise _NotPlain
        return found

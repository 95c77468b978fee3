"""A scenario file as data: YAML with the line of every key, and its variants."""

from __future__ import annotations

import copy
import io
import itertools
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarbool import ScalarBoolean

from streamgauge.errors import ScenarioError
from streamgauge.input_files import UnfitInputError, read_input
from streamgauge.scenario import plain_yaml
from streamgauge.scenario.limits import LARGEST_TEXT_BYTES, LimitError, check_text, check_variants
from streamgauge.scenario.overrides import OverrideError, apply_override
from streamgauge.scenario.plain_yaml import Key

__all__ = ["Document", "Key", "Place", "declared_ids", "expanded", "key_text", "parse_document", "read_text"]

Place = tuple[str, int | None]
"""File and line."""
_LABEL = "label"
_SMALLER = "split it into several files"


class Document:
    """A file's data with the line of every key. Overrides carry the place that they were written at."""

    def __init__(self, data: dict[str, Any], file: str, places: dict[Key, Place]) -> None:
        self.data = data
        self.file = file
        self.places = places

    def copy(self) -> Document:
        return Document(copy.deepcopy(self.data), self.file, dict(self.places))

    def place(self, key: Key) -> Place:
        """File and line of ``key``, or of the nearest thing around it."""
        for end in range(len(key), 0, -1):
            if key[:end] in self.places:
                return self.places[key[:end]]
        return self.file, 1

    def set(self, address: str, value: Any, place: Place) -> None:
        """Applies an override. Raises ScenarioError placed where it was written."""
        try:
            paths = apply_override(self.data, address, value)
        except OverrideError as error:
            raise ScenarioError(
                error.why, file=place[0], line=place[1], key=address, hint=error.hint
            ) from None
        for path in paths:
            for key in [key for key in self.places if key[: len(path)] == path]:
                del self.places[key]
            self.places[path] = place


def _plain(node: Any, at: Key, file: str, places: dict[Key, Place]) -> Any:
    """YAML nodes as plain data; fills ``places``. Raises ScenarioError at a tag."""
    tag = getattr(getattr(node, "tag", None), "value", None)
    if tag:
        line = places[at][1] if at in places else 1
        raise ScenarioError(f"the tag {str(tag)[:60]} is not read", file=file, line=line, hint="leave it out")
    if isinstance(node, CommentedMap):
        made: dict[str, Any] = {}
        for key, value in node.items():
            name = str(_plain(key, at, file, places))
            where = (*at, name)
            line = node.lc.data[key][0] + 1 if key in node.lc.data else node.lc.line + 1
            places[where] = (file, line)
            made[name] = _plain(value, where, file, places)
        return made
    if isinstance(node, CommentedSeq):
        items = []
        for index, value in enumerate(node):
            where = (*at, index)
            line = node.lc.data[index][0] + 1 if index in node.lc.data else node.lc.line + 1
            places[where] = (file, line)
            items.append(_plain(value, where, file, places))
        return items
    # One with an anchor is no bool.
    if isinstance(node, bool | ScalarBoolean):
        return bool(node)
    if isinstance(node, str):
        # "\ud83d\ude00" in quotes arrives as two halves of a character.
        return node.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(node, float):
        return float(node)
    return int(node) if isinstance(node, int) else node


def parse_document(text: str, file: str) -> Document:
    return _parsed(text, file).copy()


@lru_cache(maxsize=256)
def _parsed(text: str, file: str) -> Document:
    """A file of many variants is asked for each of them, and for their ids; reading YAML is the slow part.
    More are kept than the catalogue has: of fewer, none would be left when the first is asked for again."""
    try:
        check_text(text)
    except LimitError as error:
        raise ScenarioError(error.why, file=file, line=error.line, hint=_SMALLER) from None
    if (found := plain_yaml.read_plain(text)) is not None:
        data, lines = found
        return Document(data, file, {key: (file, line) for key, line in lines.items()})
    return _by_ruamel(text, file)


def _by_ruamel(text: str, file: str) -> Document:
    """Reads any document with the parser that reports places."""
    yaml = YAML(typ="rt", pure=True)
    try:
        node = yaml.load(io.StringIO(text))
    except DuplicateKeyError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        key = str(error.problem).partition('"')[2].partition('"')[0]
        raise ScenarioError(
            f"duplicate key '{key}'; give every name once",
            file=file,
            line=line,
            key=key,
        ) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        why = " ".join(str(error.problem or error.context or "not YAML").split())
        raise ScenarioError(
            f"not YAML: {why}", file=file, line=line, hint="check indentation, brackets, commas and quotes"
        ) from None
    except TypeError:
        raise ScenarioError(
            "a mapping or a list is a key, which cannot be read", file=file, hint="write keys as plain words"
        ) from None
    except RecursionError:
        raise ScenarioError("is nested too deeply", file=file, hint=_SMALLER) from None
    except YAMLError as error:
        raise ScenarioError(f"not YAML: {' '.join(str(error).split())}", file=file) from None
    if not isinstance(node, CommentedMap):
        raise ScenarioError(
            "a scenario is a mapping of keys such as 'id:', 'path:' and 'flows:'", file=file, line=1
        )
    places: dict[Key, Place] = {}
    data = _plain(node, (), file, places)
    return Document(data, file, places)


_Choice = list[tuple[str, dict[str, Any], Key]]
"""The end of an id of each axis, the changes, and their place."""


def _choices(variants: Any, document: Document) -> Iterator[tuple[str, _Choice]]:
    """Yields the id of every variant with its parts. Raises ScenarioError."""
    axes = variants if isinstance(variants, list) else [variants]
    roots: list[Key] = (
        [("variants", index) for index in range(len(axes))] if isinstance(variants, list) else [("variants",)]
    )
    for axis, root in zip(axes, roots, strict=True):
        if (
            not isinstance(axis, dict)
            or not axis
            or not all(isinstance(v, dict | None) for v in axis.values())
        ):
            file, line = document.place(root)
            raise ScenarioError(
                "expected a mapping from the end of an id to changes, or a list of such mappings",
                file=file,
                line=line,
                key="variants",
                hint="such as 'variants: {heavy: {flows.cross.parameters.rate: 150 packets/s}}'",
            )
    try:
        check_variants(axes, len(document.places))
    except LimitError as error:
        file, line = document.place(("variants",))
        raise ScenarioError(error.why, file=file, line=line, key="variants", hint=_SMALLER) from None
    for parts in itertools.product(*(axis.items() for axis in axes)):
        choice = [(suffix, changes or {}, root) for (suffix, changes), root in zip(parts, roots, strict=True)]
        named = [changes["id"] for _, changes, _ in choice if "id" in changes]
        base, ends = str(document.data.get("id", "")), "-".join(suffix for suffix, _, _ in choice)
        # An id that ends with a slash is a folder of the variants.
        joined = f"{base}{ends}" if base.endswith("/") else f"{base}-{ends}"
        yield str(named[-1]) if named else joined, choice


def expanded(document: Document, only: str | None = None) -> list[Document]:
    """Returns one document for each variant, or itself; of variants that of the id ``only`` alone, if it is
    given."""
    if "variants" not in document.data:
        return [document]
    made = []
    for id_, choice in _choices(document.data.pop("variants"), document):
        if only is not None and id_ != only:
            continue
        one = document.copy()
        one.data["id"] = id_
        labels = []
        for suffix, changes, root in choice:
            for address, value in changes.items():
                if address == _LABEL:
                    labels.append(str(value))
                    continue
                one.set(address, value, document.place((*root, suffix, address)))
        if labels:
            one.data["title"] = f"{one.data.get('title', '')}: {', '.join(labels)}"
        made.append(one)
    return made


def key_text(path: Key) -> str:
    """Returns a key as an address."""
    return ".".join(str(part) for part in path)


def read_text(path: Path) -> str:
    """Returns a scenario file's text. Raises ScenarioError that names the file."""
    try:
        return read_input(path, LARGEST_TEXT_BYTES)
    except UnfitInputError as error:
        raise ScenarioError(str(error), file=path) from None
    except FileNotFoundError:
        raise ScenarioError("there is no such file", file=path) from None
    except IsADirectoryError:
        raise ScenarioError("is a folder, not a scenario file", file=path) from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"is not UTF-8 text (byte {error.start})", file=path) from None
    except OSError as error:
        raise ScenarioError(f"cannot be read: {error.strerror}", file=path) from None


def declared_ids(text: str, *, file: str) -> list[str]:
    """Returns the ids that a file declares, without validating the file or reading the file that it
    extends."""
    document = _parsed(text, file)
    if "variants" not in document.data:
        return [str(document.data.get("id"))]
    return [id_ for id_, _ in _choices(document.data["variants"], document)]

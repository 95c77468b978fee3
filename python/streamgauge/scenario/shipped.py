"""Which scenarios ship, by id."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path

from streamgauge.errors import ScenarioError
from streamgauge.scenario.document import declared_ids

__all__ = ["SUFFIXES", "catalogue_folder", "catalogue_ids", "shipped_file"]

SUFFIXES = (".yaml", ".yml")
"""What the name of a scenario file ends with."""


def catalogue_folder() -> Path:
    """Where the shipped scenarios lie."""
    return Path(str(resources.files("streamgauge") / "catalogue"))


@cache
def catalogue_ids(beginning: str = "") -> dict[str, Path]:
    """Every shipped scenario's id with its file: files by name, variants as the file orders them. With a
    ``beginning``, all ids of the files that can have one that begins so: to parse the others takes long."""
    found: dict[str, Path] = {}
    for path, text in _texts().items():
        if not _may_begin(text, beginning):
            continue
        for name in declared_ids(text, file=str(path)):
            if name in found:
                raise ScenarioError(f"the id '{name}' is also in {found[name]}", file=path)
            found[name] = path
    return found


@cache
def shipped_file(name: str) -> Path | None:
    """The file of the shipped scenario with this id; ``None`` if there is none."""
    for path, text in _texts().items():
        if _may_have(text, name) and name in declared_ids(text, file=str(path)):
            return path
    return None


@cache
def _texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(catalogue_folder().rglob("*.yaml"))}


_ID = re.compile(r"""\bid: *['"]?([^\s,'"}]+)""")


@cache
def _ids(text: str) -> tuple[str, ...]:
    """What a file has for ids, without parsing it: its own, those that variants spell out, and those of other
    things, such as checks. Its scenarios' ids begin with one of them."""
    return tuple(dict.fromkeys(_ID.findall(text)))


def _may_have(text: str, name: str) -> bool:
    return any(name.startswith(one) for one in _ids(text))


def _may_begin(text: str, beginning: str) -> bool:
    return any(beginning.startswith(one) or one.startswith(beginning) for one in _ids(text))

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
def catalogue_ids() -> dict[str, Path]:
    """Every shipped scenario's id with its file: files by name, variants as the file orders them."""
    found: dict[str, Path] = {}
    for path, text in _texts().items():
        for name in declared_ids(text, file=str(path)):
            if name in found:
                raise ScenarioError(f"the id '{name}' is also in {found[name]}", file=path)
            found[name] = path
    return found


@cache
def shipped_file(name: str) -> Path | None:
    """The file of the shipped scenario with this id; ``None`` if there is none. Files that cannot have it are
    not parsed, which is what takes long of `catalogue_ids`."""
    for path, text in _texts().items():
        if _may_have(text, name) and name in declared_ids(text, file=str(path)):
            return path
    return None


@cache
def _texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(catalogue_folder().rglob("*.yaml"))}


_BASE = re.compile(r"^id: ([a-z0-9_./-]+)$", re.MULTILINE)
_ID_OF_A_VARIANT = re.compile(r"^.+\bid:", re.MULTILINE)


def _may_have(text: str, name: str) -> bool:
    """Whether a file that has this text may have a scenario of this id: variants' begin as the file's, or are
    spelt out."""
    base = _BASE.search(text)
    return base is None or name.startswith(base[1]) or _ID_OF_A_VARIANT.search(text) is not None

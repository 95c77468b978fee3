"""Which scenarios ship, by id."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path

from streamgauge.errors import ScenarioError
from streamgauge.scenario.document import declared_ids

__all__ = [
    "NO_SCENARIOS",
    "READINGS_FILE",
    "SPLIT_FILE",
    "SUFFIXES",
    "UNKNOWNS_FILE",
    "catalogue_folder",
    "catalogue_ids",
    "shipped_file",
]

SUFFIXES = (".yaml", ".yml")
"""Endings of the names of scenario files."""
READINGS_FILE = "readings.yaml"
"""Holds a paper's readings, beside its scenarios (`streamgauge.scenario.paper_readings`)."""
UNKNOWNS_FILE = "unknowns.yaml"
"""Open values of a paper, with plausible alternatives (`streamgauge.infer.unknowns`)."""
SPLIT_FILE = "split.yaml"
"""Holds the halves of a paper's claims (`streamgauge.infer.blocks`)."""
NO_SCENARIOS = frozenset({READINGS_FILE, UNKNOWNS_FILE, SPLIT_FILE})
"""Files beside a paper's scenarios that hold none."""


def catalogue_folder() -> Path:
    """Returns where the shipped scenarios lie."""
    return Path(str(resources.files("streamgauge") / "catalogue"))


@cache
def catalogue_ids(beginning: str = "") -> dict[str, Path]:
    """Returns every shipped scenario's id with its file: files by name, variants as the file orders them.
    With a ``beginning``, all ids of the files that can have one that begins so: to parse the others takes
    long."""
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
    """Returns the file of the shipped scenario with this id; ``None`` if there is none."""
    for path, text in _texts().items():
        if _may_have(text, name) and name in declared_ids(text, file=str(path)):
            return path
    return None


@cache
def _texts() -> dict[Path, str]:
    files = (path for path in sorted(catalogue_folder().rglob("*.yaml")) if path.name not in NO_SCENARIOS)
    return {path: path.read_text(encoding="utf-8") for path in files}


_ID = re.compile(r"""\bid: *['"]?([^\s,'"}]+)""")


@cache
def _ids(text: str) -> tuple[str, ...]:
    """Returns the ids in a file, without parsing it: its own, those that variants spell out, and those of
    other things, such as checks. Its scenarios' ids begin with one of them."""
    return tuple(dict.fromkeys(_ID.findall(text)))


def _may_have(text: str, name: str) -> bool:
    return any(name.startswith(one) for one in _ids(text))


def _may_begin(text: str, beginning: str) -> bool:
    return any(beginning.startswith(one) or one.startswith(beginning) for one in _ids(text))

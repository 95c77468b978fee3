"""Which scenarios ship, by id."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from streamgauge.errors import ScenarioError
from streamgauge.scenario.document import declared_ids

__all__ = ["SUFFIXES", "catalogue_folder", "catalogue_ids"]

SUFFIXES = (".yaml", ".yml")
"""What the name of a scenario file ends with."""


def catalogue_folder() -> Path:
    """Where the shipped scenarios lie."""
    return Path(str(resources.files("streamgauge") / "catalogue"))


@cache
def catalogue_ids() -> dict[str, Path]:
    """Every shipped scenario's id with its file: files by name, variants as the file orders them."""
    found: dict[str, Path] = {}
    for path in sorted(catalogue_folder().rglob("*.yaml")):
        for name in declared_ids(path.read_text(encoding="utf-8"), file=str(path)):
            if name in found:
                raise ScenarioError(f"the id '{name}' is also in {found[name]}", file=path)
            found[name] = path
    return found

"""Data kept of a trial beside its record: its quantities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

__all__ = ["FILE", "Taken", "is_taken", "keep", "read"]

FILE: Final = "crosscheck.json"

Taken = dict[str, Any]
"""``{"schema", "key", "quantities": {metric: value or None}, ...}``."""


def read(directory: Path) -> Taken:
    """Returns the kept data. Raises OSError or ValueError."""
    data: Taken = json.loads((directory / FILE).read_text(encoding="utf-8"))
    return data


def keep(directory: Path, data: Taken) -> None:
    """Writes it."""
    (directory / FILE).write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")


def is_taken(directory: Path, key: str) -> bool:
    """Returns whether quantities were kept, and by the rule of that key."""
    try:
        return bool(read(directory)["key"] == key)
    except (OSError, ValueError, KeyError):
        return False

"""Folders of records, as commands take them."""

from __future__ import annotations

from pathlib import Path

from streamgauge.errors import ScenarioError

__all__ = ["WHERE", "check_folder"]

WHERE = "name a folder in which run or reproduce left records"
"""The remedy where there are none."""


def check_folder(directory: Path) -> None:
    """Raises ScenarioError where there is none."""
    if not directory.is_dir():
        raise ScenarioError("there is no such folder", file=directory, hint=WHERE)

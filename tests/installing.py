"""Installs a package into a folder without pip: its modules, and the metadata of its pyproject.toml.

A wheel of pure Python is nothing else, and a build of one would need a build tool in the environment."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path


def install(source: Path, target: Path) -> None:
    """Installs the package in `source` into the folder `target`, which is to be on Python's path."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    for module in source.iterdir():
        if (module / "__init__.py").exists():
            shutil.copytree(module, target / module.name, ignore=shutil.ignore_patterns("__pycache__"))
    write_metadata(target, project["name"], project["version"], project["entry-points"])


def write_metadata(target: Path, name: str, version: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Writes the folder by which Python knows an installed package."""
    about = target / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()), "")
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))

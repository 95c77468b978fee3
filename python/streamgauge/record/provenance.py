"""Origin of a record: host, kernel, versions. None of it enters a digest."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import streamgauge
from streamgauge import __version__

_LIBRARIES = ("polars", "pydantic")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor())


def _commit() -> str | None:
    """Returns the commit of our own checkout, or the one that our wheel was built from, with "+" if tracked
    files differ from it; None if it is unknown."""
    package = Path(streamgauge.__file__).resolve().parent
    root = package.parents[1]
    if not (root / ".git").exists():
        # scripts/wheel.sh leaves it there.
        told = package / "_bin" / "commit"
        return told.read_text(encoding="ascii").strip() or None if told.is_file() else None
    try:
        done = subprocess.run(
            [
                "git",
                "--no-optional-locks",
                "-C",
                str(root),
                "describe",
                "--always",
                "--abbrev=40",
                "--exclude=*",
                "--dirty=+",
            ],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


@cache
def _constant() -> dict[str, Any]:
    return {
        "streamgauge": __version__,
        "commit": _commit(),
        "host": platform.node(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
    }


def collect() -> dict[str, Any]:
    """Host, kernel, processor, versions and our own commit. Looked up once a process."""
    return dict(_constant())

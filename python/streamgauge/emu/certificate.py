"""The instrument's certificate: the last calibration of this machine, which is kept and copied into every emu
trial.

A certificate belongs to one host, kernel, boot, way into the sandbox and emulator. After a change of any of
them a calibration is void.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from streamgauge.media.sources import cache_folder

SCHEMA = "streamgauge.calibration/1"
NOT_CALIBRATED = "not calibrated: run `streamgauge calibrate`"
_KEPT = ("date", "way", "class", "quick", "verdict", "load_average", "stolen_s", "id")
_ROW = ("id", "what", "unit", "asked", "measured", "error", "error_unit", "bound", "verdict")


def boot_id() -> str:
    """The kernel's name for this boot; empty where it has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


@cache
def engine_id(engine: Path) -> str:
    """Returns twelve hexadecimal digits of the emulator's executable, since a version number is the same for
    several builds."""
    return hashlib.sha256(engine.read_bytes()).hexdigest()[:12]


def identity(engine: Path, way: str) -> dict[str, str]:
    """The subject of a certificate."""
    return {
        "host": platform.node(),
        "kernel": platform.release(),
        "boot_id": boot_id(),
        "way": way,
        "engine": engine_id(engine),
    }


def _file(engine: Path, way: str) -> Path:
    text = json.dumps(identity(engine, way), sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return cache_folder() / "calibration" / f"{name}.json"


def keep(calibration: Mapping[str, Any], engine: Path, way: str) -> Path:
    """Stores a calibration as the machine's certificate; it appears whole or not at all. Returns the file.

    Raises:
        OSError: if the cache folder cannot be written.
    """
    file = _file(engine, way)
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as target:
        json.dump(calibration, target, indent=2, allow_nan=False)
        target.write("\n")
    Path(name).replace(file)
    return file


def stored(engine: Path, way: str) -> dict[str, Any] | None:
    """The machine's certificate for this emulator and way; None if there is none that can be read."""
    with suppress(OSError, ValueError):
        found = json.loads(_file(engine, way).read_text(encoding="utf-8"))
        if isinstance(found, dict) and found.get("schema") == SCHEMA:
            return found
    return None


def for_trial(engine: Path, way: str, at: float | None = None) -> dict[str, Any]:
    """Returns a trial's provenance of its instrument.

    Args:
        engine: the emulator's executable.
        way: "root" or "user".
        at: the start of the trial, s since 1970 UTC.

    Returns:
        ``{"calibrated": False, "why"}``, or ``{"calibrated": True, "id", "date", "age_s", "way", "class",
        "quick", "verdict", "load_average", "stolen_s", "checks"}`` with rows of ``{"id", "what", "unit",
        "asked", "measured", "error", "error_unit", "bound", "verdict"}``.
    """
    found = stored(engine, way)
    if found is None:
        return {"calibrated": False, "why": NOT_CALIBRATED}
    compact: dict[str, Any] = {"calibrated": True, **{key: found.get(key) for key in _KEPT}}
    compact["age_s"] = round((time.time() if at is None else at) - float(found["unix_s"]), 1)
    compact["checks"] = [{key: row.get(key) for key in _ROW} for row in found["checks"]]
    return compact

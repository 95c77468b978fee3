"""Where our executable is, and where the system's are."""

from __future__ import annotations

import os
from pathlib import Path

import streamgauge
from streamgauge.emu import remedy
from streamgauge.errors import CannotRunError


def engine() -> Path:
    """``streamgauge-engine``: ``$STREAMGAUGE_ENGINE``, or the package's own. CannotRunError if missing."""
    chosen = os.environ.get("STREAMGAUGE_ENGINE")
    package = Path(streamgauge.__file__).parent
    file = Path(chosen) if chosen else package / "_bin" / "streamgauge-engine"
    if not os.access(file, os.X_OK):
        raise CannotRunError(f"{file}: the emulator's executable is missing; {remedy.build()}.")
    return file.resolve()


def search_path() -> str:
    """``PATH``, and the folders of network tools, which an ordinary user of Debian does not have in it."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*folders, *(f for f in ("/usr/sbin", "/sbin") if f not in folders)])

"""Reports of players while they play, read from their files as they grow, for a viewer of the trial."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from streamgauge.emu.process import Running
from streamgauge.systems.adapter import EVENTS_FILE
from streamgauge.systems.node import SAID_FILE
from streamgauge.systems.player_files import FileRefusedError, folder_of

__all__ = ["Overhearing"]

NAMES = ("buffer", "level_changed", "estimate", "stall")
"""The events that are passed on."""
MOST_BYTES = 65_536
"""The bytes of a file that are read at a time."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Overhearing:
    """Follows the files of players. They are the programs' own: nothing in them ends a trial."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], int] = {}

    def heard(self, running: list[Running]) -> Iterator[tuple[str, str, float | None]]:
        """Returns flow, name and value of the reports since the last call."""
        for one in running:
            if one.spec.side == "player":
                for name in (SAID_FILE, EVENTS_FILE):
                    yield from self._lines(one, name)

    def _lines(self, one: Running, name: str) -> Iterator[tuple[str, str, float | None]]:
        out = one.flow.out(one.spec.side, one.spec.name)
        key = (str(out), name)
        place = self._places.get(key, 0)
        data = _read(out, name, place)
        whole, _, _ = data.rpartition(b"\n")
        if whole:
            self._places[key] = place + len(whole) + 1
        elif len(data) == MOST_BYTES:
            self._places[key] = place + len(data)
        for line in whole.split(b"\n"):
            with suppress(ValueError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict) and event.get("name") in NAMES:
                    value = event.get("value")
                    if isinstance(value, bool) or not isinstance(value, int | float):
                        value = None
                    yield one.flow.name, event["name"], value


def _read(out: Path, name: str, place: int) -> bytes:
    """Returns the new content of a regular file of the folder; nothing of anything else."""
    try:
        folder = folder_of(out)
    except (FileRefusedError, OSError):
        return b""
    try:
        file = os.open(name, _FLAGS, dir_fd=folder)
    except OSError:
        return b""
    finally:
        os.close(folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return b""
        return os.pread(file, MOST_BYTES, place)
    finally:
        os.close(file)

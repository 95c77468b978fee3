"""``machine``."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Literal

from streamgauge.cli.output import say
from streamgauge.cli.progress import Log
from streamgauge.emu.machine.image import build, machines_folder
from streamgauge.emu.machine.kept import Kept, kept
from streamgauge.emu.machine.qemu import version
from streamgauge.emu.machine.snapshot import prepare
from streamgauge.emu.options import Virtual

__all__ = ["machine_command"]


def machine_command(
    what: Literal["build", "list", "remove"], speed: int, *, again: bool, as_json: bool
) -> int:
    """Executes it, prints the resulting state, and returns the exit status."""
    if what == "build":
        Virtual.of(f"virtual:{speed}")  # raises for another speed
        version()
        log = Log()

        def told(line: str) -> None:
            log.tell(line, words=line)

        prepare(build(told, again=again), speed, told)
    elif what == "remove":
        shutil.rmtree(machines_folder(), ignore_errors=True)
    found = kept()
    if as_json:
        json.dump(
            {
                "schema": "streamgauge.emu.machine/1",
                "folder": str(machines_folder()),
                "kept": [one.to_json() for one in found],
            },
            sys.stdout,
            indent=2,
        )
        print()
        return 0
    say(f"{machines_folder()}: {'nothing' if not found else _total(found)}")
    for one in found:
        say(f"  {one.name}: {one.what}, {one.bytes / 1e6:.0f} MB", hanging=4)
    return 0


def _total(found: list[Kept]) -> str:
    return f"{sum(one.bytes for one in found) / 1e6:.0f} MB"

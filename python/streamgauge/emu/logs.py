"""Copies the files that the programs of a trial wrote into the trial's logs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePath

from streamgauge.systems.adapter import SIDES, FlowSetup
from streamgauge.systems.player_files import FileRefusedError, files_in, printable

__all__ = ["LEFT_OUT_FILE", "keep_logs"]

KEPT_LOG_BYTES = 20_000_000
"""A larger file that a process leaves is cut in the trial's logs."""
KEPT_GB = 1
KEPT_BYTES = KEPT_GB * 1_000_000_000
"""Limit for all files of a trial; further ones are left out."""
LONGEST_NAME_BYTES = 200
"""Limit for a log's name; file systems take 255 bytes, and a name that is written anew needs a few more."""
LEFT_OUT_FILE = "left-out.txt"
"""The log that lists what is not in the others."""
MOST_TOLD = 100
"""Lines of it."""


def keep_logs(flows: Iterable[FlowSetup], logs: Path) -> list[str]:
    """Copies the logs of the processes of flows and relays into the folder `logs`.

    Returns a sentence for each log that is cut, renamed or left out, which `LEFT_OUT_FILE` has too.

    Raises OSError if a log cannot be written.
    """
    told: list[str] = []
    taken: set[str] = set()
    room = KEPT_BYTES
    for flow in flows:
        for side in (*SIDES, "relay"):
            for path, found in files_in(flow.folder / side, KEPT_LOG_BYTES):
                plain = "-".join([flow.name, side, *path.parts])
                if isinstance(found, FileRefusedError):
                    told.append(f"{printable(plain)} {found}; it is left out")
                    continue
                if len(found.data) > room:
                    told.append(f"{printable(plain)} is left out: logs have {KEPT_GB} GB at most")
                    continue
                name = _name(flow.name, side, path, taken)
                if name != plain:
                    told.append(f"{printable(plain)} is kept as {name}")
                if found.is_cut:
                    told.append(f"{name} has {found.size} bytes; the first {len(found.data)} are kept")
                (logs / name).write_bytes(found.data)
                room -= len(found.data)
    if len(told) > MOST_TOLD:
        told[MOST_TOLD:] = [f"{len(told) - MOST_TOLD} more such files"]
    if told:
        (logs / LEFT_OUT_FILE).write_text("".join(f"{line}\n" for line in told), encoding="utf-8")
    return told


def _name(flow: str, side: str, path: PurePath, taken: set[str]) -> str:
    """A log's name: the flow, the side and the file's path.

    It is cut and marked by a digest where file systems or terminals do not take that, or another log has it.
    """
    plain = "-".join([flow, side, *path.parts])
    is_fit = plain.isprintable() and len(plain.encode("utf-8", "replace")) <= LONGEST_NAME_BYTES
    name, tries = plain, 0
    # A program may know the digest, and have another file under the name that it makes.
    while name in taken or not (is_fit or tries):
        marked = f"{path}{tries or ''}".encode("utf-8", "surrogateescape")
        shown = "".join(letter if letter.isprintable() else "_" for letter in plain)
        begin = shown.encode()[: LONGEST_NAME_BYTES - 13].decode(errors="ignore")
        name, tries = f"{begin}~{hashlib.sha256(marked).hexdigest()[:12]}", tries + 1
    taken.add(name)
    return name

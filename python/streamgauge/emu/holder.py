"""The process with the lock that another process waits for: its number, its command, its start."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["Waiting", "holder_in_words"]

_LONGEST = 60
"""Characters of a command that are shown."""


class Waiting(str):
    """The reason for a wait without progress: no remaining time can be given for it."""

    __slots__ = ()


def holder_in_words(descriptor: int) -> str:
    """Returns ``process 4242, 'streamgauge run my.yaml', which began at 13:05:22``, for the file's flock.

    It contains as much as /proc shows: it is empty in a container that does not see the holder.
    """
    pid = _holder(descriptor)
    if pid is None:
        return ""
    try:
        command, began = _command(pid), _began(pid)
    except (OSError, ValueError, IndexError):
        # The lock ends with the last process that inherited it, a moment after the one that took it.
        return f"process {pid}, which has ended and whose sandbox is about to"
    return f"process {pid}, '{command}', which began at {_clock(began)}"


def _holder(descriptor: int) -> int | None:
    inode = os.fstat(descriptor).st_ino
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            # 1: FLOCK  ADVISORY  WRITE 4242 fe:00:12345 0 EOF
            fields = line.split()
            if "FLOCK" in fields and "->" not in fields and fields[5].rpartition(":")[2] == str(inode):
                pid = int(fields[4])
                return pid if pid > 0 else None
    return None


def _command(pid: int) -> str:
    """Returns the command as it was typed, as far as possible: without the interpreter and the program's
    folder."""
    parts = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    if not parts:
        raise ValueError("a process that is gone has no command")
    own = next((i for i, part in enumerate(parts) if Path(part).name == "streamgauge"), 0)
    words = " ".join([Path(parts[own]).name, *parts[own + 1 :]])
    # It may be anybody's: nothing of it is to move a terminal's cursor.
    words = "".join(letter if letter.isprintable() else "?" for letter in words)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _began(pid: int) -> float:
    """When a process began, in seconds of the epoch."""
    # Its name, in parentheses, may have spaces and parentheses in it (proc(5)).
    fields = (
        Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    )
    after_boot_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - after_boot_s)


def _clock(at: float) -> str:
    """The time of day, and of another day the date."""
    then, now = time.localtime(at), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)

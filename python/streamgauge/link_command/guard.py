"""Undoes our changes in the caller's world, also when we are killed.

A shell that waits for the end of a pipe with the other end in our hands alone. The kernel closes it at any
kind of our end.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Guard", "removal"]


def removal(folder: Path) -> str:
    """Returns a shell line that removes a folder."""
    quoted = shlex.quote(str(folder))
    # A process that dies with us may still be writing there: once more, a little later.
    return f"rm -rf -- {quoted}; [ ! -e {quoted} ] || {{ sleep 1; rm -rf -- {quoted}; }}"


class Guard:
    """Runs shell lines when this process ends, or when `close` is called."""

    def __init__(self, lines: Sequence[str], environment: dict[str, str] | None = None) -> None:
        read, self._write = os.pipe()
        self._popen = subprocess.Popen(
            ["/bin/sh", "-c", "\n".join(["cat >/dev/null", *lines])],
            stdin=read,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env=environment,
        )
        os.close(read)

    def close(self) -> None:
        """Runs them now."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1
            self._popen.wait()

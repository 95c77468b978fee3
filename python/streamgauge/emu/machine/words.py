"""The messages of a guest on its serial lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any


class GuestWords:
    """Reads the two files that QEMU writes: the worker's lines of JSON, and the kernel's console."""

    def __init__(self, words: int, console: int) -> None:
        """Takes the descriptors of the two files."""
        self._words, self._console = words, console
        self._at = 0
        self._rest = b""

    def new(self) -> Iterator[dict[str, Any]]:
        """Each line that has come to its end since the last call."""
        while part := os.pread(self._words, 1 << 16, self._at):
            self._at += len(part)
            *lines, self._rest = (self._rest + part).split(b"\n")
            for line in lines:
                if line.strip():
                    yield json.loads(line)

    def last_of_console(self) -> str:
        """Returns the last lines there, in one: the reason for a guest's end."""
        size = os.fstat(self._console).st_size
        text = os.pread(self._console, 4000, max(0, size - 4000)).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if "panic" in line.lower() or "error" in line.lower()]
        return "; ".join((telling or lines)[-3:])[:400] or "it said nothing"

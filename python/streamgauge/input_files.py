"""Reads files that a user names: regular ones, of a bounded size.

A pipe or a device would keep the program waiting, or give it input without an end.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["UnfitInputError", "check_file", "read_bytes", "read_input"]

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnfitInputError(Exception):
    """A file that cannot be input; the text completes a sentence that begins with its name."""


def check_file(path: Path) -> None:
    """Raises UnfitInputError for a pipe, a socket or a device, which a reader by name would wait for or never
    finish. A missing file, a folder and one that may not be read are left to the reader."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return
    _check_kind(found)


def _check_kind(found: os.stat_result) -> None:
    if (kind := _KINDS.get(stat.S_IFMT(found.st_mode))) is not None:
        raise UnfitInputError(f"is {kind}; expected a file")


def read_input(path: Path, largest: int) -> str:
    """Reads a file of UTF-8 text of at most `largest` bytes.

    Raises UnfitInputError for a path that is no such file, OSError and UnicodeDecodeError as `Path.read_text`
    does.
    """
    return read_bytes(path, largest).decode("utf-8")


def read_bytes(path: Path, largest: int) -> bytes:
    """Reads a file of at most `largest` bytes. Raises UnfitInputError for a path that is no such file, and
    OSError."""
    # A pipe without a writer must not delay the opening.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as source:  # noqa: PTH123
        _check_kind(os.fstat(descriptor))
        data = source.read(largest + 1)
    if len(data) > largest:
        raise UnfitInputError(f"has more than {largest / 1e6:g} MB")
    return data

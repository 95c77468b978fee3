"""Standard streams that end, fill up or were never there.

A reader that closes its end (``| head``) ends nothing: the exit status stays the verdict's. Results that
cannot be written are an error of the machine. Remarks and progress on stderr are dropped where they cannot be
written.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from streamgauge.errors import CannotRunError

__all__ = ["guarded_streams"]

_PLAIN: Final = {"±": "+-", "µ": "u", "…": "...", "×": "x", "≥": ">=", "≤": "<=", "\u00a0": " ", "–": "-"}
"""Replacements for characters that an encoding lacks."""
_ERRORS: Final = "streamgauge.plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    shown = (
        _PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode("ascii") for letter in lacking
    )
    return "".join(shown), error.end


class _Raw(io.FileIO):
    """A stream's descriptor. After the first failure it takes everything and writes nothing."""

    def __init__(self, descriptor: int, *, is_needed: bool) -> None:
        # A copy: programs may have another standard output meanwhile (`campaign.aside`).
        super().__init__(os.dup(descriptor), "wb")
        self._is_needed = is_needed
        self._is_lost = False

    def write(self, data: Any, /) -> int:
        length = memoryview(data).nbytes
        while not self._is_lost:
            try:
                written = super().write(data)
            except BrokenPipeError:
                self._is_lost = True
            except OSError as error:
                self._is_lost = True
                if self._is_needed:
                    raise CannotRunError(
                        f"cannot write to standard output: {error.strerror}; free some space, or redirect it."
                    ) from None
            else:
                if written is not None:
                    return written
                # Another program left the descriptor in non-blocking mode.
                select.select([], [self.fileno()], [])
        return length


def _stream(descriptor: int, *, is_needed: bool) -> io.TextIOWrapper:
    raw = _Raw(descriptor, is_needed=is_needed)
    before = sys.__stdout__ if is_needed else sys.__stderr__
    encoding = getattr(before, "encoding", None) or "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors=_ERRORS,
        line_buffering=not is_needed or raw.isatty(),
    )


def _open_all() -> None:
    """Puts the null device where a standard descriptor is closed, else the next file that is opened is it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Replaces the process's stdout and stderr by ones that fail as described above.

    Streams that a caller has replaced stay. Writing and flushing stdout raise CannotRunError.
    """
    codecs.register_error(_ERRORS, _plain)
    _open_all()
    before = sys.stdout, sys.stderr
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, is_needed=False)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, is_needed=True)
    try:
        yield
    finally:
        # After an error the rest has no reader.
        with suppress(CannotRunError):
            sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before

"""Every error that StreamGauge raises on purpose, as one tree.

Each carries the exit status of the command line (`exit_status`): 3 for bad input, 4 for what this machine
cannot do.
"""

from __future__ import annotations

import re
from pathlib import Path

_LONG_WORD = re.compile(r"\S{500,}")
_RUST_NUMBER = re.compile(r"\(os error (\d+)\)$")


class StreamGaugeError(Exception):
    """Base of all our errors. Its text is one complete sentence a person can act on."""

    exit_status = 3


class ScenarioError(StreamGaugeError):
    """A scenario that cannot be run as written.

    Prints as ``file:line: key: fault, expectation; remedy``.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        key: str | None = None,
        hint: str | None = None,
        depends: bool = False,
    ) -> None:
        self.message = message
        #: Whether the value makes sense in itself, and beside other settings than these.
        self.depends = depends
        self.file = None if file is None else str(file)
        self.line = line
        self.key = key
        self.hint = hint
        where = ":".join(str(part) for part in (self.file, line) if part is not None)
        # An option's name is a place too, with its value.
        where = _shown(where) if where.startswith("--") else where
        parts = [part for part in (where, *map(_shown, (key, message))) if part]
        super().__init__(": ".join(parts) + (f" ({hint})" if hint else ""))


def _shown(text: str | None) -> str:
    """Returns a text in which no word, such as a wrong value, is longer than a screen."""
    return _LONG_WORD.sub(lambda word: f"{word[0][:200]}...", text or "")


class RecordError(StreamGaugeError):
    """A record that is missing, damaged or of an unknown version."""


class CaptureFileError(StreamGaugeError):
    """A packet capture that cannot be read, or two that cannot be matched."""


class MediaError(StreamGaugeError):
    """A clip that is missing or cannot be encoded."""


class NoSuchMediaError(MediaError):
    """A media file that is not there."""


class CannotRunError(StreamGaugeError):
    """This machine cannot run the request: a program or a right is missing. The message has the remedy."""

    exit_status = 4


class DoubtWarning(UserWarning):
    """Input that can be used, but is probably a mistake."""


def errno_of(error: OSError) -> int | None:
    """Returns the error's number; libraries in Rust (polars) leave it in the text alone."""
    if error.errno is None and (found := _RUST_NUMBER.search(str(error))) is not None:
        return int(found[1])
    return error.errno

"""Keeps standard output for the answer of a command while functions of the user's own run in this process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["printed_aside"]

_LOCK = threading.Lock()
_OUT, _ERROR = 1, 2


@contextmanager
def printed_aside() -> Iterator[None]:
    """Leads descriptor 1 to standard error meanwhile, if `sys.stdout` has a descriptor of its own.

    `print` is led there by the native module; the programs that a function starts write to the descriptor.
    """
    before = _own_descriptor()
    if before is None:
        yield
        return
    try:
        os.dup2(_ERROR, _OUT)
        yield
    finally:
        os.dup2(before, _OUT)
        os.close(before)
        _LOCK.release()


def _own_descriptor() -> int | None:
    """Returns a second descriptor of standard output; None where it is not to be led elsewhere. Takes the
    lock."""
    try:
        if sys.stdout.fileno() == _OUT or not _LOCK.acquire(blocking=False):
            return None
    except (OSError, ValueError, AttributeError):
        return None
    try:
        return os.dup(_OUT)
    except OSError:
        _LOCK.release()
        return None

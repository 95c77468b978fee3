"""What becomes of memory that one trial has let go of when the next asks for it."""

from __future__ import annotations

import ctypes
from typing import Final

__all__ = ["keep_memory"]

_MIB: Final = 2**20
# mallopt(3).
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def keep_memory() -> None:
    """From now on this process keeps some 64 MiB that it has let go of, where its C library is glibc.

    Memory that goes back to the kernel between arrays comes back in pages to be cleared again: of trials in
    threads that is half of all page faults.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_MMAP_THRESHOLD, 32 * _MIB)
    mallopt(_TRIM_THRESHOLD, 64 * _MIB)
    # A thread's own heap is given back whole where no more than this would be left.
    mallopt(_TOP_PAD, 64 * _MIB)

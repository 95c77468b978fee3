"""Ends calls of the user's functions that do not return: congestion controllers and rules.

A trial in virtual time waits for such a call as long as it lasts. A thread checks each second whether the
same call is still under way, and raises an exception in the thread that makes it. A call that never leaves C
code cannot be ended.
"""

from __future__ import annotations

import ctypes
import threading
import time

from streamgauge import _native

__all__ = ["LONGEST_S", "CallTooLongError", "start"]

LONGEST_S = 10
"""How long a call may last, in seconds of real time."""


class CallTooLongError(TimeoutError):
    """A call did not return in time."""

    def __str__(self) -> str:
        return f"the call did not return within {LONGEST_S} s"


_starting = threading.Lock()
_running = False


def start() -> int:
    """Watches calls from now on. Returns the number by which the calling thread is known."""
    global _running
    with _starting:
        if not _running:
            _running = True
            threading.Thread(target=_watch, name="call-watch", daemon=True).start()
    return threading.get_ident()


def _watch() -> None:
    seconds: dict[tuple[int, int], int] = {}
    while True:
        time.sleep(1)
        seconds = {call: seconds.get(call, 0) + 1 for call in _native.function_calls()}
        for (caller, _), lasted in seconds.items():
            if lasted % (LONGEST_S + 1) == LONGEST_S:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(caller), ctypes.py_object(CallTooLongError)
                )

"""A machine's lock of trials for each of several processes that run emu tests (pytest-xdist).

Trials of one machine take turns, because two disturb each other. Of nearly all tests the paths are slow, so
that two at a time leave the processors idle for most of the time all the same; whether these were enough is
what each trial's verdict says, and what was starved is run again and told.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from pathlib import Path

from streamgauge.emu.lock import lock_file

__all__ = ["take_own_lock"]

# linux/sched.h, linux/mount.h
_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000


def take_own_lock() -> None:
    """In one of several processes: hides the lock from it and its children, who have another in its place.

    Only root can: other people's tests take turns.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ or os.geteuid() != 0 or sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    shared = lock_file()
    shared.touch(0o644)
    handle, own = tempfile.mkstemp(prefix=f"{shared.name}.")
    os.close(handle)
    Path(own).chmod(0o644)
    # A mount namespace that nobody else sees, and in it another file in the lock's place.
    for done in (
        libc.unshare(_CLONE_NEWNS),
        libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None),
        libc.mount(own.encode(), str(shared).encode(), None, _MS_BIND, None),
    ):
        if done != 0:
            raise OSError(ctypes.get_errno(), "no lock of trials of one's own")
    # Its name is not needed any more.
    Path(own).unlink()

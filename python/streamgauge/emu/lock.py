"""One run of emu trials at a time per machine: two would steal each other's processor time.

An advisory lock on a file that all users share. The kernel frees it with its last descriptor: the launcher's,
and that of the sandbox's first process, so that the next trial begins after the sandbox is gone.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamgauge.emu.holder import Waiting, holder_in_words
from streamgauge.errors import CannotRunError

_POLL_S = 0.1
_SAY_EVERY_S = 10.0


def lock_file(name: str = "streamgauge-emu.lock") -> Path:
    """The file: under /run/lock where there is such a folder for everybody, else under /tmp."""
    folder = Path("/run/lock")
    shared = folder.is_dir() and os.access(folder, os.W_OK)
    return (folder if shared else Path("/tmp")) / name


def _links_file() -> Path:
    return lock_file("streamgauge-link.lock")


@contextmanager
def link_lock() -> Iterator[None]:
    """Shows a trial that a link is active beside it. Links share it, and wait for no other process."""
    descriptor = _open(_links_file())
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def address_lock() -> Iterator[None]:
    """Held while a link looks for free addresses and takes them: a moment. Waits for it."""
    descriptor = _open(lock_file("streamgauge-addresses.lock"))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def machine_lock(say: Callable[[str], None]) -> Iterator[int]:
    """Holds the lock; gives the descriptor. While another process has it, `say` gets its description, in
    `Waiting` words."""
    descriptor = _open(lock_file())
    try:
        began, told = time.monotonic(), -_SAY_EVERY_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited - told >= _SAY_EVERY_S:
                    who = holder_in_words(descriptor)
                    say(
                        Waiting(
                            f"waiting for another emu trial on this machine{who and f' ({who})'}, "
                            f"{waited:.0f} s so far"
                        )
                    )
                    told = waited
                time.sleep(_POLL_S)
        if _is_held(_links_file(), fcntl.LOCK_EX):
            say("a streamgauge link is at work on this machine; the two disturb each other")
        yield descriptor
    finally:
        os.close(descriptor)


def is_locked() -> bool:
    """Whether a trial has the lock now."""
    return _is_held(lock_file(), fcntl.LOCK_SH)


def _is_held(file: Path, against: int) -> bool:
    """Returns whether another process holds the file's lock in a way that excludes `against`."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, against | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _open(file: Path) -> int:
    # Opened for reading, which is all that flock needs: in a sticky folder the kernel may refuse to open
    # another user's file for writing or with O_CREAT (fs.protected_regular).
    for _ in range(100):
        with suppress(FileNotFoundError):
            return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue
        except OSError as error:
            raise CannotRunError(f"{file}: cannot make the lock of emu trials ({error.strerror}).") from error
        return descriptor
    raise CannotRunError(f"{file}: another process removes the lock of emu trials; stop that process.")

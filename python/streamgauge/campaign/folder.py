"""The folder of a campaign while one writes it."""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from streamgauge.campaign.index import Index
from streamgauge.campaign.layout import LOCK
from streamgauge.campaign.plan import Job
from streamgauge.campaign.trial import disk_errors
from streamgauge.errors import CannotRunError
from streamgauge.scenario.settings import set_folder

__all__ = ["writing"]

_FLOCK: Final = struct.Struct("hhqqi")
"""Linux's struct flock: type, whence, start, length, process."""


@contextmanager
def writing(out: Path, jobs: Sequence[Job]) -> Iterator[Index]:
    """Writes a campaign's jobs into `out`, with its index, and locks out other writers of trials of the same
    scenario, settings and mode. Those of others may be written at the same time.

    Lock and index are those of the folder that holds every set of settings: a sweep and a run of one of its
    points share them.

    Raises CannotRunError if another campaign writes them, or nothing can be written.
    """
    places = dict.fromkeys(job.directory.parent for job in jobs)
    whole = _of_all_sets(out, jobs)
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        lock = _locked(whole, places)
    try:
        with Index(whole) as index:
            yield index
    finally:
        if lock is not None:
            _free(lock, whole / LOCK)
        for folder in (out, *out.parents):  # if nothing was written
            with suppress(OSError):
                folder.rmdir()
            if folder == whole:
                break


def _of_all_sets(out: Path, jobs: Sequence[Job]) -> Path:
    """Returns `out`, or, if it is the folder of its jobs' settings, the one above all such."""
    below = set_folder(jobs[0].set_with).parts if jobs else ()
    return out.parents[len(below) - 1] if below and out.parts[-len(below) :] == below else out


def _locked(out: Path, places: Iterable[Path]) -> int | None:
    """Returns the descriptor of the file of locks, with a byte locked for each place; the kernel frees them
    whatever becomes of us. ``None`` where there are no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    file = out / LOCK
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        for place in places:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(out, place))
            except (BlockingIOError, PermissionError):
                who = _owner(descriptor, _byte(out, place))
                os.close(descriptor)
                raise CannotRunError(
                    f"another campaign{who} writes {place}; wait for its end, or choose another folder "
                    "with --out."
                ) from None
            except OSError:  # a file system without locks
                os.close(descriptor)
                file.unlink(missing_ok=True)
                return None
        # The previous holder may have removed the file.
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == file.stat().st_ino:
                return descriptor
        os.close(descriptor)


def _free(descriptor: int, file: Path) -> None:
    import fcntl

    # Not while others hold a part of it.
    with suppress(OSError):
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink(missing_ok=True)
    os.close(descriptor)


def _byte(out: Path, place: Path) -> int:
    """Returns the place's byte in the file of locks, which is empty."""
    name = place.relative_to(out).as_posix().encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=7).digest())


def _owner(descriptor: int, byte: int) -> str:
    """Returns the process that has a byte locked, as Linux's kernel reports it."""
    import fcntl

    if sys.platform != "linux":
        return ""
    with suppress(OSError):
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)[: _FLOCK.size])[-1]
        if process > 0:
            return f" (process {process})"
    return ""

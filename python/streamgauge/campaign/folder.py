"""The folder of a campaign while one writes it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamgauge.campaign.index import Index
from streamgauge.campaign.layout import LOCK
from streamgauge.campaign.trial import disk_errors
from streamgauge.errors import CannotRunError

__all__ = ["writing"]


@contextmanager
def writing(out: Path) -> Iterator[Index]:
    """Writes the campaign in `out`, with its index, while nobody else does.

    Raises CannotRunError if another campaign writes there, or nothing can be written.
    """
    file = out / LOCK
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        lock = _locked(file)
    try:
        with Index(out) as index:
            yield index
    finally:
        if lock is not None:
            file.unlink(missing_ok=True)
            os.close(lock)
        with suppress(OSError):
            out.rmdir()  # if nothing came of it


def _locked(file: Path) -> int | None:
    """The file's descriptor with the lock, which the kernel frees whatever becomes of us; ``None`` where
    there are no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = _owner(descriptor)
            os.close(descriptor)
            raise CannotRunError(
                f"another campaign writes {file.parent}{who}; wait for its end, or choose another folder "
                "with --out."
            ) from None
        except OSError:  # a file system without locks
            os.close(descriptor)
            file.unlink(missing_ok=True)
            return None
        # Whoever had it before us may have removed the file.
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == file.stat().st_ino:
                os.ftruncate(descriptor, 0)
                os.write(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
                return descriptor
        os.close(descriptor)


def _owner(descriptor: int) -> str:
    try:
        found = json.loads(os.pread(descriptor, 1000, 0))
        return f" (process {found['pid']} on {found['host']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""

"""``python -m streamgauge.campaign.worker``: a process of the pool, until its input ends."""

from __future__ import annotations

import contextlib
import os

from streamgauge.campaign.pool import receive, send
from streamgauge.campaign.work import Row, as_sent, perform


def serve() -> None:
    """Reads tasks from standard input, writes rows and errors to standard output."""
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Prints are redirected to stderr.
    os.dup2(2, 1)
    campaign = os.getppid()
    with contextlib.suppress(EOFError, OSError):
        while True:
            task = receive(asked)
            found: Row | BaseException
            try:
                # A dead campaign no longer holds the lock of its folder: its trial is dropped.
                found = perform(task, wanted=lambda: os.getppid() == campaign)
            except BaseException as error:
                found = as_sent(error)
            send(told, found)


if __name__ == "__main__":
    serve()

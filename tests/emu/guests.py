"""Tests whose trials run in virtual machines, where there are any.

There no load makes a trial late, so that none is run again for want of a processor, and the same code gives
the same record. A guest's trial of some seconds takes more of a processor than one of this machine's, which
waits, and its kernel is another: so this is for trials that load has spoilt again and again and of which only
the record and its verdict count. All others stay on this machine, each adapter and both ways into a sandbox
among them.
"""

from __future__ import annotations

import functools
import os

from streamgauge.emu.machine.virtual import _snapshot_of, check_room, most_at_once, why_not
from streamgauge.errors import CannotRunError

ON_THE_HOST: list[str] = []
"""Why trials of this session that guests would have run ran on this machine; told at its end."""


@functools.cache
def no_guests() -> str | None:
    """Why no virtual machine can be had now, with the remedy; None if one can. Makes its image and snapshot,
    where there are none: a minute, once."""
    if (why := why_not()) is not None:
        return why
    try:
        check_room(1)
        _snapshot_of(1, lambda _line: None)
    except CannotRunError as error:
        return str(error)
    return None


def guests_at_once() -> int:
    """How many a test may start: of one of several processes (pytest-xdist) one, for the others have some."""
    return 1 if "PYTEST_XDIST_WORKER" in os.environ else most_at_once()

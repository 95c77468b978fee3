"""Waits for a gateway's end: a signal, its time, or the end of a container."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from streamgauge.emu.errors import TrialBrokenError
from streamgauge.link_command.running import Ended
from streamgauge.link_command.testbed import Testbed

__all__ = ["hold"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def hold(
    testbed: Testbed,
    watch: Callable[[], None],
    remark: Callable[[str], None],
    *,
    duration_s: float | None,
    ends: Mapping[int, str],
) -> Ended:
    """Waits until the gateway is to end.

    Args:
        testbed: the link.
        watch: raises if the link has died.
        remark: prints a line.
        duration_s: the longest time; None waits for a signal.
        ends: descriptors that become readable at the end of something that the gateway needs, and its fault.

    Raises TrialBrokenError if one of `ends` has come.
    """
    began = time.monotonic()
    with _signals() as signals, selectors.DefaultSelector() as selector:
        for descriptor in (signals, testbed.emulator.descriptor, *ends):
            selector.register(descriptor, selectors.EVENT_READ)
        remark("the gateway is open; Ctrl-C ends it")
        while True:
            left = None if duration_s is None else began + duration_s - time.monotonic()
            if left is not None and left <= 0:
                break
            ready = {key.fd for key, _ in selector.select(left)}
            if signals in ready:
                break
            for descriptor in ready & set(ends):
                raise TrialBrokenError(ends[descriptor])
            if ready:
                watch()
    return Ended(0, time.monotonic() - began)


@contextmanager
def _signals() -> Iterator[int]:
    """A descriptor that becomes readable when a signal asks for the end."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    before: dict[int, Any] = {}

    def ended(_number: int, _frame: object) -> None:
        with suppress(BlockingIOError):
            os.write(write, b"!")

    for number in _ENDING:
        before[number] = signal.signal(number, ended)
    try:
        yield read
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)
        os.close(read)
        os.close(write)

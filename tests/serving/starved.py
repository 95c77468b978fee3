"""Tests that play in real time, on a machine that may be too busy for it: they say so and are run again."""

from __future__ import annotations

import fcntl
import functools
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import pytest

MOST_TRIES = 5
"""Times that a test may be run on a machine that is short of processor time."""

SHORT = 0.2
"""Share of a test in which tasks waited for a processor, from which on that may be why it failed."""

PRESSED = 0.6
"""Share from which on the machine is not fit to judge."""

TOO_BUSY = "the machine was too busy"
"""Said of a test that was never judged."""

STARVED: list[str] = []
"""Failures of this session for want of the processor, in words; told at its end."""

GAVE_UP: list[str] = []
"""Times that somebody else's player failed by itself and was run again, in words; told likewise."""

P = ParamSpec("P")


def again_if_starved(test: Callable[P, None]) -> Callable[P, None]:
    """Runs a test again that failed while by the kernel's own account (PSI) tasks waited for a processor.

    Skips it, loudly, if it failed every time while they waited for most of it: there is nothing to see then.
    What failed beside other tests (scripts/real-players.sh), which wait all the time, is judged after
    them.
    """

    @functools.wraps(test)
    def tried(*arguments: P.args, **named: P.kwargs) -> None:
        shares: list[float] = []
        while True:
            beside_others = _beside_others()
            began, before = time.monotonic(), _waited_s()
            try:
                return test(*arguments, **named)
            except (AssertionError, subprocess.TimeoutExpired) as why:
                if beside_others:
                    said = str(why).partition("\n")[0]
                    STARVED.append(f"{test.__name__}, beside other tests: {said}")
                    _beside_others(wait=True)
                    continue
                shares.append((_waited_s() - before) / (time.monotonic() - began))
                said = f"{test.__name__}: {str(why).partition(chr(10))[0]} (tasks waited {shares[-1]:.0%})"
                if shares[-1] < SHORT:
                    raise
                STARVED.append(said)
                if len(shares) < MOST_TRIES:
                    continue
                if min(shares) < PRESSED:
                    raise
                pytest.skip(f"{TOO_BUSY}, {MOST_TRIES} times: {said}")

    return tried


def _beside_others(wait: bool = False) -> bool:
    """Whether other tests run beside these, which hold a file locked; after their end if asked."""
    held = os.environ.get("STREAMGAUGE_TESTS_BESIDE")
    if held is None:
        return False
    with Path(held).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return True
    return False


def _waited_s() -> float:
    """Time so far in which some task waited for a processor, machine-wide; 0 if there is no account."""
    try:
        lines = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next(int(line.rpartition("total=")[2]) for line in lines if line.startswith("some")) / 1e6

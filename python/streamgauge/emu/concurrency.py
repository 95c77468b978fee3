"""Trials that run at the same time, under one hold of the machine's lock.

One trial at a time is the rule, because two disturb each other. A run with several trials at once (`--jobs`)
holds the lock for its whole duration, so that other runs' trials wait. It gives each of its trials a place:

    with machine_lock(say) as lock:
        concurrent = ConcurrentTrials(lock, allowed=4)
        # in up to four threads
        run_trial(scenario, plan, seed, folder, EmuOptions(concurrent=concurrent))

The trials share nothing but the processors: each has a sandbox with namespaces, addresses and a /run of its
own. Each trial's own validity verdict shows whether the processors sufficed. The campaign layer does all this
if `EmuSettings.jobs` is more than 1.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from streamgauge.emu.errors import TrialBrokenError

__all__ = ["ConcurrentTrials", "Lifelines", "TrialSlot"]


@dataclass(eq=False)
class Lifeline:
    """A pipe; the sandbox that has its reading end lives until the writing end is closed."""

    reading: int
    writing: int


class Lifelines:
    """The lifelines of sandboxes. Any thread may end them all."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: set[Lifeline] = set()
        self.stopped = False

    def open(self) -> Lifeline:
        """A new one. Raises TrialBrokenError after `stop`."""
        with self._guard:
            if self.stopped:
                raise TrialBrokenError("the run was ended before this trial began; run it again.")
            lifeline = Lifeline(*os.pipe())
            self._open.add(lifeline)
            return lifeline

    def close(self, lifeline: Lifeline) -> None:
        """Ends a sandbox; nothing if it was ended already."""
        with self._guard:
            # Known by itself, not by its number, which another one may have by now.
            if lifeline in self._open:
                self._open.remove(lifeline)
                os.close(lifeline.writing)

    def stop(self) -> None:
        """Ends all of them, and lets no other begin."""
        with self._guard:
            self.stopped = True
            while self._open:
                os.close(self._open.pop().writing)


@dataclass(eq=False)
class TrialSlot:
    """A trial's place among others."""

    #: Descriptor of the machine's lock, for its sandbox.
    lock: int
    lifelines: Lifelines
    #: How many may run at once.
    allowed: int
    #: How many did, itself among them, at most.
    most: int = 0


class ConcurrentTrials:
    """Trials that run at the same time, at most `allowed`. Threads may share it."""

    def __init__(self, lock: int, allowed: int = 1) -> None:
        """`lock` is the descriptor of the machine's lock, held for as long as this is used."""
        self.allowed = allowed
        self._lock = lock
        self._lifelines = Lifelines()
        self._guard = threading.Lock()
        self._taken: set[TrialSlot] = set()
        self._places = threading.Semaphore(allowed)

    @contextmanager
    def slot(self) -> Iterator[TrialSlot]:
        """A trial's place; waits while `allowed` others have theirs."""
        mine = TrialSlot(lock=self._lock, lifelines=self._lifelines, allowed=self.allowed)
        with self._places:
            with self._guard:
                self._taken.add(mine)
                for one in self._taken:
                    one.most = max(one.most, len(self._taken))
            try:
                yield mine
            finally:
                with self._guard:
                    self._taken.remove(mine)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._lifelines.stopped

    def stop(self) -> None:
        """Ends the sandboxes of all trials under way, in any thread; those trials raise TrialBrokenError."""
        self._lifelines.stop()

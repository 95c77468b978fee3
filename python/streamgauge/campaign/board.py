"""How far a campaign is, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamgauge.campaign.plan import Job
from streamgauge.emu.holder import Waiting

__all__ = ["Board", "Progress"]

# Cost of a trial, s: sim altogether by experience, emu besides its own time.
_SIM_S, _EMU_EXTRA_S = 0.5, 6.0
_STEADY_S = 2.0
"""Least time for a rate to be shown."""


@dataclass(frozen=True)
class Progress:
    """How far a campaign is. ``left_s`` is an estimate, ``None`` before there is anything to go by."""

    done: int
    total: int
    left_s: float | None
    now: str
    running: tuple[str, ...] = ()
    """The trials under way, a line each."""
    rate: float | None = None
    """Trials a second so far, without those that existed already; ``None`` before it is known."""
    invalid: int = 0
    """Trials so far that are invalid."""
    waits: bool = False
    """Everything waits for another run; ``now`` names it, and ``left_s`` is ``None``."""


class Board:
    """Keeps count, estimates the time left, calls the caller."""

    def __init__(self, jobs: Sequence[Job], tell: Callable[[Progress], None] | None) -> None:
        self.tell = tell
        self.total = len(jobs)
        self.done = 0
        self.invalid = 0
        self.timed = 0
        self.cost_left = sum(map(self._cost, jobs))
        self.emulations_left = sum(job.mode == "emu" for job in jobs)
        #: Start of the current wait for another run, by time.monotonic(), and the length of earlier ones.
        self.waits_since: float | None = None
        self.waited_s = 0.0
        self.began = self._now()
        self.timed_cost = 0.0
        #: How many emu trials may run at once.
        self.at_once = 1
        #: Wall time for a unit of cost, s: a guess until something has finished.
        self.pace: float | None = None
        #: Trials under way: their start, and the last line of each.
        self.running: dict[Job, tuple[float, str]] = {}

    @staticmethod
    def _cost(job: Job) -> float:
        return _SIM_S if job.mode == "sim" else job.seconds + _EMU_EXTRA_S

    @staticmethod
    def _name(job: Job) -> str:
        return f"{job.scenario.id} {job.mode} seed {job.seed}"

    def _now(self) -> float:
        """Returns a clock that stops while everything waits, s."""
        return (time.monotonic() if self.waits_since is None else self.waits_since) - self.waited_s

    def _waits(self, words: str) -> None:
        """Derives from a line whether everything waits, or runs."""
        if isinstance(words, Waiting):
            if self.waits_since is None and len(self.running) <= 1:
                self.waits_since = time.monotonic()
        elif self.waits_since is not None:
            self.waited_s += time.monotonic() - self.waits_since
            self.waits_since = None

    def add(self, job: Job) -> None:
        """One more, in the place of an invalid one."""
        self.total += 1
        self.cost_left += self._cost(job)
        self.emulations_left += job.mode == "emu"
        self.say(f"{job.scenario.id} {job.mode} seed {job.replaces} is invalid; seed {job.seed} in its place")

    def started(self, job: Job) -> None:
        """A trial is under way."""
        self._waits("")
        self.running[job] = (self._now(), "")
        self.say(self._name(job))

    def said(self, job: Job, words: str) -> None:
        """Keeps the line on the job's wait."""
        self.running[job] = (self.running[job][0], words)
        self.say(Waiting(f"{self._name(job)} is {words}") if isinstance(words, Waiting) else words)

    def finished(self, job: Job, *, valid: bool, timed: bool = True) -> None:
        """A trial is done; one that was there already is not `timed`."""
        self._waits("")
        self.done += 1
        self.invalid += not valid
        self.running.pop(job, None)
        cost = self._cost(job)
        self.cost_left -= cost
        self.emulations_left -= job.mode == "emu"
        if timed:
            self.timed += 1
            # Costs are guesses; how they have held so far, and how far others have come, corrects them.
            self.timed_cost += cost
            now = self._now()
            under_way = sum(min(now - since, self._cost(one)) for one, (since, _) in self.running.items())
            self.pace = (now - self.began) / (self.timed_cost + under_way)
        elif not self.timed:
            self.began = self._now()
        self.say(self._name(job))

    def say(self, now: str) -> None:
        """Reports progress, and the current action or wait."""
        self._waits(now)
        if self.tell is None:
            return
        self.tell(
            Progress(
                done=self.done,
                total=self.total,
                left_s=None if self.waits_since is not None else self._left_s(),
                now=now,
                running=tuple(
                    f"{self._name(job)}: {words}" if words else self._name(job)
                    for job, (_, words) in self.running.items()
                ),
                rate=self._rate(),
                invalid=self.invalid,
                waits=self.waits_since is not None,
            )
        )

    def _rate(self) -> float | None:
        took = self._now() - self.began
        return self.timed / took if self.timed and took >= _STEADY_S else None

    def _left_s(self) -> float | None:
        if self.pace is None and not self.emulations_left:
            return None
        pace = self.pace if self.pace is not None else 1.0 / self.at_once
        left = pace * self.cost_left
        for job, (since, _) in self.running.items():
            left -= min((self._now() - since) / self.at_once, pace * self._cost(job))
        # Trials that take longer than they were to: there is nothing to go by until one of them is done.
        return left if left > 0 or not self.running else None

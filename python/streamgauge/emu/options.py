"""How emu runs a trial."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from streamgauge.emu.concurrency import ConcurrentTrials
from streamgauge.errors import CannotRunError
from streamgauge.scenario.path.capacity import highest_bps

Way = Literal["root", "user"]


def _silent(_line: str) -> None:
    pass


SPEEDS = (1, 2, 4)
"""Speeds of a virtual machine's processor, in 10^9 instructions a second."""
_FAST = ((20e6, 1), (200e6, 2))
"""Below which rate of the path, in bit/s, which speed carries it."""


@dataclass(frozen=True)
class Virtual:
    """A virtual machine that is asked for."""

    #: One of `SPEEDS`; by the path's rate if None.
    speed: int | None = None

    @classmethod
    def of(cls, way: str | None) -> Virtual | None:
        """Returns the speed in ``virtual`` or ``virtual:SPEED``; None if `way` is another. Raises
        CannotRunError for an unknown speed."""
        name, _, speed = (way or "").partition(":")
        if name != "virtual":
            return None
        if speed and speed not in map(str, SPEEDS):
            raise CannotRunError(
                f"there is no virtual machine of speed '{speed}'; it is {', '.join(map(str, SPEEDS))}, in "
                "thousand million instructions a second, such as `--machine virtual:2`."
            )
        return cls(int(speed) if speed else None)

    def speed_for(self, plan: Mapping[str, Any]) -> int:
        """The speed of a trial of that plan."""
        if self.speed is not None:
            return self.speed
        fastest = max(_rates(plan.get("path")), default=0.0)
        return next((speed for rate, speed in _FAST if fastest <= rate), SPEEDS[-1])


def _rates(path: Any) -> Iterator[float]:
    """The highest rate of each of a plan's bottlenecks, in bit/s; one that is not known counts as of the
    middle speed's."""
    for stages in (path or {}).values():
        for stage in stages:
            if "bottleneck" in stage["kind"]:
                highest = highest_bps(stage["kind"]["bottleneck"]["rate"])
                yield _FAST[-1][0] if highest is None else highest


@dataclass(frozen=True, kw_only=True)
class EmuOptions:
    """Settings that are not the scenario's."""

    #: "root" or "user"; by who we are if None. "virtual", or "virtual:2", is a virtual machine's (`Virtual`).
    way: str | None = None
    #: Keep ``capture.pcapng``.
    capture: bool = False
    #: Takes a line about the cause of a wait.
    say: Callable[[str], None] = _silent
    #: SCHED_FIFO priority of the emulator where the kernel allows it; None for the normal class.
    fifo_priority: int | None = 50
    #: The trials that this one runs among; None: it takes the machine's lock and runs alone.
    concurrent: ConcurrentTrials | None = None
    #: Whether the emulator spins the last stretch before a departure; None: if it runs alone.
    spin: bool | None = None
    #: Folders that a virtual machine gets as well, at the same place (`streamgauge.emu.machine.guest_files`).
    brought: tuple[Path, ...] = ()
    #: A socket on which the emulator shows the trial and takes changes of its path.
    live_fd: int | None = None
    #: With it: the plan of the finished run, from the changes that were made and the trial's length, ns.
    steered: Callable[[list[dict[str, Any]], int], dict[str, Any]] | None = None
    #: With it: takes flow, name and value of players' reports while they play.
    player_said: Callable[[str, str, float | None], None] | None = None
    #: Faults for our own mutation tests, by the names of `streamgauge-engine link`.
    sabotage: tuple[str, ...] = ()

    @property
    def spins(self) -> bool:
        """Whether the emulator spins, decided."""
        if self.spin is not None:
            return self.spin
        # A virtual machine's timers are exact, and each instruction takes time.
        return self.concurrent is None and self.virtual is None

    @property
    def virtual(self) -> Virtual | None:
        """The virtual machine that is asked for, if one is."""
        return Virtual.of(self.way)

    @property
    def chosen_way(self) -> Way:
        """The way, decided. Raises CannotRunError if another user than root requests root's way."""
        if self.virtual is not None:
            return "root"  # inside
        if self.way is None:
            return "root" if os.geteuid() == 0 else "user"
        if self.way == "root" and os.geteuid() != 0:
            raise CannotRunError("the sandbox's way 'root' needs root; run as root, or take way 'user'.")
        if self.way not in ("root", "user"):
            raise CannotRunError(f"there is no sandbox way '{self.way}'; it is 'root' or 'user'.")
        return "root" if self.way == "root" else "user"

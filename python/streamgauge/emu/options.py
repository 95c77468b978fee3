"""How emu runs a trial."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from streamgauge.emu.concurrency import ConcurrentTrials
from streamgauge.errors import CannotRunError

Way = Literal["root", "user"]


def _silent(_line: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class EmuOptions:
    """Settings that are not the scenario's."""

    #: "root" or "user"; by who we are if None.
    way: str | None = None
    #: Keep ``capture.pcapng``.
    capture: bool = False
    #: Takes a line about what is being waited for.
    say: Callable[[str], None] = _silent
    #: SCHED_FIFO priority of the emulator where the kernel allows it; None for the normal class.
    fifo_priority: int | None = 50
    #: The trials that this one runs among; None: it takes the machine's lock and runs alone.
    concurrent: ConcurrentTrials | None = None
    #: Whether the emulator spins the last stretch before a departure; None: if it runs alone.
    spin: bool | None = None
    #: Faults for our own mutation tests, by the names of `streamgauge-engine link`.
    sabotage: tuple[str, ...] = ()

    @property
    def spins(self) -> bool:
        """Whether the emulator spins, decided."""
        return self.spin if self.spin is not None else self.concurrent is None

    @property
    def chosen_way(self) -> Way:
        """The way, decided. CannotRunError if root's way is asked for by somebody else."""
        if self.way is None:
            return "root" if os.geteuid() == 0 else "user"
        if self.way == "root" and os.geteuid() != 0:
            raise CannotRunError("the sandbox's way 'root' needs root; run as root, or take way 'user'.")
        if self.way not in ("root", "user"):
            raise CannotRunError(f"there is no sandbox way '{self.way}'; it is 'root' or 'user'.")
        return "root" if self.way == "root" else "user"

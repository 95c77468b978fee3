"""Common part of adapters of programs for contribution, which carry MPEG-TS with lost packets repeated.

FFmpeg reads the clip at its own pace into the sending program; a reader of ours and a decoder take the stream
from the receiving one (programs/contribution_sender.py and contribution_receiver.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streamgauge.systems.adapter import ENDS, Action, Clock, FlowSetup, Process, Side, place
from streamgauge.systems.events import event
from streamgauge.systems.player_files import UNFIT, FileRefusedError, read_in
from streamgauge.systems.scripted import ScriptedAdapter, script

__all__ = ["INPUT", "OUTPUT", "STEP_NS", "Contribution", "Counters", "lines_of", "read_lines", "wall_ns"]

SETTINGS: Final = "settings.json"
LARGEST_STATISTICS_BYTES: Final = 20_000_000
"""As much as is kept of a log."""
STEP_NS: Final = 200_000_000
"""Least time between two reports of statistics."""
INPUT, OUTPUT = 1, 2
"""Ports at both ends' own address, after the flow's first."""


class Contribution(ScriptedAdapter):
    """The frame of such an adapter."""

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ENDS

    def sending(self, flow: FlowSetup) -> Mapping[str, Any]:
        """Returns the settings of contribution_sender.py."""
        raise NotImplementedError

    def receiving(self, flow: FlowSetup) -> Mapping[str, Any]:
        """Returns those of contribution_receiver.py."""
        raise NotImplementedError

    def processes(self, flow: FlowSetup) -> list[Process]:
        server = script(
            flow,
            "server",
            "contribution_sender.py",
            arguments=[str(flow.out("server") / SETTINGS)],
            files={SETTINGS: dict(self.sending(flow))},
            early=True,
            ready="port",
            may_end=True,
        )
        player = script(
            flow,
            "player",
            "contribution_receiver.py",
            arguments=[str(flow.out("player") / SETTINGS)],
            files={SETTINGS: dict(self.receiving(flow))},
            may_end=True,
            acted_on=True,
        )
        return [server, player]


def lines_of(flow: FlowSetup, side: Side, name: str, faults: list[str]) -> tuple[str, list[str]]:
    """Returns a file of a process with statistics, as faults call it, and its whole lines; none if the
    process left none."""
    shown = f"{flow.name}-{place(side)}-{name}"
    try:
        found = read_in(flow.out(side), Path(name), LARGEST_STATISTICS_BYTES)
    except FileRefusedError as error:
        faults.append(f"{shown} {error}")
        return shown, []
    if found is None:
        return shown, []
    if found.is_cut:
        more = f"more than {LARGEST_STATISTICS_BYTES / 1e6:g} MB"
        faults.append(f"{shown} has {more}; what follows is not read")
    *lines, _ = found.data.decode(errors="replace").split("\n")
    return shown, lines


class Counters:
    """Turns counters since the start into events, at most each `STEP_NS`, and at the end."""

    def __init__(self, totals: Mapping[str, str], values: Mapping[str, tuple[str, str]], reason: str) -> None:
        """`totals` has the event of each counter, whose value is the increase in packets; `values` the event
        and the unit of each other number."""
        self.totals, self.values, self.reason = totals, values, reason
        self.events: list[dict[str, Any]] = []
        self._told: dict[str, float] = dict.fromkeys(totals, 0.0)
        self._told_ns: int | None = None

    def all(self, rows: Sequence[tuple[int, Mapping[str, float]]]) -> list[dict[str, Any]]:
        """Returns the events of reports, each with its time."""
        for at_ns, row in rows:
            if self._told_ns is None or at_ns - self._told_ns >= STEP_NS:
                self._tell(at_ns, row)
        if rows and rows[-1][0] != self._told_ns:
            self._tell(*rows[-1])
        return self.events

    def _tell(self, at_ns: int, row: Mapping[str, float]) -> None:
        first = self._told_ns is None
        self._told_ns = at_ns
        for key, name in self.totals.items():
            more = row[key] - self._told[key]
            # The first zero promises a report of each later one.
            if more > 0 or first:
                self.events.append(event(at_ns, name, more, "packets", f"{self.reason}: {key}"))
                self._told[key] = row[key]
        for key, (name, unit) in self.values.items():
            self.events.append(event(at_ns, name, row[key], unit, f"{self.reason}: {key}"))


def read_lines(
    lines: Sequence[str], shown: str, faults: list[str], read: Callable[[str], None], what: str
) -> None:
    """Reads each line; the first that cannot be read is put in `faults`, and ends it."""
    for number, line in enumerate(lines, 1):
        try:
            read(line)
        except UNFIT:
            faults.append(f"{shown}:{number}: not {what}")
            return


def wall_ns(nanoseconds: int, clock: Clock) -> int:
    """CLOCK_MONOTONIC at a time of CLOCK_REALTIME, ns."""
    return clock.t0_monotonic_ns + nanoseconds - clock.t0_realtime_ns

"""Faults of a control under evaluation: its behaviour, and a remedy for its author."""

from __future__ import annotations

from dataclasses import dataclass

from streamgauge.systems.call_watch import LONGEST_S

__all__ = ["ControlFault", "fault_of"]

_SLOW = f"did not return within {LONGEST_S} s"
_REMEDIES = (
    ("its window is nan", "guard the division or the logarithm that gives NaN"),
    ("its window is inf", "bound the window, such as by twice bytes in flight"),
    ("its window is -", "keep the window at one segment or more"),
    ("its window is 0", "keep the window at one segment or more"),
    ("1 B to 1 GiB", "bound the window, such as by twice bytes in flight"),
    ("its window is", "set window to a number of bytes"),
    ("pacing_bps", "set pacing_bps to None or to a rate of 8 bit/s or more"),
    (_SLOW, "look for a loop that does not end; a call should take microseconds"),
    ("limits.memory", "it sends without end; reduce the window when segments are lost"),
    ("limits.events", "it sends without end; reduce the window when segments are lost"),
    ("never sent", "it kept its sender from sending; begin with a window of one segment or more"),
    ("when it was made", "mend __init__, which gets start.mss and start.window"),
)
_ELSE = "run this condition alone with streamgauge run, and mend the exception"


@dataclass(frozen=True)
class ControlFault:
    """Why a trial of the control under evaluation has no result."""

    what: str
    remedy: str
    is_slow: bool = False
    """Whether each further trial would wait as long."""

    @property
    def words(self) -> str:
        """In a line."""
        return f"{self.what.rstrip('.')}; remedy: {self.remedy}"


def fault_of(message: str) -> ControlFault:
    """Returns the fault in an error's message."""
    what = message.removesuffix("; nothing of this trial counts")
    remedy = next((remedy for sign, remedy in _REMEDIES if sign.lower() in what.lower()), _ELSE)
    return ControlFault(what, remedy, _SLOW in what)

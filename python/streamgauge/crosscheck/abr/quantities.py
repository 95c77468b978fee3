"""The differences between rules of adaptive bit rate, as numbers of one trial.

The levels that a player requested, and the times, are read off the path: the requests in a record of either
mode (``GET /v2/7.m4s`` of our player, ``GET /segment-2-7.m4s`` of another). Players' own reports differ: some
report a level when it is chosen, ours when it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from streamgauge.crosscheck.compared import ComparedQuantity, Found

__all__ = ["QUANTITIES", "SegmentRequest", "of_requests", "quantity", "requests"]

_ASKED: Final = re.compile(r"up GET /(?:v|segment-)(?P<level>\d+)[/-](?P<segment>\d+)\.m4s\b")

_ALL = (
    ComparedQuantity("level_bps", "kbit/s", "bit rate chosen, mean over segments", 0.1, 0, 1e-3, fixed=True),
    ComparedQuantity("shown_bps", "kbit/s", "bit rate shown, mean over time", 0.1, 0, 1e-3, fixed=True),
    ComparedQuantity("level_changes", "", "changes of level between segments", 0.2, 2, fixed=True),
    ComparedQuantity("stall_time_s", "s", "time stalled", 0.2, 1, fixed=True),
    ComparedQuantity("startup_s", "s", "from the request to play to the first picture", 0.2, 0.2, fixed=True),
    ComparedQuantity("again", "", "segments asked for more than once", 0.2, 2, fixed=True),
    ComparedQuantity("buffer_s", "s", "media held, mean over time", 0.1, 1, fixed=True),
)
"""Every margin is fixed: what varies from trial to trial never widens it."""
QUANTITIES: Final = {one.name: one for one in _ALL}


def quantity(metric: str) -> ComparedQuantity:
    """The quantity of a row's metric."""
    return QUANTITIES[metric]


@dataclass(frozen=True)
class SegmentRequest:
    """A request for a segment of pictures, as it entered the path."""

    time_ns: int
    level: int
    """From 0 for the lowest."""
    segment: int
    """From 1."""


def requests(messages: Iterable[tuple[int, str]]) -> list[SegmentRequest]:
    """The requests for segments among a record's messages: (time in ns, text), in their order."""
    found = []
    for time_ns, text in messages:
        told = _ASKED.match(text)
        if told is not None:
            found.append(SegmentRequest(time_ns, int(told["level"]), int(told["segment"])))
    return found


def of_requests(asked: Sequence[SegmentRequest], levels_bps: Sequence[int]) -> Found:
    """Returns the quantities of the requests of one session.

    A segment counts once, with the level of the last request for it. A segment that was given up, or fetched
    again at another level while it was held, is not shown.

    Args:
        asked: in their order.
        levels_bps: each level's rate, ascending.
    """
    last = {one.segment: one.level for one in asked}
    shown = [last[segment] for segment in sorted(last)]
    if not shown:
        return {"level_bps": None, "level_changes": None, "again": None}
    return {
        "level_bps": sum(levels_bps[level] for level in shown) / len(shown),
        "level_changes": float(sum(one != other for one, other in pairwise(shown))),
        "again": float(len(asked) - len(last)),
    }

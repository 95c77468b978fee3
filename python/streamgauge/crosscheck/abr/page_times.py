"""How long a player's page takes where no bytes move, by a real session's packets and its player's events."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise
from typing import Final

import polars as pl

from streamgauge.record import Record

__all__ = ["page_times"]

_SEGMENT: Final = re.compile(r"segment-\d+-\d+")
_FULL_MS: Final = 400
"""A longer time is a wait for room in the buffer, which dash.js and Shaka look for each 500 ms."""


def page_times(record: Record, rtt_s: float) -> list[tuple[str, float]]:
    """Returns each time by the name of its setting, in ms (`crates/systems/src/dash/player/settings.rs`)."""
    events = record.events
    came_ns = _arrivals(record.packets)

    def of(name: str) -> pl.DataFrame:
        return events.filter(pl.col("name") == name).sort("time")

    def since_last(time_ns: int) -> float:
        """Since the last byte before."""
        return float((time_ns - came_ns[bisect_left(came_ns, time_ns) - 1]) / 1e6)

    messages = of("message").select("time", "reason", "value").rows()
    asked = [(time, text) for time, text, _ in messages if text.startswith("up GET ")]
    connections = [connection for _, text, connection in messages if text.startswith("up GET ")]
    requested, fetched = of("play_requested")["time"].to_list(), of("segment_fetched")["time"].to_list()
    first = next((at for at, (_, what) in enumerate(asked) if _SEGMENT.search(what)), 0)
    if not first or not requested or not came_ns:
        return []

    def is_beside(at: int) -> bool:
        """A segment that is asked for beside its initialisation waits for a handshake, not for the page."""
        return "init" in asked[at - 1][1] and connections[at] != connections[at - 1]

    last = first - 1 if is_beside(first) else first
    before = (asked[0][0] - requested[0]) / 1e6 - 1e3 * rtt_s
    found = [("set_up", before + sum(since_last(time) for time, _ in asked[1 : last + 1]))]
    for at, ((_, one), (time, _)) in enumerate(pairwise(asked[first:])):
        name = "first_append" if at == 0 else "append" if _SEGMENT.search(one) else "init_append"
        if at == 0 or (since_last(time) < _FULL_MS and not is_beside(first + at + 1)):
            found.append((name, since_last(time)))
    found += [("read" if at else "first_read", since_last(time)) for at, time in enumerate(fetched)]
    for shown in of("playout_start")["time"].to_list():
        # Bytes of the next segment may be there already: the last byte counts that was read before.
        read = max((time for time in fetched if time <= shown), default=shown)
        ms = (shown - read) / 1e6 + since_last(read)
        found += [("first_picture", ms)] if ms < 1e3 else []
    return found


def _arrivals(packets: pl.DataFrame) -> list[int]:
    """When media left the path's last stage, ns."""
    down = packets.filter((pl.col("dir") == "down") & (pl.col("payload_bytes") > 0))
    return down.filter(pl.col("stage") == "delay")["t_out"].drop_nulls().sort().to_list()

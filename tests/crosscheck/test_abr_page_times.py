"""Times of a page, by the packets and events of a session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import polars as pl
from streamgauge.crosscheck.abr.page_times import page_times
from streamgauge.record import Record

RTT_S = 0.05
MS = 1_000_000


def session(asked: list[tuple[int, int, str]], came_ms: list[int], told: list[tuple[int, str]]) -> Record:
    """Requests by time, connection and target; arrivals of bytes; the player's events."""
    rows = [(time * MS, "message", float(connection), f"up GET {what}") for time, connection, what in asked]
    rows += [(time * MS, name, 0.0, "") for time, name in told]
    events = pl.DataFrame(rows, ["time", "name", "value", "reason"], orient="row").sort("time")
    packets = pl.DataFrame(
        [("down", "delay", 1000, time * MS) for time in came_ms],
        ["dir", "stage", "payload_bytes", "t_out"],
        orient="row",
    )
    return cast(Record, SimpleNamespace(events=events, packets=packets))


def by_name(record: Record) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, ms in page_times(record, RTT_S):
        found.setdefault(name, []).append(ms)
    return found


def test_each_gap_between_bytes_and_the_next_request_has_its_name() -> None:
    asked = [
        (80, 0, "/manifest.mpd"),  # 30 ms from the request to play, beside the handshake
        (150, 0, "/init-1.m4s"),  # 20 ms after the manifest
        (210, 0, "/segment-1-1.m4s"),  # 10 ms after the initialisation
        (1_012, 0, "/init-2.m4s"),
        (1_070, 0, "/segment-2-2.m4s"),
        (2_005, 0, "/segment-2-3.m4s"),
        (5_000, 0, "/segment-2-4.m4s"),  # the buffer was full
    ]
    came = [130, 200, 1_000, 1_064, 2_000, 3_000]
    told = [(0, "play_requested"), (1_003, "segment_fetched"), (1_080, "playout_start")]
    told += [(2_002, "segment_fetched"), (3_004, "segment_fetched")]
    found = by_name(session(asked, came, told))
    assert found == {
        "set_up": [60.0],
        "first_append": [12.0],
        "init_append": [6.0],
        "append": [5.0],
        "first_read": [3.0],
        "read": [2.0, 4.0],
        "first_picture": [80.0],
    }


def test_a_segment_beside_its_initialisation_waits_for_its_connection_alone() -> None:
    asked = [(80, 0, "/manifest.mpd"), (150, 0, "/init-1.m4s"), (205, 1, "/segment-1-1.m4s")]
    record: Any = session(asked, [130, 200, 1_000], [(0, "play_requested")])
    assert by_name(record)["set_up"] == [50.0]


def test_a_session_without_a_segment_has_no_times() -> None:
    assert page_times(session([(80, 0, "/manifest.mpd")], [130], [(0, "play_requested")]), RTT_S) == []

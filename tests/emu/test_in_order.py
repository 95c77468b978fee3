"""What a program can have read of TCP, against a receiver that puts segments together one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.emu.taps import (
    CORRUPTED,
    DELIVERED,
    DOWN,
    MEDIA,
    MORE_FRAGMENTS,
    RETRANSMIT,
    TCP,
    media_delivered,
)

SIGNALLING, DROPPED, HELD = 3, 1, 2
PLAN: dict[str, Any] = {
    "path": {"down": [{"name": "bottleneck"}, {"name": "delay"}], "up": [{"name": "delay"}]},
    "flows": [{"name": "video"}, {"name": "other"}],
}


@dataclass(frozen=True)
class Segment:
    """A segment as it was sent, by its place in its connection."""

    begin: int
    length: int
    kind: int = MEDIA
    connection: int = 0
    lost: bool = False
    corrupted: bool = False
    repeats: bool = False


def _told(segments: list[Segment], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same record as packets/3, which tells connections: ports tell nothing of them."""
    return [one | {"connection": segments[one["pkt"]].connection, "hash": 7} for one in rows]


def _rows(segments: list[Segment], first: int) -> list[dict[str, Any]]:
    rows = []
    for number, one in enumerate(segments):
        flags = RETRANSMIT * one.repeats
        base: dict[str, Any] = {
            "pkt": number, "copy": 0, "fragment_offset": 0, "flow": 0, "dir": DOWN, "kind": one.kind,
            "ip_bytes": one.length + 52, "payload_bytes": one.length, "hash": 7 + one.connection,
            "protocol": TCP, "seq": (first + one.begin) % 2**32, "flags": flags, "t_out": number,
        }  # fmt: skip
        rows.append(base | {"stage": 0, "fate": DROPPED if one.lost else DELIVERED})
        if not one.lost:
            rows.append(base | {"stage": 1, "fate": DELIVERED, "flags": flags | CORRUPTED * one.corrupted})
    return rows


def _counted(rows: list[dict[str, Any]], folder: Path) -> int:
    schema = {
        "seq": pl.UInt32,
        "pkt": pl.UInt64,
        "flow": pl.UInt16,
        "payload_bytes": pl.UInt32,
        "hash": pl.UInt32,
    }
    if "connection" in rows[0]:
        schema["connection"] = pl.UInt32
    narrow = dict.fromkeys(("copy", "dir", "kind", "protocol", "flags", "stage", "fate"), pl.UInt8)
    pl.DataFrame(rows, schema_overrides=schema | narrow).write_parquet(folder / "packets.parquet")
    return media_delivered(folder, PLAN)["video"]["bytes"]


def _reassembled(segments: list[Segment]) -> int:
    """A receiver that keeps every byte in a set, and hands on those below its first hole."""
    total = 0
    for connection in {one.connection for one in segments}:
        mine = [one for one in segments if one.connection == connection]
        kinds: dict[int, int] = {}
        for one in mine:
            for at in range(one.begin, one.begin + one.length):
                kinds.setdefault(at, one.kind)
        have = {
            at
            for one in mine
            if not (one.lost or one.corrupted)
            for at in range(one.begin, one.begin + one.length)
        }
        at = 0
        while at in have:
            total += kinds[at] == MEDIA
            at += 1
    return total


@st.composite
def _connections(draw: st.DrawFn) -> list[Segment]:
    """New bytes, each time after those sent, and repeats of any stretch of them; up to three connections."""
    sent = dict.fromkeys(range(draw(st.integers(1, 3))), 0)
    segments = []
    for _ in range(draw(st.integers(1, 40))):
        connection = draw(st.sampled_from(sorted(sent)))
        top = sent[connection]
        repeats = top > 0 and draw(st.booleans())
        begin = draw(st.integers(0, top - 1)) if repeats else top
        # A repeat may reach beyond what was sent.
        length = draw(st.integers(1, 12))
        fate = draw(st.sampled_from(["arrives", "arrives", "is lost", "is corrupted"]))
        segments.append(
            Segment(
                begin, length, draw(st.sampled_from([MEDIA, MEDIA, SIGNALLING])), connection,
                lost=fate == "is lost", corrupted=fate == "is corrupted", repeats=repeats,
            )
        )  # fmt: skip
        sent[connection] = max(top, begin + length)
    return segments


@given(segments=_connections(), first=st.sampled_from([0, 1, 2**31 - 20, 2**32 - 25, 2**32 - 1]))
@settings(max_examples=150)
def test_bytes_in_order_are_those_of_a_receiver(
    tmp_path_factory: Any, segments: list[Segment], first: int
) -> None:
    rows = _rows(segments, first)
    assert _counted(rows, tmp_path_factory.mktemp("record")) == _reassembled(segments)
    assert _counted(_told(segments, rows), tmp_path_factory.mktemp("record")) == _reassembled(segments)


def test_what_lies_above_a_hole_at_the_end_is_not_expected(tmp_path: Path) -> None:
    sent = [Segment(1000 * number, 1000, lost=number == 10) for number in range(140)]
    assert _counted(_rows(sent, 5), tmp_path) == 10_000
    again = replace(sent[10], lost=False, repeats=True)
    assert _counted(_rows([*sent, again], 5), tmp_path) == 140_000


def test_ports_may_serve_one_connection_after_another(tmp_path: Path) -> None:
    first = [Segment(0, 1000), Segment(1000, 1000, lost=True)]
    # The second has another initial sequence number, some 16 million a second on.
    second = [replace(one, begin=20_000_000 + one.begin) for one in (Segment(0, 500), Segment(500, 500))]
    assert _counted(_rows([*first, *second], 0), tmp_path) == 2000


def test_a_connection_that_begins_within_anothers_bytes_is_told_by_the_record(tmp_path: Path) -> None:
    """By its numbers it is what the first one repeats."""
    first = [Segment(0, 1000), Segment(1000, 1000)]
    second = [replace(one, connection=1) for one in first]
    rows = _told([*first, *second], _rows([*first, *second], 0))
    assert _counted(rows, tmp_path) == 4000


def test_a_segment_that_the_path_cut_up_arrives_with_all_its_parts(tmp_path: Path) -> None:
    rows = _rows([Segment(0, 1000), Segment(1000, 1000), Segment(2000, 1000)], 0)
    cut = rows.pop(3)
    # 1,032 bytes of IP payload, with TCP's header, of which 600 go in the first fragment.
    parts = [
        cut | {"fragment_offset": 0, "payload_bytes": 568, "ip_bytes": 620, "flags": MORE_FRAGMENTS},
        cut | {"fragment_offset": 75, "payload_bytes": 432, "ip_bytes": 452},
    ]
    assert _counted([*rows, *parts], tmp_path) == 3000
    assert _counted([*rows, parts[0]], tmp_path) == 1000
    # The stage that cut it counts what its first fragment holds.
    rows[2] = rows[2] | {"payload_bytes": 568}
    assert _counted([*rows, *parts], tmp_path) == 3000


def test_what_arrives_after_the_player_ended_is_not_expected(tmp_path: Path) -> None:
    rows = _rows([Segment(0, 1000), Segment(1000, 1000), Segment(2000, 1000)], 0)
    for row in rows:
        row["t_out"] = (row["pkt"] + 1) * 10**9
    _counted(rows, tmp_path)
    assert media_delivered(tmp_path, PLAN, {"video": 2.0})["video"]["packets"] == 2
    assert media_delivered(tmp_path, PLAN, {"other": 2.0})["video"]["packets"] == 3

"""What the verdict counts in a record."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.emu.taps import (
    CORRUPTED,
    CROSS,
    DELIVERED,
    DOWN,
    MEDIA,
    MORE_FRAGMENTS,
    RETRANSMIT,
    SIGNALLING,
    _datagrams,
    handshakes_repeated,
    harmed,
    media_delivered,
)

NUMBERS = count()

DROPPED, BOTTLENECK, DELAY, UDP = 1, 0, 1, 1
PLAN = {
    "path": {"down": [{"name": "bottleneck"}, {"name": "delay"}], "up": [{"name": "delay"}]},
    "flows": [{"name": "a"}, {"name": "b"}],
}


def _row(
    flow: int, seq: int | None, *, fate: int = DELIVERED, flags: int = 0, **other: int
) -> dict[str, object]:
    row: dict[str, object] = {"flow": flow, "seq": seq, "fate": fate, "flags": flags, "dir": DOWN}
    row |= {"pkt": next(NUMBERS), "copy": 0, "fragment_offset": 0, "ip_bytes": 1028, "t_out": 0}
    row |= {"hash": 7, "protocol": UDP}
    return row | {"stage": DELAY, "kind": MEDIA, "payload_bytes": 1000} | other


def _counts(packets: int, octets: int, copies: int = 0) -> dict[str, int]:
    """Of media in datagrams, and nothing else."""
    media = {"packets": packets, "bytes": octets, "copies": copies}
    return media | {"datagrams": packets, "datagram_copies": copies}


def test_each_byte_that_arrives_counts_once(tmp_path: Path) -> None:
    rows = [
        _row(0, 0),
        _row(0, 1000, fate=DROPPED, stage=BOTTLENECK),
        _row(0, 1000, flags=RETRANSMIT),  # repairs the loss
        _row(0, 1000, flags=RETRANSMIT),  # and once too often
        _row(0, 0, flags=RETRANSMIT),  # repeats what had arrived
        _row(1, 1000, kind=CROSS),
        _row(1, None, kind=CROSS, flags=RETRANSMIT),
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "packets.parquet")
    assert media_delivered(tmp_path, PLAN) == {
        "a": _counts(4, 2000),
        "b": _counts(2, 1000),
    }


def test_a_flow_that_got_nothing_has_zeros(tmp_path: Path) -> None:
    pl.DataFrame([_row(0, 0)]).write_parquet(tmp_path / "packets.parquet")
    assert media_delivered(tmp_path, PLAN)["b"] == _counts(0, 0)


def test_copies_and_damage_are_told_apart(tmp_path: Path) -> None:
    rows = [
        _row(0, 0, pkt=5000),
        _row(0, 0, pkt=5000, copy=1),
        _row(0, 1000),
        _row(0, 2000, flags=CORRUPTED),
        _row(0, 2000, flags=CORRUPTED, stage=BOTTLENECK),
        _row(0, 3000, flags=CORRUPTED, stage=2, dir=1),
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "packets.parquet")
    assert media_delivered(tmp_path, PLAN)["a"] == _counts(2, 2000, copies=1)
    found = harmed(tmp_path, PLAN)
    assert [found[end]["checksum_errors"] for end in ("client", "server")] == [1, 1]


def test_datagrams_are_told_from_media(tmp_path: Path) -> None:
    rows = [
        _row(0, 0),
        _row(0, None, kind=SIGNALLING, pkt=5000),
        _row(0, None, kind=SIGNALLING, pkt=5000, copy=1),
        _row(0, None, kind=SIGNALLING, fate=DROPPED, stage=BOTTLENECK),
        _row(0, 0, protocol=0, connection=1),
        _row(0, 1000, protocol=0, connection=1, kind=SIGNALLING),
        _row(0, None, kind=SIGNALLING, t_out=2_000_000_001),
    ]
    pl.from_dicts([{"connection": 0} | row for row in rows]).write_parquet(tmp_path / "packets.parquet")
    found = media_delivered(tmp_path, PLAN, {"a": 2.0})["a"]
    assert found == {"packets": 2, "bytes": 2000, "copies": 0, "datagrams": 2, "datagram_copies": 1}


def test_repeated_handshakes(tmp_path: Path) -> None:
    tcp = {"protocol": 0, "kind": 3, "payload_bytes": 0}
    rows = [
        _row(0, 7, **tcp),
        _row(1, 7, **tcp),
        _row(1, 7, flags=RETRANSMIT, **tcp),
        _row(0, 8, flags=RETRANSMIT, protocol=0),
        _row(0, 8, flags=RETRANSMIT, **(tcp | {"kind": 1})),
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "packets.parquet")
    assert handshakes_repeated(tmp_path, PLAN) == ["b"]


def _fragments(pkt: int, offsets: tuple[int, ...] = (0, 125, 250), **other: int) -> list[dict[str, object]]:
    """3,000 bytes of IP payload in three fragments, or some of them."""
    flags = other.pop("flags", 0)
    return [
        _row(0, None, pkt=pkt, fragment_offset=at, ip_bytes=1020, payload_bytes=1000 - 8 * (at == 0),
             flags=flags | (MORE_FRAGMENTS if at < 250 else 0), **other)
        for at in offsets
    ]  # fmt: skip


def test_datagrams_count_that_arrive_whole_and_sound(tmp_path: Path) -> None:
    spoilt = _fragments(1003)
    spoilt[1]["flags"] = MORE_FRAGMENTS | CORRUPTED
    rows = [
        *_fragments(1000),
        *_fragments(1001, (0, 250)),
        *_fragments(1002),
        *_fragments(1002, copy=1),
        *spoilt,
        _row(0, 0, flags=CORRUPTED),
        _row(0, 0),
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "packets.parquet")
    # 1000, 1002 and the last; a copy brings no new bytes.
    found = media_delivered(tmp_path, PLAN)["a"]
    assert found == _counts(3, 2 * 2992 + 1000, copies=1)
    # 1001 lacks a fragment; the copy of 1002 is complete, too.
    none = {"checksum_errors": 0, "reassembly_failed": 0}
    assert harmed(tmp_path, PLAN) == {
        "client": {"checksum_errors": 2, "reassembly_failed": 1},
        "server": none,
        "cross": none,
    }


def test_fragments_of_one_copy_complete_another(tmp_path: Path) -> None:
    spoilt = _fragments(1002, (0,))[0] | {"flags": MORE_FRAGMENTS | CORRUPTED}
    rows = [
        # The first lost its middle, the copy its end.
        *_fragments(1000, (0, 250)),
        *_fragments(1000, (0, 125), copy=1),
        # Each place is filled by what comes first: here by what is spoilt, whose sound copy comes too late.
        spoilt,
        *_fragments(1002, copy=1),
        # What comes when the datagram is complete begins it anew, and waits to the end.
        *_fragments(1003),
        *_fragments(1003, (125,), copy=1),
    ]
    for t_out, row in enumerate(rows):
        row["t_out"] = t_out
    pl.DataFrame(rows[::-1]).write_parquet(tmp_path / "packets.parquet")
    assert media_delivered(tmp_path, PLAN)["a"] == _counts(2, 2 * 2992)
    assert harmed(tmp_path, PLAN)["client"] == {"checksum_errors": 1, "reassembly_failed": 1}


@given(st.permutations(range(9)), st.integers(0, 9))
def test_no_order_of_copies_makes_more_of_a_datagram_than_arrived(order: list[int], arrive: int) -> None:
    sent = [row for copy in range(3) for row in _fragments(1000, copy=copy)]
    rows = [sent[at] | {"t_out": t_out} for t_out, at in enumerate(order[:arrive])]
    columns = ["pkt", "copy", "fragment_offset", "flow", "t_out", "kind", "ip_bytes"]
    columns += ["payload_bytes", "seq", "flags", "protocol"]
    if not rows:
        return
    found = _datagrams(pl.DataFrame(rows).select(columns))
    places = Counter(row["fragment_offset"] for row in rows)
    complete = found.filter("complete")
    assert complete.height <= min(places[at] for at in (0, 125, 250))
    assert (complete.height > 0) == (len(places) == 3)
    assert (complete["payload_bytes"] == 2992).all()
    assert found["copy"].to_list() == list(range(found.height))

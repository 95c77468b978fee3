"""What the verdict counts in a record."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from streamgauge.emu.taps import (
    CORRUPTED,
    CROSS,
    DELIVERED,
    DOWN,
    MEDIA,
    RETRANSMIT,
    corrupted_delivered,
    media_delivered,
)

DROPPED, BOTTLENECK, DELAY = 1, 0, 1
PLAN = {
    "path": {"down": [{"name": "bottleneck"}, {"name": "delay"}], "up": [{"name": "wire"}]},
    "flows": [{"name": "a"}, {"name": "b"}],
}


def _row(
    flow: int, seq: int | None, *, fate: int = DELIVERED, flags: int = 0, **other: int
) -> dict[str, object]:
    row: dict[str, object] = {"flow": flow, "seq": seq, "fate": fate, "flags": flags, "dir": DOWN}
    whole = {"stage": DELAY, "kind": MEDIA, "payload_bytes": 1000, "copy": 0, "fragment_offset": 0}
    return row | whole | other


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
        "a": {"packets": 4, "bytes": 2000, "copies": 0},
        "b": {"packets": 2, "bytes": 1000, "copies": 0},
    }


def test_a_flow_that_got_nothing_has_zeros(tmp_path: Path) -> None:
    pl.DataFrame([_row(0, 0)]).write_parquet(tmp_path / "packets.parquet")
    assert media_delivered(tmp_path, PLAN)["b"] == {"packets": 0, "bytes": 0, "copies": 0}


def test_copies_fragments_and_damage_are_told_apart(tmp_path: Path) -> None:
    rows = [
        _row(0, 0),
        _row(0, 0, copy=1),
        _row(0, 1000, payload_bytes=600),
        _row(0, 1000, payload_bytes=400, fragment_offset=75),
        _row(0, 2000, flags=CORRUPTED),
        _row(0, 2000, flags=CORRUPTED, stage=BOTTLENECK),
        _row(0, 3000, flags=CORRUPTED, stage=2, dir=1),
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "packets.parquet")
    assert media_delivered(tmp_path, PLAN)["a"] == {"packets": 2, "bytes": 2000, "copies": 1}
    assert corrupted_delivered(tmp_path, PLAN) == {"down": 1, "up": 1}

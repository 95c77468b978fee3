"""Records of every version that ever was are read, and say what they said then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamgauge.metrics import compute
from streamgauge.record import Record

DATA = Path(__file__).parent / "data"
VERSIONS = sorted(path.name for path in DATA.iterdir())

#: What each record said when it was made. `small.make(DATA / "v4")` makes the next one; none is made again.
EXPECTED: dict[str, dict[str, Any]] = {
    "v1": {
        "counts": [
            ("video", "delivered", 288), ("video", "dropped", 3), ("video", "held", 3),
            ("tcp", "delivered", 279), ("tcp", "dropped", 18), ("tcp", "held", 3),
        ],
        "events": 3,
        "delivered_bytes": 144_000,
        "sender_bps": 411_200.0,
    },
    "v2": {
        "counts": [
            ("video", "delivered", 287), ("video", "dropped", 4), ("video", "held", 3),
            ("tcp", "delivered", 279), ("tcp", "dropped", 22), ("tcp", "held", 2),
        ],
        "events": 3,
        "delivered_bytes": 144_000,
        "sender_bps": 411_200.0,
    },
    "v3": {
        "counts": [
            ("video", "delivered", 287), ("video", "dropped", 4), ("video", "held", 3),
            ("tcp", "delivered", 279), ("tcp", "dropped", 22), ("tcp", "held", 2),
        ],
        "events": 3,
        "delivered_bytes": 144_000,
        "sender_bps": 411_200.0,
    },
}  # fmt: skip


def test_there_is_a_record_of_each_version() -> None:
    assert VERSIONS == ["v1", "v2", "v3"]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_record_is_read_and_verified(version: str) -> None:
    record = Record.open(DATA / version)
    assert record.verify() == record.trial["digest"]
    counts = record.packets.group_by("flow", "fate").len().sort("flow", "fate").rows()
    assert counts == EXPECTED[version]["counts"]
    assert record.events.height == EXPECTED[version]["events"]
    delivered = record.packets.filter(pl.col("stage") == "delay", pl.col("flow") == "video")[
        "payload_bytes"
    ].sum()
    assert delivered == EXPECTED[version]["delivered_bytes"]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_record_is_measured(version: str) -> None:
    metrics = compute(Record.open(DATA / version))
    assert metrics.value("throughput", "video") == pytest.approx(EXPECTED[version]["sender_bps"], rel=1e-9)

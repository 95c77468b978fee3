"""The record against the stamps at the ends: an ideal trial agrees, and a departure not as recorded shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from streamgauge.emu.agreement import STAMP, agreement
from streamgauge.emu.witness_files import stamps_file

RATE, DELAY, LIMIT, SIZE = 1_000_000, 20_000_000, 5_000, 1_000
T0 = 1_700_000_000 * 10**9
PLAN: dict[str, Any] = {
    "path": {
        "down": [
            {
                "name": "bottleneck",
                "kind": {"bottleneck": {"rate": {"constant": RATE}, "queue": {"droptail": {"bytes": LIMIT}}}},
            },
            {"name": "delay", "kind": {"delay": {"delay": DELAY}}},
        ],
        "up": [{"name": "wire", "kind": {"delay": {"delay": 0}}}],
    },
    "flows": [{"name": "video"}],
}


def _trial(folder: Path, *, unsaid: int = 0, packets: int = 400) -> None:
    """Packets every 6 ms, which is more than the link carries; they leave `unsaid` ns later than recorded."""
    service = round(SIZE * 8e9 / RATE)
    rows, free, inside, arrivals = [], 0, [], []
    for number in range(packets):
        now = number * 6_000_000
        inside = [out for out in inside if out > now]
        held = len(inside) * SIZE
        row = {
            "pkt": number, "copy": 0, "flow": 0, "dir": 0, "wire_bytes": SIZE, "ip_bytes": SIZE - 14,
            "queue_bytes": held, "queue_packets": len(inside),
        }  # fmt: skip
        if held + SIZE > LIMIT:
            rows.append({**row, "stage": 0, "t_in": now, "t_out": None, "fate": 1, "cause": 1})
            continue
        free = max(free, now) + service
        inside.append(free)
        rows.append({**row, "stage": 0, "t_in": now, "t_out": free, "fate": 0, "cause": 0})
        rows.append({**row, "stage": 1, "t_in": free, "t_out": free + DELAY, "fate": 0, "cause": 0})
        arrivals.append(T0 + free + DELAY + unsaid + 4_000)
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "packets.parquet")
    for end, sent, at in (
        ("client", 0, arrivals),
        ("server", 1, [T0 - 5_000_000, *(T0 + n * 6_000_000 - 2_000 * (n > 0) for n in range(packets))]),
    ):
        stamps = np.zeros(len(at), dtype=STAMP)
        stamps["stamp_ns"], stamps["bytes"], stamps["sent"] = at, SIZE, sent
        stamps.tofile(stamps_file(folder, end))


def _compared(folder: Path, unsaid: int = 0) -> dict[str, Any]:
    _trial(folder, unsaid=unsaid)
    return agreement(folder, PLAN, T0)


def test_an_ideal_trial_agrees(tmp_path: Path) -> None:
    found = _compared(tmp_path)
    assert found["arrivals"]["p50_s"] == pytest.approx(4e-6)
    assert found["entries"]["p50_s"] == pytest.approx(-2e-6)
    assert found["arrivals"]["packets"] > 250


def test_a_departure_later_than_recorded_shows(tmp_path: Path) -> None:
    assert _compared(tmp_path, unsaid=1_000_000)["arrivals"]["p50_s"] == pytest.approx(1.004e-3)

"""The record against the plan and the ends' stamps: an ideal trial agrees, and each kind of lie shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from streamgauge.emu.agreement import STAMP, agreement, rate_steps, stamps_file

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


def _trial(
    folder: Path,
    *,
    rate: float = RATE,
    delay: int = DELAY,
    limit: int = LIMIT,
    unsaid: int = 0,
    packets: int = 400,
) -> None:
    """Packets every 6 ms, which is more than the link carries, through a link of such settings."""
    service = round(SIZE * 8e9 / rate)
    rows, free, inside, arrivals = [], 0, [], []
    for number in range(packets):
        now = number * 6_000_000
        inside = [out for out in inside if out > now]
        held = len(inside) * SIZE
        row = {
            "pkt": number, "copy": 0, "flow": 0, "dir": 0, "wire_bytes": SIZE, "ip_bytes": SIZE - 14,
            "queue_bytes": held, "queue_packets": len(inside),
        }  # fmt: skip
        if held + SIZE > limit:
            rows.append({**row, "stage": 0, "t_in": now, "t_out": None, "fate": 1, "cause": 1})
            continue
        free = max(free, now) + service
        inside.append(free)
        rows.append({**row, "stage": 0, "t_in": now, "t_out": free, "fate": 0, "cause": 0})
        rows.append({**row, "stage": 1, "t_in": free, "t_out": free + delay, "fate": 0, "cause": 0})
        arrivals.append(T0 + free + delay + unsaid + 4_000)
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "packets.parquet")
    for end, sent, at in (
        ("client", 0, arrivals),
        ("server", 1, [T0 - 5_000_000, *(T0 + n * 6_000_000 - 2_000 * (n > 0) for n in range(packets))]),
    ):
        stamps = np.zeros(len(at), dtype=STAMP)
        stamps["stamp_ns"], stamps["bytes"], stamps["sent"] = at, SIZE, sent
        stamps.tofile(stamps_file(folder, end))


def _compared(folder: Path, **settings: Any) -> dict[str, Any]:
    _trial(folder, **settings)
    return agreement(folder, PLAN, T0)


def test_an_ideal_trial_agrees(tmp_path: Path) -> None:
    found = _compared(tmp_path)
    assert found["rates"]["down.bottleneck"]["measured_bps"] == pytest.approx(RATE, rel=1e-6)
    assert found["delays"]["down.delay"]["off_s"] == 0
    assert found["limits"]["down.bottleneck"] == {"over": 0, "refused_early": 0}
    assert found["arrivals"]["p50_s"] == pytest.approx(4e-6)
    assert found["entries"]["p50_s"] == pytest.approx(-2e-6)
    assert (found["arrivals"]["unmatched"], found["entries"]["unmatched"]) == (0, 0)
    assert found["arrivals"]["packets"] > 250


@pytest.mark.parametrize("rate", [0.98 * RATE, 1.002 * RATE])
def test_a_wrong_rate_shows(tmp_path: Path, rate: float) -> None:
    found = _compared(tmp_path, rate=rate)
    assert found["rates"]["down.bottleneck"]["measured_bps"] == pytest.approx(rate, rel=1e-6)


def test_a_wrong_delay_shows(tmp_path: Path) -> None:
    found = _compared(tmp_path, delay=DELAY + 1_000_000)
    assert found["delays"]["down.delay"]["off_s"] == pytest.approx(1e-3)


def test_a_wrong_limit_shows(tmp_path: Path) -> None:
    more, less = tmp_path / "more", tmp_path / "less"
    more.mkdir()
    less.mkdir()
    assert _compared(more, limit=2 * LIMIT)["limits"]["down.bottleneck"]["over"] > 0
    assert _compared(less, limit=LIMIT // 2)["limits"]["down.bottleneck"]["refused_early"] > 0


def test_a_departure_later_than_recorded_shows(tmp_path: Path) -> None:
    assert _compared(tmp_path, unsaid=1_000_000)["arrivals"]["p50_s"] == pytest.approx(1.004e-3)


def test_packets_that_a_change_of_the_rate_falls_into_are_left_out(tmp_path: Path) -> None:
    _trial(tmp_path)
    steps = {"steps": [[0, RATE], [1_000_000_001, RATE]]}
    plan = {**PLAN, "path": {**PLAN["path"], "down": [_with_rate(steps), PLAN["path"]["down"][1]]}}
    whole = agreement(tmp_path, PLAN, T0)["rates"]["down.bottleneck"]["packets"]
    found = agreement(tmp_path, plan, T0)["rates"]["down.bottleneck"]
    assert found["packets"] == whole - 1
    assert found["measured_bps"] == pytest.approx(RATE, rel=1e-6)


def _with_rate(rate: dict[str, Any]) -> dict[str, Any]:
    bottleneck = PLAN["path"]["down"][0]["kind"]["bottleneck"]
    return {"name": "bottleneck", "kind": {"bottleneck": {**bottleneck, "rate": rate}}}


def test_a_square_wave_is_its_two_rates_in_turn() -> None:
    square = {"square": {"first": 3, "second": 5, "period": 200}}
    assert rate_steps(square, 350) == [(0, 3), (100, 5), (200, 3), (300, 5)]

"""Records made by hand: packets through a drop-tail bottleneck and a delay, worked out in plain Python."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import strategies as st

SECOND = 1_000_000_000
DOWN, UP = 0, 1
DELIVERED, DROPPED, HELD = 0, 1, 2
QUEUE_FULL, RANDOM_LOSS = 1, 2
MEDIA, ACK, RTCP, SIGNALLING, PROBE, CROSS, OTHER = range(7)
HEADERS = 28

SCHEMA: dict[str, Any] = {
    "pkt": pl.UInt64, "copy": pl.UInt8, "flow": pl.UInt16, "dir": pl.UInt8, "stage": pl.UInt8,
    "kind": pl.UInt8, "t_in": pl.Int64, "t_out": pl.Int64, "fate": pl.UInt8, "cause": pl.UInt8,
    "wire_bytes": pl.UInt32, "ip_bytes": pl.UInt32, "payload_bytes": pl.UInt32, "seq": pl.UInt32,
    "flags": pl.UInt8, "queue_bytes": pl.UInt32, "queue_packets": pl.UInt32,
}  # fmt: skip
EVENTS: dict[str, Any] = {
    "time": pl.Int64, "flow": pl.String, "name": pl.String, "value": pl.Float64, "unit": pl.String,
    "reason": pl.String,
}  # fmt: skip


def sending_times(duration_s: float) -> st.SearchStrategy[float]:
    """Any time of a trial that lasts so long, but its end: also once it is rounded to nanoseconds."""
    return st.floats(0, duration_s - 1e-9)


@dataclass(frozen=True)
class Sent:
    """A packet as its sender made it."""

    at: float
    flow: int
    payload: int = 1000
    kind: int = MEDIA
    seq: int | None = None
    flags: int = 0
    direction: int = DOWN
    router: bool = False


@dataclass
class SyntheticRecord:
    """Looks like a record."""

    trial: dict[str, Any]
    packets: pl.DataFrame
    events: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=EVENTS))
    directory: Path = Path()

    @property
    def codes(self) -> pl.DataFrame:
        return self.packets

    @property
    def columns(self) -> dict[str, Any]:
        """As `Record.columns`."""
        never = -(2**63)
        absent = {"t_out": never, "t_drop": never, "seq": -1}
        there = {name: of for name, of in absent.items() if name in self.packets.columns}
        wide = self.packets.with_columns(
            pl.col(name).cast(pl.Int64).fill_null(of) for name, of in there.items()
        )
        return {name: wide[name].to_numpy() for name in wide.columns}

    @property
    def told(self) -> dict[tuple[str, str | None], tuple[Any, Any]]:
        """As `Record.told`."""
        seconds = pl.when(pl.col("unit") == "ms").then(pl.col("value") / 1e3).otherwise(pl.col("value"))
        rows = self.events.with_columns(seconds.alias("value")).sort("time", maintain_order=True)
        return {
            (name, flow): (
                group["time"].to_numpy(),
                group["value"].cast(pl.Float64).fill_null(math.nan).to_numpy(),
            )
            for (name, flow), group in rows.group_by("name", "flow", maintain_order=True)
        }

    @property
    def units(self) -> dict[tuple[str, str | None], tuple[str, ...]]:
        """As `Record.units`."""
        rows = self.events.filter(pl.col("value").is_not_null()).select("name", "flow", "unit").unique()
        found: dict[tuple[str, str | None], list[str]] = {}
        for name, flow, unit in rows.sort("unit").iter_rows():
            found.setdefault((name, flow), []).append("s" if unit == "ms" else unit)
        return {key: tuple(dict.fromkeys(units)) for key, units in found.items()}

    def write(self, directory: Path) -> Path:
        """Writes it as a trial directory."""
        directory.mkdir(parents=True, exist_ok=True)
        self.packets.write_parquet(directory / "packets.parquet")
        self.events.write_parquet(directory / "events.parquet")
        (directory / "trial.json").write_text(json.dumps(self.trial))
        return directory


def _append(
    rows: list[tuple[Any, ...]],
    number: int,
    packet: Sent,
    end: int,
    stage: int,
    t_in: int,
    t_out: int | None,
    fate: int,
    cause: int = 0,
    depth: int = 0,
) -> None:
    if t_out is not None and t_out >= end:
        t_out, fate = None, HELD
    ip = packet.payload + HEADERS
    rows.append(
        (number, 0, packet.flow, packet.direction, stage, packet.kind, t_in, t_out, fate, cause, ip + 14, ip,
         packet.payload, packet.seq, packet.flags, depth, 0)
    )  # fmt: skip


def record(
    sent: list[Sent],
    *,
    flows: list[str],
    duration_s: float,
    rate_bps: int = 1_000_000,
    limit_bytes: int = 10_000,
    delay_s: float = 0.01,
    measure: dict[str, Any] | None = None,
    seed: int = 1,
    scenario: str = "test/one",
    mode: str = "sim",
    valid: bool = True,
) -> SyntheticRecord:
    """Sends packets through entry -> bottleneck -> delay down and a delay up."""
    end = round(duration_s * SECOND)
    rows: list[tuple[Any, ...]] = []
    queue: deque[tuple[int, int]] = deque()
    free_at = 0
    for number, packet in enumerate(sorted(sent, key=lambda one: one.at)):
        now = round(packet.at * SECOND)
        if now >= end:
            continue
        wire = packet.payload + HEADERS + 14
        row = partial(_append, rows, number, packet, end)
        if packet.direction == UP:
            row(3, now, now + round(delay_s * SECOND), DELIVERED)
            continue
        if not packet.router:
            row(0, now, now, DELIVERED)
        while queue and queue[0][0] <= now:
            queue.popleft()
        depth = sum(size for _, size in queue)
        if depth + wire > limit_bytes:
            row(1, now, None, DROPPED, QUEUE_FULL, depth)
            continue
        free_at = max(now, free_at) + round(wire * 8 * SECOND / rate_bps)
        queue.append((free_at, wire))
        row(1, now, free_at, DELIVERED, 0, depth)
        if free_at < end:
            row(2, free_at, free_at + round(delay_s * SECOND), DELIVERED)
    names = [("entry", "down"), ("bottleneck", "down"), ("delay", "down"), ("delay", "up")]
    bottleneck = {
        "rate": {"constant": rate_bps}, "queue": {"droptail": {"bytes": limit_bytes}}, "layer": "ethernet"
    }  # fmt: skip
    trial = {
        "schema": "streamgauge.trial/1",
        "scenario": {"id": scenario, "measure": measure or {}},
        "plan": {
            "path": {
                "down": [
                    {"name": "entry", "kind": {"delay": {"delay": 0}}},
                    {"name": "bottleneck", "kind": {"bottleneck": bottleneck}},
                    {"name": "delay", "kind": {"delay": {"delay": round(delay_s * SECOND)}}},
                ],
                "up": [{"name": "delay", "kind": {"delay": {"delay": round(delay_s * SECOND)}}}],
            },
            "flows": [
                {"name": name, "role": "subject", "app": {"ping": {}} if name == "ping" else "external"}
                for name in flows
            ],
        },
        "mode": mode,
        "seed": seed,
        "duration_s": duration_s,
        "stages": [{"id": i, "name": name, "direction": way} for i, (name, way) in enumerate(names)],
        "flows": [
            {"id": i, "name": name, "role": "subject", "system": "rtp", "ours": True}
            for i, name in enumerate(flows)
        ],
        "validity": {
            "valid": valid,
            "why": [] if valid else ["conservation failed"],
            "bounds": {},
            "measured": {},
        },
    }
    return SyntheticRecord(trial, pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def constant(flow: int, rate_pps: float, begin: float, end: float, **more: Any) -> list[Sent]:
    """Packets at a constant rate in [begin, end)."""
    count = round((end - begin) * rate_pps)
    return [Sent(begin + i / rate_pps, flow, seq=i, **more) for i in range(count)]

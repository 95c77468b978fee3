"""What the record says of a flow, for the verdict: counted from ``packets.parquet``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

DOWN, MEDIA, CROSS, DELIVERED, RETRANSMIT, CORRUPTED = 0, 0, 5, 0, 1, 8
"""Codes of crates/record's legend."""


def media_delivered(directory: Path, plan: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Packets and payload bytes that the path handed to each flow's player as media or cross traffic, sound.

    Each byte counts once: a retransmission does if what it repeats was lost, as a player counts it. A
    datagram in fragments counts as a packet by its first; what the path made twice counts once, and its
    "copies" stand apart.
    """
    last = len(plan["path"]["down"]) - 1
    delivered = (
        pl.scan_parquet(directory / "packets.parquet")
        .filter(
            (pl.col("dir") == DOWN)
            & (pl.col("stage") == last)
            & (pl.col("fate") == DELIVERED)
            & pl.col("kind").is_in([MEDIA, CROSS])
            & (pl.col("flags") & CORRUPTED == 0)
        )
        .select(
            "flow",
            "seq",
            "payload_bytes",
            "copy",
            "fragment_offset",
            repeats=pl.col("flags") & RETRANSMIT != 0,
        )
        .collect()
    )
    whole = delivered.filter(pl.col("fragment_offset") == 0)
    copies = whole.filter(pl.col("copy") > 0).group_by("flow").agg(pl.len().alias("copies"))
    delivered = delivered.filter(pl.col("copy") == 0)
    fresh = delivered.filter(~pl.col("repeats"))
    repairs = (
        delivered.filter(pl.col("repeats") & pl.col("seq").is_not_null())
        .unique(["flow", "seq"])
        .join(fresh, on=["flow", "seq"], how="anti")
    )
    packets = delivered.filter(pl.col("fragment_offset") == 0).group_by("flow").agg(pl.len().alias("packets"))
    octets = pl.concat([fresh, repairs]).group_by("flow").agg(pl.col("payload_bytes").sum().alias("bytes"))
    rows = packets.join(octets, on="flow", how="left").join(copies, on="flow", how="left").fill_null(0)
    found = {row["flow"]: row for row in rows.iter_rows(named=True)}
    none = {"packets": 0, "bytes": 0, "copies": 0}
    return {
        flow["name"]: {key: int(found.get(code, none)[key]) for key in none}
        for code, flow in enumerate(plan["flows"])
    }


def corrupted_delivered(directory: Path, plan: Mapping[str, Any]) -> dict[str, int]:
    """Packets that left the path corrupted, by direction."""
    lengths = {direction: len(plan["path"][direction]) for direction in ("down", "up")}
    last = {"down": lengths["down"] - 1, "up": lengths["down"] + lengths["up"] - 1}
    rows = (
        pl.scan_parquet(directory / "packets.parquet")
        .filter((pl.col("fate") == DELIVERED) & (pl.col("flags") & CORRUPTED != 0))
        .group_by("stage")
        .agg(pl.len())
        .collect()
    )
    found = dict(rows.iter_rows())
    return {direction: int(found.get(stage, 0)) for direction, stage in last.items()}


def first_packets(directory: Path, plan: Mapping[str, Any]) -> dict[str, float | None]:
    """When each flow's first packet entered the path, s; None if it never sent one."""
    rows = pl.scan_parquet(directory / "packets.parquet").group_by("flow").agg(pl.col("t_in").min()).collect()
    found = {row["flow"]: row["t_in"] / 1e9 for row in rows.iter_rows(named=True)}
    return {flow["name"]: found.get(code) for code, flow in enumerate(plan["flows"])}

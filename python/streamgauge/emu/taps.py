"""What the record says of a flow, for the verdict: counted from ``packets.parquet``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

DOWN, MEDIA, CROSS, DELIVERED, RETRANSMIT = 0, 0, 5, 0, 1
"""Codes of crates/record's legend."""


def media_delivered(directory: Path, plan: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Packets and payload bytes that the path handed to each flow's player as media or cross traffic.

    Each byte counts once: a retransmission does if what it repeats was lost, as a player counts it.
    """
    last = len(plan["path"]["down"]) - 1
    delivered = (
        pl.scan_parquet(directory / "packets.parquet")
        .filter(
            (pl.col("dir") == DOWN)
            & (pl.col("stage") == last)
            & (pl.col("fate") == DELIVERED)
            & pl.col("kind").is_in([MEDIA, CROSS])
        )
        .select("flow", "seq", "payload_bytes", repeats=pl.col("flags") & RETRANSMIT != 0)
        .collect()
    )
    fresh = delivered.filter(~pl.col("repeats"))
    repairs = (
        delivered.filter(pl.col("repeats") & pl.col("seq").is_not_null())
        .unique(["flow", "seq"])
        .join(fresh, on=["flow", "seq"], how="anti")
    )
    packets = delivered.group_by("flow").agg(pl.len().alias("packets"))
    octets = pl.concat([fresh, repairs]).group_by("flow").agg(pl.col("payload_bytes").sum().alias("bytes"))
    rows = packets.join(octets, on="flow", how="left").fill_null(0)
    found = {row["flow"]: row for row in rows.iter_rows(named=True)}
    none = {"packets": 0, "bytes": 0}
    return {
        flow["name"]: {key: int(found.get(code, none)[key]) for key in ("packets", "bytes")}
        for code, flow in enumerate(plan["flows"])
    }


def first_packets(directory: Path, plan: Mapping[str, Any]) -> dict[str, float | None]:
    """When each flow's first packet entered the path, s; None if it never sent one."""
    rows = pl.scan_parquet(directory / "packets.parquet").group_by("flow").agg(pl.col("t_in").min()).collect()
    found = {row["flow"]: row["t_in"] / 1e9 for row in rows.iter_rows(named=True)}
    return {flow["name"]: found.get(code) for code, flow in enumerate(plan["flows"])}

"""What the record says of a flow, for the verdict: counted from ``packets.parquet``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

DOWN, MEDIA, CROSS, DELIVERED, RETRANSMIT, CORRUPTED, MORE_FRAGMENTS = 0, 0, 5, 0, 1, 8, 16
"""Codes of crates/record's legend."""


def media_delivered(directory: Path, plan: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Packets and payload bytes that the path handed to each flow's player as media or cross traffic, sound.

    Each byte counts once: a retransmission does if what it repeats was lost, as a player counts it. A
    datagram in fragments counts as a packet if all of them came; what the path made twice counts once, and
    its "copies" stand apart.
    """
    last = len(plan["path"]["down"]) - 1
    arrived = (
        pl.scan_parquet(directory / "packets.parquet")
        .filter(
            (pl.col("dir") == DOWN)
            & (pl.col("stage") == last)
            & (pl.col("fate") == DELIVERED)
            & pl.col("kind").is_in([MEDIA, CROSS])
        )
        .select("pkt", "copy", "fragment_offset", "flow", "seq", "ip_bytes", "payload_bytes", "flags")
        .collect()
    )
    whole = _whole(arrived).with_columns(repeats=pl.col("flags") & RETRANSMIT != 0)
    copies = whole.filter(pl.col("copy") > 0).group_by("flow").agg(pl.len().alias("copies"))
    delivered = whole.filter(pl.col("copy") == 0)
    fresh = delivered.filter(~pl.col("repeats"))
    repairs = (
        delivered.filter(pl.col("repeats") & pl.col("seq").is_not_null())
        .unique(["flow", "seq"])
        .join(fresh, on=["flow", "seq"], how="anti")
    )
    packets = delivered.group_by("flow").agg(pl.len().alias("packets"))
    octets = pl.concat([fresh, repairs]).group_by("flow").agg(pl.col("payload_bytes").sum().alias("bytes"))
    rows = packets.join(octets, on="flow", how="left").join(copies, on="flow", how="left").fill_null(0)
    found = {row["flow"]: row for row in rows.iter_rows(named=True)}
    none = {"packets": 0, "bytes": 0, "copies": 0}
    return {
        flow["name"]: {key: int(found.get(code, none)[key]) for key in none}
        for code, flow in enumerate(plan["flows"])
    }


def _parts() -> pl.Expr:
    return (pl.col("fragment_offset") > 0) | (pl.col("flags") & MORE_FRAGMENTS != 0)


def _whole(arrived: pl.DataFrame) -> pl.DataFrame:
    """Arrivals as a host passes them on: sound, and fragments as the datagrams that they make up."""
    harmed = pl.col("flags") & CORRUPTED != 0
    parts = arrived.filter(_parts())
    if not parts.height:
        return arrived.filter(~harmed)
    datagrams = (
        _datagrams(parts).filter(pl.col("complete") & pl.col("sound")).select(pl.exclude("complete", "sound"))
    )
    columns = ["pkt", "copy", "flow", "seq", "payload_bytes", "flags"]
    whole = arrived.filter(~harmed & ~_parts())
    return pl.concat([whole.select(columns), datagrams.select(columns)], how="vertical_relaxed")


def _datagrams(parts: pl.DataFrame) -> pl.DataFrame:
    """Fragments that arrived, a row for each copy of a datagram."""
    size = pl.col("ip_bytes").cast(pl.Int64) - 20
    end = 8 * pl.col("fragment_offset").cast(pl.Int64) + size
    is_last = pl.col("flags") & MORE_FRAGMENTS == 0
    return (
        parts.unique(["pkt", "copy", "fragment_offset"], maintain_order=True)
        .sort("pkt", "copy", "fragment_offset")
        .group_by("pkt", "copy", maintain_order=True)
        .agg(
            pl.col("flow").first(),
            pl.col("seq").first(),
            pl.col("payload_bytes").sum(),
            pl.col("flags").first(),
            complete=end.filter(is_last).max().fill_null(-1) == size.sum(),
            sound=(pl.col("flags") & CORRUPTED == 0).all(),
        )
    )


def harmed(directory: Path, plan: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """What the path did that the hosts at each end must notice: per end the most that may be counted there.

    ``checksum_errors``: packets that arrived corrupted, a datagram once; ``reassembly_failed``: datagrams of
    which a fragment is missing, and copies of fragments, which may come when their datagram is complete.
    """
    down = len(plan["path"]["down"])
    last = {"client": down - 1, "server": down + len(plan["path"]["up"]) - 1}
    columns = ["pkt", "copy", "fragment_offset", "flow", "seq", "ip_bytes", "payload_bytes", "flags", "stage"]
    arrived = (
        pl.scan_parquet(directory / "packets.parquet")
        .filter((pl.col("fate") == DELIVERED) & pl.col("stage").is_in(list(last.values())))
        .filter(_parts() | (pl.col("flags") & CORRUPTED != 0))
        .select(columns)
        .collect()
    )
    found = {}
    for end, stage in last.items():
        mine = arrived.filter(pl.col("stage") == stage)
        corrupted = mine.filter(pl.col("flags") & CORRUPTED != 0).height
        parts = mine.filter(_parts())
        failed = 0
        if parts.height:
            datagrams = _datagrams(parts)
            copies = datagrams.height - datagrams["pkt"].n_unique()
            failed = datagrams.filter(~pl.col("complete")).height + copies
        found[end] = {"checksum_errors": corrupted, "reassembly_failed": failed}
    # Sources at the router receive what goes up, too.
    return found | {"cross": found["server"]}


def first_packets(directory: Path, plan: Mapping[str, Any]) -> dict[str, float | None]:
    """When each flow's first packet entered the path, s; None if it never sent one."""
    rows = pl.scan_parquet(directory / "packets.parquet").group_by("flow").agg(pl.col("t_in").min()).collect()
    found = {row["flow"]: row["t_in"] / 1e9 for row in rows.iter_rows(named=True)}
    return {flow["name"]: found.get(code) for code, flow in enumerate(plan["flows"])}

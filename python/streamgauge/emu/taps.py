"""The record's counts of a flow, for the verdict, from ``packets.parquet``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from streamgauge.emu.in_order import in_order_bytes
from streamgauge.emu.path_pairs import counted

DOWN, UP, MEDIA, CROSS, DELIVERED, RETRANSMIT, CORRUPTED, MORE_FRAGMENTS = 0, 1, 0, 5, 0, 1, 8, 16
TCP, UDP, SIGNALLING = 0, 1, 3
"""Codes of crates/plan's legend."""


def media_delivered(
    directory: Path, plan: Mapping[str, Any], ended_s: Mapping[str, float] | None = None
) -> dict[str, dict[str, int]]:
    """Counts packets and payload bytes that the path gave to each flow's player as media or cross traffic,
    sound; to a relay, from its flows' servers. "datagrams" are all of UDP, with any content.

    If a player ended before the trial (`ended_s`, by flow), the count ends then. A datagram in fragments
    counts as a packet if all of them arrived. Copies that the path made count once, and "copies" has their
    number. Over TCP, bytes count that arrived in order (see `in_order`). Elsewhere each counts once: a
    retransmission does if the first copy was lost.
    """
    down, up = (len(plan["path"][way]) for way in ("down", "up"))
    goes_up = [code for code, flow in enumerate(plan["flows"]) if flow.get("direction") == "up"]
    rises = pl.col("flow").is_in(goes_up)
    last = pl.when(rises).then(down + up - 1).otherwise(down - 1)
    columns = [
        "pkt", "copy", "fragment_offset", "flow", "stage", "kind", "t_out", "fate", "ip_bytes",
        "payload_bytes", "seq", "flags", "hash", "protocol",
    ]  # fmt: skip
    table = pl.scan_parquet(directory / "packets.parquet")
    # Records before packets/3 have none.
    columns += [name for name in ("connection",) if name in table.collect_schema()]
    rows = (
        table.filter(
            (pl.col("dir") == pl.when(rises).then(UP).otherwise(DOWN)) & (pl.col("flow") < len(counted(plan)))
        )
        .select(columns)
        .collect()
    )
    ended = ended_s or {}
    codes = {one["name"]: code for code, one in enumerate(counted(plan))}
    limits = {codes[name]: round(at * 1e9) for name, at in ended.items()}
    end = pl.col("flow").cast(pl.Int64).replace_strict(limits, default=None, return_dtype=pl.Int64)
    in_time = (pl.col("t_out") <= end).fill_null(True)
    arrived = _whole(
        rows.filter((pl.col("stage") == last) & (pl.col("fate") == DELIVERED) & in_time)
    ).with_columns(repeats=pl.col("flags") & RETRANSMIT != 0)
    is_media = pl.col("kind").is_in([MEDIA, CROSS])
    media = arrived.filter(is_media)
    copies = media.filter(pl.col("copy") > 0).group_by("flow").agg(pl.len().alias("copies"))
    by_udp = arrived.filter(pl.col("protocol") == UDP).group_by("flow")
    datagrams = by_udp.agg(datagrams=(pl.col("copy") == 0).sum(), datagram_copies=(pl.col("copy") > 0).sum())
    delivered = media.filter(pl.col("copy") == 0)
    fresh = delivered.filter(~pl.col("repeats"))
    repairs = (
        delivered.filter(pl.col("repeats") & pl.col("seq").is_not_null())
        .unique(["flow", "seq"])
        .join(fresh, on=["flow", "seq"], how="anti")
    )
    packets = delivered.group_by("flow").agg(pl.len().alias("packets"))
    elsewhere = pl.concat([fresh, repairs]).filter(pl.col("protocol") != TCP)
    octets = elsewhere.group_by("flow").agg(pl.col("payload_bytes").cast(pl.Int64).sum().alias("bytes"))
    of_tcp = in_order_bytes(_segments(rows), arrived.filter(pl.col("protocol") == TCP), is_media)
    octets = pl.concat([octets, of_tcp]).group_by("flow").agg(pl.col("bytes").sum())
    found: dict[int, dict[str, int]] = {}
    for counts in (packets, copies, octets, datagrams):
        for row in counts.iter_rows(named=True):
            found.setdefault(row["flow"], {}).update(row)
    keys = ("packets", "bytes", "copies", "datagrams", "datagram_copies")
    return {
        flow["name"]: {key: int(found.get(code, {}).get(key, 0)) for key in keys}
        for code, flow in enumerate(counted(plan))
    }


def _segments(rows: pl.DataFrame) -> pl.DataFrame:
    """The TCP packets that were sent, as `in_order_bytes` takes them, before the path cut any of them up."""
    connection = "connection" if "connection" in rows.columns else "hash"
    at_stage = (
        rows.filter((pl.col("protocol") == TCP) & (pl.col("copy") == 0) & pl.col("seq").is_not_null())
        .group_by("pkt", "stage")
        .agg(pl.col("flow", connection, "seq", "kind").first(), pl.col("payload_bytes").sum())
    )
    # The stage that fragments one counts the content of its first fragment.
    return at_stage.sort("payload_bytes").group_by("pkt").last()


def _parts() -> pl.Expr:
    return (pl.col("fragment_offset") > 0) | (pl.col("flags") & MORE_FRAGMENTS != 0)


def _whole(arrived: pl.DataFrame) -> pl.DataFrame:
    """Arrivals as a host passes them on: sound, and fragments as the datagrams that they make up."""
    harmed = pl.col("flags") & CORRUPTED != 0
    parts = arrived.filter(_parts())
    if not parts.height:
        return arrived.filter(~harmed)
    datagrams = _datagrams(parts)
    columns = ["pkt", "copy", "flow", "kind", "seq", "payload_bytes", "flags", "protocol"]
    whole = arrived.filter(~harmed & ~_parts())
    put_together = datagrams.filter(pl.col("complete") & pl.col("sound"))
    return pl.concat([whole.select(columns), put_together.select(columns)], how="vertical_relaxed")


def _datagrams(parts: pl.DataFrame) -> pl.DataFrame:
    """Reassembles a host's datagrams from fragments that arrived, a row for each time that it does or gives
    up.

    A packet's copies have its identification, so that a fragment of one completes another (RFC 791 section
    3.2): in order of arrival each fills its place unless that is taken. A fragment after the datagram is
    complete begins it anew, as the next `copy`. Rows that wait to the end are not ``complete``; ``sound``
    rows had no corrupted fragment.
    """
    size = pl.col("ip_bytes").cast(pl.Int64) - 20
    begin = 8 * pl.col("fragment_offset").cast(pl.Int64)
    placed = parts.sort("pkt", "t_out", maintain_order=True).with_columns(
        begin=begin,
        end=begin + size,
        is_last=pl.col("flags") & MORE_FRAGMENTS == 0,
        harmed=pl.col("flags") & CORRUPTED != 0,
    )
    times: list[int | None] = []
    packet, have, length, time = None, 0, None, 0
    taken: set[int] = set()
    for pkt, start, end, is_last in placed.select("pkt", "begin", "end", "is_last").iter_rows():
        if pkt != packet:
            packet, have, length, time = pkt, 0, None, 0
            taken.clear()
        if start in taken:
            times.append(None)
            continue
        taken.add(start)
        have += end - start
        length = end if is_last else length
        times.append(time)
        if have == length:
            have, length, time = 0, None, time + 1
            taken.clear()
    return (
        placed.drop("copy")
        .with_columns(pl.Series("copy", times, pl.Int64))
        .drop_nulls("copy")
        .group_by("pkt", "copy", maintain_order=True)
        .agg(
            pl.col("flow", "kind", "seq", "flags", "protocol").sort_by("begin").first(),
            pl.col("payload_bytes").sum(),
            complete=pl.col("end").filter("is_last").max().fill_null(-1)
            == (pl.col("end") - pl.col("begin")).sum(),
            sound=~pl.col("harmed").any(),
        )
    )


def harmed(directory: Path, plan: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Counts the path's actions that the hosts at each end must notice: per end the most that may be counted
    there.

    ``checksum_errors``: packets that arrived corrupted; ``reassembly_failed``: datagrams without one of their
    fragments, copies of fragments that arrived when their datagram was complete among them.
    """
    down = len(plan["path"]["down"])
    last = {"client": down - 1, "server": down + len(plan["path"]["up"]) - 1}
    columns = [
        "pkt", "copy", "fragment_offset", "flow", "stage", "kind", "t_out", "ip_bytes", "payload_bytes",
        "seq", "flags", "protocol",
    ]  # fmt: skip
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
        failed = _datagrams(parts).filter(~pl.col("complete")).height if parts.height else 0
        found[end] = {"checksum_errors": corrupted, "reassembly_failed": failed}
    # Sources at the router receive packets that are sent up, too.
    return found | {"cross": found["server"]}


def handshakes_repeated(directory: Path, plan: Mapping[str, Any]) -> list[str]:
    """Returns flows and relays with a TCP handshake (or a FIN) that was sent again, because a part of it was
    lost."""
    again = (
        pl.scan_parquet(directory / "packets.parquet")
        .filter(
            (pl.col("protocol") == TCP)
            & (pl.col("kind") == SIGNALLING)
            & (pl.col("payload_bytes") == 0)
            & (pl.col("flags") & RETRANSMIT != 0)
        )
        .select("flow")
        .unique()
        .collect()
    )
    codes = set(again["flow"])
    return [one["name"] for code, one in enumerate(counted(plan)) if code in codes]


def first_packets(directory: Path, plan: Mapping[str, Any]) -> dict[str, float | None]:
    """When each flow's, and relay's, first packet entered the path, s; None if it never sent one."""
    rows = pl.scan_parquet(directory / "packets.parquet").group_by("flow").agg(pl.col("t_in").min()).collect()
    found = {row["flow"]: row["t_in"] / 1e9 for row in rows.iter_rows(named=True)}
    return {one["name"]: found.get(code) for code, one in enumerate(counted(plan))}

"""The bytes that TCP could give to a program: those that the path delivered in order, from a connection's
first.

Bytes above a hole wait in the host's kernel until it is filled (RFC 9293 section 3.10.7.4), which need not
happen within the trial: the path delivered them, and no program has seen them.
"""

from __future__ import annotations

import polars as pl

_MODULUS = 1 << 32
_STREAM = ["flow", "connection"]


def in_order_bytes(sent: pl.DataFrame, arrived: pl.DataFrame, counted: pl.Expr) -> pl.DataFrame:
    """Returns for each flow the payload bytes that reached the player in order, each once.

    Args:
        sent: a row for each TCP packet that was sent down: `pkt` (ascending as they were sent), `flow`,
            `connection` (of the flow), `seq`, `payload_bytes`, and the columns of `counted`. Records before
            packets/3 have `hash` (of addresses and ports) in place of `connection`.
        arrived: `pkt` of those that arrived complete and sound.
        counted: the packets with bytes that count; the first packet with a byte decides.

    Returns:
        `flow` and `bytes`, without flows that got none.
    """
    segments = _segments(sent.filter(pl.col("payload_bytes") > 0))
    hole = _first_holes(segments, segments.join(arrived.select("pkt").unique(), on="pkt", how="semi"))
    before = pl.min_horizontal("end", "hole") - pl.col("fresh_from")
    return (
        segments.filter(counted)
        .join(hole, on=_STREAM)
        .with_columns(bytes=before.clip(lower_bound=0))
        .group_by("flow")
        .agg(pl.col("bytes").sum())
        .filter(pl.col("bytes") > 0)
    )


def _segments(sent: pl.DataFrame) -> pl.DataFrame:
    """With `begin` and `end` in its `connection`'s bytes, and `fresh_from` where new ones begin."""
    placed = _placed(sent, _STREAM) if "connection" in sent.columns else _told_apart(sent)
    top = pl.col("end").cum_max().shift().over(_STREAM)
    return placed.with_columns(fresh_from=pl.max_horizontal("begin", top))


def _placed(sent: pl.DataFrame, stream: list[str]) -> pl.DataFrame:
    """Adds `begin` and `end` in the bytes of its `stream`, which has those columns."""
    # Neighbours are less than half the sequence space apart (section 3.4).
    apart = pl.col("seq").cast(pl.Int64).diff().over(stream)
    step = (apart + _MODULUS + _MODULUS // 2) % _MODULUS - _MODULUS // 2
    return (
        sent.sort("pkt")
        .with_columns(begin=step.fill_null(0))
        .with_columns(begin=pl.col("begin").cum_sum().over(stream))
        .with_columns(end=pl.col("begin") + pl.col("payload_bytes").cast(pl.Int64))
    )


def _told_apart(sent: pl.DataFrame) -> pl.DataFrame:
    """Does as `_placed` for a record with addresses and ports alone, and adds each packet's `connection`.

    Ports may serve one connection after another. A sender leaves out nothing and repeats only sent bytes.
    Therefore a segment that touches no earlier one begins another connection.
    """
    ports = ["flow", "hash"]
    apart = (pl.col("begin") > pl.col("top")) | (pl.col("end") < pl.col("bottom"))
    return (
        _placed(sent, ports)
        .with_columns(
            top=pl.col("end").cum_max().shift().over(ports),
            bottom=pl.col("begin").cum_min().shift().over(ports),
        )
        .with_columns(turn=apart.fill_null(False).cum_sum().over(ports))
        .with_columns(connection=pl.struct("hash", "turn").rank("dense"))
        .drop("top", "bottom", "turn")
    )


def _first_holes(segments: pl.DataFrame, arrived: pl.DataFrame) -> pl.DataFrame:
    """`hole`: for each connection the first byte that did not arrive."""
    first = segments.group_by(_STREAM).agg(pl.col("begin").min().alias("first"))
    reached = (
        arrived.join(first, on=_STREAM)
        .sort("begin")
        .with_columns(reached=pl.col("end").cum_max().shift().over(_STREAM))
        .with_columns(reached=pl.coalesce("reached", "first"))
        .with_columns(beyond=(pl.col("begin") > pl.col("reached")).cum_max().over(_STREAM))
        .filter(~pl.col("beyond"))
        .group_by(_STREAM)
        .agg(pl.col("end").max().alias("hole"))
    )
    return first.join(reached, on=_STREAM, how="left").select(
        *_STREAM, pl.coalesce("hole", "first").alias("hole")
    )

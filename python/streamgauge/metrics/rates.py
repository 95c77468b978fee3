"""What a flow sends, what arrives and what is lost: M1 to M4 and M7 to M9.

Each function counts per sample; a rate is a count over the sample's length, and over a window the sum of
counts over the window's length. `bits` are those of the trial's layer.
"""

from __future__ import annotations

import polars as pl

from streamgauge.metrics.frame import DOWN, RETRANSMIT, Floats, Trial, column, of


def sent_bits(trial: Trial, flow: int, direction: int = DOWN) -> Floats:
    """M1 throughput and M7 sender rate, as counts: bits offered to the path, before any drop.

    TP = Δsent / ΔT in bit/s (De Cicco et al., section V: ΔT = 0.5 s; Hessler and Welzl, section 2: bytes/s at
    the monitor). IP bytes by default. A packet counts at its first stage, when it arrives there.
    """
    rows = of(trial.offered, flow, direction)
    return trial.grid.total(column(rows, "t_in"), 8 * column(rows, trial.bytes_column))


def received_bits(trial: Trial, flow: int, direction: int = DOWN) -> Floats:
    """M7 receiver rate, as counts: bits that left the last stage of their direction.

    Hessler and Welzl, section 2: bytes/s at the sink. IP bytes by default.
    """
    rows = of(trial.delivered, flow, direction)
    return trial.grid.total(column(rows, "t_out"), 8 * column(rows, trial.bytes_column))


def lost_bits(trial: Trial, flow: int, direction: int = DOWN) -> Floats:
    """M3 loss rate, as counts: bits dropped by any stage, when they arrived there.

    LR = Δloss / ΔT, a bit rate (De Cicco et al., section V, Tables I and II). IP bytes by default. M4 is
    100 LR / TP over the same window.
    """
    rows = of(trial.dropped, flow, direction)
    return trial.grid.total(column(rows, "t_in"), 8 * column(rows, trial.bytes_column))


def sent_packets(trial: Trial, flow: int, direction: int = DOWN) -> Floats:
    """M8 packet transmission rate, as counts: packets offered (Hessler and Welzl, Figures 6, 7 and 13)."""
    return trial.grid.total(column(of(trial.offered, flow, direction), "t_in"))


def received_packets(trial: Trial, flow: int, direction: int = DOWN) -> Floats:
    """M8 at the receiver, as counts: packets that left the last stage."""
    return trial.grid.total(column(of(trial.delivered, flow, direction), "t_out"))


def lost_packets(trial: Trial, flow: int, direction: int = DOWN) -> Floats:
    """Packets dropped by any stage, as counts."""
    return trial.grid.total(column(of(trial.dropped, flow, direction), "t_in"))


def good_bits(trial: Trial, flow: int, direction: int = DOWN) -> Floats:
    """M2 goodput, as counts: payload bits delivered for the first time. Always the payload layer.

    A retransmission counts if what it repeats had not arrived, and not otherwise: each byte of the stream
    counts once, as in RFC 2647 section 3.17. (De Cicco et al. write (Δsent - Δloss) / ΔT; without
    retransmissions and up to headers and queueing it is the same.)
    """
    rows = of(trial.delivered, flow, direction)
    repeats = (pl.col("flags") & RETRANSMIT) != 0
    if rows.filter(repeats).height:
        sent = of(trial.offered, flow, direction)
        # Sequence numbers wrap: a generation begins with each first transmission of a number.
        generations = sent.select(
            "pkt",
            (~repeats).cast(pl.Int64).cum_sum().over("seq").alias("generation"),
        )
        rows = rows.join(generations, on="pkt", how="left", maintain_order="left")
        known = pl.col("seq").is_not_null()
        first = pl.struct("seq", "generation").is_first_distinct()
        rows = rows.filter(pl.when(known).then(first | (pl.col("payload_bytes") == 0)).otherwise(~repeats))
    return trial.grid.total(column(rows, "t_out"), 8 * column(rows, "payload_bytes"))


def repeated_bits(trial: Trial, flow: int, direction: int = DOWN) -> Floats:
    """Bits of offered packets that carry what was sent before, as counts."""
    rows = of(trial.offered, flow, direction).filter((pl.col("flags") & RETRANSMIT) != 0)
    return trial.grid.total(column(rows, "t_in"), 8 * column(rows, trial.bytes_column))

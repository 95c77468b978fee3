"""M10: round-trip time, and the one-way delay of a flow's packets through the path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from streamgauge.metrics.frame import DOWN, PROBE, SECOND_NS, UP, Floats, Grid, Ints, Trial, column, of


@dataclass(frozen=True)
class Samples:
    """A quantity observed at instants, per sample of the grid: sum, count, least and most (NaN if none)."""

    total: Floats
    count: Floats
    low: Floats
    high: Floats


def observe(grid: Grid, times_ns: Ints, values: Floats) -> Samples:
    """Gathers observations into the grid's samples."""
    where = grid.place(times_ns)
    inside = where >= 0
    where, values = where[inside], values[inside]
    low, high = np.full(len(grid), np.inf), np.full(len(grid), -np.inf)
    np.minimum.at(low, where, values)
    np.maximum.at(high, where, values)
    count = np.bincount(where, minlength=len(grid)).astype(np.float64)
    total = np.bincount(where, weights=values, minlength=len(grid)).astype(np.float64)
    return Samples(total, count, np.where(count > 0, low, np.nan), np.where(count > 0, high, np.nan))


def one_way(trial: Trial, flow: int, direction: int = DOWN) -> tuple[Ints, Floats]:
    """One-way path delay: last stage's departure less first stage's arrival, in s, at the departure (ns).

    Every delivered packet of the flow; hosts' own time is not in it.
    """
    rows = of(trial.delivered, flow, direction).join(
        of(trial.offered, flow, direction).select("pkt", pl.col("t_in").alias("entered")),
        on="pkt",
        maintain_order="left",
    )
    times = column(rows, "t_out")
    return times, (times - column(rows, "entered")) / SECOND_NS


def probe_rtt(trial: Trial, flow: int) -> tuple[Ints, Floats]:
    """M10: round-trip time of ICMP echo, in s, at the time of the request (ns).

    A request (down) is matched with the reply (up) of the same sequence number that follows it; RTT is the
    reply's departure from the path less the request's arrival (ping from monitor to sink: Hessler and Welzl,
    section 2). Requests without a reply are left out.
    """
    probes = pl.col("kind") == PROBE
    requests = of(trial.offered, flow, DOWN).filter(probes).select("seq", sent=pl.col("t_in"))
    replies = of(trial.delivered, flow, UP).filter(probes).select("seq", back=pl.col("t_out"))
    matched = requests.drop_nulls("seq").join_asof(
        replies.drop_nulls("seq").sort("back"),
        left_on="sent",
        right_on="back",
        by="seq",
        strategy="forward",
        check_sortedness=False,
    )
    matched = matched.drop_nulls("back")
    sent = column(matched, "sent")
    return sent, (column(matched, "back") - sent) / SECOND_NS


Source = Literal["probe", "event", "path"]


def round_trip(trial: Trial, flow: int, name: str) -> tuple[Samples, Source | None]:
    """M10 of a flow, per sample, in s, with where it comes from.

    ``probe``: its echo packets in the record; ``event``: what its machine reported as ``rtt``; ``path``: for
    a flow with packets both ways, its mean delay down plus its mean delay up in each sample, weighted by the
    packets down (the network's part of the RTT; hosts' time is not in it). None if it has none of these.
    """
    times, values = probe_rtt(trial, flow)
    if len(values):
        return observe(trial.grid, times, values), "probe"
    reported = trial.events.filter(
        (pl.col("flow").cast(pl.String) == name) & (pl.col("name") == "rtt") & pl.col("value").is_not_null()
    )
    if reported.height:
        scale = np.where((reported["unit"] == "ms").to_numpy(), 1e-3, 1.0)
        return observe(trial.grid, column(reported, "time"), reported["value"].to_numpy() * scale), "event"
    down = observe(trial.grid, *one_way(trial, flow, DOWN))
    up = observe(trial.grid, *one_way(trial, flow, UP))
    if not down.count.any() or not up.count.any():
        return down, None
    # Reports and acknowledgements may be rare: a sample without any takes the mean way back.
    usual = up.total.sum() / up.count.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        back = np.where(up.count > 0, up.total / up.count, usual)
    low, high = down.low + np.fmin(up.low, usual), down.high + np.fmax(up.high, usual)
    return Samples(down.total + back * down.count, down.count, low, high), "path"

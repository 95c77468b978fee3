"""M23 and M33: what a bottleneck was offered, what it let through, and what waited in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from streamgauge.metrics.delay import Samples, observe
from streamgauge.metrics.frame import DROPPED, SECOND_NS, Floats, Grid, Ints, StageInfo, Trial, column


def offered_bits(trial: Trial, stage: StageInfo, flow: int | None = None) -> Floats:
    """M23 offered load, as counts: bits that arrived at the bottleneck, of one flow or of all.

    Chung et al. capture before and after the router. The trial's layer; every copy counts.
    """
    rows = at(trial, stage, flow)
    return trial.grid.total(column(rows, "t_in"), 8 * column(rows, trial.bytes_column))


def achieved_bits(trial: Trial, stage: StageInfo, flow: int | None = None) -> Floats:
    """M23 achieved rate, as counts: bits that left the bottleneck. The trial's layer."""
    rows = at(trial, stage, flow).drop_nulls("t_out")
    return trial.grid.total(column(rows, "t_out"), 8 * column(rows, trial.bytes_column))


def queue_delays(trial: Trial, stage: StageInfo, flow: int | None = None) -> Samples:
    """M33 queueing delay, measured, in s: how long each packet stayed in the stage, its own transmission
    included, placed at its arrival. Packets that were dropped or held are left out."""
    rows = at(trial, stage, flow).drop_nulls("t_out")
    arrived = column(rows, "t_in")
    return observe(trial.grid, arrived, (column(rows, "t_out") - arrived) / SECOND_NS)


@dataclass(frozen=True)
class Depth:
    """A queue's fill per sample: time-weighted mean, least and most."""

    mean: Floats
    low: Floats
    high: Floats


def queue_depth(trial: Trial, stage: StageInfo) -> tuple[Depth, Depth]:
    """M33 queue depth in bits and in packets, per sample, weighted by time.

    A packet is in the queue from its arrival until its transmission ends, as the stage itself counts it, in
    Ethernet bytes (IP bytes where the stage's layer is ip). Packets that the stage dropped are not in it; a
    packet held at the end is in it to the end.
    """
    rows = at(trial, stage).filter(pl.col("fate") != DROPPED)
    arrived = column(rows, "t_in")
    end = int(trial.grid.edges_ns[-1])
    left = column(rows.with_columns(pl.col("t_out").fill_null(end)), "t_out")
    size = "ip_bytes" if stage.settings.get("layer") == "ip" else "wire_bytes"
    bits = 8.0 * column(rows, size)
    return _depth(trial.grid, arrived, left, bits), _depth(trial.grid, arrived, left, np.ones(len(bits)))


def _depth(grid: Grid, arrived: Ints, left: Ints, sizes: Floats) -> Depth:
    """Integrates the step function of what has arrived and not left."""
    zeros = np.zeros(len(grid.edges_ns))
    times = np.concatenate([arrived, left, grid.edges_ns])
    steps = np.concatenate([sizes, -sizes, zeros])
    # At one instant departures come first: the queue never shows more than it held.
    rank = np.concatenate([np.full(len(arrived), 2), np.zeros(len(left)), np.ones(len(zeros))])
    order = np.lexsort((rank, times))
    times, level = times[order], np.maximum(np.cumsum(steps[order]), 0.0)
    level = np.where(level < 1e-6, 0.0, level)
    where = grid.place(times[:-1])
    spans = np.diff(times) / SECOND_NS
    inside = (where >= 0) & (spans > 0)
    where, spans, held = where[inside], spans[inside], level[:-1][inside]
    area = np.bincount(where, weights=spans * held, minlength=len(grid))
    low, high = np.full(len(grid), np.inf), np.zeros(len(grid))
    np.minimum.at(low, where, held)
    np.maximum.at(high, where, held)
    return Depth(area / grid.widths_s, np.where(np.isinf(low), 0.0, low), high)


def full_queue_delay_s(settings: dict[str, Any]) -> float | None:
    """M33 as a bound: queue limit · 8 / rate, in s (RealVideo study: 10 kB at 600 kbit/s hold 133 ms).

    None unless the rate is constant and the limit is in bytes or time.
    """
    rate = settings.get("rate", {}).get("constant")
    limit = settings.get("queue", {}).get("droptail", {})
    if "time" in limit:
        return float(limit["time"]) / SECOND_NS
    if rate and "bytes" in limit:
        return 8 * float(limit["bytes"]) / float(rate)
    return None


def at(trial: Trial, stage: StageInfo, flow: int | None = None) -> pl.DataFrame:
    """The rows of a stage, of one flow or of all."""
    if flow is not None:
        return trial.at_stages.part(stage.id, flow)
    return trial.packets.filter(pl.col("stage") == stage.id)

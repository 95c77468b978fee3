"""M23 and M33: offered traffic, passed traffic, and the queue of a bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamgauge import _native
from streamgauge.metrics.frame import DROPPED, StageInfo, Trial
from streamgauge.metrics.grid import SECOND_NS, Floats, Grid
from streamgauge.metrics.impairments import CE_MARKED
from streamgauge.metrics.passage import NEVER, Passage, Samples


@dataclass(frozen=True)
class Crossing:
    """Traffic of a bottleneck, every copy of every packet, [flow, sample]."""

    arrivals: Passage
    departures: Passage
    offered_bits: Floats
    """M23 offered load, as counts: bits that arrived (Chung et al. capture before and after the router)."""
    achieved_bits: Floats
    """M23 achieved rate, as counts: bits that left."""
    marked: Floats
    """Packets on which it set congestion experienced, when they arrived."""
    delay: Samples
    """M33 queueing delay, measured, in s: how long each packet stayed in the stage, its own transmission
    included, placed at its arrival. Packets that were dropped or held are left out."""


def crossing(trial: Trial, stage: StageInfo) -> Crossing:
    """M23 and M33 at a bottleneck. Bits are those of the trial's layer."""
    here = trial.table["stage"] == stage.id
    arrivals = trial.passage(here, at="t_in")
    departures = trial.passage(here & (trial.table["t_out"] != NEVER), at="t_out")
    left = arrivals["t_out"]
    return Crossing(
        arrivals=arrivals,
        departures=departures,
        offered_bits=arrivals.total(arrivals.bits(trial.bytes_column)),
        achieved_bits=departures.total(departures.bits(trial.bytes_column)),
        marked=arrivals.count(arrivals["flags"] & CE_MARKED != 0),
        delay=arrivals.observe((left - arrivals.times_ns) / SECOND_NS, left != NEVER),
    )


@dataclass(frozen=True)
class Depth:
    """A queue's fill per sample: time-weighted mean, least and most."""

    mean: Floats
    low: Floats
    high: Floats


def queue_depth(grid: Grid, stage: StageInfo, arrivals: Passage) -> tuple[Depth, Depth]:
    """M33 queue depth in bits and in packets, per sample, weighted by time.

    A packet is in the queue from its arrival until its transmission ends, as the stage itself counts it, in
    Ethernet bytes (IP bytes where the stage's layer is ip). Packets that the stage dropped on arrival are not
    in it, those that it dropped later (a queue manager at dequeue) are until then; a packet held at the end
    is in it to the end.
    """
    ended = np.maximum(arrivals["t_out"], arrivals["t_drop"])
    accepted = (arrivals["fate"] != DROPPED) | (ended > arrivals.times_ns)
    arrived, left = arrivals.times_ns[accepted], ended[accepted]
    left = np.where(left == NEVER, grid.edges_ns[-1], left)
    size = "ip_bytes" if stage.settings.get("layer") == "ip" else "wire_bytes"
    bits = arrivals.bits(size)[accepted]
    by_size, in_packets = _native.queue_depth(arrived, left, bits, grid.edges_ns)
    return _depth(grid, *by_size), _depth(grid, *in_packets)


def _depth(grid: Grid, area: Floats, low: Floats, high: Floats) -> Depth:
    return Depth(area / grid.widths_s, low, high)


def limit_of_queue(queue: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a queue's limit as the plan has it, ``{"bytes": n}``, ``{"packets": n}`` or ``{"time": ns}``;
    empty for none."""
    for settings in queue.values():
        # Some disciplines have no other setting.
        limit = settings.get("limit", settings) or {}
        return {unit: limit[unit] for unit in ("bytes", "packets", "time") if unit in limit}
    return {}


def full_queue_delay_s(settings: Mapping[str, Any]) -> float | None:
    """M33 as a bound: queue limit · 8 / rate, in s (RealVideo study: 10 kB at 600 kbit/s hold 133 ms).

    None unless the rate is constant and the limit is in bytes or time.
    """
    rate = settings.get("rate", {}).get("constant")
    limit = limit_of_queue(settings.get("queue") or {})
    if "time" in limit:
        return float(limit["time"]) / SECOND_NS
    if rate and "bytes" in limit:
        return 8 * float(limit["bytes"]) / float(rate)
    return None

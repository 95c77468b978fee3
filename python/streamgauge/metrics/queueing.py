"""M23 and M33: offered traffic, passed traffic, and the queue of a bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamgauge import _native
from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import DATA, PACKETS, PERCENT, RATE, TIME
from streamgauge.metrics.course import averaged
from streamgauge.metrics.frame import CE_MARKED, DROPPED, StageInfo, Trial
from streamgauge.metrics.grid import SECOND_NS, Floats, Grid
from streamgauge.metrics.passage import NEVER, Passage, Samples
from streamgauge.metrics.result import Measured, Series


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


def flow_crossing(trial: Trial, flow: int) -> dict[str, Series]:
    """M23 and M33 of a flow at the bottleneck in the direction of its media; nothing without one."""
    bottleneck = trial.bottleneck(trial.flows[flow].direction)
    if bottleneck is None:
        return {}
    passed = trial.once(crossing, bottleneck)
    return _crossed(trial, passed.offered_bits[flow], passed.achieved_bits[flow], passed.delay.of(flow))


def stage_crossing(trial: Trial, stage: StageInfo) -> Measured:
    """M23 and M33 of a bottleneck, over all that crossed it, and the depth of its queue."""
    passed, widths = trial.once(crossing, stage), trial.grid.widths_s
    bits, packets = queue_depth(trial.grid, stage, passed.arrivals)
    offered, achieved = passed.offered_bits.sum(axis=0), passed.achieved_bits.sum(axis=0)
    return Measured(
        _crossed(trial, offered, achieved, passed.delay.together())
        | {
            "queue": Series(bits.mean * widths, widths, bits.low, bits.high),
            "queue_packets": Series(packets.mean * widths, widths, packets.low, packets.high),
        },
        {"full_queue_delay": full_queue_delay_s(stage.settings)},
    )


def _crossed(trial: Trial, offered: Floats, achieved: Floats, waited: Samples) -> dict[str, Series]:
    widths = trial.grid.widths_s
    return {
        "offered": Series(offered, widths),
        "achieved": Series(achieved, widths),
        "achieved_share": Series(achieved, offered),
        "queue_delay": averaged(waited),
    }


METRICS = (
    Metric(
        "offered",
        RATE,
        "flow or stage",
        "Offered load at the bottleneck",
        formula="bits that arrived at the bottleneck / length",
        flow=flow_crossing,
        stage=stage_crossing,
        number="M23",
    ),
    Metric(
        "achieved",
        RATE,
        "flow or stage",
        "Achieved rate after the bottleneck",
        formula="bits that left the bottleneck / length",
        flow=flow_crossing,
        stage=stage_crossing,
        number="M23",
        better="more",
    ),
    Metric(
        "achieved_share",
        PERCENT,
        "flow or stage",
        "Achieved over offered",
        formula="100 · achieved / offered",
        flow=flow_crossing,
        stage=stage_crossing,
        number="M23",
        better="more",
        json="achieved_percent",
    ),
    Metric(
        "queue_delay",
        TIME,
        "flow or stage",
        "Queueing delay",
        formula=(
            "mean over packets of `t_out` − `t_in` of the bottleneck, including the packet's own transmission"
        ),
        flow=flow_crossing,
        stage=stage_crossing,
        number="M33",
        better="less",
        json={"queue_delay_mean_s": "mean", "queue_delay_max_s": "max"},
        label="time in bottleneck",
        compared=(
            ComparedBy(
                "neighbour",
                30,
                "neighbours' queueing delay",
                Margin(absolute=0.005, relative=0.05),
                name="neighbour_delay",
                title="Queueing delay of its neighbours",
            ),
        ),
    ),
    Metric(
        "queue",
        DATA,
        "stage",
        "Queue depth",
        formula=(
            "fill, weighted by time; a packet is inside from its arrival to its drop or the end of "
            "its transmission"
        ),
        stage=stage_crossing,
        number="M33",
        json={"queue_mean_bytes": "mean", "queue_max_bytes": "max"},
        whole=False,
        section="bottleneck",
    ),
    Metric(
        "queue_packets",
        PACKETS,
        "stage",
        "Queue depth",
        formula="the same in packets",
        stage=stage_crossing,
        number="M33",
        json={"queue_mean_packets": "mean", "queue_max_packets": "max"},
        whole=False,
        section="bottleneck",
    ),
    Metric(
        "full_queue_delay",
        TIME,
        "stage",
        "Delay of a full queue",
        formula="limit · 8 / rate, for a constant rate and a limit in bytes or time",
        stage=stage_crossing,
        number="M33",
        section="bottleneck",
    ),
)

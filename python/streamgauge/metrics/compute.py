"""From a record to its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from streamgauge.metrics import delay, queueing, rates
from streamgauge.metrics.delay import Samples
from streamgauge.metrics.fairness import jain, jain_series
from streamgauge.metrics.frame import (
    DROPPED,
    SECOND_NS,
    UP,
    Floats,
    FlowInfo,
    Layer,
    RecordLike,
    StageInfo,
    Trial,
    of,
    prepare,
)
from streamgauge.metrics.result import FlowMetrics, Series, StageMetrics, TrialMetrics
from streamgauge.metrics.runs import run_lengths


def compute(record: RecordLike, scenario: Any = None, *, layer: Layer | None = None) -> TrialMetrics:
    """Every metric of one trial.

    Args:
        record: what the trial left.
        scenario: the scenario, or a mapping shaped like it, if not the one in the record: its `measure`
            gives window, sample and layer.
        layer: counts bytes at this layer instead of the scenario's (IP by default).

    Raises:
        RecordError: if the record lacks what measuring needs, or the window does not fit the trial.
    """
    if scenario is not None and not isinstance(scenario, Mapping):
        scenario = scenario.model_dump(mode="json")
    trial = prepare(record, scenario, layer)
    header = record.trial
    flows = {flow.name: _flow(trial, flow) for flow in trial.flows}
    stages = {stage.label: _stage(trial, stage) for stage in trial.stages if stage.is_bottleneck}
    sharers = [name for name, flow in flows.items() if not flow.info.is_ping]
    validity = header.get("validity") or {}
    name = header.get("scenario", {})
    return TrialMetrics(
        scenario=str(name.get("id", "") if isinstance(name, Mapping) else name),
        mode=str(header.get("mode", "")),
        seed=int(header.get("seed", 0)),
        valid=bool(validity.get("valid", True)),
        why=tuple(str(reason) for reason in validity.get("why") or ()),
        layer=trial.layer,
        grid=trial.grid,
        flows=flows,
        stages=stages,
        jain=_average_jain(trial, [flows[name] for name in sharers]),
        jain_samples=_instantaneous_jain(trial, [flows[name] for name in sharers]),
        jain_flows=tuple(sharers),
    )


def _flow(trial: Trial, info: FlowInfo) -> FlowMetrics:
    grid, flow = trial.grid, info.id
    widths = grid.widths_s
    sent, received = rates.sent_bits(trial, flow), rates.received_bits(trial, flow)
    lost, good = rates.lost_bits(trial, flow), rates.good_bits(trial, flow)
    sent_packets, received_packets = rates.sent_packets(trial, flow), rates.received_packets(trial, flow)
    rtt, rtt_source = delay.round_trip(trial, flow, info.name)
    series = {
        "throughput": Series(sent, widths),
        "sender_rate": Series(sent, widths),
        "receiver_rate": Series(received, widths),
        "goodput": Series(good, widths),
        "loss_rate": Series(lost, widths),
        "loss": Series(lost, sent),
        "gap": Series(sent - received, sent),
        "retransmitted": Series(rates.repeated_bits(trial, flow), sent),
        "packet_rate": Series(sent_packets, widths),
        "receiver_packet_rate": Series(received_packets, widths),
        "packet_size": Series(sent, sent_packets),
        "sent": Series(sent),
        "received": Series(received),
        "lost": Series(lost),
        "sent_packets": Series(sent_packets),
        "received_packets": Series(received_packets),
        "lost_packets": Series(rates.lost_packets(trial, flow)),
        "up_throughput": Series(rates.sent_bits(trial, flow, UP), widths),
        "path_delay": _mean(delay.observe(grid, *delay.one_way(trial, flow))),
    }
    if rtt_source is not None:
        series["rtt"] = _mean(rtt)
    bottleneck = trial.bottleneck()
    if bottleneck is not None:
        series |= _crossing(trial, bottleneck, flow)
    offered = of(trial.offered, flow)
    runs = run_lengths(_losses(trial, offered, of(trial.dropped, flow)))
    scalars = {
        "good_run": runs.good_packets,
        "bad_run": runs.bad_packets,
        "start": offered.item(0, "t_in") / SECOND_NS if offered.height else None,
    }
    return FlowMetrics(series, scalars, info=info, rtt_source=rtt_source)


def _stage(trial: Trial, stage: StageInfo) -> StageMetrics:
    bits, packets = queueing.queue_depth(trial, stage)
    widths = trial.grid.widths_s
    series = _crossing(trial, stage, None) | {
        "queue": Series(bits.mean * widths, widths, bits.low, bits.high),
        "queue_packets": Series(packets.mean * widths, widths, packets.low, packets.high),
    }
    begin, end = trial.grid.edges_ns[trial.grid.first], trial.grid.edges_ns[trial.grid.last]
    rows = queueing.at(trial, stage).filter(pl.col("t_in").is_between(begin, end, closed="left"))
    runs = run_lengths((rows.sort("t_in", maintain_order=True)["fate"] == DROPPED).to_numpy())
    scalars = {
        "good_run": runs.good_packets,
        "bad_run": runs.bad_packets,
        "full_queue_delay": queueing.full_queue_delay_s(dict(stage.settings)),
    }
    return StageMetrics(series, scalars, info=stage)


def _crossing(trial: Trial, stage: StageInfo, flow: int | None) -> dict[str, Series]:
    """M23 and M33 at a bottleneck, of one flow or of all."""
    widths = trial.grid.widths_s
    offered = queueing.offered_bits(trial, stage, flow)
    achieved = queueing.achieved_bits(trial, stage, flow)
    return {
        "offered": Series(offered, widths),
        "achieved": Series(achieved, widths),
        "achieved_share": Series(achieved, offered),
        "queue_delay": _mean(queueing.queue_delays(trial, stage, flow)),
    }


def _mean(samples: Samples) -> Series:
    return Series(samples.total, samples.count, samples.low, samples.high)


def _losses(
    trial: Trial, offered: pl.DataFrame, dropped: pl.DataFrame
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of a flow's packets, in the order it sent them in the window, were dropped on the way."""
    begin, end = trial.grid.edges_ns[trial.grid.first], trial.grid.edges_ns[trial.grid.last]
    inside = offered.filter(pl.col("t_in").is_between(begin, end, closed="left"))
    return inside["pkt"].is_in(dropped["pkt"].implode()).to_numpy()


def _net(flow: FlowMetrics) -> Floats:
    return flow.series["throughput"].numerator - flow.series["loss_rate"].numerator


def _average_jain(trial: Trial, flows: list[FlowMetrics]) -> float:
    """M5 over the window: each flow's mean offered rate less its mean loss rate."""
    if len(flows) < 2:
        return float("nan")
    part = trial.grid.slice()
    return jain([max(0.0, float(_net(flow)[part].sum())) for flow in flows])


def _instantaneous_jain(trial: Trial, flows: list[FlowMetrics]) -> Floats:
    """M5 in each sample, over the flows whose first packet has been sent."""
    if len(flows) < 2:
        return np.full(len(trial.grid), np.nan)
    ends = trial.grid.edges_ns[1:] / SECOND_NS
    started = []
    for flow in flows:
        start = flow.scalars["start"]
        started.append((ends > (np.inf if start is None else start)).astype(np.float64))
    return jain_series([_net(flow) / trial.grid.widths_s for flow in flows], started)

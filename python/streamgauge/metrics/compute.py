"""From a record to its metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamgauge.errors import RecordError
from streamgauge.metrics import activity, delay, impairments, players, queueing, rates, reliable_udp, tcp
from streamgauge.metrics.buffering import buffering_phases, buffering_rates, buffering_times
from streamgauge.metrics.bursts import bursts, packet_gaps
from streamgauge.metrics.calls import call_losses
from streamgauge.metrics.fairness import jain, jain_series
from streamgauge.metrics.frame import DOWN, DROPPED, UP, MetricLayer, RecordLike, StageInfo, Trial, prepare
from streamgauge.metrics.grid import SECOND_NS, Floats, Ints
from streamgauge.metrics.levels import levels
from streamgauge.metrics.live import live_latency
from streamgauge.metrics.own_events import own_events
from streamgauge.metrics.passage import Samples
from streamgauge.metrics.queueing import Crossing
from streamgauge.metrics.result import FlowMetrics, Series, StageMetrics, TrialMetrics
from streamgauge.metrics.runs import loss_event_rate, run_lengths
from streamgauge.metrics.session import watched
from streamgauge.metrics.shares import max_min_shares
from streamgauge.metrics.smoothness import rate_variations
from streamgauge.metrics.transfers import transferred
from streamgauge.metrics.viewer import viewed
from streamgauge.record.schema import METRICS_FILE, PACKETS


def compute(record: RecordLike, scenario: Any = None, *, layer: MetricLayer | None = None) -> TrialMetrics:
    """Returns every metric of one trial.

    Args:
        record: the trial's record.
        scenario: the scenario, or a mapping shaped like it, if not the one in the record: its `measure`
            gives window, sample and layer.
        layer: counts bytes at this layer instead of the scenario's (IP by default).

    Raises:
        RecordError: if the record lacks data for the metrics, or the window does not fit the trial.
    """
    header = record.trial
    if PACKETS not in header.get("kept", (PACKETS,)) and (record.directory / METRICS_FILE).exists():
        raise RecordError(
            f"{record.directory}: its packets were not kept, so nothing can be measured again. "
            f"streamgauge.load({str(record.directory)!r})[0].metrics reads the kept metrics. "
            "Run it with --keep packets to keep the packets."
        )
    if scenario is not None and not isinstance(scenario, Mapping):
        # No other part of a scenario counts, and to write it out takes as long as many metrics.
        scenario = {"measure": scenario.measure.model_dump(mode="json")}
    trial = prepare(record, scenario, layer)
    bottlenecks = [stage for stage in trial.stages if stage.is_bottleneck]
    crossings = {stage.id: queueing.crossing(trial, stage) for stage in bottlenecks}
    flows = _flows(trial, crossings)
    shown = [flow.series.get("level") for flow in flows.values()]
    stages = {stage.label: _stage(trial, stage, crossings[stage.id], shown) for stage in bottlenecks}
    sharers = _sharers(flows)
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


def _flows(trial: Trial, crossings: Mapping[int, Crossing]) -> dict[str, FlowMetrics]:
    """Returns every flow's metrics: counted for all flows at once, [flow, sample], where each takes its
    row."""
    widths = trial.grid.widths_s
    packets = activity.own_packets(trial)
    own = tuple(trial.offered[DOWN].times_ns[mine] for mine in packets)
    counts = _counts(trial, own)
    delays = delay.PathDelays.of(trial)
    path_delay = delays.samples()
    rtts = delay.round_trips(trial, path_delay)
    windows, smoothed = tcp.sampled(trial, "tcp_cwnd"), tcp.sampled(trial, "tcp_srtt")
    buffered, estimates = tcp.sampled(trial, "buffer"), tcp.sampled(trial, "estimate")
    scalars = _scalars(trial)
    variations, delays_p95 = rate_variations(trial, counts["received"], own), delays.percentiles(95)
    buffering = buffering_rates(trial, own)
    for row in range(len(trial.flows)):
        scalars[row] |= {"rate_variation": variations[row], "path_delay_p95": delays_p95[row]}
        scalars[row] |= buffering[row] | {"transmission_time": activity.transmission_s(own[row])}
        end_s = float(own[row][-1]) / SECOND_NS if len(own[row]) else None
        times = buffering_times(trial, row)
        scalars[row] |= {"end": end_s} | times | buffering_phases(trial, row, times, end_s)
    bottlenecks = [trial.bottleneck(way) for way in (DOWN, UP)]
    others = own_events(trial)
    shares: dict[int, Series] = {}
    for bottleneck in bottlenecks:
        if bottleneck is not None:
            shares |= max_min_shares(trial, bottleneck, crossings[bottleneck.id])
    found = {}
    for row, info in enumerate(trial.flows):
        series = _series({name: count[row] for name, count in counts.items()}, widths)
        series["path_delay"] = _mean(path_delay.of(row))
        series |= packet_gaps(trial, own[row]) | bursts(trial, packets[row])
        rtt, rtt_source = rtts[row]
        if rtt_source is not None:
            series["rtt"] = _mean(rtt)
            scalars[row]["loss_event_rate"] = _loss_events(trial, row, series["rtt"])
        if tcp.carries_media(trial, row):
            series |= {"cwnd": _mean(windows.of(row), 8.0), "srtt": _mean(smoothed.of(row))}
        if (bottleneck := bottlenecks[info.direction]) is not None:
            passed = crossings[bottleneck.id]
            offered, achieved = passed.offered_bits[row], passed.achieved_bits[row]
            series |= _crossing_series(offered, achieved, passed.delay.of(row), widths)
        if row in shares:
            series["max_min_share"] = shares[row]
        seen = watched(trial, row)
        if (viewer := viewed(trial, row, seen)) is not None:
            series |= viewer.series
            scalars[row] |= viewer.scalars
        if (latency := live_latency(trial, row, seen.pauses)) is not None:
            series["live_latency"] = latency
        for name, samples in (("buffer", buffered), ("estimate", estimates)):
            if trial.said.has(name, row):
                series[name] = _mean(samples.of(row))
        series |= call_losses(trial, row, counts["sent_packets"][row], counts["received_packets"][row])
        of_levels = levels(trial, row, seen)
        series |= of_levels.series | reliable_udp.reported(trial, row)
        scalars[row] |= of_levels.scalars
        of_transfers, of_window = transferred(trial, row)
        series |= of_transfers | others[row].series
        scalars[row] |= of_window
        found[info.name] = FlowMetrics(
            series, scalars[row], info=info, rtt_source=rtt_source, events=others[row].units
        )
    return found


def _counts(trial: Trial, own: Sequence[Ints]) -> dict[str, Floats]:
    """Bits, packets and seconds, [flow, sample]."""
    good, good_of_sent = rates.good_bits(trial)
    return {
        "sent": rates.sent_bits(trial),
        "received": rates.received_bits(trial),
        "lost": rates.lost_bits(trial),
        "good": good,
        "good_of_sent": good_of_sent,
        "lost_of_sent": rates.sent_and_lost_bits(trial),
        "sending": activity.sending_seconds(trial, own),
        "repeated": rates.repeated_bits(trial),
        "first_sent": rates.first_sent_bits(trial),
        "up": rates.sent_bits(trial, UP),
        "reports": rates.reports(trial),
        "sent_packets": rates.sent_packets(trial),
        "received_packets": rates.received_packets(trial),
        "lost_packets": rates.lost_packets(trial),
        "marked_packets": impairments.marked_packets(trial),
        "duplicate_packets": impairments.duplicate_packets(trial),
        "corrupted_packets": impairments.corrupted_packets(trial),
        "fragment_packets": impairments.fragment_packets(trial),
    }


def _series(counts: Mapping[str, Floats], widths: Floats) -> dict[str, Series]:
    """Returns a flow's metrics over time that are counts, over the samples' lengths or over other counts."""
    sent, received, lost = counts["sent"], counts["received"], counts["lost"]
    sent_packets, received_packets = counts["sent_packets"], counts["received_packets"]
    return {
        "throughput": Series(sent, widths),
        "sender_rate": Series(sent, widths),
        "receiver_rate": Series(received, widths),
        "goodput": Series(counts["good"], widths),
        "sent_goodput": Series(counts["good_of_sent"], widths),
        "sent_loss": Series(counts["lost_of_sent"], sent),
        "sending_time": Series(counts["sending"]),
        "sending_rate": Series(sent, counts["sending"]),
        "loss_rate": Series(lost, widths),
        "loss": Series(lost, sent),
        "gap": Series(sent - received, sent),
        "retransmitted": Series(counts["repeated"], sent),
        "unrepaired": Series(counts["first_sent"] - counts["good_of_sent"], counts["first_sent"]),
        "packet_rate": Series(sent_packets, widths),
        "receiver_packet_rate": Series(received_packets, widths),
        "packet_size": Series(sent, sent_packets),
        "sent": Series(sent),
        "received": Series(received),
        "lost": Series(lost),
        "sent_packets": Series(sent_packets),
        "received_packets": Series(received_packets),
        "lost_packets": Series(counts["lost_packets"]),
        "mark_rate": Series(counts["marked_packets"], sent_packets),
        "marked_packets": Series(counts["marked_packets"]),
        "duplicate_packets": Series(counts["duplicate_packets"]),
        "corrupted_packets": Series(counts["corrupted_packets"]),
        "fragment_packets": Series(counts["fragment_packets"]),
        "up_throughput": Series(counts["up"], widths),
        "report_rate": Series(counts["reports"], widths),
    }


def _scalars(trial: Trial) -> list[dict[str, float | None]]:
    """Returns for each flow the numbers of the window or the trial alone.

    Runs are of its packets in the order it sent them in the window, lost if dropped anywhere on the way.
    """
    offered = trial.offered[DOWN]
    lost = trial.lost[DOWN]
    window = offered.window
    scalars: list[dict[str, float | None]] = []
    for row in range(len(trial.flows)):
        sent = offered.of(row)
        runs = run_lengths(lost[sent[(sent >= window.start) & (sent < window.stop)]])
        start = float(offered.times_ns[sent[0]]) / SECOND_NS if len(sent) else None
        scalars.append({"good_run": runs.good_packets, "bad_run": runs.bad_packets, "start": start})
    return scalars


def _loss_events(trial: Trial, row: int, rtt: Series) -> float | None:
    """Returns the loss event rate of the flow's packets in the window, by its mean round trip there."""
    offered, window = trial.offered[DOWN], trial.offered[DOWN].window
    rtt_s = rtt.value(trial.grid.slice())
    if not np.isfinite(rtt_s):
        return None
    sent = offered.of(row)
    sent = sent[(sent >= window.start) & (sent < window.stop)]
    lost = sent[trial.lost[DOWN][sent]]
    return loss_event_rate(len(sent), offered.times_ns[lost] / SECOND_NS, rtt_s)


def _stage(trial: Trial, stage: StageInfo, passed: Crossing, shown: Sequence[Series | None]) -> StageMetrics:
    """Returns a bottleneck's metrics, over all that crossed it; `shown` are the levels of each flow."""
    bits, packets = queueing.queue_depth(trial.grid, stage, passed.arrivals)
    widths = trial.grid.widths_s
    offered, achieved = passed.offered_bits.sum(axis=0), passed.achieved_bits.sum(axis=0)
    series = _crossing_series(offered, achieved, passed.delay.together(), widths) | {
        "queue": Series(bits.mean * widths, widths, bits.low, bits.high),
        "queue_packets": Series(packets.mean * widths, widths, packets.low, packets.high),
        "mark_rate": Series(passed.marked.sum(axis=0), passed.arrivals.total().sum(axis=0)),
        "marked_packets": Series(passed.marked.sum(axis=0)),
    }
    series |= players.sharing(trial, stage, passed, shown)
    runs = run_lengths(passed.arrivals["fate"][passed.arrivals.window] == DROPPED)
    scalars = {
        "good_run": runs.good_packets,
        "bad_run": runs.bad_packets,
        "full_queue_delay": queueing.full_queue_delay_s(stage.settings),
    }
    return StageMetrics(series, scalars, info=stage)


def _crossing_series(offered: Floats, achieved: Floats, waited: Samples, widths: Floats) -> dict[str, Series]:
    """M23 and M33 at a bottleneck, of one flow or of all."""
    return {
        "offered": Series(offered, widths),
        "achieved": Series(achieved, widths),
        "achieved_share": Series(achieved, offered),
        "queue_delay": _mean(waited),
    }


def _mean(samples: Samples, scale: float = 1.0) -> Series:
    """Returns the mean of samples in a unit of `scale` canonical ones."""
    return Series(scale * samples.total, samples.count, scale * samples.low, scale * samples.high)


def _net(flow: FlowMetrics) -> Floats:
    return flow.series["throughput"].numerator - flow.series["loss_rate"].numerator


def _sharers(flows: Mapping[str, FlowMetrics]) -> list[str]:
    """Returns the flows in the direction of the first subject's media, without pings: those that share a
    path."""
    media = {name: flow.info for name, flow in flows.items() if not flow.info.is_ping}
    way = next((info.direction for info in media.values() if info.role == "subject"), DOWN)
    return [name for name, info in media.items() if info.direction == way]


def _average_jain(trial: Trial, flows: list[FlowMetrics]) -> float:
    """M5 over the window: each flow's mean offered rate less its mean loss rate."""
    if len(flows) < 2:
        return float("nan")
    part = trial.grid.slice()
    return jain([max(0.0, float(_net(flow)[part].sum())) for flow in flows])


def _instantaneous_jain(trial: Trial, flows: list[FlowMetrics]) -> Floats:
    """Returns M5 in each sample, over the flows that have sent their first packet."""
    if len(flows) < 2:
        return np.full(len(trial.grid), np.nan)
    ends = trial.grid.edges_ns[1:] / SECOND_NS
    started = []
    for flow in flows:
        start = flow.scalars["start"]
        started.append((ends > (np.inf if start is None else start)).astype(np.float64))
    return jain_series([_net(flow) / trial.grid.widths_s for flow in flows], started)

"""The names by which checks, figures and tables call a metric: one table for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from streamgauge.claims.dimension import (
    DATA,
    NUMBER,
    PACKET_RATE,
    PACKET_SIZE,
    PACKETS,
    PERCENT,
    RATE,
    TIME,
    UNTOLD,
    Dimension,
)

Subject = Literal["flow", "stage", "flow or stage", "trial"]
Better = Literal["more", "less", ""]


@dataclass(frozen=True, slots=True)
class MetricName:
    """Name, unit and subject of a metric."""

    name: str
    dimension: Dimension
    of: Subject
    title: str
    number: str
    """The catalogue's number: M1, M5 ...; empty if it has none."""
    better: Better = ""
    """Whether a flow fares better with more of it or with less; empty if unknown."""

    @property
    def signed(self) -> bool:
        """Returns whether it can be below zero: more can arrive in a window than is sent in it, media be
        late, and waiting cost more than the shown media is worth."""
        return self.name in ("gap", "overbuffer", "qoe_lin", "qoe_log") or is_event(self.name)


def _table(
    *rows: tuple[str, Dimension, Subject, str, str] | tuple[str, Dimension, Subject, str, str, Better],
) -> dict[str, MetricName]:
    return {row[0]: MetricName(*row) for row in rows}


METRICS: dict[str, MetricName] = _table(
    ("throughput", RATE, "flow", "Throughput (offered)", "M1", "more"),
    ("goodput", RATE, "flow", "Goodput", "M2", "more"),
    ("sent_goodput", RATE, "flow", "Goodput of what was sent", "M2", "more"),
    ("sent_loss", PERCENT, "flow", "Loss of what was sent", "M4", "less"),
    ("sending_time", TIME, "flow", "Time sending", "M7"),
    ("sending_rate", RATE, "flow", "Rate while sending", "M7"),
    ("transmission_time", TIME, "flow", "From the first packet to the last", "M20"),
    ("loss_rate", RATE, "flow", "Loss rate", "M3", "less"),
    ("loss", PERCENT, "flow", "Loss", "M4", "less"),
    ("loss_event_rate", PERCENT, "flow", "Loss events per packet sent", "M15", "less"),
    ("gap", PERCENT, "flow", "Sent but not received", "M4", "less"),
    ("jain", NUMBER, "trial", "Jain's index", "M5"),
    ("good_run", PACKETS, "flow or stage", "Mean run of delivered packets", "M6"),
    ("bad_run", PACKETS, "flow or stage", "Mean run of lost packets", "M6"),
    ("sender_rate", RATE, "flow", "Sender rate", "M7"),
    ("receiver_rate", RATE, "flow", "Receiver rate", "M7", "more"),
    ("rate_variation", NUMBER, "flow", "Variation of the receiver rate from second to second", "M7", "less"),
    ("buffering_start", TIME, "flow", "When its player asked to play", "M21"),
    ("buffering_end", TIME, "flow", "When its player's buffer was full", "M21"),
    ("filling_time", TIME, "flow", "Time to fill the buffer", "M22"),
    ("filling_rate", RATE, "flow", "Receiver rate until the buffer is full", "M22"),
    ("filling_loss", PERCENT, "flow", "Loss until the buffer is full", "M22", "less"),
    ("playing_time", TIME, "flow", "Time from the full buffer to the last packet", "M22"),
    ("playing_rate", RATE, "flow", "Receiver rate once the buffer is full", "M22"),
    ("playing_loss", PERCENT, "flow", "Loss once the buffer is full", "M22", "less"),
    ("buffering_rate", RATE, "flow", "Receiver rate while the buffer fills", "M14"),
    ("steady_rate", RATE, "flow", "Receiver rate once it has settled", "M14"),
    ("packet_rate", PACKET_RATE, "flow", "Packets sent", "M8"),
    ("receiver_packet_rate", PACKET_RATE, "flow", "Packets received", "M8"),
    ("packet_size", PACKET_SIZE, "flow", "Mean packet size", "M9"),
    ("rtt", TIME, "flow", "Round-trip time", "M10", "less"),
    ("path_delay", TIME, "flow", "One-way path delay", "M10", "less"),
    ("path_delay_p95", TIME, "flow", "95th percentile of the one-way path delay", "M10", "less"),
    ("cwnd", DATA, "flow", "Congestion window", ""),
    ("srtt", TIME, "flow", "Smoothed round-trip time of TCP", "M10", "less"),
    ("offered", RATE, "flow or stage", "Offered load at the bottleneck", "M23"),
    ("achieved", RATE, "flow or stage", "Achieved rate after the bottleneck", "M23", "more"),
    ("achieved_share", PERCENT, "flow or stage", "Achieved over offered", "M23", "more"),
    ("queue", DATA, "stage", "Queue depth", "M33"),
    ("queue_packets", PACKETS, "stage", "Queue depth", "M33"),
    ("queue_delay", TIME, "flow or stage", "Queueing delay", "M33", "less"),
    ("full_queue_delay", TIME, "stage", "Delay of a full queue", "M33"),
    ("sent", DATA, "flow", "Sent", "M7"),
    ("received", DATA, "flow", "Received", "M7", "more"),
    ("lost", DATA, "flow", "Lost", "M3", "less"),
    ("sent_packets", PACKETS, "flow", "Packets sent", "M8"),
    ("received_packets", PACKETS, "flow", "Packets received", "M8", "more"),
    ("lost_packets", PACKETS, "flow", "Packets lost", "M3", "less"),
    ("mark_rate", PERCENT, "flow or stage", "Packets marked CE", "M3"),
    ("marked_packets", PACKETS, "flow or stage", "Packets marked CE", "M3"),
    ("duplicate_packets", PACKETS, "flow", "Packets that arrived again", "M8"),
    ("corrupted_packets", PACKETS, "flow", "Packets that arrived corrupted", "M3"),
    ("fragment_packets", PACKETS, "flow", "Fragments that arrived", "M8"),
    ("retransmitted", PERCENT, "flow", "Retransmitted share of what was sent", "M2", "less"),
    ("unrepaired", PERCENT, "flow", "Payload that was sent and never received", "M4", "less"),
    ("packet_gap", TIME, "flow", "Gap between packets sent", "M24"),
    ("short_gaps", PERCENT, "flow", "Gaps between packets sent of at most 5 ms", "M24"),
    ("burst_spacing", TIME, "flow", "From one burst to the next", "M25"),
    ("burst_size", PACKETS, "flow", "Packets in a burst", "M25"),
    ("report_rate", PACKET_RATE, "flow", "RTCP from player to server", "M28"),
    ("up_throughput", RATE, "flow", "Offered from player to server", "M1"),
    ("start", TIME, "flow", "First packet", "M7"),
    ("end", TIME, "flow", "Last packet of its own", "M22"),
    ("max_min_share", PERCENT, "flow", "Share of its max-min fair allocation", "", "more"),
    ("frames_shown", NUMBER, "flow", "Frames shown", "", "more"),
    ("frames_lost", PERCENT, "flow", "Frames due but not shown", "", "less"),
    ("loss_after_repair", PERCENT, "flow", "Packets given up of those sent", "", "less"),
    ("discarded", PERCENT, "flow", "Packets that came too late of those received", "", "less"),
    ("freeze_count", NUMBER, "flow", "Freezes", "", "less"),
    ("freeze_time", TIME, "flow", "Time frozen", "", "less"),
    ("frozen_share", PERCENT, "flow", "Share of the session spent frozen", "", "less"),
    ("stall_count", NUMBER, "flow", "Stalls", "", "less"),
    ("stall_time", TIME, "flow", "Time stalled", "", "less"),
    ("rebuffer_ratio", PERCENT, "flow", "Share of the session spent stalled", "", "less"),
    ("startup_delay", TIME, "flow", "Startup delay", "", "less"),
    ("live_latency", TIME, "flow", "Behind live, were the clip sent live", "", "less"),
    ("level", RATE, "flow", "Bit rate of the level played", "", "more"),
    ("shown_level", RATE, "flow", "Bit rate of the media shown", "", "more"),
    ("lowest_level", RATE, "flow", "Lowest bit rate shown", "", "more"),
    ("clip_levels", NUMBER, "flow", "Levels that the clip has", "M17"),
    ("lowest_clip_level", RATE, "flow", "Lowest level of the clip, with its sound", "M17"),
    ("level_changes", NUMBER, "flow", "Changes of level", "", "less"),
    ("level_step", RATE, "flow", "Mean size of a change of level", "", "less"),
    ("instability", NUMBER, "flow", "Changes of level of late", "", "less"),
    ("qoe_lin", RATE, "flow", "QoE, linear, as a bit rate", "", "more"),
    ("qoe_log", NUMBER, "flow", "QoE, logarithmic", "", "more"),
    ("unfairness", NUMBER, "stage", "Unfairness among the levels of players", "", "less"),
    ("inefficiency", NUMBER, "stage", "Capacity that the levels of players miss", "", "less"),
    ("estimate", RATE, "flow", "Throughput as the player estimates it", ""),
    ("buffer", TIME, "flow", "Media buffered", "", "more"),
    ("completion_time", TIME, "flow", "Completion time of transfers", "", "less"),
    ("completion_time_p95", TIME, "flow", "95th percentile of completion times", "", "less"),
    ("transfers", NUMBER, "flow", "Transfers completed", "", "more"),
    ("transfers_failed", NUMBER, "flow", "Transfers that failed", "", "less"),
    ("rudp_cwnd", DATA, "flow", "Congestion window of Reliable UDP", ""),
    ("rudp_rto", TIME, "flow", "Retransmission timeout of Reliable UDP", ""),
    ("rudp_cut", NUMBER, "flow", "Window reductions of Reliable UDP", ""),
    ("rudp_retransmit", PACKETS, "flow", "Packets retransmitted by Reliable UDP", ""),
    ("rudp_expired", PACKETS, "flow", "Packets whose time was over before they were acknowledged", ""),
    ("rudp_given_up", PACKETS, "flow", "Packets held for lost and not repeated", ""),
    ("stale_drop", PACKETS, "flow", "Packets too late to be sent", "", "less"),
    ("overbuffer", TIME, "flow", "Sent ahead of its time", ""),
    ("thinning", NUMBER, "flow", "Thinning level", ""),
)
"""Every metric that `that:` and `figures:` may name, beside those of events (`named`)."""

_EVENT, _COUNT = "event.", "event_count."


def event_metric(event: str) -> str:
    """Returns the metric that is the mean of the values of the events of that name."""
    return _EVENT + event


def count_metric(event: str) -> str:
    """Returns the metric that is how many events of that name there were."""
    return _COUNT + event


def event_of(metric: str) -> str | None:
    """Returns the event that a metric is of; None if it is not of one."""
    for prefix in (_EVENT, _COUNT):
        if metric.startswith(prefix) and len(metric) > len(prefix):
            return metric.removeprefix(prefix)
    return None


def is_event(metric: str) -> bool:
    """Returns whether a metric is the mean of an event's values."""
    return metric.startswith(_EVENT)


def is_known(metric: str) -> bool:
    """Returns whether there is a metric of that name, for which any event will do."""
    return metric in METRICS or event_of(metric) is not None


def named(metric: str) -> MetricName:
    """Returns a metric by its name: one of `METRICS`, or that of an event.

    Raises:
        KeyError: if there is none.
    """
    return METRICS.get(metric) or _of_event(metric)


@cache
def _of_event(metric: str) -> MetricName:
    event = event_of(metric)
    if event is None:
        raise KeyError(metric)
    if is_event(metric):
        return MetricName(metric, UNTOLD, "flow", event, "")
    return MetricName(metric, NUMBER, "flow", f"{event}, how often", "")

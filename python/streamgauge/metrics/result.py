"""Result of measuring: every metric of every flow and stage, over time and over the window."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamgauge.claims.dimension import DATA, EVENT_UNITS, PACKETS, Dimension, json_value
from streamgauge.claims.names import METRICS, count_metric, event_metric, event_of, is_event, named
from streamgauge.metrics.frame import FlowInfo, MetricLayer, StageInfo
from streamgauge.metrics.grid import Floats, Grid
from streamgauge.systems.player_events import MEASURED

VERSION = 5
"""Raised when there are other metrics, or one has another value for the same record."""

NEVER_SAID = "never said"
"""Reason text for an event that is not in the record."""


@dataclass(frozen=True)
class Series:
    """A metric over the grid's samples, in canonical units (bit, s, packets, fractions).

    Over any stretch of samples its value is Σ `numerator` / Σ `denominator`: bits over seconds for a rate,
    bits over bits for a share, a sum over a count for a mean. Without a denominator it is a total. NaN means
    "nothing to measure". `low` and `high` are the extremes inside each sample, if it has any.
    """

    numerator: Floats
    denominator: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None

    def value(self, part: slice) -> float:
        """Returns the metric over a stretch of samples."""
        total = float(self.numerator[part].sum())
        if self.denominator is None:
            return total
        weight = float(self.denominator[part].sum())
        return total / weight if weight > 0 else float("nan")

    def samples(self) -> Floats:
        """Returns the metric in each sample of the grid."""
        if self.denominator is None:
            return self.numerator
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.denominator > 0, self.numerator / self.denominator, np.nan)

    def extreme(self, part: slice, *, highest: bool) -> float:
        """Returns the greatest or least value in a stretch, inside samples where known; NaN if there is
        none."""
        inside = self.high if highest else self.low
        values = (self.samples() if inside is None else inside)[part]
        values = values[np.isfinite(values)]
        if not len(values):
            return float("nan")
        return float(values.max() if highest else values.min())


@dataclass(frozen=True)
class Measured:
    """The metrics of one flow or stage: those with a course in time, and those of the window alone."""

    series: Mapping[str, Series]
    scalars: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class FlowMetrics(Measured):
    """One flow's metrics."""

    info: FlowInfo = field(kw_only=True)
    rtt_source: str | None = None
    """``probe``, ``event`` or ``path``: see `streamgauge.metrics.delay.round_trips`."""
    events: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Its events beside those from which metrics are made, by name: the units of their values, as records
    have them (`streamgauge.claims.dimension.EVENT_UNITS`). None for an event without values; an event in
    several units has no mean."""

    def dimension(self, metric: str) -> Dimension:
        """Returns a metric's dimension; for an event's mean that of the event's unit.

        Raises:
            KeyError: with the reason, if the event never had a value, or had several units.
        """
        if not is_event(metric):
            return named(metric).dimension
        units = self.events.get(str(event_of(metric)), ())
        if len(units) != 1:
            raise KeyError(self.lacks(metric))
        return EVENT_UNITS[units[0]][1]

    def lacks(self, metric: str) -> str:
        """Returns why there is no such metric of an event."""
        event, who = str(event_of(metric)), f"flow {self.info.name}"
        if event in MEASURED:
            return f"`{event}` is what {', '.join(MEASURED[event].feeds)} are made of: read these instead"
        if event not in self.events:
            close = difflib.get_close_matches(event, self.events, n=1)
            others = ", ".join(self.events) or "nothing of the kind"
            said = f"did you mean `{close[0]}`?" if close else f"it said {others}"
            return f"{who} {NEVER_SAID} `{event}` ({said})"
        if not self.events[event]:
            return f"{who} says `{event}` without a value: `count(event.{event}.{self.info.name})` counts it"
        return f"{who} says `{event}` in {' and in '.join(self.events[event])}, of which there is no mean"


@dataclass(frozen=True)
class StageMetrics(Measured):
    """One bottleneck's metrics."""

    info: StageInfo = field(kw_only=True)


@dataclass(frozen=True)
class TrialMetrics:
    """All metrics of one trial."""

    scenario: str
    mode: str
    seed: int
    valid: bool
    why: tuple[str, ...]
    layer: MetricLayer
    grid: Grid
    flows: Mapping[str, FlowMetrics]
    stages: Mapping[str, StageMetrics]
    jain: float
    """Average index on mean offered less mean loss rate; NaN with fewer than two flows."""
    jain_samples: Floats
    jain_flows: tuple[str, ...]
    version: int = VERSION
    """Version of their measurement (`VERSION`): results of an older one lack newer metrics."""

    def find(self, subject: str) -> Measured:
        """Returns a flow or a stage by name; a flow takes precedence.

        Raises:
            KeyError: with the existing names.
        """
        found = (
            self.flows.get(subject)
            or self.stages.get(subject)
            or self.stages.get(subject.removeprefix("down."))
        )
        if found is None:
            known = ", ".join([*self.flows, *self.stages])
            raise KeyError(f"{self.scenario} has no flow or stage {subject!r}; it has {known}")
        return found

    def series(self, metric: str, subject: str = "") -> Series:
        """Returns a metric over time.

        Raises:
            KeyError: if there is no such subject, or the subject has no such metric over time.
        """
        if metric == "jain":
            return Series(self.jain_samples, np.ones(len(self.grid)))
        measured = self.find(subject)
        if metric not in measured.series:
            if event_of(metric) is not None and isinstance(measured, FlowMetrics):
                raise KeyError(measured.lacks(metric) + self._too_old())
            kind = "only a value over the window" if metric in measured.scalars else "nothing to measure"
            raise KeyError(f"{metric}.{subject} has {kind} in {self.scenario}{self._too_old()}")
        return measured.series[metric]

    def _too_old(self) -> str:
        """Returns another possible reason for the missing metric."""
        if self.version >= VERSION:
            return ""
        return (
            f"; seed {self.seed} was measured by an older version, and its packets were not kept: run it in "
            "another folder"
        )

    def dimension(self, metric: str, subject: str = "") -> Dimension:
        """Returns the dimension of a metric's values; for an event's mean that of the event's unit.

        Raises:
            KeyError: if there is no such subject, or the event has no unit.
        """
        measured = self.find(subject) if is_event(metric) else None
        return measured.dimension(metric) if isinstance(measured, FlowMetrics) else named(metric).dimension

    def value(
        self, metric: str, subject: str = "", begin_s: float | None = None, end_s: float | None = None
    ) -> float:
        """Returns a metric over the measurement window, or a stretch of it, in canonical units; NaN if
        unmeasurable.

        Raises:
            KeyError: if there is no such flow, stage or metric.
            ValueError: if the stretch holds no sample.
        """
        whole = begin_s is None and end_s is None
        if metric == "jain":
            if whole:
                return self.jain
            found = self.jain_samples[self.grid.slice(begin_s, end_s)]
            return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")
        measured = self.find(subject)
        if whole and metric in measured.scalars:
            scalar = measured.scalars[metric]
            return float("nan") if scalar is None else scalar
        return self.series(metric, subject).value(self.grid.slice(begin_s, end_s))

    def flow_json(self, name: str) -> dict[str, Any]:
        """Returns one flow's metrics over the window, JSON-ready: null where there is nothing to measure."""
        flow = self.flows[name]
        found: dict[str, Any] = {}
        for key, (metric, how) in FLOW_KEYS.items():
            found[key] = self._number(metric, name, how)
        found["rtt_source"] = flow.rtt_source
        found["events"] = {event: self._event(name, event) for event in flow.events}
        return found

    def _event(self, flow: str, event: str) -> dict[str, Any]:
        """Returns a flow's own event: its count, and mean and extremes of its values in `unit`."""
        count = self.value(count_metric(event), flow)
        if (metric := event_metric(event)) not in self.flows[flow].series:
            return {"count": round(count)}
        series, part, dimension = self.series(metric, flow), self.grid.slice(), self.dimension(metric, flow)
        values = {
            "mean": series.value(part),
            "min": series.extreme(part, highest=False),
            "max": series.extreme(part, highest=True),
        }
        return {
            "count": round(count),
            **{
                key: json_value(value, dimension)[0] if np.isfinite(value) else None
                for key, value in values.items()
            },
            "unit": json_value(0.0, dimension)[1],
        }

    def stage_json(self, name: str) -> dict[str, Any]:
        """Returns one bottleneck's metrics over the window, JSON-ready."""
        return {key: self._number(metric, name, how) for key, (metric, how) in STAGE_KEYS.items()}

    def _number(self, metric: str, subject: str, how: str) -> float | None:
        measured = self.find(subject)
        if metric not in measured.series and metric not in measured.scalars:
            return None
        if how == "mean":
            value = self.value(metric, subject)
        else:
            part = self.grid.slice()
            value = self.series(metric, subject).extreme(part, highest=how == "max")
        if not np.isfinite(value):
            return None
        dimension = METRICS[metric].dimension
        number = json_value(value, dimension)[0]
        # Bytes and packets are counts: print them as whole numbers.
        counted = dimension in (DATA, PACKETS) or metric in _COUNTS
        return round(number) if counted and metric not in _MEANS else number

    def to_json(self) -> dict[str, Any]:
        """Everything over the window, JSON-ready; keys end in their unit."""
        return {
            "scenario": self.scenario,
            "mode": self.mode,
            "seed": self.seed,
            "valid": self.valid,
            "layer": self.layer,
            "window_s": [self.grid.begin_s, self.grid.end_s],
            "sample_s": self.grid.sample_s,
            "jain": self.jain if np.isfinite(self.jain) else None,
            "flows": {name: self.flow_json(name) for name in self.flows},
            "stages": {name: self.stage_json(name) for name in self.stages},
        }


_MEANS = frozenset({"queue", "queue_packets", "cwnd", "rudp_cwnd", "good_run", "bad_run", "burst_size"})
_COUNTS = frozenset(
    {"frames_shown", "freeze_count", "stall_count", "clip_levels", "level_changes", "rudp_cut"}
)

FLOW_KEYS: dict[str, tuple[str, str]] = {
    "throughput_bps": ("throughput", "mean"),
    "goodput_bps": ("goodput", "mean"),
    "sent_goodput_bps": ("sent_goodput", "mean"),
    "sent_loss_percent": ("sent_loss", "mean"),
    "sending_s": ("sending_time", "mean"),
    "sending_bps": ("sending_rate", "mean"),
    "transmission_s": ("transmission_time", "mean"),
    "loss_bps": ("loss_rate", "mean"),
    "loss_percent": ("loss", "mean"),
    "loss_event_percent": ("loss_event_rate", "mean"),
    "gap_percent": ("gap", "mean"),
    "sender_rate_bps": ("sender_rate", "mean"),
    "receiver_rate_bps": ("receiver_rate", "mean"),
    "rate_variation": ("rate_variation", "mean"),
    "buffering_start_s": ("buffering_start", "mean"),
    "buffering_end_s": ("buffering_end", "mean"),
    "filling_s": ("filling_time", "mean"),
    "filling_bps": ("filling_rate", "mean"),
    "filling_loss_percent": ("filling_loss", "mean"),
    "playing_s": ("playing_time", "mean"),
    "playing_bps": ("playing_rate", "mean"),
    "playing_loss_percent": ("playing_loss", "mean"),
    "buffering_bps": ("buffering_rate", "mean"),
    "steady_bps": ("steady_rate", "mean"),
    "sent_packets_per_s": ("packet_rate", "mean"),
    "received_packets_per_s": ("receiver_packet_rate", "mean"),
    "mean_packet_bytes": ("packet_size", "mean"),
    "rtt_mean_s": ("rtt", "mean"),
    "rtt_min_s": ("rtt", "min"),
    "rtt_max_s": ("rtt", "max"),
    "path_delay_mean_s": ("path_delay", "mean"),
    "path_delay_max_s": ("path_delay", "max"),
    "path_delay_p95_s": ("path_delay_p95", "mean"),
    "cwnd_mean_bytes": ("cwnd", "mean"),
    "cwnd_min_bytes": ("cwnd", "min"),
    "cwnd_max_bytes": ("cwnd", "max"),
    "srtt_mean_s": ("srtt", "mean"),
    "queue_delay_mean_s": ("queue_delay", "mean"),
    "queue_delay_max_s": ("queue_delay", "max"),
    "offered_bps": ("offered", "mean"),
    "achieved_bps": ("achieved", "mean"),
    "achieved_percent": ("achieved_share", "mean"),
    "sent_bytes": ("sent", "mean"),
    "received_bytes": ("received", "mean"),
    "lost_bytes": ("lost", "mean"),
    "sent_packets": ("sent_packets", "mean"),
    "received_packets": ("received_packets", "mean"),
    "lost_packets": ("lost_packets", "mean"),
    "mark_rate_percent": ("mark_rate", "mean"),
    "marked_packets": ("marked_packets", "mean"),
    "duplicate_packets": ("duplicate_packets", "mean"),
    "corrupted_packets": ("corrupted_packets", "mean"),
    "fragment_packets": ("fragment_packets", "mean"),
    "good_run_packets": ("good_run", "mean"),
    "bad_run_packets": ("bad_run", "mean"),
    "retransmitted_percent": ("retransmitted", "mean"),
    "packet_gap_mean_s": ("packet_gap", "mean"),
    "packet_gap_max_s": ("packet_gap", "max"),
    "short_gaps_percent": ("short_gaps", "mean"),
    "burst_spacing_mean_s": ("burst_spacing", "mean"),
    "burst_size_mean_packets": ("burst_size", "mean"),
    "burst_size_max_packets": ("burst_size", "max"),
    "reports_per_s": ("report_rate", "mean"),
    "up_throughput_bps": ("up_throughput", "mean"),
    "start_s": ("start", "mean"),
    "end_s": ("end", "mean"),
    "max_min_share_percent": ("max_min_share", "mean"),
    "frames_shown": ("frames_shown", "mean"),
    "frames_lost_percent": ("frames_lost", "mean"),
    "freeze_count": ("freeze_count", "mean"),
    "freeze_time_s": ("freeze_time", "mean"),
    "loss_after_repair_percent": ("loss_after_repair", "mean"),
    "discarded_percent": ("discarded", "mean"),
    "frozen_percent": ("frozen_share", "mean"),
    "stall_count": ("stall_count", "mean"),
    "stall_time_s": ("stall_time", "mean"),
    "rebuffer_percent": ("rebuffer_ratio", "mean"),
    "startup_delay_s": ("startup_delay", "mean"),
    "transfers": ("transfers", "mean"),
    "transfers_failed": ("transfers_failed", "mean"),
    "completion_time_mean_s": ("completion_time", "mean"),
    "completion_time_p95_s": ("completion_time_p95", "mean"),
    "live_latency_mean_s": ("live_latency", "mean"),
    "live_latency_max_s": ("live_latency", "max"),
    "level_mean_bps": ("level", "mean"),
    "lowest_level_bps": ("lowest_level", "mean"),
    "clip_levels": ("clip_levels", "mean"),
    "lowest_clip_level_bps": ("lowest_clip_level", "mean"),
    "level_changes": ("level_changes", "mean"),
    "level_step_bps": ("level_step", "mean"),
    "shown_level_bps": ("shown_level", "mean"),
    "instability": ("instability", "mean"),
    "qoe_lin_bps": ("qoe_lin", "mean"),
    "qoe_log": ("qoe_log", "mean"),
    "estimate_mean_bps": ("estimate", "mean"),
    "buffer_mean_s": ("buffer", "mean"),
    "buffer_min_s": ("buffer", "min"),
    "rudp_cwnd_mean_bytes": ("rudp_cwnd", "mean"),
    "rudp_cwnd_min_bytes": ("rudp_cwnd", "min"),
    "rudp_cwnd_max_bytes": ("rudp_cwnd", "max"),
    "rudp_rto_mean_s": ("rudp_rto", "mean"),
    "rudp_cuts": ("rudp_cut", "mean"),
    "rudp_retransmit_packets": ("rudp_retransmit", "mean"),
    "rudp_expired_packets": ("rudp_expired", "mean"),
    "rudp_given_up_packets": ("rudp_given_up", "mean"),
    "stale_drop_packets": ("stale_drop", "mean"),
    "overbuffer_mean_s": ("overbuffer", "mean"),
    "overbuffer_max_s": ("overbuffer", "max"),
    "thinning_mean": ("thinning", "mean"),
}
"""Key in JSON: (metric, its part)."""

STAGE_KEYS: dict[str, tuple[str, str]] = {
    "offered_bps": ("offered", "mean"),
    "achieved_bps": ("achieved", "mean"),
    "achieved_percent": ("achieved_share", "mean"),
    "queue_mean_bytes": ("queue", "mean"),
    "queue_max_bytes": ("queue", "max"),
    "queue_mean_packets": ("queue_packets", "mean"),
    "queue_max_packets": ("queue_packets", "max"),
    "queue_delay_mean_s": ("queue_delay", "mean"),
    "queue_delay_max_s": ("queue_delay", "max"),
    "full_queue_delay_s": ("full_queue_delay", "mean"),
    "mark_rate_percent": ("mark_rate", "mean"),
    "marked_packets": ("marked_packets", "mean"),
    "good_run_packets": ("good_run", "mean"),
    "bad_run_packets": ("bad_run", "mean"),
    "unfairness": ("unfairness", "mean"),
    "inefficiency": ("inefficiency", "mean"),
}
"""Key in JSON: (metric, its part)."""

"""Result of measuring: every metric of every flow and stage, over time and over the window."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from streamgauge.claims.declaration import Part, Subject
from streamgauge.claims.dimension import EVENT_UNITS, Dimension, json_value
from streamgauge.claims.names import METRICS, count_metric, event_metric, event_of, fed_by, is_event, named
from streamgauge.metrics.frame import FlowInfo, MetricLayer, StageInfo
from streamgauge.metrics.grid import Floats, Grid
from streamgauge.systems.player_events import MEASURED

VERSION = 5
"""Raised when there are other metrics, or one has another value for the same record."""


def measured_by() -> str:
    """Returns the version of the measurement, with the installed packages that bring metrics."""
    return " ".join([str(VERSION), *METRICS.packages()])


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
            return f"`{event}` is what {', '.join(fed_by(event))} are made of: read these instead"
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
    whole: Measured = field(default_factory=lambda: Measured({}))
    """Further metrics of the whole trial."""
    packages: tuple[str, ...] = ()
    """Other installed packages that brought metrics, with their versions."""
    version: int = VERSION
    """Version of their measurement (`VERSION`): results of an older one lack newer metrics."""

    def find(self, subject: str) -> Measured:
        """Returns a flow or a stage by name; a flow takes precedence. Without a name it is the trial.

        Raises:
            KeyError: with the existing names.
        """
        if not subject:
            return self.whole
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
        for key, (metric, how) in flow_keys().items():
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
        return {key: self._number(metric, name, how) for key, (metric, how) in stage_keys().items()}

    def whole_json(self) -> dict[str, Any]:
        """Returns further metrics of the whole trial over the window, JSON-ready."""
        return {
            key: self._number(one.name, "", part)
            for one in METRICS.values()
            if one.of == "trial" and one.name != "jain"
            for key, part in one.keys.items()
        }

    def _number(self, metric: str, subject: str, how: Part) -> float | None:
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
        number = json_value(value, METRICS[metric].dimension)[0]
        return round(number) if METRICS[metric].is_whole else number

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
            **self.whole_json(),
            "flows": {name: self.flow_json(name) for name in self.flows},
            "stages": {name: self.stage_json(name) for name in self.stages},
        }


@cache
def flow_keys() -> Mapping[str, tuple[str, Part]]:
    """Returns the keys of a flow's metrics in JSON: (metric, its part)."""
    return _keys("flow")


@cache
def stage_keys() -> Mapping[str, tuple[str, Part]]:
    """Returns the keys of a bottleneck's metrics in JSON: (metric, its part)."""
    return _keys("stage")


def _keys(of: Subject) -> Mapping[str, tuple[str, Part]]:
    return {
        key: (one.name, part) for one in METRICS.values() if of in one.of for key, part in one.keys.items()
    }

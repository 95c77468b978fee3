"""Metrics: functions of records. `docs/metrics.md` lists them with formula, unit and layer."""

from streamgauge.claims.names import METRICS, MetricName
from streamgauge.metrics.compute import compute
from streamgauge.metrics.fairness import harm, jain, max_min
from streamgauge.metrics.interval import Interval, interval
from streamgauge.metrics.result import FlowMetrics, StageMetrics, TrialMetrics

__all__ = [
    "METRICS",
    "FlowMetrics",
    "Interval",
    "MetricName",
    "StageMetrics",
    "TrialMetrics",
    "compute",
    "harm",
    "interval",
    "jain",
    "max_min",
]

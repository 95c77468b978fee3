"""Metrics: functions of records. `docs/metrics.md` lists them with formula, unit and layer.

An own metric of another package is made of these: `Metric` declares it, `Trial` and its flows are measured,
`Series` is a result over time (docs/extending.md).
"""

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.names import METRICS
from streamgauge.metrics.compute import compute
from streamgauge.metrics.fairness import harm, jain, max_min
from streamgauge.metrics.frame import StageInfo, Trial
from streamgauge.metrics.interval import Interval, interval
from streamgauge.metrics.result import FlowMetrics, Measured, Series, StageMetrics, TrialMetrics

__all__ = [
    "METRICS",
    "ComparedBy",
    "FlowMetrics",
    "Interval",
    "Margin",
    "Measured",
    "Metric",
    "Series",
    "StageInfo",
    "StageMetrics",
    "Trial",
    "TrialMetrics",
    "compute",
    "harm",
    "interval",
    "jain",
    "max_min",
]

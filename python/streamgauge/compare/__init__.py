"""Comparing: the best subject under congestion, by how much, with what confidence."""

from streamgauge.compare.answer import answered
from streamgauge.compare.comparison import ComparedRow, Comparison, DifferenceVerdict, SubjectTrials
from streamgauge.compare.judging import compare
from streamgauge.compare.metrics import COMPARED, ComparedMetric, Margin, MetricSide, take_from
from streamgauge.compare.words import say_difference, say_value, verdict_words

__all__ = [
    "COMPARED",
    "ComparedMetric",
    "ComparedRow",
    "Comparison",
    "DifferenceVerdict",
    "Margin",
    "MetricSide",
    "SubjectTrials",
    "answered",
    "compare",
    "say_difference",
    "say_value",
    "take_from",
    "verdict_words",
]

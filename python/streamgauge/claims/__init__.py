"""The language of claims: what a check's ``that:`` may say, of which metrics, in which units.

It judges nothing and reads no record, so that a scenario can hold claims: `streamgauge.checks` judges them,
`streamgauge.metrics` computes what they are about.
"""

from streamgauge.claims.expression import Expression, ExpressionError, parse, parse_value
from streamgauge.claims.names import METRICS, MetricName
from streamgauge.claims.syntax import call, jain, mean, metric, quantity

__all__ = [
    "METRICS",
    "Expression",
    "ExpressionError",
    "MetricName",
    "call",
    "jain",
    "mean",
    "metric",
    "parse",
    "parse_value",
    "quantity",
]

"""The language of claims: the grammar of a check's ``that:``, its metrics and its units.

It judges nothing and reads no record, and a scenario can therefore hold claims: `streamgauge.checks` judges
them, `streamgauge.metrics` computes their metrics.
"""

from streamgauge.claims.declaration import Metric
from streamgauge.claims.expression import Expression, ExpressionError, parse, parse_value
from streamgauge.claims.names import METRICS
from streamgauge.claims.syntax import call, jain, mean, metric, quantity

__all__ = [
    "METRICS",
    "Expression",
    "ExpressionError",
    "Metric",
    "call",
    "jain",
    "mean",
    "metric",
    "parse",
    "parse_value",
    "quantity",
]

"""Checks: predicates over metrics, with a verdict of pass, fail or inconclusive."""

from streamgauge.checks.expression import Expression, ExpressionError, parse
from streamgauge.checks.syntax import call, jain, mean, metric, quantity

__all__ = ["Expression", "ExpressionError", "call", "jain", "mean", "metric", "parse", "quantity"]

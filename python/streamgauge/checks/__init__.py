"""Checks: predicates over metrics, with a verdict of pass, fail or inconclusive."""

from streamgauge.checks.evaluate import InvalidTrial, evaluate, evaluate_all
from streamgauge.checks.readings import Leaves, Number, TrialReadings, leaves_of, take
from streamgauge.checks.result import CheckResult, Verdict
from streamgauge.claims.expression import Expression, ExpressionError, parse
from streamgauge.claims.syntax import call, jain, mean, metric, quantity

__all__ = [
    "CheckResult",
    "Expression",
    "ExpressionError",
    "InvalidTrial",
    "Leaves",
    "Number",
    "TrialReadings",
    "Verdict",
    "call",
    "evaluate",
    "evaluate_all",
    "jain",
    "leaves_of",
    "mean",
    "metric",
    "parse",
    "quantity",
    "take",
]

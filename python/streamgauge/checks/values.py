"""Values of an expression's terms in one repetition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamgauge.checks.syntax import Binary, Call, Negative, Quantity, Reference, Term
from streamgauge.checks.typing import ACROSS_TIME
from streamgauge.metrics.fairness import jain
from streamgauge.metrics.grid import Floats
from streamgauge.metrics.result import TrialMetrics

Repetition = Mapping[str, TrialMetrics]
"""The trial of each scenario that an expression reads; the key "" is the scenario that it stands in."""


class Unmeasurable(Exception):
    """A term has no value in this repetition; says why."""


def value_of(node: Term, repetition: Repetition) -> float:
    """A term's value in canonical units.

    Raises:
        Unmeasurable: if a flow, stage, metric or window has nothing to measure, or a division is by zero.
    """
    match node:
        case Quantity():
            return node.canonical
        case Reference():
            return _finite(node, _read(node, repetition))
        case Negative():
            return -value_of(node.operand, repetition)
        case Binary():
            left, right = value_of(node.left, repetition), value_of(node.right, repetition)
            if node.operator == "/" and right == 0:
                raise Unmeasurable(f"{node.right} is zero and {node} divides by it")
            return _apply(node.operator, left, right)
        case Call():
            if len(node.arguments) == 1 and node.function in ACROSS_TIME:
                return _over_time(node, repetition)
            return _across([value_of(argument, repetition) for argument in node.arguments], node)
    raise TypeError(f"{type(node).__name__} has no value")


def _trial(node: Reference, repetition: Repetition) -> TrialMetrics:
    return repetition[node.scenario]


def _read(
    node: Reference, repetition: Repetition, begin: float | None = None, end: float | None = None
) -> float:
    try:
        return _trial(node, repetition).value(node.metric, node.subject, begin, end)
    except (KeyError, ValueError) as error:
        raise Unmeasurable(str(error.args[0])) from None


def _finite(node: Term, value: float) -> float:
    if not np.isfinite(value):
        raise Unmeasurable(f"{node} has nothing to measure")
    return value


def _apply(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left / right


def _across(values: list[float], node: Call) -> float:
    match node.function:
        case "abs":
            return abs(values[0])
        case "sum":
            return float(np.sum(values))
        case "jain":
            if min(values) < 0:
                raise Unmeasurable(f"{node} has a negative argument")
            return _finite(node, jain(values))
        case "sd":
            return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        case "mean" | "min" | "max" | "median":
            return float(getattr(np, node.function)(values))
    raise TypeError(f"unknown function {node.function}")


def _over_time(node: Call, repetition: Repetition) -> float:
    begin = end = None
    if node.window is not None:
        begin, end = value_of(node.window.begin, repetition), value_of(node.window.end, repetition)
    argument = node.arguments[0]
    if isinstance(argument, Reference) and node.function in ("mean", "min", "max"):
        if node.function == "mean":
            return _finite(node, _read(argument, repetition, begin, end))
        trial = _trial(argument, repetition)
        try:
            series = trial.series(argument.metric, argument.subject)
            found = series.extreme(trial.grid.slice(begin, end), highest=node.function == "max")
        except (KeyError, ValueError) as error:
            raise Unmeasurable(str(error.args[0])) from None
        return _finite(node, found)
    scenarios = {part.scenario for part in argument.walk() if isinstance(part, Reference)}
    if len(scenarios) > 1:
        raise Unmeasurable(f"{node} mixes samples of different scenarios")
    grid = repetition[scenarios.pop()].grid
    try:
        part = grid.slice(begin, end)
    except ValueError as error:
        raise Unmeasurable(str(error)) from None
    samples = np.broadcast_to(_samples(argument, repetition), (len(grid),))[part]
    weights = grid.widths_s[part]
    known = np.isfinite(samples)
    samples, weights = samples[known], weights[known]
    if not len(samples):
        raise Unmeasurable(f"{node} has nothing to measure")
    match node.function:
        case "mean":
            return float(np.average(samples, weights=weights))
        case "sd":
            return float(np.std(samples, ddof=1)) if len(samples) > 1 else 0.0
        case function:
            return float(getattr(np, function)(samples))


def _samples(node: Term, repetition: Repetition) -> Floats:
    match node:
        case Quantity():
            return np.array(node.canonical)
        case Reference():
            try:
                return _trial(node, repetition).series(node.metric, node.subject).samples()
            except KeyError as error:
                raise Unmeasurable(str(error.args[0])) from None
        case Negative():
            return -_samples(node.operand, repetition)
        case Binary():
            left, right = _samples(node.left, repetition), _samples(node.right, repetition)
            match node.operator:
                case "+":
                    return np.asarray(left + right)
                case "-":
                    return np.asarray(left - right)
                case "*":
                    return np.asarray(left * right)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(left / right)
    raise TypeError(f"{type(node).__name__} has no samples")

"""Values of all trials together: of distributions, with what resamples of the trials make of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgauge.checks.values import Repetition, Unmeasurable, value_of
from streamgauge.claims.syntax import Binary, Call, Negative, Node, QuantityTerm, Term
from streamgauge.claims.typing import is_of_trials
from streamgauge.metrics import distributions
from streamgauge.metrics.grid import Floats
from streamgauge.metrics.interval import Interval

__all__ = ["has_trials", "over_trials", "spread"]


def has_trials(node: Node) -> bool:
    """Whether it is a value of all trials together, or a statement of such."""
    return any(is_of_trials(part) for part in node.walk())


def over_trials(node: Term, repetitions: Sequence[Repetition]) -> Floats:
    """A value of all trials, and after it that of each resample, [1 + resample], in canonical units. A trial
    in which one of its parts has nothing to measure is not among its trials.

    Raises:
        Unmeasurable: if no trial has a value, or the distribution lacks what is asked of it.
    """
    match node:
        case QuantityTerm():
            return np.full(1 + distributions.RESAMPLES, node.canonical)
        case Negative():
            return -over_trials(node.operand, repetitions)
        case Binary():
            left, right = over_trials(node.left, repetitions), over_trials(node.right, repetitions)
            with np.errstate(divide="ignore", invalid="ignore"):
                match node.operator:
                    case "+":
                        return np.asarray(left + right)
                    case "-":
                        return np.asarray(left - right)
                    case "*":
                        return np.asarray(left * right)
                return np.asarray(left / right)
        case Call():
            return _statistic(node, repetitions)
    raise TypeError(f"{type(node).__name__} is no value of all trials")


def spread(text: str, found: Floats, n: int) -> Interval:
    """A value with its interval by the resamples. Raises Unmeasurable where there is none."""
    try:
        return distributions.spread(found, n)
    except ValueError:
        raise Unmeasurable(f"{text} is not finite") from None


def _statistic(node: Call, repetitions: Sequence[Repetition]) -> Floats:
    arguments = node.arguments[:1] if node.function == "quantile" else node.arguments
    rows = []
    reason = ""
    for repetition in repetitions:
        try:
            rows.append([value_of(argument, repetition) for argument in arguments])
        except Unmeasurable as error:
            reason = reason or str(error)
            rows.append([float("nan")] * len(arguments))
    values = np.array(rows)
    known = ~np.isnan(values).any(axis=1)
    if not known.any():
        raise Unmeasurable(f"{node} has no trial with a value: {reason}")
    counts = distributions.resampled(len(repetitions))[:, known]
    # A resample without any trial that has a value says nothing.
    counts = np.where(counts.sum(axis=1, keepdims=True) > 0, counts, 1.0)
    columns = values[known].T
    if node.function == "quantile":
        try:
            return distributions.quantile(columns[0], value_of(node.arguments[1], {}), counts)
        except ValueError as error:
            raise Unmeasurable(f"{node}: {error}") from None
    x, y = np.concatenate(columns[::2]), np.concatenate(columns[1::2])
    match node.function:
        case "ks":
            return distributions.ks(x, y, counts)
    if not np.isfinite(values[known]).all():
        raise Unmeasurable(f"{node} is of values that are not finite")
    if node.function == "emd":
        return distributions.emd(x, y, counts)
    # Pairs after one another are of the same trials, which are drawn together.
    return distributions.correlation(x, y, np.tile(counts, len(arguments) // 2))

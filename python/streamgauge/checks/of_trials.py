"""Values of all trials together: of distributions, with what resamples of the trials make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from streamgauge.checks.values import Repetition, Unmeasurable, holds, value_of
from streamgauge.claims.syntax import Binary, Call, Negative, Node, QuantityTerm, Share, Term
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
        case Share():
            return _share(node, repetitions)
        case Call():
            return _statistic(node, repetitions)
    raise TypeError(f"{type(node).__name__} is no value of all trials")


def spread(text: str, found: Floats, n: int) -> Interval:
    """A value with its interval by the resamples. Raises Unmeasurable where there is none."""
    try:
        return distributions.spread(found, n)
    except ValueError:
        raise Unmeasurable(f"{text} is not finite") from None


def _known(
    node: Term, repetitions: Sequence[Repetition], read: Callable[[Repetition], Sequence[float]]
) -> tuple[Floats, Floats]:
    """What is read of each trial that has it, [trial, part], and how often it is in each resample."""
    rows: list[Sequence[float] | None] = []
    reason = ""
    for repetition in repetitions:
        try:
            rows.append(read(repetition))
        except Unmeasurable as error:
            reason = reason or str(error)
            rows.append(None)
    known = [row is not None for row in rows]
    if not any(known):
        raise Unmeasurable(f"{node} has no trial with a value: {reason}")
    counts = distributions.resampled(len(repetitions))[:, known]
    # A resample without any trial that has a value says nothing.
    counts = np.where(counts.sum(axis=1, keepdims=True) > 0, counts, 1.0)
    return np.array([row for row in rows if row is not None]), counts


def _share(node: Share, repetitions: Sequence[Repetition]) -> Floats:
    def read(repetition: Repetition) -> Sequence[float]:
        among = node.among is None or holds(node.among, repetition)
        return (float(among), float(among and holds(node.statement, repetition)))

    values, counts = _known(node, repetitions, read)
    among, true = (counts @ column for column in values.T)
    if not among[0]:
        raise Unmeasurable(f"{node} is of trials of which there is none")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(true / among)


def _statistic(node: Call, repetitions: Sequence[Repetition]) -> Floats:
    arguments = node.arguments[:1] if node.function == "quantile" else node.arguments

    def read(repetition: Repetition) -> Sequence[float]:
        return [value_of(argument, repetition) for argument in arguments]

    values, counts = _known(node, repetitions, read)
    columns = values.T
    if node.function == "quantile":
        try:
            return distributions.quantile(columns[0], value_of(node.arguments[1], {}), counts)
        except ValueError as error:
            raise Unmeasurable(f"{node}: {error}") from None
    x, y = np.concatenate(columns[::2]), np.concatenate(columns[1::2])
    match node.function:
        case "ks":
            return distributions.ks(x, y, counts)
    if not np.isfinite(values).all():
        raise Unmeasurable(f"{node} is of values that are not finite")
    if node.function == "emd":
        return distributions.emd(x, y, counts)
    # Pairs after one another are of the same trials, which are drawn together.
    return distributions.correlation(x, y, np.tile(counts, len(arguments) // 2))

"""Values of an expression's terms in one repetition.

A term is put together of *leaves*: a metric over the window, or a function over the time of one trial. Only
leaves look into a trial, and each into one, so that their numbers are all that a verdict needs of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from streamgauge.claims.dimension import EVENT_UNITS
from streamgauge.claims.names import count_metric, event_of, is_event
from streamgauge.claims.syntax import (
    Binary,
    Call,
    Chain,
    First,
    Fraction,
    Logical,
    Negation,
    Negative,
    Node,
    Predicate,
    QuantityTerm,
    Reference,
    Relation,
    Term,
    Window,
)
from streamgauge.claims.typing import ACROSS_TIME, more_is_better
from streamgauge.metrics.fairness import harm, jain, spearman
from streamgauge.metrics.friendly import tcp_rate, tfrc_rate
from streamgauge.metrics.grid import Floats, Grid
from streamgauge.metrics.result import Series, TrialMetrics

_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip

COUNT, _UNIT = "count", "unit"
"""Functions of events. The second cannot be written: a verdict asks for it itself."""

DIMENSIONS = tuple(dict.fromkeys(dimension for _, dimension in EVENT_UNITS.values()))
"""Dimensions of events' values. Readings contain a place in it: new ones must be last."""


class Unmeasurable(Exception):
    """A term has no value in this repetition; the text is the reason."""


class Read(Protocol):
    """A trial with leaves that have been read."""

    @property
    def seed(self) -> int: ...

    def reading(self, leaf: Term) -> float:
        """Returns a leaf's value; the leaf is `bare`. Raises Unmeasurable if it has none."""
        ...


Repetition = Mapping[str, TrialMetrics | Read]
"""Trial of each scenario that an expression reads; the key "" is the scenario of the expression."""


def leaves(node: Node) -> Iterator[tuple[str, Term]]:
    """Yields the leaves of an expression, `bare`, each with the scenario of its trial: "" is that of the
    expression. Leaves over several trials, which have no value, are left out."""
    if isinstance(node, Term) and (isinstance(node, Reference) or _is_over_time(node)):
        scenarios = _scenarios(node)
        if len(scenarios) == 1:
            (scenario,) = scenarios
            yield scenario, bare(node)
            # A verdict needs this about an event beside its value.
            yield from ((scenario, unit_leaf(event)) for event in events_of(node))
        if not isinstance(node, Call) or len(node.arguments) == 1:
            return
        # The subject of a peak is reported beside it.
    for child in node.children():
        yield from leaves(child)


def events_of(node: Node) -> list[Reference]:
    """Returns the events with values that it reads, in order, each once; those that it only counts are left
    out."""
    if isinstance(node, Call) and node.function == COUNT:
        return [] if node.window is None else events_of(node.window)
    if isinstance(node, Reference):
        return [node] if is_event(node.metric) else []
    found = (event for child in node.children() for event in events_of(child))
    return list(dict.fromkeys(found))


def unit_leaf(event: Reference) -> Term:
    """Returns the leaf that has the dimension of an event's values, as its place in `DIMENSIONS`."""
    return Call(_UNIT, (bare(event),))


def bare(node: Term) -> Term:
    """Returns a leaf as its own scenario would write it: without the scenario's name."""
    found = _bare(node)
    assert isinstance(found, Term)
    return found


def _bare(node: Node) -> Node:
    match node:
        case Reference():
            return replace(node, scenario="")
        case Negative():
            return replace(node, operand=bare(node.operand))
        case Binary():
            return replace(node, left=bare(node.left), right=bare(node.right))
        case Window():
            return replace(node, begin=bare(node.begin), end=bare(node.end))
        case Call():
            return replace(node, arguments=tuple(map(bare, node.arguments)), window=_bare_window(node.window))
        case First():
            said = node.statement
            statement = replace(said, left=bare(said.left), right=bare(said.right))
            return replace(node, statement=statement, window=_bare_window(node.window))
    return node


def _bare_window(window: Window | None) -> Window | None:
    return None if window is None else Window(bare(window.begin), bare(window.end))


def is_count(node: Node) -> bool:
    """Returns whether it is the number of an event."""
    if isinstance(node, Reference):
        return event_of(node.metric) is not None and not is_event(node.metric)
    return isinstance(node, Call) and node.function == COUNT


def _is_over_time(node: Node) -> bool:
    if not isinstance(node, Call):
        return isinstance(node, First)
    return node.function in ("peak", COUNT) or (len(node.arguments) == 1 and node.function in ACROSS_TIME)


def _scenarios(node: Node) -> set[str]:
    return {part.scenario for part in node.walk() if isinstance(part, Reference)}


def measured(leaf: Term, trial: TrialMetrics) -> float:
    """Returns a leaf's value in a trial, in canonical units; the leaf is `bare`.

    Raises:
        Unmeasurable: if a flow, stage, metric or window has nothing to measure.
    """
    match leaf:
        case Reference():
            return _finite(leaf, _read(leaf, trial))
        case Call() if leaf.function == "peak":
            return _peak(leaf, trial)
        case Call() if leaf.function == COUNT:
            return _count(leaf, trial)
        case Call() if leaf.function == _UNIT:
            return _unit(leaf, trial)
        case First():
            return _first(leaf, trial)
        case Call():
            return _over_time(leaf, trial)
    raise TypeError(f"{type(leaf).__name__} is no leaf")


def reading(leaf: Term, trial: TrialMetrics | Read) -> float:
    """Returns a leaf's value in a trial, in canonical units; the leaf is `bare`. Raises Unmeasurable."""
    return measured(leaf, trial) if isinstance(trial, TrialMetrics) else trial.reading(leaf)


def _reading(node: Term, repetition: Repetition) -> float:
    scenarios = _scenarios(node)
    if len(scenarios) > 1:
        raise Unmeasurable(f"{node} mixes samples of different scenarios")
    scenario = scenarios.pop() if scenarios else ""
    # One of its own scenario is bare.
    trial, leaf = repetition[scenario], bare(node) if scenario else node
    try:
        return reading(leaf, trial)
    except Unmeasurable as error:
        raise Unmeasurable(str(error).replace(str(leaf), str(node))) from None


def value_of(node: Term, repetition: Repetition) -> float:
    """Returns a term's value in canonical units.

    Raises:
        Unmeasurable: if a flow, stage, metric or window has nothing to measure, or a division is by zero.
    """
    match node:
        case QuantityTerm():
            return node.canonical
        case Reference():
            return _reading(node, repetition)
        case Negative():
            return -value_of(node.operand, repetition)
        case Binary():
            left, right = value_of(node.left, repetition), value_of(node.right, repetition)
            if node.operator == "/" and right == 0:
                raise Unmeasurable(f"{node.right} is zero and {node} divides by it")
            return float(apply(node.operator, left, right))
        case Call():
            if _is_over_time(node):
                return _reading(node, repetition)
            return _across([value_of(argument, repetition) for argument in node.arguments], node)
        case First():
            return _reading(node, repetition)
        case Fraction():
            return float(np.mean([holds(statement, repetition) for statement in node.statements]))
    raise TypeError(f"{type(node).__name__} has no value")


def holds(node: Predicate, repetition: Repetition) -> bool:
    """Returns whether a statement is true of one repetition, by its values as they are.

    Raises:
        Unmeasurable: as `value_of`.
    """
    match node:
        case Relation():
            left, right = value_of(node.left, repetition), value_of(node.right, repetition)
            within = 0.0
            if node.within is not None:
                size = node.within.canonical
                within = abs(right) * size if node.within.unit == "%" else size
            match node.operator:
                case ">=":
                    return left >= right
                case ">":
                    return left > right
                case "<=":
                    return left <= right
                case "<":
                    return left < right
            return (abs(left - right) <= within) is (node.operator == "==")
        case Chain():
            return all(holds(link, repetition) for link in node.links)
        case Negation():
            return not holds(node.operand, repetition)
        case Logical():
            left_holds, right_holds = holds(node.left, repetition), holds(node.right, repetition)
            return left_holds and right_holds if node.operator == "and" else left_holds or right_holds
    raise TypeError(f"{type(node).__name__} is no predicate")


def _read(
    node: Reference, trial: TrialMetrics, begin: float | None = None, end: float | None = None
) -> float:
    try:
        return trial.value(node.metric, node.subject, begin, end)
    except (KeyError, ValueError) as error:
        raise Unmeasurable(str(error.args[0])) from None


def _finite(node: Term, value: float) -> float:
    if not np.isfinite(value):
        raise Unmeasurable(f"{node} has nothing to measure")
    return value


def apply(operator: str, left: Any, right: Any) -> Any:
    """Returns ``+ - * /`` of two values, or of arrays of them."""
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
        case "spearman":
            return _finite(node, spearman(values))
        case "harm":
            alone, beside = values
            return _finite(node, harm(alone, beside, more_is_better=more_is_better(node)))
        case "tcp_rate" | "tfrc_rate":
            try:
                return (tcp_rate if node.function == "tcp_rate" else tfrc_rate)(*values)
            except ValueError as error:
                raise Unmeasurable(f"{node}: {error}") from None
        case "sd":
            return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        case "mean" | "min" | "max" | "median":
            return float(getattr(np, node.function)(values))
    raise TypeError(f"unknown function {node.function}")


def _over_time(node: Call, trial: TrialMetrics) -> float:
    argument = node.arguments[0]
    # The index of means, which `jain` alone is, is not the mean of the index.
    own = isinstance(argument, Reference) and (node.function, argument.metric) != ("mean", "jain")
    if isinstance(argument, Reference) and own and node.function in ("mean", "min", "max"):
        begin, end = _bounds(node.window, trial)
        if node.function == "mean":
            return _finite(node, _read(argument, trial, begin, end))
        try:
            series = trial.series(argument.metric, argument.subject)
            found = series.extreme(trial.grid.slice(begin, end), highest=node.function == "max")
        except (KeyError, ValueError) as error:
            raise Unmeasurable(str(error.args[0])) from None
        return _finite(node, found)
    grid, part = _stretch(node.window, trial)
    samples = np.broadcast_to(_samples(argument, trial), (len(grid),))[part]
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


def _first(node: First, trial: TrialMetrics) -> float:
    """Returns when the first sample begins in which it holds; infinite if it does in none."""
    grid, part = _stretch(node.window, trial)
    said = node.statement
    left, right = (
        np.broadcast_to(_samples(side, trial), (len(grid),))[part] for side in (said.left, said.right)
    )
    with np.errstate(invalid="ignore"):
        found = np.flatnonzero(_COMPARED[said.operator](left, right) & np.isfinite(left) & np.isfinite(right))
    return float(grid.starts_s[part][found[0]]) if len(found) else float("inf")


def _count(node: Call, trial: TrialMetrics) -> float:
    (event,) = node.arguments
    assert isinstance(event, Reference)
    counted = replace(event, metric=count_metric(str(event_of(event.metric))))
    return _finite(node, _read(counted, trial, *_bounds(node.window, trial)))


def _unit(node: Call, trial: TrialMetrics) -> float:
    (event,) = node.arguments
    assert isinstance(event, Reference)
    try:
        return float(DIMENSIONS.index(trial.dimension(event.metric, event.subject)))
    except KeyError as error:
        raise Unmeasurable(str(error.args[0])) from None


def _bounds(window: Window | None, trial: TrialMetrics) -> tuple[float | None, float | None]:
    if window is None:
        return None, None
    return value_of(window.begin, {"": trial}), value_of(window.end, {"": trial})


def _stretch(window: Window | None, trial: TrialMetrics) -> tuple[Grid, slice]:
    """Returns the samples that a function over time looks at."""
    begin, end = _bounds(window, trial)
    grid = trial.grid
    try:
        return grid, grid.slice(begin, end)
    except ValueError as error:
        raise Unmeasurable(str(error)) from None


def _peak(node: Call, trial: TrialMetrics) -> float:
    """Returns the highest mean over consecutive samples of the requested length."""
    argument, length = node.arguments
    grid, part = _stretch(node.window, trial)
    count = max(1, round(value_of(length, {"": trial}) / grid.sample_s))
    if isinstance(argument, Reference):
        try:
            series = trial.series(argument.metric, argument.subject)
        except KeyError as error:
            raise Unmeasurable(str(error.args[0])) from None
    else:
        samples = np.broadcast_to(_samples(argument, trial), (len(grid),))
        known = np.isfinite(samples)
        series = Series(np.where(known, samples, 0.0) * grid.widths_s, known * grid.widths_s)
    totals = _running(series.numerator[part], count)
    lengths = (
        np.ones(len(totals)) if series.denominator is None else _running(series.denominator[part], count)
    )
    if not (lengths > 0).any():
        raise Unmeasurable(f"{node} has nothing to measure")
    return float((totals[lengths > 0] / lengths[lengths > 0]).max())


def _running(values: Floats, count: int) -> Floats:
    """Sums over each `count` values in a row; of none if there are fewer."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(sums[count:] - sums[:-count])


def _samples(node: Term, trial: TrialMetrics) -> Floats:
    match node:
        case QuantityTerm():
            return np.array(node.canonical)
        case Reference():
            try:
                return trial.series(node.metric, node.subject).samples()
            except KeyError as error:
                raise Unmeasurable(str(error.args[0])) from None
        case Negative():
            return -_samples(node.operand, trial)
        case Binary():
            left, right = _samples(node.left, trial), _samples(node.right, trial)
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

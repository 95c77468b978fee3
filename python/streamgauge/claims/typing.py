"""Dimensions of expressions: valid sums and comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamgauge.claims.dimension import DATA, NUMBER, PACKET_SIZE, PERCENT, RATE, TIME, Dimension
from streamgauge.claims.names import is_event, named
from streamgauge.claims.syntax import (
    Binary,
    Call,
    First,
    Fraction,
    Negative,
    Node,
    QuantityTerm,
    Reference,
    Relation,
    Share,
    Term,
    Window,
)

ACROSS_TIME = frozenset({"mean", "min", "max", "median", "sd"})
"""Functions that, given one metric, work over its samples."""

PLAIN = frozenset({"jain", "spearman", "harm", "count", "correlation", "ks"})
"""Functions with a plain number as their value, for any argument."""

OF_TRIALS = frozenset({"correlation", "quantile", "ks", "emd"})
"""Functions of all trials together: of their distribution. `Share` is another."""

OF_A_PATH = frozenset({"tcp_rate", "tfrc_rate"})
"""Rates that equations give of a packet's size, a round trip and a share of losses."""

Told = Mapping[Reference, Dimension]
"""The dimensions of events, by their references; those that are not in it are not known yet."""
_NOTHING: Told = {}


class Unlike(Exception):
    """Quantities of unlike dimensions meet at `node`."""

    def __init__(self, message: str, node: Node, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.hint = hint


def is_signed(node: Term) -> bool:
    """Returns whether a value can be below zero, according to its parts."""
    match node:
        case Reference():
            return named(node.metric).signed
        case QuantityTerm():
            return node.value < 0
        case Binary() if node.operator != "-":
            return is_signed(node.left) or is_signed(node.right)
        case Call() if node.function in ("sd", "abs", "jain", "count", "ks", "emd") or is_of_a_path(node):
            return False
        case Call() if node.function not in ("harm", "spearman", "correlation"):
            return any(is_signed(argument) for argument in node.arguments)
        case Fraction() | First() | Share():
            return False
    return True


def is_of_trials(node: Node) -> bool:
    """Returns whether it is a function of all trials together."""
    return isinstance(node, Share) or (isinstance(node, Call) and node.function in OF_TRIALS)


def is_of_a_path(node: Node) -> bool:
    """Returns whether it is a rate that an equation gives of a path."""
    return isinstance(node, Call) and node.function in OF_A_PATH


def check(root: Node, told: Told = _NOTHING) -> None:
    """Checks that every comparison is of like quantities.

    Raises:
        Unlike: at the first that is not.
    """
    for node in root.walk():
        if isinstance(node, Share):
            inner = [part for side in node.children() for part in side.walk() if is_of_trials(part)]
            if inner:
                raise Unlike("a function of all trials is of what each has", inner[0])
        if isinstance(node, Relation):
            _check_trials(node)
            left, right = dimension_of(node.left, told), dimension_of(node.right, told)
            if not (_fit(left, right) or _is_zero(node.left) or _is_zero(node.right)):
                hint = "a percentage is written with %" if PERCENT in (left, right) else None
                raise Unlike(f"{left} cannot be compared with {right}", node.right, hint)
            if node.within is not None and node.within.unit != "%":
                within = node.within.dimension
                if not _fit(within, right):
                    raise Unlike(f"a tolerance of {within} does not fit {right}", node.within)


def _check_trials(node: Relation) -> None:
    """A statement about all trials has nothing that each trial has a value of."""
    if not any(is_of_trials(part) for part in node.walk()):
        return
    for side in (node.left, node.right):
        for part in _each_has(side):
            raise Unlike(
                f"`{part}` has a value in each trial, the other side one of all trials",
                part,
                f"such as quantile({part}, 50 %)",
            )


def _each_has(node: Node) -> Iterator[Node]:
    """Yields the parts with a value in each trial, outside functions of all trials."""
    if isinstance(node, Reference | Fraction | First) or (isinstance(node, Call) and not is_of_trials(node)):
        if any(is_of_trials(part) for part in node.walk()):
            raise Unlike("a function of all trials stands for itself, in no other", node)
        if any(isinstance(part, Reference) for part in node.walk()):
            yield node
    elif isinstance(node, Share):
        return
    elif isinstance(node, Call):
        inner = [part for argument in node.arguments for part in argument.walk() if is_of_trials(part)]
        if inner:
            raise Unlike("a function of all trials is of what each has", inner[0])
    else:
        for child in node.children():
            yield from _each_has(child)


def _fit(one: Dimension, other: Dimension) -> bool:
    return one == other or one.untold or other.untold


def _is_zero(node: Term) -> bool:
    return isinstance(node, QuantityTerm) and node.value == 0 and not node.unit


def dimension_of(node: Term, told: Told = _NOTHING) -> Dimension:
    """Returns the dimension of a value.

    Args:
        node: the value.
        told: the dimensions of the events that it reads, as far as they are known.

    Raises:
        Unlike: where unlike quantities are added, or a window is not a time.
    """
    match node:
        case QuantityTerm():
            return node.dimension
        case Reference():
            return told.get(node) or named(node.metric).dimension
        case Negative():
            return dimension_of(node.operand, told)
        case Binary():
            left, right = dimension_of(node.left, told), dimension_of(node.right, told)
            if node.operator == "*":
                return left * right
            if node.operator == "/":
                return left / right
            return _common(
                left, right, node.left, node.right, "added to" if node.operator == "+" else "taken from"
            )
        case Call():
            return _of_call(node, told)
        case Fraction() | Share():
            return PERCENT
        case First():
            if node.window is not None:
                _check_window(node.window, told)
            return TIME
    raise TypeError(f"{type(node).__name__} has no dimension")


def _of_call(node: Call, told: Told) -> Dimension:
    first = dimension_of(node.arguments[0], told)
    if node.window is not None:
        _check_window(node.window, told)
    if is_of_a_path(node):
        _check_path(node, told)
        return RATE
    if node.function == "correlation":
        return _of_pairs(node, told)
    if node.function == "quantile":
        at = node.arguments[1]
        if not isinstance(at, QuantityTerm) or at.dimension != PERCENT or not 0 < at.canonical <= 1:
            why = "a quantile is at a percentage, above 0 and at most 100 %"
            raise Unlike(why, at, "such as quantile(loss.a, 80 %)")
        return first
    if node.function == "peak":
        _require_time("a peak is over some time", "peak(throughput.a, 2 s)", told, node.arguments[1])
        return first
    if node.function == "harm":
        more_is_better(node)
    if node.function == "count":
        _require_event(node.arguments[0])
    for argument in node.arguments[1:]:
        other = _common(first, dimension_of(argument, told), node.arguments[0], argument, "put together with")
        first = other if first.untold else first
    return NUMBER if node.function in PLAIN else first


def _check_window(window: Window, told: Told) -> None:
    _require_time("a window is two times", "10 s to 20 s", told, window.begin, window.end)


def _check_path(node: Call, told: Told) -> None:
    wanted = (
        ((DATA, PACKET_SIZE), "a packet's size"),
        ((TIME,), "a time"),
        ((PERCENT,), "a share of losses"),
    )
    for argument, (dimensions, what) in zip(node.arguments, wanted, strict=True):
        found = dimension_of(argument, told)
        if not any(_fit(found, one) for one in dimensions):
            raise Unlike(
                f"{what} stands here, not {found}", argument, f"{node.function}(1500 B, rtt.a, loss.a)"
            )


def _of_pairs(node: Call, told: Told) -> Dimension:
    """Pairs in a row are one cloud: their firsts are alike, and so are their seconds."""
    if len(node.arguments) % 2:
        raise Unlike("a correlation is of pairs", node, "such as correlation(goodput.a, rtt.a)")
    for begin in (0, 1):
        first, *others = node.arguments[begin::2]
        for other in others:
            _common(dimension_of(first, told), dimension_of(other, told), first, other, "put together with")
    return NUMBER


def _require_event(node: Term) -> None:
    if not (isinstance(node, Reference) and is_event(node.metric)):
        hint = "such as count(event.rebuffer.a)"
        if isinstance(node, Reference):
            hint += f"; `{node}` is a number already"
        raise Unlike("only events can be counted", node, hint)


def more_is_better(node: Call) -> bool:
    """Returns whether more of the metric of a ``harm`` is better.

    Raises:
        Unlike: if that is unknown, or differs between both.
    """
    references = [part for part in node.walk() if isinstance(part, Reference)]
    metrics = {part.metric: part for part in reversed(references)}
    better = {named(name).better for name in metrics}
    if len(better) == 1 and better != {""}:
        return better == {"more"}
    hint = "such as harm(goodput.a of my/alone, goodput.a)"
    for name, part in metrics.items():
        if not named(name).better:
            raise Unlike(f"neither more nor less of `{name}` is better, so nothing harms it", part, hint)
    raise Unlike("harm compares one metric of a flow alone with the same beside others", node, hint)


def _require_time(what: str, example: str, told: Told, *bounds: Term) -> None:
    for bound in bounds:
        found = dimension_of(bound, told)
        if not _fit(found, TIME) and not (isinstance(bound, QuantityTerm) and bound.value == 0):
            raise Unlike(f"{what}, not {found}", bound, f"such as {example}")


def _common(left: Dimension, right: Dimension, a: Term, b: Term, doing: str) -> Dimension:
    if _fit(left, right):
        return right if left.untold else left
    for zero, other in ((a, right), (b, left)):
        if _is_zero(zero):
            return other
    hint = "a percentage is written with %" if PERCENT in (left, right) else None
    raise Unlike(f"{right} cannot be {doing} {left}", b, hint)

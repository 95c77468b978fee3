"""Dimensions of expressions: what may be added to and compared with what."""

from __future__ import annotations

from streamgauge.claims.dimension import NUMBER, PERCENT, TIME, Dimension
from streamgauge.claims.names import METRICS
from streamgauge.claims.syntax import Binary, Call, Fraction, Negative, Node, QuantityTerm, Reference, Term

ACROSS_TIME = frozenset({"mean", "min", "max", "median", "sd"})
"""Functions that, given one metric, work over its samples."""

FUNCTIONS: dict[str, tuple[int, int]] = {
    "mean": (1, 99),
    "min": (1, 99),
    "max": (1, 99),
    "median": (1, 99),
    "sd": (1, 99),
    "sum": (2, 99),
    "abs": (1, 1),
    "jain": (2, 99),
    "spearman": (2, 99),
    "peak": (2, 2),
    "harm": (2, 2),
    "fraction": (1, 99),
}
"""Every function with the least and the most arguments it takes."""

PLAIN = frozenset({"jain", "spearman", "harm"})
"""Functions whose value is a plain number, whatever they are of."""


class Unlike(Exception):
    """Quantities of unlike dimensions meet at `node`."""

    def __init__(self, message: str, node: Node, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.hint = hint


def is_signed(node: Term) -> bool:
    """Whether a value can be below zero, as far as its parts tell."""
    match node:
        case Reference():
            return METRICS[node.metric].signed
        case QuantityTerm():
            return node.value < 0
        case Binary() if node.operator != "-":
            return is_signed(node.left) or is_signed(node.right)
        case Call() if node.function in ("sd", "abs", "jain"):
            return False
        case Call() if node.function not in ("harm", "spearman"):
            return any(is_signed(argument) for argument in node.arguments)
        case Fraction():
            return False
    return True


def dimension_of(node: Term) -> Dimension:
    """The dimension of a value.

    Raises:
        Unlike: where unlike quantities are added, or a window is not a time.
    """
    match node:
        case QuantityTerm():
            return node.dimension
        case Reference():
            return METRICS[node.metric].dimension
        case Negative():
            return dimension_of(node.operand)
        case Binary():
            left, right = dimension_of(node.left), dimension_of(node.right)
            if node.operator == "*":
                return left * right
            if node.operator == "/":
                return left / right
            return _common(
                left, right, node.left, node.right, "added to" if node.operator == "+" else "taken from"
            )
        case Call():
            return _of_call(node)
        case Fraction():
            return PERCENT
    raise TypeError(f"{type(node).__name__} has no dimension")


def _of_call(node: Call) -> Dimension:
    first = dimension_of(node.arguments[0])
    if node.window is not None:
        _require_time("a window is two times", "10 s to 20 s", node.window.begin, node.window.end)
    if node.function == "peak":
        _require_time("a peak is over some time", "peak(throughput.a, 2 s)", node.arguments[1])
        return first
    if node.function == "harm":
        more_is_better(node)
    for argument in node.arguments[1:]:
        _common(first, dimension_of(argument), node.arguments[0], argument, "put together with")
    return NUMBER if node.function in PLAIN else first


def more_is_better(node: Call) -> bool:
    """Whether more of what a ``harm`` is of is better.

    Raises:
        Unlike: if that cannot be said, or not of both alike.
    """
    references = [part for part in node.walk() if isinstance(part, Reference)]
    metrics = {part.metric: part for part in reversed(references)}
    better = {METRICS[name].better for name in metrics}
    if len(better) == 1 and better != {""}:
        return better == {"more"}
    hint = "such as harm(goodput.a of my/alone, goodput.a)"
    for name, part in metrics.items():
        if not METRICS[name].better:
            raise Unlike(f"neither more nor less of `{name}` is better, so nothing harms it", part, hint)
    raise Unlike("harm compares one metric of a flow alone with the same beside others", node, hint)


def _require_time(what: str, example: str, *bounds: Term) -> None:
    for bound in bounds:
        found = dimension_of(bound)
        if found != TIME and not (isinstance(bound, QuantityTerm) and bound.value == 0):
            raise Unlike(f"{what}, not {found}", bound, f"such as {example}")


def _common(left: Dimension, right: Dimension, a: Term, b: Term, doing: str) -> Dimension:
    if left == right:
        return left
    for zero, other in ((a, right), (b, left)):
        if isinstance(zero, QuantityTerm) and zero.value == 0 and not zero.unit:
            return other
    hint = "a percentage is written with %" if PERCENT in (left, right) else None
    raise Unlike(f"{right} cannot be {doing} {left}", b, hint)

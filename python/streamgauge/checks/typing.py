"""Dimensions of expressions: what may be added to and compared with what."""

from __future__ import annotations

from streamgauge.checks.syntax import Binary, Call, Negative, Node, Quantity, Reference, Term, Window
from streamgauge.metrics.dimension import NUMBER, PERCENT, TIME, Dimension
from streamgauge.metrics.names import METRICS

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
}
"""Every function with the least and the most arguments it takes."""


class Unlike(Exception):
    """Quantities of unlike dimensions meet at `node`."""

    def __init__(self, message: str, node: Node, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.hint = hint


def dimension_of(node: Term) -> Dimension:
    """The dimension of a value.

    Raises:
        Unlike: where unlike quantities are added, or a window is not a time.
    """
    match node:
        case Quantity():
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
    raise TypeError(f"{type(node).__name__} has no dimension")


def _of_call(node: Call) -> Dimension:
    first = dimension_of(node.arguments[0])
    for argument in node.arguments[1:]:
        _common(first, dimension_of(argument), node.arguments[0], argument, "put together with")
    if node.window is not None:
        _require_time(node.window)
    return NUMBER if node.function == "jain" else first


def _require_time(window: Window) -> None:
    for bound in (window.begin, window.end):
        found = dimension_of(bound)
        if found != TIME and not (isinstance(bound, Quantity) and bound.value == 0):
            raise Unlike(f"a window is two times, not {found}", bound, "such as 10 s to 20 s")


def _common(left: Dimension, right: Dimension, a: Term, b: Term, doing: str) -> Dimension:
    if left == right:
        return left
    for zero, other in ((a, right), (b, left)):
        if isinstance(zero, Quantity) and zero.value == 0 and not zero.unit:
            return other
    hint = "a percentage is written with %" if PERCENT in (left, right) else None
    raise Unlike(f"{right} cannot be {doing} {left}", b, hint)

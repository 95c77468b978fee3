"""The tree behind a check: the result of parsing `that:`, and the nodes that Python code may build directly.

    >>> from streamgauge.claims import mean, metric
    >>> str(mean(metric("throughput", "qt")) >= 1.2 * mean(metric("throughput", "tcp")))
    'mean(throughput.qt) >= 1.2 * mean(throughput.tcp)'

`str` of a node is text that parses back to an equal node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from streamgauge.claims.dimension import NUMBER, UNITS, Dimension
from streamgauge.claims.names import event_of

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
RESERVED = frozenset({"and", "or", "not", "of", "to"})


@dataclass(frozen=True)
class Node:
    """A part of an expression. `column` (1-based, in the text) is for error messages alone."""

    column: int = field(default=1, compare=False, kw_only=True)

    def children(self) -> tuple[Node, ...]:
        """Returns its direct parts."""
        return ()

    def walk(self) -> Iterator[Node]:
        """Itself and everything below it."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True)
class Term(Node):
    """A part that has a value."""

    def __add__(self, other: Term | float) -> Term:
        return Binary("+", self, term(other))

    def __radd__(self, other: float) -> Term:
        return Binary("+", term(other), self)

    def __sub__(self, other: Term | float) -> Term:
        return Binary("-", self, term(other))

    def __rsub__(self, other: float) -> Term:
        return Binary("-", term(other), self)

    def __mul__(self, other: Term | float) -> Term:
        return Binary("*", self, term(other))

    def __rmul__(self, other: float) -> Term:
        return Binary("*", term(other), self)

    def __truediv__(self, other: Term | float) -> Term:
        return Binary("/", self, term(other))

    def __rtruediv__(self, other: float) -> Term:
        return Binary("/", term(other), self)

    def __neg__(self) -> Term:
        return Negative(self)

    def __le__(self, other: Term | float) -> Relation:
        return Relation(self, "<=", term(other))

    def __lt__(self, other: Term | float) -> Relation:
        return Relation(self, "<", term(other))

    def __ge__(self, other: Term | float) -> Relation:
        return Relation(self, ">=", term(other))

    def __gt__(self, other: Term | float) -> Relation:
        return Relation(self, ">", term(other))

    def equals(self, other: Term | float, *, within: QuantityTerm | None = None) -> Relation:
        """Returns ``self == other +- within``. A `within` in percent is relative to `other`."""
        return Relation(self, "==", term(other), within)


@dataclass(frozen=True)
class Predicate(Node):
    """A part that is true, false or undecided."""

    def __and__(self, other: Predicate) -> Predicate:
        return Logical("and", self, other)

    def __or__(self, other: Predicate) -> Predicate:
        return Logical("or", self, other)

    def __invert__(self) -> Predicate:
        return Negation(self)


@dataclass(frozen=True)
class QuantityTerm(Term):
    """A number with its unit as written; an empty unit is a plain number."""

    value: float
    unit: str = ""

    @property
    def dimension(self) -> Dimension:
        """Returns the kind of its quantity."""
        return UNITS[self.unit][1] if self.unit else NUMBER

    @property
    def canonical(self) -> float:
        """Returns its value in bits, seconds, packets or as a fraction."""
        return self.value * UNITS[self.unit][0] if self.unit else self.value

    def __str__(self) -> str:
        text = repr(self.value)
        text = text[:-2] if text.endswith(".0") else text
        return f"{text} {self.unit}" if self.unit else text


@dataclass(frozen=True)
class Reference(Term):
    """``metric.subject of scenario``: a metric of a flow or a stage, here or in another scenario.

    An empty `subject` means the whole trial (``jain``); an empty `scenario` this one.
    """

    metric: str
    subject: str = ""
    scenario: str = ""

    def __str__(self) -> str:
        text = self.metric
        if (event := event_of(self.metric)) is not None:
            text = f"{text.removesuffix(event)}{_quoted(event)}"
        if self.subject:
            text += f".{_quoted(self.subject)}"
        return f"{text} of {self.scenario}" if self.scenario else text


def _quoted(name: str) -> str:
    """Returns a name as an expression has it."""
    plain = _PLAIN_NAME.match(name) and name not in RESERVED
    return name if plain else f'"{name}"'


@dataclass(frozen=True)
class Window(Node):
    """``begin to end``, a stretch of trial time, [begin, end)."""

    begin: Term
    end: Term

    def children(self) -> tuple[Node, ...]:
        return (self.begin, self.end)

    def __str__(self) -> str:
        return f"{self.begin} to {self.end}"


@dataclass(frozen=True)
class Call(Term):
    """A function of values, or of one metric's samples over time, perhaps in a window."""

    function: str
    arguments: tuple[Term, ...]
    window: Window | None = None

    def children(self) -> tuple[Node, ...]:
        return (*self.arguments, *((self.window,) if self.window else ()))

    def __str__(self) -> str:
        parts = [str(part) for part in self.children()]
        return f"{self.function}({', '.join(parts)})"


@dataclass(frozen=True)
class Fraction(Term):
    """The share of some statements that hold in a repetition."""

    statements: tuple[Predicate, ...]

    def children(self) -> tuple[Node, ...]:
        return self.statements

    def __str__(self) -> str:
        return f"fraction({', '.join(str(statement) for statement in self.statements)})"


@dataclass(frozen=True)
class Share(Term):
    """The share of trials for which a statement is true, of all or of those for which another is."""

    statement: Predicate
    among: Predicate | None = None

    def children(self) -> tuple[Node, ...]:
        return (self.statement, *((self.among,) if self.among else ()))

    def __str__(self) -> str:
        return f"share({', '.join(str(part) for part in self.children())})"


@dataclass(frozen=True)
class First(Term):
    """When, in seconds of the trial, a comparison of samples first holds, perhaps in a window."""

    statement: Relation
    window: Window | None = None

    def children(self) -> tuple[Node, ...]:
        return (self.statement, *((self.window,) if self.window else ()))

    def __str__(self) -> str:
        return f"first({', '.join(str(part) for part in self.children())})"


@dataclass(frozen=True)
class Negative(Term):
    """Unary minus."""

    operand: Term

    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"-{_grouped(self.operand, 3)}"


@dataclass(frozen=True)
class Binary(Term):
    """``+ - * /`` of two values."""

    operator: str
    left: Term
    right: Term

    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        level = _level(self)
        return f"{_grouped(self.left, level)} {self.operator} {_grouped(self.right, level + 1)}"


@dataclass(frozen=True)
class Relation(Predicate):
    """Two values compared; `within` is the tolerance of ``==``, relative to `right` if in ``%``."""

    left: Term
    operator: str
    right: Term
    within: QuantityTerm | None = None

    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        text = f"{self.left} {self.operator} {self.right}"
        return text if self.within is None else f"{text} +- {self.within}"


@dataclass(frozen=True)
class Chain(Predicate):
    """``a <= b <= c``: every neighbouring pair compared."""

    links: tuple[Relation, ...]

    def children(self) -> tuple[Node, ...]:
        return self.links

    def __str__(self) -> str:
        return str(self.links[0]) + "".join(f" {link.operator} {link.right}" for link in self.links[1:])


@dataclass(frozen=True)
class Logical(Predicate):
    """``and`` or ``or`` of two predicates."""

    operator: str
    left: Predicate
    right: Predicate

    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        def grouped(part: Predicate, first: bool) -> str:
            inner = isinstance(part, Logical) and (not first or part.operator != self.operator)
            return f"({part})" if inner else str(part)

        return f"{grouped(self.left, True)} {self.operator} {grouped(self.right, False)}"


@dataclass(frozen=True)
class Negation(Predicate):
    """``not``."""

    operand: Predicate

    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        inner = str(self.operand)
        return f"not ({inner})" if not isinstance(self.operand, Negation) else f"not {inner}"


def _level(node: Term) -> int:
    if isinstance(node, Binary):
        return 1 if node.operator in "+-" else 2
    return 3 if isinstance(node, Negative) else 4


def _grouped(node: Term, at_least: int) -> str:
    return f"({node})" if _level(node) < at_least else str(node)


def term(value: Term | float) -> Term:
    """Returns a Python number as a term; a term as it is."""
    if isinstance(value, Term):
        return value
    return QuantityTerm(float(value)) if value >= 0 else Negative(QuantityTerm(-float(value)))


def metric(name: str, subject: str = "", *, scenario: str = "") -> Reference:
    """Returns a metric of a flow or stage: ``metric("throughput", "qt", scenario="darwin/2qt-const")``."""
    return Reference(name, subject, scenario)


def quantity(value: float, unit: str) -> QuantityTerm:
    """Returns a number with a unit: ``quantity(480, "kbit/s")``. Raises KeyError for an unknown unit."""
    if unit not in UNITS:
        raise KeyError(f"unknown unit {unit!r}; known units: {', '.join(UNITS)}")
    return QuantityTerm(float(value), unit)


def call(function: str, *arguments: Term | float, window: tuple[Term, Term] | None = None) -> Call:
    """Returns a function by name, for those that `mean` and its fellows below do not cover."""
    parts = tuple(term(argument) for argument in arguments)
    return Call(function, parts, None if window is None else Window(*window))


def mean(*arguments: Term | float, window: tuple[Term, Term] | None = None) -> Call:
    """Mean of one metric over time, or of several values."""
    return call("mean", *arguments, window=window)


def jain(*arguments: Term | float) -> Call:
    """Jain's index of several values."""
    return call("jain", *arguments)

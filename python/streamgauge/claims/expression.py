"""The language of `that:`: a small closed grammar, parsed by hand, never evaluated as Python.

::

    predicate  = conjunct { "or" conjunct }
    conjunct   = negation { "and" negation }
    negation   = "not" negation | comparison
    comparison = sum { ("<" | "<=" | ">" | ">=" | "==" | "!=") sum } [ ("+-" | "±") quantity ]
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/") factor }
    factor     = "-" factor | quantity | reference | call | "(" predicate-or-sum ")"
    quantity   = number [ unit ]
    reference  = metric [ "." subject ] [ "of" scenario ]
    metric     = name | ( "event" | "event_count" ) "." name
    call       = function "(" sum { "," sum } [ "," sum "to" sum ] ")"
               | "fraction" "(" predicate { "," predicate } ")"
               | "share" "(" predicate [ "," predicate ] ")"
               | "first" "(" comparison [ "," sum "to" sum ] ")"

Metrics are those of `streamgauge.claims.METRICS`, and of events under names of their own: ``event.NAME`` is
the mean of their values, in the unit of the trial, ``event_count.NAME`` their number. A function of one
metric works over time (its samples, in the measurement window or in the window given); of several values,
across them; ``share``, ``correlation``, ``quantile``, ``ks`` and ``emd`` across trials. Every quantity has a
dimension, and a comparison of unlike dimensions is refused here, before anything runs. After ``+-`` a
percentage is relative to the right-hand side, and ``pt`` means percentage points. A minus after a scenario's
id needs a space before it.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from streamgauge.claims.dimension import UNITS
from streamgauge.claims.functions import FUNCTIONS
from streamgauge.claims.names import METRICS, count_metric, event_metric, named
from streamgauge.claims.syntax import (
    RESERVED,
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
    Share,
    Term,
    Window,
)
from streamgauge.claims.typing import ACROSS_TIME, Unlike, check, dimension_of, is_of_trials
from streamgauge.errors import StreamGaugeError

_MOST_OPERATORS = 100
"""Arithmetic and logical ones of one expression."""


class ExpressionError(StreamGaugeError):
    """A check's text outside the grammar, or with an invalid comparison.

    `line` and `column` count from 1 within the text; `message` is the fault, `hint` the remedy.
    """

    def __init__(self, message: str, *, text: str, offset: int, hint: str | None = None) -> None:
        offset = min(max(offset, 0), len(text))
        self.message = message
        self.hint = hint
        self.line = text.count("\n", 0, offset) + 1
        self.column = offset - (text.rfind("\n", 0, offset) + 1) + 1
        super().__init__(
            f"line {self.line}, column {self.column}: {message}" + (f" ({hint})" if hint else "")
        )


@dataclass(frozen=True)
class Expression:
    """A parsed predicate with its source text."""

    text: str
    root: Predicate

    def references(self) -> tuple[Reference, ...]:
        """Returns every metric it reads, in order, each once."""
        return tuple(dict.fromkeys(node for node in self.root.walk() if isinstance(node, Reference)))

    def scenarios(self) -> frozenset[str]:
        """Ids of the other scenarios it reads."""
        return frozenset(reference.scenario for reference in self.references() if reference.scenario)

    def subjects(self) -> frozenset[str]:
        """Names of this scenario's flows and stages that it reads."""
        mine = (reference for reference in self.references() if not reference.scenario)
        return frozenset(reference.subject for reference in mine if reference.subject)

    def __str__(self) -> str:
        return " ".join(self.text.split())


_UNITS_BY_LENGTH = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>"[^"\n]*")
    |(?P<operator>\+-|±|<=|>=|==|!=|≤|≥|[-+*/<>(),.])
    """,
    re.VERBOSE,
)
_UNIT = re.compile(rf"[ \t]*(?P<unit>{_UNITS_BY_LENGTH})(?![A-Za-z0-9_(])")
_UNKNOWN_UNIT = re.compile(r"[ \t]*(?P<unit>[A-Za-zµ]+(?:/[A-Za-z]+)?)(?!\s*[(.A-Za-z0-9_])")
_SCENARIO = re.compile(r"\s*(?P<id>[A-Za-z0-9_]+(?:[-./@=][A-Za-z0-9_]+)*)")
_USUAL_SLIPS = {
    slip: f"did you mean `{unit}`?"
    for slip, unit in {
        "bps": "bit/s", "kbps": "kbit/s", "Mbps": "Mbit/s", "KB": "kB", "bytes": "B", "percent": "%",
        "pps": "packets/s", "seconds": "s", "sec": "s",
    }.items()
}  # fmt: skip
_OF_EVENTS = ("event", "event_count")
_COMPARISONS = {"<": "<", "<=": "<=", "≤": "<=", ">": ">", ">=": ">=", "≥": ">=", "==": "==", "!=": "!="}


# A check is read when its scenario is loaded, planned and judged; those of a sweep's scenarios are alike.
@lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """Parses a check's text.

    Raises:
        ExpressionError: with line and column within `text`.
    """
    parser = _Parser(text)
    root = parser.predicate()
    parser.expect_end()
    if not isinstance(root, Predicate):
        parser.fail("this is a value, not a statement", 0, "compare it with something: `... <= 0.5 %`")
    _check_dimensions(text, root)
    return Expression(text, root)


def parse_value(text: str) -> Term:
    """Parses a value alone, such as ``received.a / sending_time.a``: the value of each trial in a figure.

    Raises:
        ExpressionError: with line and column within `text`.
    """
    parser = _Parser(text)
    root = parser.predicate()
    parser.expect_end()
    if not isinstance(root, Term):
        parser.fail("this is a statement, not a value", 0, "such as `received.a / sending_time.a`")
    for part in root.walk():
        if is_of_trials(part):
            hint = "a figure draws what each trial has"
            parser.fail("a function of all trials has no value in one", part.column - 1, hint)
    try:
        check(root)
        dimension_of(root)
    except Unlike as error:
        where = error.node.column - 1
        raise ExpressionError(error.message, text=text, offset=where, hint=error.hint) from None
    return root


def check_dimensions(root: Predicate) -> Expression:
    """Returns an expression from a tree that Python code built, checked as `parse` checks a text.

    Raises:
        ExpressionError: with line and column within ``str(root)``.
    """
    return parse(str(root))


def _check_dimensions(text: str, root: Predicate) -> None:
    try:
        check(root)
    except Unlike as error:
        where = error.node.column - 1
        raise ExpressionError(error.message, text=text, offset=where, hint=error.hint) from None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


class _Parser:
    """Recursive descent over one text. Methods return nodes and leave `offset` behind the text that they
    read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.depth = 0
        self.operators = 0

    def fail(self, message: str, offset: int, hint: str | None = None) -> NoReturn:
        raise ExpressionError(message, text=self.text, offset=offset, hint=hint)

    def peek(self) -> _Token:
        offset = self.offset
        while offset < len(self.text):
            match = _TOKEN.match(self.text, offset)
            if match is None:
                self.fail(f"unexpected character {self.text[offset]!r}", offset)
            kind = match.lastgroup or ""
            if kind != "space":
                return _Token(kind, match.group(), offset)
            offset = match.end()
        return _Token("end", "", len(self.text))

    def take(self) -> _Token:
        token = self.peek()
        self.offset = token.start + len(token.text)
        return token

    def accept(self, *texts: str) -> _Token | None:
        token = self.peek()
        if token.kind in ("operator", "name") and token.text in texts:
            return self.take()
        return None

    def expect(self, text: str, after: str) -> None:
        if self.accept(text) is None:
            token = self.peek()
            found = f"`{token.text}`" if token.text else "the end"
            self.fail(f"expected `{text}` after {after}, found {found}", token.start)

    def expect_end(self) -> None:
        token = self.peek()
        if token.kind == "end":
            return
        hint = None
        if token.kind in ("name", "quoted", "number"):
            hint = "an operator such as `<=`, `and` or `*` belongs between two values"
        elif token.text == ")":
            hint = "there is no `(` for it"
        self.fail(f"unexpected `{token.text}`", token.start, hint)

    def nested(self, start: int) -> None:
        self.depth += 1
        if self.depth > 50:
            self.fail("nested deeper than 50 levels", start)

    def chained(self, start: int) -> None:
        """Each operator of a chain is a level of the tree, which all that walk it descend by recursion."""
        self.operators += 1
        if self.operators > _MOST_OPERATORS:
            self.fail(f"more than {_MOST_OPERATORS} operators", start, "split it into several checks")

    # Predicates. Each returns a Term where the text turns out to be a value, for the brackets' sake.

    def predicate(self) -> Node:
        node = self.conjunct()
        while (token := self.accept("or")) is not None:
            self.chained(token.start)
            left = self.as_predicate(node)
            node = Logical("or", left, self.as_predicate(self.conjunct()), column=token.start + 1)
        return node

    def conjunct(self) -> Node:
        node = self.negation()
        while (token := self.accept("and")) is not None:
            self.chained(token.start)
            left = self.as_predicate(node)
            node = Logical("and", left, self.as_predicate(self.negation()), column=token.start + 1)
        return node

    def negation(self) -> Node:
        if (token := self.accept("not")) is not None:
            self.nested(token.start)
            node = Negation(self.as_predicate(self.negation()), column=token.start + 1)
            self.depth -= 1
            return node
        return self.comparison()

    def comparison(self) -> Node:
        left = self.sum()
        links: list[Relation] = []
        while (token := self.accept(*_COMPARISONS)) is not None:
            first = self.as_term(links[-1].right if links else left)
            right = self.as_term(self.sum())
            links.append(Relation(first, _COMPARISONS[token.text], right, column=token.start + 1))
        if (token := self.accept("+-", "±")) is not None:
            within = self.factor()
            if not isinstance(within, QuantityTerm):
                self.fail("a tolerance is a number with a unit", within.column - 1, "write `+- 8 %`")
            if len(links) != 1 or links[0].operator != "==":
                self.fail("a tolerance belongs to one `==`", token.start)
            link = links[0]
            return Relation(link.left, "==", link.right, within, column=link.column)
        if not links:
            return left
        return links[0] if len(links) == 1 else Chain(tuple(links), column=links[0].column)

    def as_predicate(self, node: Node) -> Predicate:
        if isinstance(node, Predicate):
            return node
        self.fail("a statement is expected here, not a value", node.column - 1, "compare it with something")

    def as_term(self, node: Node) -> Term:
        if isinstance(node, Term):
            return node
        self.fail("a value is expected here, not a statement", node.column - 1)

    # Values.

    def sum(self) -> Node:
        node = self.product()
        while (token := self.accept("+", "-")) is not None:
            self.chained(token.start)
            left, right = self.as_term(node), self.as_term(self.product())
            node = Binary(token.text, left, right, column=left.column)
        return node

    def product(self) -> Node:
        node = self.factor()
        while (token := self.accept("*", "/")) is not None:
            self.chained(token.start)
            left, right = self.as_term(node), self.as_term(self.factor())
            node = Binary(token.text, left, right, column=left.column)
        return node

    def factor(self) -> Node:
        token = self.take()
        column = token.start + 1
        if token.kind == "number":
            return QuantityTerm(float(token.text), self.unit(), column=column)
        if token.text in ("-", "("):
            self.nested(token.start)
            if token.text == "-":
                node: Node = Negative(self.as_term(self.factor()), column=column)
            else:
                node = self.predicate()
                self.expect(")", "what is in brackets")
            self.depth -= 1
            return node
        if token.kind == "name" and token.text not in RESERVED:
            if self.peek().text == "(":
                return self.call(token)
            return self.reference(token)
        found = f"`{token.text}`" if token.text else "the end"
        self.fail(f"expected a number, a metric or a function, found {found}", token.start)

    def unit(self) -> str:
        match = _UNIT.match(self.text, self.offset)
        if match is not None:
            self.offset = match.end()
            unit = match.group("unit")
            return "packets" if unit == "packet" else unit
        match = _UNKNOWN_UNIT.match(self.text, self.offset)
        if match is not None and match.group("unit") not in RESERVED:
            self.fail(
                f"unknown unit `{match.group('unit')}`",
                match.start("unit"),
                _USUAL_SLIPS.get(match.group("unit")) or _nearest(match.group("unit"), list(UNITS)),
            )
        return ""

    def reference(self, name: _Token) -> Reference:
        metric = self.event(name) if name.text in _OF_EVENTS else name.text
        if name.text not in METRICS and name.text not in _OF_EVENTS:
            hint = _nearest(name.text, [*METRICS, *_OF_EVENTS])
            self.fail(f"unknown metric `{name.text}`", name.start, hint)
        subject = ""
        if self.accept(".") is not None:
            subject = self.name("a flow or a stage", 'throughput."my-flow"')
        of = named(metric).of
        if of == "trial" and subject:
            self.fail(
                f"`{name.text}` is of the whole trial",
                name.start,
                f"write `{name.text}` alone, or `jain(goodput.a, goodput.b)` for a choice of flows",
            )
        if of != "trial" and not subject:
            said = str(Reference(metric))
            self.fail(f"`{said}` needs the name of a {of}", name.start, f"write `{said}.NAME`")
        scenario = ""
        if self.accept("of") is not None:
            match = _SCENARIO.match(self.text, self.offset)
            if match is None:
                self.fail("expected a scenario's id after `of`", self.offset, "such as hessler/ftp-no")
            scenario = match.group("id")
            self.offset = match.end()
        return Reference(metric, subject, scenario, column=name.start + 1)

    def event(self, name: _Token) -> str:
        """Parses the metric of an event: the name after ``event`` or ``event_count``."""
        if self.accept(".") is None:
            example = f"{name.text}.decode_time.NAME"
            self.fail(f"`{name.text}` needs the name of an event", name.start, f"such as {example}")
        event = self.name("an event", f'{name.text}."my-event".NAME')
        return event_metric(event) if name.text == "event" else count_metric(event)

    def name(self, what: str, example: str) -> str:
        """Returns a name behind a dot, perhaps in quotes."""
        token = self.take()
        if token.kind not in ("name", "quoted") or token.text in RESERVED or token.text == '""':
            found = f"`{token.text}`" if token.text else "the end"
            hint = f"names with other characters stand in quotes: {example}"
            self.fail(f"expected {what} after `.`, found {found}", token.start, hint)
        return token.text.strip('"')

    def call(self, name: _Token) -> Call | Fraction | First | Share:
        if name.text not in FUNCTIONS:
            self.fail(f"unknown function `{name.text}`", name.start, _nearest(name.text, list(FUNCTIONS)))
        self.nested(name.start)
        if name.text == "fraction":
            return Fraction(tuple(self.statements(name)), column=name.start + 1)
        if name.text == "share":
            statement, *among = self.statements(name)
            if len(among) > 1:
                self.fail("`share` takes at most 2 arguments", name.start)
            return Share(statement, *among, column=name.start + 1)
        if name.text == "first":
            return self.first(name)
        self.expect("(", "a function")
        arguments: list[Term] = []
        window: Window | None = None
        while self.peek().text != ")":
            if arguments:
                self.expect(",", "an argument")
            start = self.peek().start
            argument = self.as_term(self.sum())
            if (token := self.accept("to")) is not None:
                if not arguments:
                    self.fail("a window follows its metric", token.start)
                window = Window(argument, self.as_term(self.sum()), column=start + 1)
                break
            arguments.append(argument)
        self.expect(")", "the arguments")
        self.depth -= 1
        column = name.start + 1
        if not arguments:
            self.fail(f"`{name.text}` needs a metric", name.start, "such as mean(throughput.a)")
        least, most = FUNCTIONS[name.text]
        if not least <= len(arguments) <= most:
            count = f"at least {least}" if len(arguments) < least else f"at most {most}"
            self.fail(f"`{name.text}` takes {count} argument{'s' if least + most != 2 else ''}", name.start)
        timed = name.text in ("peak", "count") or (len(arguments) == 1 and name.text in ACROSS_TIME)
        if window is not None and not timed:
            self.fail(
                "a window applies to one metric over time", window.column - 1, "such as mean(x.y, 1 s to 2 s)"
            )
        if timed:
            self.of_samples(arguments[0])
            if not any(isinstance(node, Reference) for node in arguments[0].walk()):
                self.fail(f"`{name.text}` of one constant is that constant", name.start)
        return Call(name.text, tuple(arguments), window, column=column)

    def statements(self, name: _Token) -> list[Predicate]:
        self.expect("(", "a function")
        statements = [self.as_predicate(self.predicate())]
        while self.accept(",") is not None:
            statements.append(self.as_predicate(self.predicate()))
        self.expect(")", "the statements")
        self.depth -= 1
        return statements

    def first(self, name: _Token) -> First:
        self.expect("(", "a function")
        start = self.peek().start
        statement = self.comparison()
        if not isinstance(statement, Relation) or statement.within is not None:
            self.fail("one comparison is expected here", start, "such as first(level.a <= 35 kbit/s)")
        self.of_samples(statement)
        window: Window | None = None
        if self.accept(",") is not None:
            begin = self.as_term(self.sum())
            self.expect("to", "a window's begin")
            window = Window(begin, self.as_term(self.sum()), column=begin.column)
        self.expect(")", "the statement")
        self.depth -= 1
        return First(statement, window, column=name.start + 1)

    def of_samples(self, node: Node) -> None:
        """Raises unless a function over time can be of it."""
        inner = [part for part in node.walk() if isinstance(part, Call | Fraction | First | Share)]
        if inner:
            self.fail("a function over time takes metrics, not other functions", inner[0].column - 1)


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean `{close[0]}`?" if close else "known: " + ", ".join(known)

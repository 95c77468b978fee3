"""The language of checks: what it reads, what it refuses and where."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.checks import ExpressionError, jain, mean, metric, parse, quantity
from streamgauge.claims import parse_value
from streamgauge.claims.syntax import (
    Binary,
    Call,
    Chain,
    Fraction,
    Logical,
    Negation,
    Negative,
    Predicate,
    QuantityTerm,
    Reference,
    Relation,
    Term,
    Window,
)
from streamgauge.claims.typing import ACROSS_TIME


def test_the_design_documents_example() -> None:
    expression = parse("mean(throughput.qt) >= 1.2 * mean(throughput.tcp)")
    assert expression.subjects() == {"qt", "tcp"}
    assert expression.root == (mean(metric("throughput", "qt")) >= 1.2 * mean(metric("throughput", "tcp")))


def test_another_scenario() -> None:
    expression = parse("received.ftp == received.ftp of hessler/ftp-no - sent.cross +- 8 %")
    assert expression.scenarios() == {"hessler/ftp-no"}
    built = metric("received", "ftp").equals(
        metric("received", "ftp", scenario="hessler/ftp-no") - metric("sent", "cross"),
        within=quantity(8, "%"),
    )
    assert expression.root == built
    assert parse(str(built)).root == built


def test_precedence() -> None:
    assert parse("sent.a + 2 * sent.b > 0").root == (metric("sent", "a") + 2 * metric("sent", "b") > 0)
    assert parse("sent.a - sent.b - sent.c > 0").root == parse("(sent.a - sent.b) - sent.c > 0").root
    either = parse("jain > 0.1 or jain > 0.2 and not jain > 0.3").root
    assert either == ((metric("jain") > 0.1) | ((metric("jain") > 0.2) & ~(metric("jain") > 0.3)))


def test_python_form_reads_back() -> None:
    built = (jain(metric("goodput", "a"), metric("goodput", "my-flow")) >= 0.9) & ~(
        mean(metric("loss", "a"), window=(quantity(10, "s"), quantity(20, "s"))) > quantity(2, "%")
    )
    assert parse(str(built)).root == built
    with pytest.raises(KeyError, match="unknown unit"):
        quantity(1, "furlong")


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("loss.ftp <= 0.5", 1, 13, "percentage cannot be compared with a plain number"),
        ("throughputt.qt > 1", 1, 1, "did you mean `throughput`"),
        ("mean(throughput.qt) > 100 kbps", 1, 27, "did you mean `kbit/s`"),
        ("mean(throughput.qt, 10 s to 20 kB) > 1 bit/s", 1, 29, "a window is two times"),
        ("mean(throughput.qt, 20) > 1 bit/s", 1, 21, "cannot be put together with"),
        ("throughput.qt", 1, 1, "not a statement"),
        ("jain > 0.5 and\n  loss.a <", 2, 11, "found the end"),
        ("(jain > 0.5", 1, 12, "expected `)`"),
        ("jain > 0.5)", 1, 11, "no `(` for it"),
        ("jain.a > 0.5", 1, 1, "of the whole trial"),
        ("loss <= 1 %", 1, 1, "needs the name of a flow"),
        ("mode(loss.a) <= 1 %", 1, 1, "unknown function"),
        ("abs(sent.a, sent.b) > 0", 1, 1, "at most 1"),
        ("mean(2 s) > 1 s", 1, 1, "of one constant"),
        ("mean(max(loss.a)) > 1 %", 1, 6, "takes metrics, not other functions"),
        ("mean(1 s to 2 s) > 1 s", 1, 10, "a window follows"),
        ("max(loss.a, loss.b, 1 s to 2 s) > 1 %", 1, 21, "one metric over time"),
        ("sent.a > 3 kB/s", 1, 10, "an amount of data cannot be compared with a bit rate"),
        ("sent.a + 3 s > 0", 1, 10, "cannot be added"),
        ("loss.a <= 1 % +- 1 %", 1, 15, "belongs to one `==`"),
        ("sent.a == 2 kB +- 3 s", 1, 19, "does not fit"),
        ("sent.a == 2 kB +- sent.b", 1, 19, "a tolerance is a number"),
        ("loss.a ! 2 %", 1, 8, "unexpected character '!'"),
        ("__import__('os')", 1, 1, "unknown function"),
        ("loss.a <= 2 % loss.b", 1, 15, "belongs between two values"),
        ("loss.and <= 2 %", 1, 6, "expected a flow or a stage"),
        ("loss.a of <= 2 %", 1, 10, "expected a scenario's id"),
        ("not loss.a", 1, 5, "a statement is expected"),
        ("(jain > 1) + 2 > 3", 1, 7, "a value is expected"),
        ("(" * 60 + "jain" + ")" * 60 + " > 1", 1, 51, "nested deeper"),
        ("jain > 0" + " + 1" * 5000, 1, 410, "more than 100 operators"),
        ("jain > 1" + " * 1" * 5000, 1, 410, "more than 100 operators"),
        ("jain > 1" + " and jain > 1" * 5000, 1, 1310, "more than 100 operators"),
        ("jain > 1" + " or jain > 1" * 5000, 1, 1210, "more than 100 operators"),
        ("", 1, 1, "found the end"),
        ("peak(throughput.a, 2 kB) > 1 bit/s", 1, 20, "a peak is over some time"),
        ("peak(throughput.a) > 1 bit/s", 1, 1, "at least 2"),
        ("harm(start.a of b, start.a) < 0.5", 1, 6, "nothing harms it"),
        ("harm(goodput.a of b, loss_rate.a) < 0.5", 1, 1, "compares one metric"),
        ("fraction(loss.a, loss.b) > 50 %", 1, 10, "a statement is expected"),
        ("fraction(loss.a > 1 %) > 0.5", 1, 26, "percentage cannot be compared with a plain number"),
        ("fraction(loss.a > 1) > 50 %", 1, 19, "percentage cannot be compared with a plain number"),
        ("mean(fraction(loss.a > 1 %)) > 50 %", 1, 6, "takes metrics, not other functions"),
        ("fraction() > 50 %", 1, 10, "found `)`"),
    ],
)
def test_errors_name_line_and_column(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.exit_status == 3


quantities = st.builds(
    QuantityTerm,
    st.floats(0.001, 1e6).map(lambda value: round(value, 3)),
    st.sampled_from(["kbit/s", "bit/s", "kB/s"]),
)
references = st.builds(
    Reference,
    st.sampled_from(["throughput", "goodput", "loss_rate"]),
    st.sampled_from(["a", "b_1", "my-flow", "and"]),
    st.sampled_from(["", "hessler/ftp-no", "today/demo-rtsp-udp"]),
)
windows = st.builds(Window, st.just(QuantityTerm(1.0, "s")), st.just(QuantityTerm(500.0, "ms")))
over_time = st.builds(
    Call, st.sampled_from(sorted(ACROSS_TIME)), references.map(lambda one: (one,)), st.none() | windows
)
terms: st.SearchStrategy[Term] = st.recursive(
    quantities | references | over_time,
    lambda inner: (
        st.builds(Negative, inner)
        | st.builds(Binary, st.sampled_from("+-"), inner, inner)
        | st.builds(Binary, st.just("*"), st.just(QuantityTerm(1.5)), inner)
        | st.builds(Binary, st.just("/"), inner, st.just(QuantityTerm(2.0)))
        | st.builds(Call, st.sampled_from(["max", "sum"]), st.tuples(inner, inner))
    ),
    max_leaves=8,
)
fractions = st.builds(
    Relation,
    st.builds(
        Fraction,
        st.lists(st.builds(Relation, terms, st.sampled_from(["<", ">="]), terms), min_size=1, max_size=3).map(
            tuple
        ),
    ),
    st.just(">="),
    st.just(QuantityTerm(80.0, "%")),
)
comparisons = st.builds(Relation, terms, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), terms)
predicates: st.SearchStrategy[Predicate] = st.recursive(
    comparisons
    | fractions
    | st.tuples(terms, terms, terms).map(
        lambda x: Chain((Relation(x[0], "<=", x[1]), Relation(x[1], "<", x[2])))
    ),
    lambda inner: (
        st.builds(Negation, inner) | st.builds(Logical, st.sampled_from(["and", "or"]), inner, inner)
    ),
    max_leaves=5,
)


@given(predicates)
@settings(max_examples=300)
def test_what_is_written_reads_back(tree: Predicate) -> None:
    assert parse(str(tree)).root == tree


@given(st.text(alphabet='abcjainlos. ()<>=+-*/,0123456789%\n"kbit', max_size=40))
@settings(max_examples=500)
def test_any_text_parses_or_is_refused_in_its_bounds(text: str) -> None:
    try:
        parse(text)
    except ExpressionError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1


def test_a_value_alone() -> None:
    assert str(parse_value("received.a / sending_time.a")) == "received.a / sending_time.a"
    with pytest.raises(ExpressionError, match="a statement, not a value"):
        parse_value("received.a > 1 kB")
    with pytest.raises(ExpressionError, match=r"column 14.*cannot be added"):
        parse_value("received.a + loss.a")
    with pytest.raises(ExpressionError, match="has no value in one"):
        parse_value("ks(goodput.a, goodput.b)")
    with pytest.raises(ExpressionError, match="cannot be compared"):
        parse_value("first(level.a <= 35 s)")

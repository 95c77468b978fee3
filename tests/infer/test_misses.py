"""Misses: 0 where the verdict by the mean is a pass, and more the further a value is from its bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.checks import TrialReadings, evaluate
from streamgauge.claims.expression import parse
from streamgauge.infer.misses import ClaimedCheck

STATEMENTS = [
    "loss.a <= 5 %",
    "loss.a > loss.b",
    "loss.a == loss.b +- 10 %",
    "2 % <= loss.a <= 10 %",
    "not loss.a < 3 %",
    "loss.a <= 5 % and loss.b >= 1 %",
    "loss.a <= 5 % or loss.b >= 40 %",
    "not (loss.a <= 5 % or loss.b >= 40 %)",
    "loss.a >= 2 * loss.b",
]


def trial(a: float, b: float, seed: int = 1) -> TrialReadings:
    return TrialReadings(
        scenario="toy/x",
        mode="sim",
        seed=seed,
        valid=True,
        why=(),
        numbers={"loss.a": a, "loss.b": b},
        metrics=lambda: None,
    )


def miss(that: str, *trials: TrialReadings) -> float:
    check = ClaimedCheck("T-1", "toy/x", "T-1", parse(that).root, None)
    return check.miss({"toy/x": trials})


SHARES = st.sampled_from([0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.4, 0.9])


@pytest.mark.parametrize("that", STATEMENTS)
@given(SHARES, SHARES)
def test_a_statement_misses_by_nothing_where_its_verdict_is_a_pass(that: str, a: float, b: float) -> None:
    verdict = evaluate("T-1", {"that": that}, "toy/x", "sim", [trial(a, b)]).verdict
    found = miss(that, trial(a, b))
    assert 0 <= found <= 1
    assert (found == 0) == (verdict == "pass")


@given(SHARES, SHARES)
def test_further_from_the_bound_is_a_larger_miss(a: float, b: float) -> None:
    less, more = sorted((a, b))
    assert miss("loss.a <= 5 %", trial(less, 0)) <= miss("loss.a <= 5 %", trial(more, 0))


def test_the_mean_over_seeds_decides() -> None:
    assert miss("loss.a <= 5 %", trial(0.01, 0), trial(0.08, 0, 2)) == 0
    assert miss("loss.a <= 5 %", trial(0.01, 0), trial(0.10, 0, 2)) > 0


def test_equal_values_miss_a_strict_order_by_a_little() -> None:
    assert 0 < miss("loss.a > loss.b", trial(0.1, 0.1)) < 0.01


def test_what_cannot_be_measured_misses_wholly() -> None:
    assert miss("loss.a / loss.b >= 2", trial(0.1, 0.0)) == 1
    assert ClaimedCheck("T-1", "toy/x", "T-1", parse("loss.a <= 5 %").root, None).miss({}) == 1

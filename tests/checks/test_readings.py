"""Readings: what checks read of a trial is all that their verdicts need of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.checks import TrialReadings, evaluate, take
from streamgauge.checks.values import bare, leaves
from streamgauge.claims.expression import parse
from streamgauge.metrics import TrialMetrics, compute
from synthetic import constant, record

TRIALS = [
    compute(
        record(
            [*constant(0, pps, 0, 10, payload=972), *constant(1, 20.0, 2, 6, payload=300)],
            flows=["v", "w"],
            duration_s=10.0,
            seed=seed,
            scenario=scenario,
        )
    )
    for scenario, offset in (("a", 0.0), ("b/other", 7.0))
    for seed, pps in enumerate((48.0 + offset, 50.0, 52.0 + offset, 50.0))
]

CLAIMS = [
    "throughput.v >= 375 kbit/s",
    "throughput.v >= throughput.w + 10 kbit/s",
    "mean(throughput.v, 2 s to 6 s) == throughput.v +- 3 %",
    "peak(throughput.v + throughput.w, 2 s) <= 600 kbit/s",
    "max(throughput.w) > 10 * min(throughput.w, 3 s to 5 s)",
    "sd(throughput.w) < 30 kbit/s or not jain >= 0.9",
    "fraction(throughput.v > 380 kbit/s, loss.w < 1 %) > 40 %",
    "throughput.v >= throughput.v of b/other",
    "mean(throughput.v of b/other, 1 s to 9 s) > throughput.v",
    "harm(throughput.v, throughput.v of b/other) <= 0.5",
    "spearman(throughput.v, throughput.w, throughput.v of b/other) >= 0",
    "rtt.v < 1 s",
    "throughput.nobody > 1 kbit/s",
    "mean(throughput.v, 20 s to 30 s) > 1 kbit/s",
    "mean(throughput.v - throughput.v of b/other) > 0 kbit/s",
]


def unread() -> TrialMetrics | None:
    raise AssertionError("a leaf was not read beforehand")


def read(trial: TrialMetrics, that: str, *, all_of_it: bool = True) -> TrialReadings:
    wanted = {
        str(leaf): leaf for scenario, leaf in leaves(parse(that).root) if (scenario or "a") == trial.scenario
    }
    return TrialReadings(
        scenario=trial.scenario,
        mode=trial.mode,
        seed=trial.seed,
        valid=trial.valid,
        why=trial.why,
        numbers=take(trial, wanted) if all_of_it else {},
        metrics=unread if all_of_it else lambda: trial,
    )


def judged(that: str, trials: list[Any]) -> dict[str, Any]:
    check = {"that": that, "origin": "predicted", "strict": False}
    return evaluate("C", check, "a", "sim", trials).to_json()


@pytest.mark.parametrize("all_of_it", [True, False], ids=["read", "looked up"])
@pytest.mark.parametrize("that", CLAIMS)
def test_a_verdict_from_readings_is_that_from_metrics(that: str, all_of_it: bool) -> None:
    found = judged(that, [read(trial, that, all_of_it=all_of_it) for trial in TRIALS])
    assert found == judged(that, TRIALS)


NUMBERS = st.sampled_from(["throughput.v", "loss.w", "10 kbit/s", "3", "throughput.v of b/other", "jain"])
TERMS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("-{}".format, inner),
        st.builds("mean({}, 1 s to 8 s)".format, inner),
        st.builds("max({}, {})".format, inner, inner),
        st.builds("abs({})".format, inner),
    ),
    max_leaves=6,
)


@given(TERMS, TERMS)
def test_whatever_is_claimed(left: str, right: str) -> None:
    that = f"{left} >= {right}"
    try:
        parse(that)
    except ValueError:
        return
    except Exception as error:
        assert "Expression" in type(error).__name__
        return
    assert judged(that, [read(trial, that) for trial in TRIALS]) == judged(that, TRIALS)


def test_a_leaf_is_bare() -> None:
    that = parse("mean(throughput.v of b/other - throughput.w of b/other, 1 s to 2 s) > 1 kbit/s")
    ((scenario, leaf),) = leaves(that.root)
    assert scenario == "b/other"
    assert str(leaf) == "mean(throughput.v - throughput.w, 1 s to 2 s)" and bare(leaf) == leaf

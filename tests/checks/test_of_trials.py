"""Checks of what all trials have together, and of when something first is so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from streamgauge.checks import evaluate, evaluate_all
from streamgauge.claims.expression import ExpressionError, parse, parse_value
from streamgauge.metrics import TrialMetrics, compute
from synthetic import constant, record


def trial(a: float, b: float, seed: int, scenario: str = "a") -> TrialMetrics:
    """Flows of `a` and `b` packets of 1000 B a second for 10 s; b's ends after 5 s."""
    sent = constant(0, a, 0, 10, payload=972) + constant(1, b, 0, 5, payload=972)
    made = record(sorted(sent, key=lambda one: one.at), flows=["v", "w"], duration_s=10.0, seed=seed,
                  scenario=scenario, rate_bps=10**7)  # fmt: skip
    return compute(made)


TRIALS = [trial(20 + seed, 30 - seed, seed) for seed in range(12)]


def judged(that: str, trials: list[Any] = TRIALS) -> Any:
    return evaluate("C", {"that": that, "origin": "predicted", "strict": False}, "a", "sim", trials)


@pytest.mark.parametrize(
    ("that", "verdict"),
    [
        ("correlation(sent.v, sent.w) <= -0.9", "pass"),
        ("correlation(sent.v, sent.w) >= 0", "fail"),
        ("correlation(sent.v, sent.w, sent.w, sent.v) <= 0", "pass"),
        ("quantile(sent.v, 50 %) >= 100 kB", "pass"),
        ("quantile(sent.v, 50 %) >= quantile(sent.w, 50 %)", "pass"),
        ("quantile(sent.v, 10 %) >= quantile(sent.v, 90 %)", "fail"),
        ("ks(sent.v, sent.w) >= 0.5", "pass"),
        ("ks(sent.v, sent.v) <= 0.01", "pass"),
        ("emd(sent.v, sent.w) >= 10 kB", "pass"),
        ("emd(sent.v, sent.w) <= 10 kB", "fail"),
        ("ks(sent.v, sent.v) == ks(sent.w, sent.w) +- 0.01", "pass"),
        ("quantile(first(receiver_rate.w <= 1 kbit/s), 50 %) == 5 s +- 0.6 s", "pass"),
        ("first(receiver_rate.w <= 1 kbit/s, 0 s to 8 s) == 5 s +- 0.6 s", "pass"),
        ("fraction(first(receiver_rate.v <= 1 kbit/s) <= 9 s) <= 1 %", "pass"),
        ("share(sent.v >= 260 kB) == 50 % +- 40 pt", "pass"),
        ("share(sent.v >= 260 kB) >= 95 %", "fail"),
        ("share(sent.v >= 270 kB, sent.w <= 115 kB) >= 50 %", "pass"),
        ("share(sent.v >= 1 kB, sent.w <= 1 kB) >= 90 %", "inconclusive"),
        ("tcp_rate(1000 B, 0.1 s, 1 %) == 980 kbit/s +- 1 %", "pass"),
    ],
)
def test_verdicts(that: str, verdict: str) -> None:
    found = judged(that)
    assert found.verdict == verdict, found.why
    assert str(parse(str(parse(that)))) == str(parse(that))


def test_the_interval_is_by_resamples_and_says_how_many_trials() -> None:
    value = judged("quantile(sent.v, 50 %) >= 100 kB").measured
    assert value.interval.n == len(TRIALS)
    assert value.interval.half_width > 0
    assert judged("emd(sent.v, sent.w) <= 400 kB").measured.interval.low > 400_000


def test_trials_of_two_scenarios_are_paired_and_one_without_a_value_is_left_out() -> None:
    others = [trial(25, 20, seed, scenario="other") for seed in range(12)]
    found = judged("ks(sent.v, sent.v of other) <= 0.95", [*TRIALS, *others])
    assert found.verdict != "inconclusive", found.why
    # Flow w has no steady rate in any trial.
    none = judged("quantile(steady_rate.w, 50 %) >= 1 kbit/s")
    assert none.verdict == "inconclusive"
    assert "no trial with a value" in none.why


def test_what_never_comes_has_no_mean_and_no_quantile() -> None:
    for never in ("first(receiver_rate.v <= 1 kbit/s)", "quantile(first(receiver_rate.v <= 1 kbit/s), 80 %)"):
        found = judged(f"{never} <= 9 s")
        assert found.verdict == "inconclusive"
        assert "not finite" in found.why


@pytest.mark.parametrize(
    ("that", "says"),
    [
        ("ks(sent.v, sent.w) <= loss.v", "has a value in each trial"),
        ("ks(sent.v, sent.w) <= 0.1 + fraction(loss.v > 1 %)", "has a value in each trial|cannot be"),
        ("mean(ks(sent.v, sent.w), 2) <= 0.1", "stands for itself"),
        ("quantile(ks(sent.v, sent.w), 50 %) <= 0.1", "is of what each has"),
        ("share(ks(sent.v, sent.w) >= 0.1) >= 5 %", "is of what each has"),
        ("share(sent.v >= 1 kB, sent.w >= 1 kB, sent.w >= 2 kB) >= 5 %", "at most 2"),
        ("fraction(share(sent.v >= 1 kB) >= 5 %) >= 1 %", "stands for itself"),
        ("quantile(sent.v, 50) >= 1 kB", "at a percentage"),
        ("quantile(loss.v, loss.w) <= 1 %", "at a percentage"),
        ("quantile(loss.v, 120 %) <= 1 %", "at most 100 %"),
        ("quantile(loss.v, 0 %) <= 1 %", "above 0"),
        ("ks(sent.v, loss.w) <= 0.1", "cannot be put together"),
        ("correlation(sent.v, sent.w, sent.v) <= 0.1", "of pairs"),
        ("correlation(sent.v, loss.v, loss.w, loss.w) <= 0.1", "cannot be put together"),
        ("tcp_rate(1500 B, loss.v, loss.v) >= 1 kbit/s", "a time stands here"),
        ("tcp_rate(1500 B, 1 s, 1 s) >= 1 kbit/s", "a share of losses stands here"),
        ("first(level.v) <= 1 s", "one comparison is expected"),
        ("first(mean(level.v) <= 1 kbit/s) <= 1 s", "takes metrics, not other functions"),
        ("first(level.v <= 1 kbit/s, 1 s) <= 1 s", "expected `to`"),
    ],
)
def test_refused_before_anything_runs(that: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says):
        parse(that)


def test_a_figure_may_be_of_them() -> None:
    assert (
        str(parse_value("first(level.v <= 35 kbit/s) - start.v")) == "first(level.v <= 35 kbit/s) - start.v"
    )


def test_trials_of_one_member_are_drawn_together() -> None:
    """Four members, each of three equal trials, are four values and not twelve."""
    trials = [trial(20 + (seed - 1) % 4, 20, seed) for seed in range(1, 13)]
    scenario = {
        "id": "a",
        "checks": {"C": {"that": "quantile(sent.v, 50 %) >= 1 kB", "origin": "predicted"}},
    }
    (apart,) = evaluate_all([scenario], trials)
    (together,) = evaluate_all([scenario | {"population": {"size": 4}}], trials)
    assert apart.measured is not None and together.measured is not None
    assert together.measured.interval.n == 4
    assert together.measured.interval.half_width > 1.5 * apart.measured.interval.half_width  # type: ignore[operator]


def test_a_share_of_none_is_not_certain() -> None:
    value = judged("share(sent.v <= 1 kB) <= 5 %").measured
    assert value is not None and value.interval.mean == 0
    # Wilson's interval of 0 of 12.
    assert value.interval.half_width == pytest.approx(1.96**2 / (12 + 1.96**2), rel=0.02)
    assert judged("share(sent.v <= 1 kB) <= 5 %").verdict == "inconclusive"
    assert judged("share(sent.v >= 1 kB) >= 60 %").verdict == "pass"


def test_the_mean_of_what_was_played_twice_counts_it_once() -> None:
    trials = [trial(20 + (seed - 1) % 4, 20, seed) for seed in range(1, 13)]
    scenario = {
        "id": "a",
        "population": {"size": 4},
        "checks": {"C": {"that": "sent.v >= 1 kB", "origin": "predicted"}},
    }
    (together,) = evaluate_all([scenario], trials)
    assert together.measured is not None and together.measured.interval.n == 4


def test_distances_of_equal_distributions_are_no_distance() -> None:
    """Resamples are further apart than what they are of, which a verdict does not hold against it."""
    random = np.random.default_rng(3)
    held = 0
    for _ in range(15):
        trials = [trial(*random.uniform(20, 60, 2).round(), seed) for seed in range(25)]
        held += judged("ks(sent.v, 2 * sent.w) <= 0.01", trials).verdict != "fail"
    assert held >= 8


def test_what_was_measured_is_told_and_not_its_bound() -> None:
    found = judged("-1 <= correlation(sent.v, sent.w) <= -0.9")
    assert found.measured is not None and found.measured.text.startswith("correlation")
    assert "claimed is at least -1" in judged("-1 <= correlation(sent.v, sent.w)").why

"""Verdicts on trials whose numbers are known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamgauge.checks import InvalidTrial, evaluate, evaluate_all
from streamgauge.checks.result import Value
from streamgauge.claims.dimension import PERCENT
from streamgauge.claims.expression import parse
from streamgauge.claims.typing import is_signed
from streamgauge.metrics import Interval, TrialMetrics, compute
from synthetic import constant, record


def trial(
    pps: float, seed: int = 1, scenario: str = "a", mode: str = "sim", valid: bool = True
) -> TrialMetrics:
    """One flow of `pps` packets of 972 B payload (1000 B at IP) a second for 10 s, on a 1 Mbit/s link."""
    made = record(
        constant(0, pps, 0, 10, payload=972),
        flows=["v"], duration_s=10.0, seed=seed, scenario=scenario, mode=mode, valid=valid,
    )  # fmt: skip
    return compute(made)


def check(that: str, **more: Any) -> dict[str, Any]:
    return {"that": that, "origin": "predicted", "strict": False, **more}


def verdict(that: str, trials: list[Any], **more: Any) -> str:
    return evaluate("C", check(that, **more), "a", "sim", trials).verdict


VARYING = [trial(pps, seed) for seed, pps in enumerate([48.0, 50.0, 52.0, 50.0])]
# Throughputs 384, 400, 416, 400 kbit/s: mean 400, s = 13.06, half-width 3.182 * 13.06 / 2 = 20.8.


@pytest.mark.parametrize(
    ("that", "expected"),
    [
        ("throughput.v >= 375 kbit/s", "pass"),
        ("throughput.v >= 385 kbit/s", "inconclusive"),
        ("throughput.v >= 415 kbit/s", "inconclusive"),
        ("throughput.v >= 425 kbit/s", "fail"),
        ("throughput.v <= 425 kbit/s", "pass"),
        ("throughput.v <= 375 kbit/s", "fail"),
        ("375 kbit/s <= throughput.v <= 425 kbit/s", "pass"),
        ("375 kbit/s <= throughput.v <= 410 kbit/s", "inconclusive"),
        ("430 kbit/s <= throughput.v <= 410 kbit/s", "fail"),
        ("throughput.v == 400 kbit/s +- 10 %", "pass"),
        ("throughput.v == 400 kbit/s +- 3 %", "inconclusive"),
        ("throughput.v == 500 kbit/s +- 10 %", "fail"),
        ("throughput.v == 400 kbit/s +- 30 kbit/s", "pass"),
        ("not throughput.v >= 425 kbit/s", "pass"),
        ("throughput.v >= 385 kbit/s or throughput.v >= 300 kbit/s", "pass"),
        ("throughput.v >= 385 kbit/s and throughput.v >= 500 kbit/s", "fail"),
        ("throughput.v >= 385 kbit/s and throughput.v >= 300 kbit/s", "inconclusive"),
        ("throughput.v == 400 kbit/s", "inconclusive"),
        ("throughput.v != 500 kbit/s", "pass"),
        # The margin of paired terms does not vary although each of them does.
        ("throughput.v >= goodput.v", "pass"),
        ("jain >= 0.5", "inconclusive"),
        ("throughput.w >= 1 bit/s", "inconclusive"),
        ("sent.v / lost.v > 2", "inconclusive"),
    ],
)
def test_a_bound_in_the_interval_decides_nothing(that: str, expected: str) -> None:
    assert verdict(that, VARYING) == expected


def test_the_numbers_behind_a_verdict() -> None:
    result = evaluate("C", check("throughput.v >= 375 kbit/s"), "a", "sim", VARYING)
    found = result.to_json()
    assert found["measured"] == pytest.approx(400_000)
    assert found["interval"] == pytest.approx([379_217, 420_783], rel=1e-4)
    assert (found["n"], found["unit"], found["verdict"]) == (4, "bps", "pass")
    assert "400 kbit/s [379, 421] kbit/s (95 % interval, n = 4)" in found["why"]
    json.dumps(found)


def test_without_variation_the_value_decides_and_says_so() -> None:
    same = [trial(50, seed) for seed in range(3)]
    result = evaluate("C", check("throughput.v >= 400 kbit/s"), "a", "sim", same)
    assert result.verdict == "pass"
    assert "no variation" in result.why
    assert result.to_json()["no_variation"] is True
    assert verdict("throughput.v > 400 kbit/s", same) == "fail"
    assert verdict("throughput.v == 400 kbit/s", same) == "pass"


def test_one_trial_has_no_interval() -> None:
    result = evaluate("C", check("throughput.v >= 400 kbit/s"), "a", "sim", [trial(50)])
    assert (result.verdict, result.to_json()["interval"]) == ("pass", None)
    assert "by one trial" in result.why


def test_invalid_trials_are_never_averaged_in() -> None:
    good = [trial(50, seed) for seed in range(2)]
    result = evaluate(
        "C", check("throughput.v == 400 kbit/s"), "a", "sim", [*good, trial(90, 3, valid=False)]
    )
    assert (result.verdict, result.n, result.invalid) == ("pass", 2, 1)


def test_over_a_third_invalid_is_inconclusive() -> None:
    good = [trial(50, seed) for seed in range(3)]
    bad = [InvalidTrial("a", "sim", 8, ("killed",)), trial(50, 9, valid=False)]
    assert verdict("throughput.v > 0", [*good, bad[0]]) == "pass"
    result = evaluate("C", check("throughput.v > 0"), "a", "sim", [*good, *bad])
    assert result.verdict == "inconclusive"
    assert "2 of 5" in result.why


def test_no_trials_and_the_other_mode() -> None:
    emu = [trial(50, mode="emu")]
    assert verdict("throughput.v > 0", emu) == "inconclusive"
    assert evaluate("C", check("throughput.v > 0"), "a", "emu", emu).verdict == "pass"


def test_other_scenarios_are_paired_by_seed() -> None:
    here = [trial(pps, seed) for seed, pps in enumerate([40, 50, 60])]
    there = [trial(pps + 10, seed, "b/other-one") for seed, pps in reversed(list(enumerate([40, 50, 60])))]
    that = "throughput.v of b/other-one - throughput.v == 80 kbit/s +- 1 bit/s"
    result = evaluate("C", check(that), "a", "sim", [*here, *there])
    assert (result.verdict, result.n) == ("pass", 3)
    assert verdict(that, here) == "inconclusive"
    assert evaluate("C", check(that), "a", "sim", [*here, *there[:2]]).n == 2


def test_a_seed_that_is_invalid_on_one_side_shifts_no_pair() -> None:
    loads = [40, 52, 61, 75, 48]
    here = [trial(pps, seed) for seed, pps in enumerate(loads)]
    there = [trial(pps + 10, seed, "b/other-one", valid=seed != 1) for seed, pps in enumerate(loads)]
    that = "throughput.v of b/other-one - throughput.v == 80 kbit/s +- 1 bit/s"
    result = evaluate("C", check(that), "a", "sim", [*here, *there])
    assert (result.verdict, result.n) == ("pass", 4)
    assert "paired by seed: 4 seeds are valid in every scenario" in result.why
    # What the pairs rest on is all that is counted: the mean of the four, not of the five.
    assert result.values["throughput.v"].interval.mean == pytest.approx(8_000 * (sum(loads) - 52) / 4)


def test_scenarios_without_a_common_seed_are_not_compared() -> None:
    here = [trial(pps, seed) for seed, pps in enumerate([40, 50])]
    there = [trial(pps + 10, seed + 5, "b/other-one") for seed, pps in enumerate([40, 50])]
    result = evaluate("C", check("throughput.v of b/other-one >= throughput.v"), "a", "sim", [*here, *there])
    assert (result.verdict, result.n) == ("inconclusive", 0)
    assert "no seed is valid in each of a, b/other-one" in result.why


def test_over_time() -> None:
    sent = constant(0, 50, 2, 4, payload=972) + constant(0, 100, 4, 6, payload=972)
    one = [compute(record(sent, flows=["v"], duration_s=10.0, scenario="a"))]
    for that in (
        "mean(throughput.v, 2 s to 4 s) == 400 kbit/s",
        "max(throughput.v) == 800 kbit/s",
        "min(throughput.v, 2 s to 6 s) == 400 kbit/s",
        "mean(throughput.v, start.v to start.v + 4 s) == 600 kbit/s",
        "median(throughput.v, 4 s to 6 s) == 800 kbit/s",
        "mean(throughput.v + throughput.v, 2 s to 4 s) == 800 kbit/s",
        "max(throughput.v / 2) == 400 kbit/s",
        "mean(throughput.v) == 240 kbit/s",
        "max(queue.bottleneck) <= 10 kB",
        "sum(sent.v, sent.v) == 600 kB",
        "abs(sent.v - 400 kB) == 100 kB",
    ):
        result = evaluate("C", check(that), "a", "sim", one)
        assert result.verdict == "pass", result.why
    assert verdict("mean(throughput.v, 2 s to 2.1 s) > 0", one) == "inconclusive"


def test_published_beside_ours_and_where_they_differ() -> None:
    published = {"v": "440 kbit/s"}
    far = check("throughput.v > 300 kbit/s", published=published, tolerance="5 %", note="the kernel's window")
    result = evaluate("C", far, "a", "sim", [trial(50)])
    assert result.verdict == "pass"
    assert result.differs is not None
    assert "published 440 kbit/s, ours 400 kbit/s" in result.differs
    assert "the kernel's window" in result.differs
    near = check("throughput.v > 300 kbit/s", published=published, tolerance="10 %")
    assert evaluate("C", near, "a", "sim", [trial(50)]).differs is None


def test_all_checks_of_all_scenarios_by_mode() -> None:
    scenario = {
        "id": "a",
        "checks": {"one": check("throughput.v > 0"), "emu-only": check("throughput.v > 0", modes=["emu"])},
    }
    trials = [trial(50), trial(50, mode="emu"), trial(50, scenario="b")]
    found = [(result.id, result.mode) for result in evaluate_all([scenario], trials)]
    assert found == [("one", "sim"), ("one", "emu"), ("emu-only", "emu")]


def test_the_measured_side_is_named_first_wherever_it_stands() -> None:
    result = evaluate("C", check("425 kbit/s >= throughput.v"), "a", "sim", VARYING)
    assert result.verdict == "pass"
    assert result.to_json()["measured"] == pytest.approx(400_000)
    assert result.why.startswith("throughput.v is 400 kbit/s")
    assert "at most 425 kbit/s" in result.why


@pytest.mark.parametrize(
    ("that", "signed"),
    [
        ("loss.v <= 5 %", False),
        ("mean(loss.v, 1 s to 3 s) <= 5 %", False),
        ("loss.v / throughput.v <= 5 % / 1 kbit/s", False),
        ("gap.v <= 5 %", True),
        ("loss.v - loss.v <= 5 %", True),
        ("harm(goodput.v, goodput.v) <= 1", True),
        ("sd(gap.v) <= 5 %", False),
    ],
)
def test_what_cannot_be_below_zero_has_no_interval_below_it(that: str, signed: bool) -> None:
    assert is_signed(parse(that).root.left) is signed  # type: ignore[attr-defined]
    value = Value("x", Interval(3e-5, 5e-5, 10, False), PERCENT, signed)
    said = "0.0030 % [-0.0020, 0.0080] %" if signed else "0.0030 % [0, 0.0080] %"
    assert value.words() == f"{said} (95 % interval, n = 10)"


def holds(that: str, *trials: TrialMetrics) -> bool:
    result = evaluate("C", check(that), "a", "sim", list(trials))
    assert result.verdict != "inconclusive", result.why
    return result.verdict == "pass"


def test_the_highest_mean_over_samples_in_a_row() -> None:
    # 400 kbit/s in [2 s, 4 s), 800 kbit/s in [4 s, 5 s): over 2 s at most 600.
    sent = constant(0, 50, 2, 4, payload=972) + constant(0, 100, 4, 5, payload=972)
    one = compute(record(sent, flows=["v"], duration_s=10.0, scenario="a"))
    for that in (
        "peak(throughput.v, 0.5 s) == 800 kbit/s",
        "peak(throughput.v, 1 s) == 800 kbit/s",
        "peak(throughput.v, 2 s) == 600 kbit/s",
        "peak(throughput.v, 2 s, 0 s to 4 s) == 400 kbit/s",
        "peak(throughput.v + throughput.v, 2 s) == 1200 kbit/s",
        "peak(throughput.v, 2 s, start.v to start.v + 3 s) == 600 kbit/s",
    ):
        assert holds(that, one), that
    assert verdict("peak(throughput.v, 3 s, 0 s to 2 s) > 0", [one]) == "inconclusive"


def test_rank_correlation_with_the_order_given() -> None:
    one = compute(
        record(
            [s for flow in range(4) for s in constant(flow, 10.0 * (4 - flow), 0, 9)],
            flows=["a", "b", "c", "d"], duration_s=10.0, scenario="a", rate_bps=10_000_000,
        )
    )  # fmt: skip
    assert holds("spearman(throughput.a, throughput.b, throughput.c, throughput.d) == -1", one)
    assert holds("spearman(throughput.d, throughput.c, throughput.b, throughput.a) == 1", one)
    # Ranks 4 2 3 1: 1 - 6 (9 + 0 + 0 + 9) / (4 * 15) = -0.8.
    assert holds("spearman(throughput.a, throughput.c, throughput.b, throughput.d) == -0.8 +- 0.001", one)
    assert verdict("spearman(loss.a, loss.b) < 0", [one]) == "inconclusive"


def test_the_share_of_statements_that_hold() -> None:
    that = "fraction(throughput.v > 390 kbit/s, throughput.v > 410 kbit/s, not loss.v > 1 %) >= {}"
    assert holds(that.format("60 %"), trial(50))
    assert not holds(that.format("80 %"), trial(50))
    # One of four repetitions has one of the three, two have two, one has all.
    result = evaluate("C", check(that.format("20 %")), "a", "sim", VARYING)
    assert result.measured is not None and result.verdict == "pass"
    assert result.measured.interval.mean == pytest.approx((1 / 3 + 2 / 3 + 1 + 2 / 3) / 4)


def test_harm_compares_with_the_flow_alone() -> None:
    beside, alone = trial(50), trial(60, scenario="b")
    assert holds("harm(throughput.v of b, throughput.v) == 0.1667 +- 0.0001", beside, alone)
    assert holds("harm(throughput.v, throughput.v of b) == -0.2 +- 0.0001", beside, alone)
    # No loss in either is no harm.
    assert holds("harm(loss.v of b, loss.v) == 0", beside, alone)
    late, early = trial(130), trial(100, scenario="b")
    assert holds("harm(queue_delay.v of b, queue_delay.v) > 0.5", late, early)


def test_the_mean_of_the_index_is_not_the_index_of_means() -> None:
    # Each flow sends alone half of the time: at any instant one takes all, over the whole they are even.
    sent = constant(0, 50, 0, 5) + constant(1, 50, 5, 10)
    one = compute(record([*sent, *constant(1, 0.5, 0, 1)], flows=["v", "w"], duration_s=10.0, scenario="a"))
    assert holds("jain > 0.99", one)
    assert holds("mean(jain) < 0.6 and mean(jain, 5 s to 10 s) < 0.6", one)
    assert holds("sd(jain) < 0.1 and max(jain) < 0.7", one)

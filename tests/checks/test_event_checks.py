"""Checks on events under names of their own: values with the unit that a trial tells, and counts."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.checks import CheckResult, TrialReadings, evaluate, take
from streamgauge.checks.values import leaves
from streamgauge.claims.expression import ExpressionError, parse
from streamgauge.errors import ScenarioError
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.scenario import Scenario
from streamgauge.systems.player_events import MEASURED
from synthetic import EVENTS, SECOND, constant, record

Said = tuple[float, str, float | None, str]


def trial(said: list[Said], seed: int = 1, scenario: str = "a") -> TrialMetrics:
    """`v` says these (s, name, value, unit as records have it)."""
    made = record(
        constant(0, 20, 0, 10) + constant(1, 20, 0, 10),
        flows=["v", "w"], duration_s=10.0, seed=seed, scenario=scenario,
    )  # fmt: skip
    rows = [(round(at * SECOND), "v", name, value, unit, "") for at, name, value, unit in said]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    return compute(made)


def read(one: TrialMetrics, that: str) -> TrialReadings:
    wanted = {
        str(leaf): leaf for scenario, leaf in leaves(parse(that).root) if (scenario or "a") == one.scenario
    }

    def unread() -> TrialMetrics | None:
        raise AssertionError("a leaf was not read beforehand")

    return TrialReadings(one.scenario, one.mode, one.seed, one.valid, one.why, take(one, wanted), unread)


def judged(that: str, *trials: TrialMetrics) -> CheckResult:
    """By metrics, and by what is read of them, which must say the same."""
    check = {"that": that, "origin": "predicted"}
    found = evaluate("C", check, "a", "sim", trials)
    by_readings = evaluate("C", check, "a", "sim", [read(one, that) for one in trials])
    assert by_readings.to_json() == found.to_json()
    return found


DECODES: list[Said] = [
    (1.0, "decode_time", 0.010, "s"),
    (2.0, "decode_time", 0.030, "s"),
    (8.0, "decode_time", 0.050, "s"),
]
OTHERS: list[Said] = [
    (1.0, "fps", 24.0, "1/s"), (2.0, "score", 3.0, "1"), (2.0, "cpu", 40.0, "%"), (3.0, "held", 100.0, "B"),
    (3.0, "rate", 8e5, "bit/s"), (4.0, "in_flight", 7.0, "packets"), (4.0, "my-own", 1.0, ""),
    (5.0, "glitch", None, ""), (9.0, "glitch", None, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    "that",
    [
        "event.decode_time.v == 30 ms +- 1 us",
        "mean(event.decode_time.v) == 30 ms +- 1 us",
        "max(event.decode_time.v) == 50 ms +- 1 us",
        "min(event.decode_time.v, 1.5 s to 9 s) == 30 ms +- 1 us",
        "event.decode_time.v + 1 s == 1.03 s +- 1 us",
        "count(event.decode_time.v) == 3",
        "count(event.decode_time.v, 0 s to 5 s) == 2",
        "event_count.decode_time.v == 3",
        "count(event.glitch.v) == 2",
        "event.fps.v >= 24 frames/s and event.fps.v <= 24 Hz",
        "event.score.v == 3",
        "event.cpu.v == 40 %",
        "event.held.v == 100 B",
        "event.held.v / event.decode_time.v >= 3 kB/s",
        "event.rate.v == 800 kbit/s",
        "event.in_flight.v == 7 packets",
        'event."my-own".v == 1',
        "event.decode_time.v <= rtt.v or event.decode_time.v <= 1 s",
    ],
)
def test_what_may_be_claimed_of_events(that: str) -> None:
    found = judged(that, trial([*DECODES, *OTHERS]))
    assert found.verdict == "pass", found.why


def test_the_value_is_shown_in_its_unit() -> None:
    found = judged("event.decode_time.v <= 20 ms", trial(DECODES))
    assert found.verdict == "fail" and "is 30.0 ms (n = 1)" in found.why
    assert found.to_json()["unit"] == "s"


@pytest.mark.parametrize(
    ("that", "why"),
    [
        ("event.decode_tim.v <= 20 ms", "flow v never said `decode_tim` (did you mean `decode_time`?)"),
        ("event.jump.v <= 20 ms", "flow v never said `jump` (it said decode_time, fps, mixed, score, cpu,"),
        ("event.jump.w <= 20 ms", "flow w never said `jump` (it said nothing of the kind)"),
        ("count(event.jump.v) <= 3", "flow v never said `jump`"),
        ("event.glitch.v <= 3", "says `glitch` without a value: `count(event.glitch.v)` counts it"),
        (
            "event.decode_time.v <= 3 %",
            "compared with a percentage: event.decode_time.v is a time here",
        ),
        ("event.decode_time.v <= 3", "a time cannot be compared with a plain number"),
        ("event.decode_time.v + loss.v <= 3 %", "a percentage cannot be added to a time"),
        ("event.mixed.v <= 3 s", "says `mixed` in B and in s, of which there is no mean"),
        ("mean(event.decode_time.v, 3 s to 4 s) <= 3 s", "has nothing to measure"),
    ],
)
def test_what_cannot_be_told_is_inconclusive(that: str, why: str) -> None:
    mixed: list[Said] = [(1.0, "mixed", 1.0, "s"), (2.0, "mixed", 1.0, "B")]
    found = judged(that, trial([*DECODES, *OTHERS, *mixed]), trial([*DECODES, *OTHERS, *mixed], seed=2))
    assert found.verdict == "inconclusive"
    assert why in found.why


def test_a_unit_that_differs_between_trials_is_inconclusive() -> None:
    found = judged(
        "event.held.v <= 3 s", trial([(1.0, "held", 1.0, "s")]), trial([(1.0, "held", 1.0, "B")], 2)
    )
    assert found.verdict == "inconclusive"
    assert found.why.startswith("event.held.v is a time in seed 1 and an amount of data in seed 2")
    # So are trials of another scenario, but not one scenario against another.
    other = trial([(1.0, "held", 2.0, "s")], scenario="b/other")
    found = judged("event.held.v <= event.held.v of b/other", trial([(1.0, "held", 1.0, "s")]), other)
    assert found.verdict == "pass", found.why


def test_what_happened_in_one_trial_happened_0_times_in_another() -> None:
    trials = [trial([(4.0, "glitch", None, "")] * count, seed) for seed, count in enumerate((2, 0, 1), 1)]
    found = judged("count(event.glitch.v) <= 9", *trials)
    assert found.verdict == "pass" and found.measured is not None
    assert found.measured.interval.mean == pytest.approx(1)
    # Of values there are none.
    held = [trial([(4.0, "held", 1.0, "s")] * count, seed) for seed, count in enumerate((2, 0, 1), 1)]
    assert judged("event.held.v <= 9 s", *held).verdict == "inconclusive"
    # Where no trial knows the word it may be another.
    assert judged("count(event.glich.v) <= 9", *trials).verdict == "inconclusive"


names = st.text(
    st.characters(codec="utf-8", exclude_characters='"\n', exclude_categories=("Cs", "Cc")), min_size=1
)
values = st.lists(st.tuples(st.integers(0, 9_999), st.none() | st.floats(-1e6, 1e6)), min_size=1, max_size=30)


@given(names, values)
@settings(max_examples=60)
def test_any_name_may_be_counted_and_its_values_read(name: str, of: list[tuple[int, float | None]]) -> None:
    one = trial([(at / 1e3, name, value, "s") for at, value in of])
    text = f'event."{name}".v'
    assert str(parse(f"{text} > 0 s").references()[0]) in (text, f"event.{name}.v")
    try:
        found = judged(f"count({text}) == {len(of)}", one)
    except ExpressionError as error:
        raise AssertionError(name) from error
    assert found.verdict == "pass" or name in MEASURED, found.why
    known = [value for _, value in of if value is not None]
    if known:
        assert one.value(f"event.{name}", "v") == pytest.approx(sum(known) / len(known), abs=1e-3)


def scenario(**more: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "id": "my/one",
            "title": "One",
            "path": {"down": {"rate": "1 Mbit/s", "queue": "droptail 10 packets"}, "up": {"delay": "1 ms"}},
            "flows": {"video": {"role": "subject", "system": {"server": "a", "player": "b"}}},
            "until": {"time": "10 s"},
            "modes": ["emu"],
            **more,
        }
    )


def problem(**more: Any) -> str:
    with pytest.raises((ScenarioError, ValueError)) as error:
        scenario(**more)
    return str(error.value)


def check(that: str) -> dict[str, Any]:
    return {"checks": {"c": {"that": that, "origin": "predicted"}}}


def test_a_scenario_may_check_and_draw_events_and_is_refused_what_cannot_be() -> None:
    figures = [{"draw": "series", "of": ["event.my_decode_time", "event_count.my_rebuffer"]}]
    assert scenario(figures=figures, **check("event.my_decode_time.video <= 20 ms")).figures
    assert "read stall_count, stall_time" in problem(**check("event.stall.video <= 3"))
    assert "draw frames_shown" in problem(figures=[{"draw": "series", "of": ["event_count.frame_shown"]}])
    assert "write event.x" in problem(figures=[{"draw": "series", "of": ["event.x.video"]}])
    assert "expected one of" in problem(figures=[{"draw": "series", "of": ["events.x"]}])

"""What adaptive players show, by records worked out by hand, by walking, and by what always holds."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.metrics import TrialMetrics, compute
from synthetic import EVENTS, SECOND, constant, record

Said = tuple[float, str, float | None, str]
Rates = list[int]

LADDER = (300, 750, 1200, 1850, 2850, 4300)
"""kbit/s."""
STARTUP: list[Said] = [(1.0, "playout_start", 0.5, "s"), (0.0, "stall_count", 0.0, "1")]
COMMANDS = {
    "system": {"server": "a", "player": "b"},
    "clip": {"source": "carphone", "ladder": [f"{rate} kbit/s" for rate in LADDER], "segment": "4 s"},
}


def measured(*flows: list[Said], duration: float = 60.0, plan: Any = None, **more: Any) -> TrialMetrics:
    """Players that said these (s, name, value, unit), on a link of 1 Mbit/s unless `more` says another."""
    names = [f"p{place}" for place in range(len(flows))]
    made = record(constant(0, 5, 0, duration), flows=names, duration_s=duration, **more)
    rows = [
        (round(at * SECOND), flow, name, value, unit, "")
        for flow, said in zip(names, flows, strict=True)
        for at, name, value, unit in said
    ]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    for entry in made.trial["plan"]["flows"]:
        entry |= {"start": 0} | (plan or {})
    made.trial["scenario"]["flows"] = dict.fromkeys(names, COMMANDS)
    return compute(made)


def segments(rates: Rates, begin: float = 1.0, seconds: float = 4.0) -> list[Said]:
    return [
        (begin + seconds * place, "segment_shown", rate * 1e3, "bit/s") for place, rate in enumerate(rates)
    ]


def changes(rates: Rates, begin: float = 1.0, seconds: float = 4.0) -> list[Said]:
    """The same by a player that tells its levels alone."""
    found = [(at, "level_changed", rate, unit) for at, _, rate, unit in segments(rates, begin, seconds)]
    return [one for place, one in enumerate(found) if not place or one[2] != found[place - 1][2]]


def ended(rates: Rates, begin: float = 1.0, seconds: float = 4.0) -> list[Said]:
    return [(begin + seconds * len(rates), "media_end", None, "")]


# By hand.


def test_a_session_by_hand() -> None:
    """Six segments of 4 s with a stall of 2 s after the third, shown first after 0.5 s."""
    before, after = [300, 750, 750], [1850, 300, 300]
    said = [
        *STARTUP, *segments(before), *segments(after, 15.0), (13.0, "stall", None, ""),
        (15.0, "resume", 2.0, "s"), (27.0, "media_end", None, ""),
    ]  # fmt: skip
    found = measured(said)
    rates, steps = [*before, *after], [450, 1100, 1550]
    assert found.value("level_changes", "p0") == 3
    assert found.value("level_step", "p0") == pytest.approx(1e3 * sum(steps) / 3)
    assert found.value("shown_level", "p0") == pytest.approx(1e3 * sum(rates) / 6)
    # By the clock the level of before holds through the stall.
    assert found.value("level", "p0") == pytest.approx(1e3 * (4 * sum(rates) + 2 * 750) / 26)
    assert found.value("lowest_level", "p0") == 300e3
    # Yin et al.: lambda 1, mu and mu_s 3000.
    assert found.value("qoe_lin", "p0") == pytest.approx(
        1e3 * (sum(rates) - sum(steps) - 3000 * 2 - 3000 * 0.5) / 6
    )
    logs = [math.log(rate / 300) for rate in rates]
    apart = sum(abs(b - a) for a, b in pairwise(logs))
    assert found.value("qoe_log", "p0") == pytest.approx((sum(logs) - apart - 2.66 * 2) / 6)
    # A stretch has what lies in it: one segment, one change, and the stall.
    assert found.value("qoe_lin", "p0", 12.0, 16.0) == pytest.approx(1e3 * (1850 - 1100 - 6000))
    json = found.flow_json("p0")
    assert (json["lowest_level_bps"], json["level_changes"]) == (300e3, 3)
    assert json["qoe_lin_bps"] == pytest.approx(found.value("qoe_lin", "p0"))


def test_who_waits_long_is_worth_less_than_nothing() -> None:
    said = [*STARTUP, *segments([300]), (1.5, "stall", None, ""), (6.0, "media_end", None, "")]
    assert measured(said).value("qoe_lin", "p0") == pytest.approx(300e3 - 3e6 * 5)


def test_pauses_are_neither_shown_nor_waited() -> None:
    said = [*STARTUP, *segments([300, 300]), (9.0, "media_end", None, ""), (10.0, "media_end", None, "")]
    paused = measured(said, plan={"actions": [(3 * SECOND, "pause"), (5 * SECOND, "resume")]})
    assert paused.value("qoe_lin", "p0") == pytest.approx(300e3 - 0.5 * 3e6 / 2)
    series = paused.series("shown_level", "p0")
    assert series.denominator is not None and series.denominator.sum() == pytest.approx(6)


@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        (changes([300, 750]), {"qoe_lin_bps", "qoe_log", "shown_level_bps"}),
        ([*changes([300, 750]), STARTUP[0]], {"qoe_lin_bps", "qoe_log", "shown_level_bps"}),
        ([*changes([300, 750]), STARTUP[1]], {"qoe_lin_bps", "qoe_log", "shown_level_bps"}),
        ([*changes([300, 750]), *STARTUP], set()),
        (STARTUP, {"qoe_lin_bps", "qoe_log", "shown_level_bps", "lowest_level_bps", "level_step_bps"}),
    ],
    ids=["levels alone", "no stalls told", "no start told", "all", "no levels"],
)
def test_what_is_not_said_is_not_known(said: list[Said], lacks: set[str]) -> None:
    found = measured(said).flow_json("p0")
    of_levels = {"qoe_lin_bps", "qoe_log", "shown_level_bps", "lowest_level_bps", "level_step_bps"}
    assert {key for key in of_levels if found[key] is None} == lacks


def test_a_level_that_is_chosen_before_play_and_never_shown_is_no_level_shown() -> None:
    said = [(0.2, "level_changed", 300e3, "bit/s"), (0.6, "level_changed", 750e3, "bit/s"), *STARTUP]
    found = measured([*said, (5.0, "media_end", None, "")])
    assert found.value("lowest_level", "p0") == found.value("shown_level", "p0") == 750e3
    # Nor a change for who sees it.
    assert found.value("qoe_lin", "p0") == pytest.approx(750e3 - 0.5 * 3e6)


# What always holds.

rates = st.lists(st.sampled_from(LADDER), min_size=1, max_size=12)
waits = st.lists(st.integers(0, 3000), min_size=12, max_size=12)
plays = st.sampled_from([segments, changes])


def session(of: Rates, stalls_ms: list[int], by_segment: bool) -> list[Said]:
    """Segments of 4 s with a stall before each but the first."""
    said, at = list(STARTUP), 1.0
    for place, (rate, wait) in enumerate(zip(of, stalls_ms, strict=False)):
        if place and wait:
            said += [(at, "stall", None, ""), (at + wait / 1e3, "resume", wait / 1e3, "s")]
            at += wait / 1e3
        if by_segment or not place or rate != of[place - 1]:
            said.append((at, "segment_shown" if by_segment else "level_changed", rate * 1e3, "bit/s"))
        at += 4.0
    return [*said, (at, "media_end", None, "")]


def test_what_is_shown_counts_and_not_what_is_chosen() -> None:
    shown: list[Said] = [(1.0, "level_shown", 300e3, "bit/s"), (5.0, "level_shown", 900e3, "bit/s")]
    chosen: list[Said] = [(0.5, "level_changed", 300e3, "bit/s"), (2.0, "level_changed", 900e3, "bit/s")]
    found = measured([*STARTUP, *chosen, *shown, (9.0, "media_end", None, "")], duration=10.0)
    assert found.value("level", "p0") == pytest.approx(600e3)
    assert found.value("level_changes", "p0") == 1


@given(rates, waits, st.booleans())
@settings(max_examples=60)
def test_qoe_by_walking(of: Rates, stalls_ms: list[int], by_segment: bool) -> None:
    """However the levels are told, as long as segments are as long as the clip's."""
    found = measured(session(of, stalls_ms, by_segment), duration=90.0)
    stalled = sum(stalls_ms[1 : len(of)]) / 1e3
    apart = sum(abs(b - a) for a, b in pairwise(of))
    expected = 1e3 * (sum(of) - apart - 3000 * (stalled + 0.5)) / len(of)
    assert found.value("qoe_lin", "p0") == pytest.approx(expected, abs=1e-3)
    # What segments take adds up to the session, and by media time each counts alike.
    shown = found.series("shown_level", "p0")
    assert shown.denominator is not None
    assert shown.denominator.sum() == pytest.approx(4 * len(of), abs=1e-6)
    assert shown.value(found.grid.slice()) == pytest.approx(1e3 * float(np.mean(of)))
    assert found.value("lowest_level", "p0") == 1e3 * min(of)
    assert min(of) - 1e-6 <= found.value("level", "p0") / 1e3 <= max(of) + 1e-6
    assert found.value("level_changes", "p0") == sum(a != b for a, b in pairwise(of))


@given(st.sampled_from(LADDER), st.integers(1, 12), st.booleans())
@settings(max_examples=30)
def test_of_a_constant_level_qoe_is_the_level_less_the_wait(rate: int, count: int, by_segment: bool) -> None:
    found = measured(session([rate] * count, [0] * 12, by_segment))
    assert found.value("qoe_lin", "p0") == pytest.approx(1e3 * rate - 0.5 * 3e6 / count)
    assert found.value("qoe_log", "p0") == pytest.approx(math.log(rate / LADDER[0]), abs=1e-9)
    assert found.value("instability", "p0") == pytest.approx(0)
    assert math.isnan(found.value("level_step", "p0"))


@given(rates, st.randoms())
@settings(max_examples=40)
def test_the_order_costs_changes_alone(of: Rates, random: Any) -> None:
    mixed = list(of)
    random.shuffle(mixed)
    one, other = (measured(session(order, [0] * 12, True)) for order in (sorted(of), mixed))
    assert one.value("shown_level", "p0") == pytest.approx(other.value("shown_level", "p0"))
    # Sorted they change least.
    assert one.value("qoe_lin", "p0") >= other.value("qoe_lin", "p0") - 1e-6


@given(rates, st.integers(0, 11), st.integers(1, 5000))
@settings(max_examples=40)
def test_more_waiting_is_worth_less(of: Rates, where: int, more_ms: int) -> None:
    place = 1 + where % max(1, len(of) - 1)
    waits_ms = [0] * 12
    none = measured(session(of, waits_ms, True), duration=90.0).value("qoe_lin", "p0")
    waits_ms[place % 12] = more_ms
    some = measured(session(of, waits_ms, True), duration=90.0).value("qoe_lin", "p0")
    lost = 3000 * more_ms / len(of) if place < len(of) else 0.0
    assert none - some == pytest.approx(lost, abs=1e-3)


@given(rates, waits)
@settings(max_examples=30)
def test_stretches_of_qoe_add_up(of: Rates, stalls_ms: list[int]) -> None:
    found = measured(session(of, stalls_ms, True), duration=90.0)
    for metric in ("qoe_lin", "qoe_log"):
        series = found.series(metric, "p0")
        assert series.denominator is not None
        assert series.denominator.sum() == len(of)
        assert series.numerator.sum() / len(of) == pytest.approx(found.value(metric, "p0"))


# Instability.


@given(rates, st.integers(300, 9000))
@settings(max_examples=40)
def test_instability_by_walking(of: Rates, lasts_ms: int) -> None:
    said = [
        (1.0 + place * lasts_ms / 1e3, "level_changed", 1e3 * rate, "bit/s") for place, rate in enumerate(of)
    ]
    found = measured(said)
    times = [1000 + place * lasts_ms for place in range(len(of))]

    def level(at_ms: int) -> float | None:
        begun = [rate for time, rate in zip(times, of, strict=True) if time < at_ms]
        return begun[-1] if begun else None

    samples = found.series("instability", "p0").samples()
    for place, end_ns in enumerate(found.grid.edges_ns[1:].tolist()):
        back = [level(end_ns // 10**6 - 1000 * seconds) for seconds in range(21)]
        known = [0.0 if one is None else one for one in back]
        switched = sum(
            abs(known[d] - known[d + 1]) * (20 - d)
            for d in range(20)
            if back[d] is not None and back[d + 1] is not None
        )
        whole = sum(known[d] * (20 - d) for d in range(1, 21))
        if whole:
            assert samples[place] == pytest.approx(switched / whole)
        else:
            assert np.isnan(samples[place])


def test_a_change_weighs_less_as_it_gets_older_and_nothing_after_20_s() -> None:
    found = measured([*changes([1000]), (10.25, "level_changed", 2e6, "bit/s")])
    samples = found.series("instability", "p0").samples()
    at = [samples[found.grid.slice(10.5 + age, 11.0 + age)][0] for age in range(21)]
    assert at == sorted(at, reverse=True) and at[19] > at[20] == 0


# Players beside each other.


def test_unfairness_and_inefficiency_by_hand() -> None:
    """600 and 200 kbit/s on 1 Mbit/s, then 400 each; 5 packets of 1042 B a second are neither's media."""
    one = [(0.0, "level_changed", 600e3, "bit/s"), (20.0, "level_changed", 400e3, "bit/s")]
    two = [(0.0, "level_changed", 200e3, "bit/s"), (20.0, "level_changed", 400e3, "bit/s")]
    found = measured([*one], [*two], duration=40.0)
    index = 800**2 / (2 * (600**2 + 200**2))
    assert found.value("unfairness", "bottleneck", 0.0, 20.0) == pytest.approx(math.sqrt(1 - index))
    assert found.value("unfairness", "bottleneck", 20.0, 40.0) == pytest.approx(0, abs=1e-7)
    assert found.value("unfairness", "bottleneck") == pytest.approx(math.sqrt(1 - index) / 2)
    assert found.value("inefficiency", "bottleneck") == pytest.approx(0.2)
    assert found.stage_json("bottleneck")["inefficiency"] == pytest.approx(0.2)


def test_what_others_take_is_not_the_players_to_use() -> None:
    """The packets are those of a flow that plays nothing: 41,680 bit/s."""
    found = measured([], changes([500], 0.0), duration=40.0)
    left = 1e6 - 5 * 1042 * 8
    assert found.value("inefficiency", "bottleneck") == pytest.approx((left - 500e3) / left, rel=1e-3)
    with pytest.raises(KeyError, match="nothing to measure"):
        found.value("unfairness", "bottleneck")


def test_players_that_ask_for_more_than_there_is_are_inefficient_too() -> None:
    found = measured(changes([900], 0.0), changes([600], 10.0), duration=20.0)
    assert found.value("inefficiency", "bottleneck", 0.0, 10.0) == pytest.approx(0.1)
    assert found.value("inefficiency", "bottleneck", 10.0, 20.0) == pytest.approx(0.5)
    # One alone is neither fair nor unfair.
    assert math.isnan(found.value("unfairness", "bottleneck", 0.0, 10.0))


@given(st.lists(st.sampled_from(LADDER), min_size=2, max_size=5), st.randoms())
@settings(max_examples=30)
def test_unfairness_is_a_share_and_knows_no_order(of: Rates, random: Any) -> None:
    mixed = list(of)
    random.shuffle(mixed)
    one, other = (
        measured(*[changes([rate], 0.0) for rate in order], duration=4.0).value("unfairness", "bottleneck")
        for order in (of, mixed)
    )
    assert one == pytest.approx(other, abs=1e-7) and 0 <= one < math.sqrt(1 - 1 / len(of)) + 1e-9
    if len(set(of)) == 1:
        assert one == pytest.approx(0, abs=1e-7)


def test_without_players_a_bottleneck_has_neither() -> None:
    found = measured([], duration=4.0).stage_json("bottleneck")
    assert (found["unfairness"], found["inefficiency"]) == (None, None)


# What a player says of itself.


def test_what_the_player_says_of_live_goes_before_what_its_frames_tell() -> None:
    frames: list[Said] = [(1 + i / 25, "frame_shown", float(i), "1") for i in range(50)]
    said: list[Said] = [(2.0, "live_latency", 3.0, "s"), (2.5, "live_latency", 5.0, "s")]
    found = measured([*frames, *said], duration=10.0)
    assert found.value("live_latency", "p0") == 4
    assert found.flow_json("p0")["live_latency_max_s"] == 5
    assert measured(frames, duration=10.0).value("live_latency", "p0") == pytest.approx(1, abs=0.05)
    paused = measured(said, plan={"actions": [(int(2.2 * SECOND), "pause")]}, duration=10.0)
    assert paused.value("live_latency", "p0") == 3


def test_a_ladder_has_frames_as_a_clip_has() -> None:
    clip = {"name": "300k", "duration": 400 * SECOND, "frame_interval": 40_000_000, "frame_bytes": [500] * 25}
    ladder = {"name": "l", "segment": 4 * SECOND, "video": [{"bit_rate_bps": 300_000, "clip": clip}]}
    frames: list[Said] = [(1.5 + i / 25, "frame_shown", float(i), "1") for i in range(100)]
    found = measured(frames, plan={"app": {"adaptive": {"ladder": ladder}}, "start": SECOND}, duration=10.0)
    assert found.value("live_latency", "p0") == pytest.approx(0.5)


def test_the_plans_ladder_tells_how_long_segments_are_and_which_rate_is_the_lowest() -> None:
    levels = [{"bit_rate_bps": 1000 * rate, "clip": {}} for rate in (300, 900)]
    ladder = {"name": "l", "segment": 5 * SECOND, "video": levels}
    said = [*STARTUP, *changes([900]), (11.0, "media_end", None, "")]
    found = measured(said, plan={"app": {"adaptive": {"ladder": ladder}}}, duration=20.0)
    # 10 s are two segments.
    assert found.value("qoe_lin", "p0") == pytest.approx(900e3 - 0.5 * 3e6 / 2)
    assert found.value("qoe_log", "p0") == pytest.approx(math.log(3))


def test_estimates_are_the_mean_of_what_was_said() -> None:
    said: list[Said] = [(1.0, "estimate", 1e6, "bit/s"), (9.0, "estimate", 2e6, "bit/s")]
    found = measured(said)
    assert found.value("estimate", "p0") == 1.5e6
    assert found.flow_json("p0")["estimate_mean_bps"] == 1.5e6
    assert found.flow_json("p0")["events"] == {}


def test_frames_that_a_browser_dropped_are_lost() -> None:
    frames: list[Said] = [(1 + i / 25, "frame_shown", None, "1") for i in range(90)]
    drops: list[Said] = [(2.0, "dropped_frames", 4.0, "1"), (3.0, "dropped_frames", 10.0, "1")]
    found = measured([*frames, *drops], duration=10.0)
    assert found.value("frames_lost", "p0") == pytest.approx(0.1)
    # A page that is loaded again counts anew.
    again = measured([*frames, *drops, (4.0, "dropped_frames", 0.0, "1")], duration=10.0)
    assert again.value("frames_lost", "p0") == pytest.approx(0.1)
    # Without frames shown it is a share of nothing known.
    assert measured([STARTUP[0], *drops], duration=10.0).flow_json("p0")["frames_lost_percent"] is None

"""What the session is for its viewer: the share frozen, how far behind live, stalls of any player, levels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.metrics import TrialMetrics, compute
from synthetic import EVENTS, SECOND, constant, record

FRAME_S = 0.04
Said = tuple[float, str, float | None, str]


def measured(
    said: list[Said],
    *,
    duration: float = 20.0,
    asked: dict[str, Any] | None = None,
    plan: dict[str, Any] | None = None,
    **more: Any,
) -> TrialMetrics:
    """A flow whose player said these (s, name, value, unit)."""
    made = record(constant(0, 20, 0, duration), flows=["video"], duration_s=duration, **more)
    rows = [(round(at * SECOND), "video", name, value, unit, "") for at, name, value, unit in said]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    made.trial["plan"]["flows"][0] |= plan or {}
    made.trial["scenario"]["flows"] = {"video": asked or {}}
    return compute(made)


def frames(begin: float, end: float, first: int = 0) -> list[Said]:
    count = round((end - begin) / FRAME_S)
    return [(begin + i * FRAME_S, "frame_shown", float(first + i), "1") for i in range(count)]


# The share of the session that is frozen.


def test_the_frozen_share_is_of_the_session_and_of_any_stretch() -> None:
    metrics = measured([*frames(1, 5), *frames(9, 19), (19.0, "media_end", None, "")])
    # Frozen from the last frame's 4.96 s to 9 s, of the 18 s from the first frame to the media's end.
    assert metrics.value("frozen_share", "video") == pytest.approx(4.04 / 18)
    assert metrics.value("frozen_share", "video", 5.0, 9.0) == pytest.approx(1)
    assert metrics.value("frozen_share", "video", 10.0, 19.0) == 0
    assert np.isnan(metrics.value("frozen_share", "video", 19.0, 20.0))
    assert metrics.flow_json("video")["frozen_percent"] == pytest.approx(100 * 4.04 / 18)


def test_pauses_are_no_part_of_the_frozen_share() -> None:
    plan = {"actions": [(5 * SECOND, "pause"), (15 * SECOND, "resume")]}
    metrics = measured([*frames(1, 4), *frames(15, 20, 75)], plan=plan)
    # 3.96 s to 5 s, of the 4 s before the pause and the 5 s after it.
    assert metrics.value("frozen_share", "video") == pytest.approx(1.04 / 9)


def test_who_tells_stalls_and_no_frames_has_no_frozen_share() -> None:
    found = measured([(1.0, "playout_start", 1.0, "s"), (4.0, "stall", None, ""), (6.0, "resume", 2.0, "s")])
    assert found.flow_json("video")["frozen_percent"] is None
    assert found.value("rebuffer_ratio", "video") == pytest.approx(2 / 19)


gaps = st.lists(st.integers(1, 900), min_size=1, max_size=80)
pauses = st.lists(st.integers(0, 20_000), max_size=6, unique=True).map(
    lambda at: [(ms * 1_000_000, what) for ms, what in zip(sorted(at), itertools.cycle(["pause", "resume"]))]
)


@given(gaps, st.none() | st.integers(1, 20_000), pauses)
@settings(max_examples=60)
def test_the_frozen_share_is_a_share(of: list[int], media_end_ms: int | None, actions: list[Any]) -> None:
    times = np.cumsum(of) / 1e3
    said: list[Said] = [(float(t), "frame_shown", float(i), "1") for i, t in enumerate(times) if t < 20]
    if media_end_ms is not None:
        said.append((media_end_ms / 1e3, "media_end", None, ""))
    metrics = measured(said, plan={"actions": actions})
    series = metrics.series("frozen_share", "video")
    assert series.denominator is not None
    assert (series.numerator <= series.denominator + 1e-9).all() and (series.numerator >= 0).all()
    assert series.numerator.sum() <= metrics.series("freeze_time", "video").numerator.sum() + 1e-9


# Behind live.

CLIP = {"name": "c", "duration": 400 * SECOND, "frame_interval": 40_000_000, "frame_bytes": [500] * 25}
OURS = {"app": {"rtp": {"clip": CLIP, "max_payload": 1388, "tcp": None}}, "start": SECOND // 2}
COMMANDS = {"system": {"server": "a", "player": "b"}, "clip": "carphone-550k"}


@given(
    st.integers(0, 3000),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 200)), min_size=1, max_size=60),
    st.booleans(),
)
@settings(max_examples=60)
def test_behind_live_by_walking(late_ms: int, steps: list[tuple[int, int]], ours: bool) -> None:
    """A player that begins late, stalls and skips at will; its frames, one pass a second, run on."""
    said, number, at_ms, expected = [], 0, 500 + late_ms, []
    for stalled, skipped in steps:
        number, at_ms = number + 1 + skipped, at_ms + 40 + stalled
        if at_ms < 20_000:
            said.append((at_ms / 1e3, "frame_shown", float(number), "1"))
            expected.append((at_ms - 500 - 40 * number) / 1e3)
    plan = OURS if ours else {"start": SECOND // 2}
    metrics = measured(said, plan=plan, asked=None if ours else COMMANDS)
    if not expected:
        return
    # The built-in clip's interval is not quite 40 ms.
    allowed = 1e-9 if ours else 0.001 * max(number, 1)
    assert metrics.value("live_latency", "video") == pytest.approx(np.mean(expected), abs=allowed)
    series = metrics.series("live_latency", "video")
    part = metrics.grid.slice()
    assert series.extreme(part, highest=True) == pytest.approx(max(expected), abs=allowed)
    assert series.extreme(part, highest=False) == pytest.approx(min(expected), abs=allowed)


def test_a_stall_puts_the_viewer_behind_live_for_good_and_a_skip_brings_it_back() -> None:
    metrics = measured([*frames(1, 5), *frames(8, 12, 100), *frames(12, 18, 275)], plan=OURS)
    assert metrics.value("live_latency", "video", 1.0, 5.0) == pytest.approx(0.5)
    assert metrics.value("live_latency", "video", 8.0, 12.0) == pytest.approx(3.5)
    assert metrics.value("live_latency", "video", 12.0, 18.0) == pytest.approx(0.5)


def test_the_viewers_own_pause_is_not_behind_live() -> None:
    plan = OURS | {"actions": [(5 * SECOND, "pause"), (9 * SECOND, "resume")]}
    metrics = measured([*frames(1, 5), *frames(9, 12, 100)], plan=plan)
    assert metrics.value("live_latency", "video") == pytest.approx(0.5)


def test_play_that_begins_within_the_clip_is_behind_that() -> None:
    app = {"darwin": {"clip": CLIP, "player": {"begin": 40 * SECOND}}}
    metrics = measured(frames(1, 5, 1000), plan={"app": app, "start": SECOND})
    assert metrics.value("live_latency", "video") == pytest.approx(0)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ([(1.0, "frame_shown", None, "1"), (1.1, "frame_shown", None, "1")], COMMANDS),
        ([(1.0, "frame_shown", 5.0, "1"), (1.1, "frame_shown", 5.0, "1")], COMMANDS),
        ([(1.0, "frame_shown", 5.0, "1"), (1.1, "frame_shown", 0.0, "1")], COMMANDS),
        ([(1.0, "frame_shown", 0.0, "s"), (1.1, "frame_shown", 0.04, "s")], COMMANDS),
        (frames(1, 5), {"system": COMMANDS["system"]}),
        # What ships and is not ours counts the frames that it shows.
        (frames(1, 5), COMMANDS | {"system": "rtsp"}),
    ],
    ids=["no numbers", "one number twice", "numbers that fall", "times", "no clip", "a count"],
)
def test_where_it_is_not_known_how_far_behind_live(said: list[Said], asked: dict[str, Any]) -> None:
    found = measured(said, asked=asked, plan={"start": 0}).flow_json("video")
    assert found["live_latency_mean_s"] is None
    assert found["frames_shown"] == len(said)


# Stalls, of players that tell what they tell.


PARTS: dict[str, list[Said]] = {
    "start": [(1.0, "playout_start", 0.8, "s")],
    "frames": [*frames(1, 5), *frames(8, 19, 100)],
    "stall": [(5.0, "stall", None, "")],
    "resume": [(8.0, "resume", 3.0, "s")],
    "count": [(0.5, "stall_count", 0.0, "1")],
}


@pytest.mark.parametrize("size", range(1, len(PARTS) + 1))
def test_every_combination_of_what_a_player_tells(size: int) -> None:
    for chosen in itertools.combinations(PARTS, size):
        said = [event for part in chosen for event in PARTS[part]]
        found = measured(said).flow_json("video")
        begins = "start" in chosen or "frames" in chosen
        tells = "stall" in chosen or ("count" in chosen and begins)
        stalled_s = 0.0 if "stall" not in chosen else 3.0 if "resume" in chosen else 15.0
        assert found["stall_count"] == (int("stall" in chosen) if tells else None), chosen
        assert found["stall_time_s"] == (pytest.approx(stalled_s) if tells else None), chosen
        share = pytest.approx(100 * stalled_s / 19) if tells and begins else None
        assert found["rebuffer_percent"] == share, chosen
        startup = 0.8 if "start" in chosen else pytest.approx(1.0) if "frames" in chosen else None
        assert found["startup_delay_s"] == startup, chosen
        assert found["frames_shown"] == (375 if "frames" in chosen else None), chosen
        assert (found["frozen_percent"] is None) == ("frames" not in chosen), chosen


def test_playout_start_without_a_value_is_timed_from_the_first_packet() -> None:
    assert measured([(1.5, "playout_start", None, "")]).value("startup_delay", "video") == pytest.approx(1.5)


def test_a_stall_that_is_said_again_is_one() -> None:
    again: list[Said] = [(5.0 + i, "stall", None, "") for i in range(3)]
    metrics = measured([*PARTS["start"], *again, (8.0, "resume", 3.0, "s"), (8.0, "stall", None, "")])
    # The last begins as the first ends, and goes on to the end.
    assert metrics.value("stall_count", "video") == 2
    assert metrics.value("stall_time", "video") == pytest.approx(15)
    assert metrics.value("stall_time", "video", 5.0, 7.0) == pytest.approx(2)


def test_what_is_before_play_began_is_start_up_and_no_stall() -> None:
    """As a browser says `waiting` before it has begun to play."""
    said: list[Said] = [(0.2, "stall", None, ""), (1.0, "resume", None, ""), *PARTS["start"]]
    found = measured([*said, *PARTS["stall"], *PARTS["resume"]]).flow_json("video")
    assert (found["stall_count"], found["stall_time_s"]) == (1, pytest.approx(3))
    assert measured([*said, *PARTS["count"]]).value("stall_count", "video") == 0


@given(st.dictionaries(st.integers(0, 19_000), st.booleans(), max_size=24), st.integers(0, 19_000))
@settings(max_examples=60)
def test_stalls_are_disjoint_and_within_the_session(whens: dict[int, bool], start: int) -> None:
    stall, resume = ([at for at, is_stall in whens.items() if is_stall is which] for which in (True, False))
    said: list[Said] = [(start / 1e3, "playout_start", 0.5, "s"), (0.0, "stall_count", 0.0, "1")]
    said += [(at / 1e3, "stall", None, "") for at in stall] + [
        (at / 1e3, "resume", None, "") for at in resume
    ]
    metrics = measured(said)
    stalled = metrics.value("stall_time", "video")
    assert 0 <= metrics.value("stall_count", "video") <= len(stall)
    assert metrics.value("rebuffer_ratio", "video") == pytest.approx(stalled / (20 - start / 1e3))
    # By walking: stalled from a stall to the next resume.
    inside = np.zeros(20_000, dtype=bool)
    for at in stall:
        inside[max(at, start) : min([one for one in resume if one >= at], default=20_000)] = True
    assert stalled == pytest.approx(inside.sum() / 1e3)


# Levels.


def test_the_level_is_weighted_by_time_and_pauses_are_left_out() -> None:
    said: list[Said] = [
        (2.0, "level_changed", 300e3, "bit/s"), (6.0, "level_changed", 900e3, "bit/s"),
        (7.0, "level_changed", 900e3, "bit/s"), (16.0, "level_changed", 300e3, "bit/s"),
        (18.0, "media_end", None, ""),
    ]  # fmt: skip
    metrics = measured(said)
    assert metrics.value("level", "video") == pytest.approx((4 * 300e3 + 10 * 900e3 + 2 * 300e3) / 16)
    # The first is no change, nor is what is as before.
    assert metrics.value("level_changes", "video") == 2
    assert metrics.value("level_changes", "video", 0.0, 10.0) == 1
    assert metrics.value("level", "video", 7.0, 10.0) == 900e3
    paused = measured(said, plan={"actions": [(8 * SECOND, "pause"), (13 * SECOND, "resume")]})
    assert paused.value("level", "video") == pytest.approx((4 * 300e3 + 5 * 900e3 + 2 * 300e3) / 11)
    assert np.isnan(paused.value("level", "video", 9.0, 12.0))
    json = metrics.flow_json("video")
    assert (json["level_changes"], json["level_mean_bps"]) == (2, pytest.approx(10.8e6 / 16))


@pytest.mark.parametrize("unit", ["1", ""])
def test_numbers_of_levels_are_no_rates(unit: str) -> None:
    said: list[Said] = [(2.0, "level_changed", 1.0, unit), (6.0, "level_changed", 3.0, unit)]
    found = measured(said).flow_json("video")
    assert (found["level_changes"], found["level_mean_bps"]) == (1, None)


def test_who_never_says_its_level_has_none() -> None:
    found = measured(frames(1, 5)).flow_json("video")
    assert (found["level_changes"], found["level_mean_bps"]) == (None, None)

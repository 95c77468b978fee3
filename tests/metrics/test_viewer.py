"""What the viewer sees, by events worked out by hand and by walking."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.metrics.course import Spans
from streamgauge.metrics.grid import grid_of
from streamgauge.metrics.viewer import freezes
from synthetic import EVENTS, SECOND, constant, record

Said = tuple[float, str, float | None]


def measured(
    said: list[Said],
    *,
    duration: float = 20.0,
    actions: list[tuple[int, str]] | None = None,
    app: Any = "external",
    **more: Any,
) -> TrialMetrics:
    """A flow whose player said these (s, name, value), and one that only sends."""
    made = record(constant(0, 20, 0, duration), flows=["video", "bulk"], duration_s=duration, **more)
    rows = [(round(at * SECOND), "video", name, value, "", "") for at, name, value in said]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    made.trial["plan"]["flows"][0] |= {"actions": actions or [], "app": app}
    return compute(made)


def frames(begin: float, end: float, per_second: int = 25) -> list[Said]:
    count = round((end - begin) * per_second)
    return [(begin + i / per_second, "frame_shown", float(i)) for i in range(count)]


def test_frames_shown_and_lost() -> None:
    late = [(3.5 + i / 10, "frame_late", 0.02) for i in range(5)]
    metrics = measured([*frames(1, 3), *late, (4.5, "frame_incomplete", None), *frames(5, 19.9)])
    found = metrics.flow_json("video")
    assert found["frames_shown"] == 50 + 372
    assert found["frames_lost_percent"] == pytest.approx(100 * 6 / (6 + 50 + 372))
    # The picture of the frame at 2.96 s stays until 5 s.
    assert found["freeze_count"] == 1
    assert found["freeze_time_s"] == pytest.approx(5 - 2.96)
    assert metrics.value("freeze_time", "video", 3.0, 4.0) == pytest.approx(1.0)
    assert metrics.value("freeze_count", "video", 3.0, 20.0) == 0
    # Without a word of the player's the startup is from the first packet on.
    assert found["startup_delay_s"] == pytest.approx(1.0)
    silent = metrics.flow_json("bulk")
    assert silent["frames_shown"] is None and silent["freeze_count"] is None


def test_a_players_silence_says_nothing_of_what_it_never_tells() -> None:
    unknown = {
        "frames_lost_percent": None,
        "stall_count": None,
        "stall_time_s": None,
        "rebuffer_percent": None,
    }
    said = frames(1, 19.9)[::2]
    found = measured(said).flow_json("video")
    assert {key: found[key] for key in unknown} == unknown
    assert (found["frames_shown"], found["freeze_count"]) == (len(said), 0)
    # Ours tell everything: there is nothing to tell.
    clip = {"name": "c", "duration": SECOND, "frame_interval": 40_000_000, "frame_bytes": [500] * 25}
    ours = {"rtp": {"clip": clip, "max_payload": 1388, "tcp": None}}
    found = measured(said, app=ours).flow_json("video")
    assert {key: found[key] for key in unknown} == dict.fromkeys(unknown, 0)
    # One that tells of a frame that came too late tells of all.
    late = measured([*said, (5.0, "frame_late", 0.1)]).flow_json("video")
    assert late["frames_lost_percent"] == pytest.approx(100 / (len(said) + 1)) and late["stall_count"] is None
    stalled = measured([*said, (5.0, "stall", 100.0), (6.0, "resume", 1.0)]).flow_json("video")
    assert stalled["stall_time_s"] == pytest.approx(1.0) and stalled["frames_lost_percent"] is None
    # The same holds for a player that counts them and had none.
    counted = measured([*said, (5.0, "stall_count", 0.0)]).flow_json("video")
    assert (counted["stall_count"], counted["stall_time_s"], counted["rebuffer_percent"]) == (0, 0, 0)


def test_a_receiver_that_never_waits_tells_all_of_its_frames() -> None:
    said = [*frames(1, 3), (3.0, "frame_incomplete", None), *frames(3.04, 19.9)]
    found = measured(said, app={"srt": {}}).flow_json("video")
    assert found["frames_shown"] == len(said) - 1
    assert found["frames_lost_percent"] == pytest.approx(100 / len(said))
    assert (found["stall_count"], found["rebuffer_percent"]) == (0, 0)
    whole = measured(frames(1, 3), app={"srt": {}}).flow_json("video")
    assert whole["frames_lost_percent"] == 0


def test_stalls_of_a_player_that_tells_of_no_frame() -> None:
    said: list[Said] = [(2.0, "playout_start", 1.5), (4.0, "stall", None), (7.0, "resume", 3.0)]
    found = measured([*said, (12.0, "stall", None)]).flow_json("video")
    assert (found["frames_shown"], found["freeze_count"]) == (None, None)
    assert (found["stall_count"], found["startup_delay_s"]) == (2, 1.5)
    # The second goes on to the end.
    assert found["stall_time_s"] == pytest.approx(3 + 8)
    assert found["rebuffer_percent"] == pytest.approx(100 * 11 / 18)


def test_stalls_and_the_share_of_the_session_that_they_take() -> None:
    said = [
        (0.9, "playout_start", 0.75), *frames(1, 5), (5.0, "stall", 100.0), (8.0, "resume", 3.0),
        *frames(8, 12), (12.0, "stall", 200.0), (16.0, "media_end", 200.0),
        (2.0, "buffer", 4.0), (4.0, "buffer", 2.0),
    ]  # fmt: skip
    found = measured(said).flow_json("video")
    assert (found["stall_count"], found["stall_time_s"]) == (2, pytest.approx(3 + 4))
    # Of the 15 s from the first frame to the media's end.
    assert found["rebuffer_percent"] == pytest.approx(100 * 7 / 15)
    assert found["startup_delay_s"] == 0.75
    assert (found["buffer_mean_s"], found["buffer_min_s"]) == (3.0, 2.0)
    # A picture that stands still is frozen too, also the last until the player gives up.
    assert found["freeze_time_s"] == pytest.approx(8 - 4.96 + 16 - 11.96)


def test_a_picture_that_stays_to_the_end_is_frozen_unless_the_media_ended() -> None:
    assert measured(frames(1, 10)).value("freeze_time", "video") == pytest.approx(20 - 9.96)
    ended = measured([*frames(1, 10), (11.0, "media_end", 225.0)])
    assert ended.value("freeze_count", "video") == 0
    # Frames that were due after the last one shown, and never came.
    missing = [(10 + i / 25, "frame_incomplete", None) for i in range(50)]
    cut = measured([*frames(1, 10), *missing, (13.0, "media_end", 225.0)])
    assert cut.value("freeze_time", "video") == pytest.approx(11.96 - 9.96)


def test_a_pause_is_no_freeze_and_no_stall() -> None:
    actions = [(5 * SECOND, "pause"), (15 * SECOND, "resume")]
    metrics = measured([*frames(1, 5), *frames(15, 20)], actions=actions)
    assert metrics.value("freeze_count", "video") == 0
    # 1 s without a picture before it, which is.
    metrics = measured([*frames(1, 4), *frames(15, 20)], actions=actions)
    assert metrics.value("freeze_time", "video") == pytest.approx(5 - 3.96)
    stalled = measured([*frames(1, 4), (4.0, "stall", 75.0), (16.0, "resume", 2.0)], actions=actions)
    assert stalled.value("stall_time", "video") == pytest.approx(2.0)
    assert stalled.value("rebuffer_ratio", "video") == pytest.approx(2 / 9)


def test_who_shows_nothing_has_no_freezes_to_count() -> None:
    found = measured([(5.0, "frame_incomplete", None)]).flow_json("video")
    assert (found["frames_shown"], found["frames_lost_percent"]) == (0, 100)
    assert (found["freeze_count"], found["rebuffer_percent"], found["startup_delay_s"]) == (None, None, None)


@given(st.lists(st.integers(1, 400), min_size=2, max_size=120), st.integers(0, 2000))
@settings(max_examples=200)
def test_freezes_by_walking(gaps_ms: list[int], tail_ms: int) -> None:
    shown = np.cumsum(np.array(gaps_ms, dtype=np.int64)) * 1_000_000
    found = freezes(shown, int(shown[-1]) + tail_ms * 1_000_000, Spans.none())
    lasted = [*gaps_ms[1:], tail_ms]
    expected = []
    for i in range(1, len(lasted)):
        before = lasted[max(0, i - 30) : i]
        mean = sum(before) / len(before)
        if lasted[i] >= max(3 * mean, mean + 150):
            expected.append(int(shown[i]))
    assert found.begin.tolist() == expected


spans = st.lists(st.integers(0, 10_000), min_size=0, max_size=12, unique=True).map(
    lambda cuts: [(low, high) for low, high in zip(sorted(cuts)[::2], sorted(cuts)[1::2], strict=False)]
)


def made(of: list[tuple[int, int]]) -> Spans:
    begin, end = (np.array([one[i] for one in of], dtype=np.int64) for i in range(2))
    return Spans(begin, end)


@given(spans, spans, st.lists(st.integers(-10, 11_000), max_size=10))
def test_spans_by_counting(of: list[tuple[int, int]], others: list[tuple[int, int]], at: list[int]) -> None:
    inside = np.zeros(12_000, dtype=bool)
    for low, high in of:
        inside[low:high] = True
    taken = np.zeros(12_000, dtype=bool)
    for low, high in others:
        taken[low:high] = True
    found = made(of).within(np.array(at, dtype=np.int64))
    assert found.tolist() == [int(inside[: max(time, 0)].sum()) for time in at]
    left = made(of).without(made(others))
    assert int((left.end - left.begin).sum()) == int((inside & ~taken).sum())
    grid = grid_of({"sample": "1 us"}, 1e-5)
    assert left.seconds(grid).sum() * 1e9 == pytest.approx((inside & ~taken)[:10_000].sum())

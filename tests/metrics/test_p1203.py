"""Sessions as P.1203 takes them: segments by media time that fill the session, stalls where they were."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.errors import MediaError
from streamgauge.metrics.p1203 import session_of
from synthetic import EVENTS, SECOND, SyntheticRecord, constant, record

Said = tuple[float, str, float | None, str]

LADDER = {"source": "testsrc2", "ladder": ["200 kbit/s", "600 kbit/s", "1 Mbit/s"], "audio": "64 kbit/s"}
COMMANDS = {"system": {"server": "a", "player": "b"}, "clip": LADDER}


def made(said: list[Said], *, asked: Any = COMMANDS, actions: Any = ()) -> SyntheticRecord:
    found = record(constant(0, 5, 0, 60), flows=["video"], duration_s=60.0)
    rows = [(round(at * SECOND), "video", name, value, unit, "") for at, name, value, unit in said]
    found.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    found.trial["scenario"]["flows"] = {"video": asked}
    found.trial["plan"]["flows"][0] |= {"start": 0, "actions": list(actions)}
    return found


START: list[Said] = [(0.5, "playout_start", 0.5, "s"), (0.0, "stall_count", 0.0, "1")]
LEVELS: list[Said] = [(0.5, "level_changed", 200e3, "bit/s"), (3.0, "level_changed", 900e3, "bit/s")]
STALL: list[Said] = [(1.5, "stall", None, ""), (2.0, "resume", 0.5, "s"), (4.0, "media_end", None, "")]


def test_by_hand() -> None:
    session = session_of(made([*START, *LEVELS, *STALL]), "video")
    assert session["I23"]["stalling"] == [[0.0, 0.5], [1.0, 0.5]]
    # A rate that is none of the ladder's has the picture of the nearest.
    assert session["I13"]["segments"] == [
        {
            "bitrate": 200.0,
            "codec": "h264",
            "duration": 2.0,
            "fps": 25,
            "resolution": "352x288",
            "start": 0.0,
        },
        {
            "bitrate": 900.0,
            "codec": "h264",
            "duration": 1.0,
            "fps": 25,
            "resolution": "640x360",
            "start": 2.0,
        },
    ]
    assert session["I11"]["segments"] == [{"bitrate": 64.0, "codec": "aaclc", "duration": 3.0, "start": 0.0}]
    assert session["IGen"] == {"device": "pc", "displaySize": "1920x1080"}


def test_pauses_are_no_part_of_it() -> None:
    paused = made([*START, *LEVELS, *STALL], actions=[(SECOND, "pause"), (int(1.25 * SECOND), "resume")])
    session = session_of(paused, "video")
    assert sum(one["duration"] for one in session["I13"]["segments"]) == pytest.approx(2.75)
    assert session["I23"]["stalling"][1] == [pytest.approx(0.75), 0.5]


@given(
    st.lists(st.tuples(st.integers(500, 9000), st.sampled_from([200e3, 600e3, 1e6])), min_size=1, max_size=6),
    st.lists(st.integers(1, 400), min_size=6, max_size=6),
)
@settings(max_examples=40)
def test_segments_follow_each_other_and_stalls_lie_between(
    of: list[tuple[int, float]], waits_ms: list[int]
) -> None:
    said, at_ms, begins = list(START), 500, []
    for place, ((lasts_ms, rate), wait_ms) in enumerate(zip(of, waits_ms, strict=False)):
        if place:
            said += [(at_ms / 1e3, "stall", None, ""), ((at_ms + wait_ms) / 1e3, "resume", None, "")]
            at_ms += wait_ms
        begins.append(at_ms)
        said.append((at_ms / 1e3, "segment_shown", rate, "bit/s"))
        at_ms += lasts_ms
    session = session_of(made([*said, (at_ms / 1e3, "media_end", None, "")]), "video")
    segments = session["I13"]["segments"]
    assert [one["duration"] for one in segments] == pytest.approx([lasts_ms / 1e3 for lasts_ms, _ in of])
    ends = [one["start"] + one["duration"] for one in segments]
    assert [one["start"] for one in segments] == pytest.approx([0.0, *ends[:-1]])
    stalls = session["I23"]["stalling"]
    assert stalls[0] == [0.0, 0.5]
    assert [place for place, _ in stalls[1:]] == pytest.approx(ends[:-1])
    assert [wait for _, wait in stalls[1:]] == pytest.approx([ms / 1e3 for ms in waits_ms[1 : len(of)]])


@pytest.mark.parametrize(
    ("said", "asked", "why"),
    [
        (LEVELS, COMMANDS, "when play began .*, its stalls"),
        ([*START, (0.5, "level_changed", 1.0, "1")], COMMANDS, "the rate of what it shows"),
        ([*START, *LEVELS], {"system": COMMANDS["system"]}, "picture sizes and frame rates"),
        (
            [*START, *LEVELS],
            {
                "clip": {
                    "source": "carphone",
                    "rate": "300 kbit/s",
                    "rate_control": "variable",
                    "codec": "mpeg4",
                }
            },
            "H.264 alone",
        ),
        ([*START, *LEVELS, (0.5, "media_end", None, "")], COMMANDS, "nothing was played"),
    ],
    ids=["levels alone", "numbers of levels", "no clip", "another codec", "over at once"],
)
def test_what_it_needs_and_is_not_there_is_named(said: list[Said], asked: Any, why: str) -> None:
    with pytest.raises(MediaError, match=why):
        session_of(made(said, asked=asked), "video")


def test_a_flow_that_is_not_there_is_named() -> None:
    with pytest.raises(MediaError, match="none of that name"):
        session_of(made([*START, *LEVELS]), "audio")

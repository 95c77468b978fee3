"""Stalls of adaptive streams, inferred from the capture of a trial whose player reported its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge import _native
from streamgauge.captures.analysis import AnalysisRequest, analyse
from streamgauge.captures.playing import adaptive_streams

FILES = Path(__file__).parent / "files"
CAPTURE = FILES / "dash-stalls.pcapng.gz"
"""The emulated trial of dash-stalls.yaml, both ends; packets are cut to their headers, but for text."""
REPORTED: dict[str, Any] = json.loads((FILES / "dash-stalls.json").read_text())
"""What its player reported: stalls with their begin and length."""


def stalls_are_those_reported(stream: dict[str, Any], within_s: float) -> None:
    found, reported = stream["stalls"], REPORTED["stalls"]
    assert len(found) == len(reported)
    first_s = found[0]["at_s"] - reported[0]["at_s"]
    for stall, true in zip(found, reported, strict=True):
        assert stall["at_s"] - first_s == pytest.approx(true["at_s"], abs=within_s)
        assert stall["duration_s"] == pytest.approx(true["duration_s"], abs=within_s)
    assert stream["stall_s"] == pytest.approx(REPORTED["stall_s"], abs=within_s)
    low, high = stream["stall_bounds_s"]
    assert low <= REPORTED["stall_s"] <= high


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return analyse(AnalysisRequest((CAPTURE,)))


def test_by_requests(document: dict[str, Any]) -> None:
    (stream,) = document["streams"]
    assert (stream["by"], stream["segment_s"], stream["segment_s_from"]) == ("requests", 2.0, "manifest")
    assert (stream["segments"], stream["given_up"]) == (22, 1)
    stalls_are_those_reported(stream, 0.2)
    assert stream["confidence"] == "medium"
    levels = [level["rate_bps"] for level in stream["levels"]]
    assert levels == pytest.approx([100e3, 500e3, 100e3], rel=0.02)
    assert (stream["phases"]["pattern"], len(stream["flows"])) == ("on_off", 2)


def test_by_sizes_alone(document: dict[str, Any]) -> None:
    """As TLS leaves it: no text, and the same packets."""
    found = json.loads(_native.analyse_captures((CAPTURE, 0), (CAPTURE, 1)))
    hidden = [{**flow, "requests": [], "manifests": [], "protocol": "tls"} for flow in found["flows"]]
    (stream,) = adaptive_streams(hidden)
    assert (stream["by"], stream["segments"], stream["given_up"]) == ("sizes", 22, 1)
    assert stream["segment_s"] == pytest.approx(2.0, abs=0.05)
    stalls_are_those_reported(stream, 0.3)
    assert stream["confidence"] == "low"


def test_the_verdict(document: dict[str, Any]) -> None:
    first = document["answer"][0]
    assert first.startswith(
        "The path dropped 2.3 % at its tail-drop queue of 3.65 s; the player stalled 4 times"
    )
    assert "because segments came at 55.9 kbit/s and their level needs" in first
    assert first.endswith("Confidence: medium.")
    assert document["path"]["lost"] == REPORTED["dropped"]


def flow_of(times: list[tuple[float, float]], **more: Any) -> dict[str, Any]:
    """An HTTP connection with a segment of 50 kB at each time: asked for, and whole after."""
    requests = [
        {
            "at_s": at, "method": "GET", "target": f"/v1/{number}.m4s", "status": 200,
            "answered_after_s": 0.01,
            "done_after_s": after, "body_bytes": 50_000, "content_type": "video/mp4",
        }
        for number, (at, after) in enumerate(times, start=1)
    ]  # fmt: skip
    return {
        "flow": "http 10.0.0.1:80 > 10.0.0.2:4", "from": "10.0.0.1:80", "to": "10.0.0.2:4",
        "protocol": "http", "requests": requests, "manifests": [], "exchanges": [], **more,
    }  # fmt: skip


def test_without_a_length_stalls_are_not_known() -> None:
    (stream,) = adaptive_streams([flow_of([(n * 0.5, 0.49) for n in range(8)])])
    assert stream["stalls"] is None and stream["confidence"] is None
    assert "manifest" in stream["why"]


def test_the_pace_shows_the_length() -> None:
    times = [(0.0, 0.2), (0.25, 0.2), (0.5, 0.2), (4.0, 0.2), (8.0, 0.2), (12.0, 0.2), (16.0, 0.2)]
    (stream,) = adaptive_streams([flow_of(times)])
    assert (stream["segment_s"], stream["segment_s_from"]) == (4.0, "pace")
    assert (stream["stalls"], stream["confidence"]) == ([], "medium")


@pytest.mark.parametrize(
    ("manifest", "length_s"),
    [
        ('<MPD><SegmentTemplate timescale="1000" duration="1920" media="x"/></MPD>', 1.92),
        ('<SegmentTemplate timescale="90000"><SegmentTimeline><S t="0" d="360000" r="9"/>', 4.0),
        ("#EXTM3U\n#EXTINF:6.006,\na.ts\n#EXTINF:6.006,\nb.ts\n#EXTINF:2.1,\nc.ts\n", 6.006),
        ('<SegmentTemplate timescale="0" duration="0"/>', None),
        ("<MPD", None),
    ],
)
def test_lengths_in_manifests(manifest: str, length_s: float | None) -> None:
    (stream,) = adaptive_streams([flow_of([(n * 0.5, 0.49) for n in range(8)], manifests=[manifest])])
    assert stream["segment_s"] == length_s


def test_sound_beside_the_picture_is_a_stream_of_its_own() -> None:
    video = flow_of([(n * 2.0, 0.3) for n in range(8)])
    sound = flow_of([(n * 2.0 + 0.1, 0.1) for n in range(8)])
    for request in sound["requests"]:
        request |= {"target": request["target"].replace("v1", "a0"), "content_type": "audio/mp4"}
    both = {
        **video,
        "requests": sorted([*video["requests"], *sound["requests"]], key=lambda one: one["at_s"]),
    }
    assert [stream["segments"] for stream in adaptive_streams([both])] == [8, 8]

"""Windows Media in sim: each protocol plays, and rollover ends at the first that the path lets through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamgauge import _native
from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text
from streamgauge.scenario.lower import lower

SCENARIO = """
id: test/windows-media
title: A clip by one protocol or another
path:
  down: {BLOCKED_DOWN, rate: 1 Mbit/s, queue: droptail 40 kB, delay: 20 ms}
  up: {BLOCKED_UP, delay: 20 ms}
flows:
  clip:
    role: subject
    system: windows_media
    parameters: {transport: TRANSPORT}
    clip: {source: carphone, ladder: [60k, 150k], audio: 16 kbit/s, segment: 2 s, duration: 20 s}
until: {time: 130 s}
"""


def simulated(folder: Path, transport: str, down: str = "", up: str = "") -> list[dict[str, Any]]:
    """The events of the player and the server."""
    text = SCENARIO.replace("TRANSPORT", transport)
    for place, what in (("BLOCKED_DOWN, ", down), ("BLOCKED_UP, ", up)):
        text = text.replace(place, f"block: {what}, " if what else "")
    (scenario,) = from_text(text)
    plan = lower(scenario, "sim", 1)
    summary = json.loads(_native.simulate(json.dumps(plan), folder))
    assert not summary["imbalance"]
    # A record has no ports, and what a firewall did to some of them is replayed nevertheless.
    assert not json.loads(_native.replay(json.dumps(plan), str(folder)))["different"]
    return list(pl.read_parquet(folder / "events.parquet").sort("time").iter_rows(named=True))


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["name"] == name]


@pytest.mark.parametrize("transport", ["udp", "tcp", "mms_udp", "mms_tcp", "http"])
def test_every_protocol_shows_all(transport: str, tmp_path: Path) -> None:
    events = simulated(tmp_path, transport)
    (end,) = named(events, "media_end")
    assert len(named(events, "frame_shown")) == end["value"] > 100
    assert not named(events, "protocol_tried")
    over_udp = transport.endswith("udp")
    assert len(named(events, "estimate")) == over_udp, "on a connection nothing is measured"


PROTOCOLS = ("RTSP over UDP", "RTSP over TCP", "MMS over UDP", "MMS over TCP", "HTTP")

STEPS = [
    ("", "", 1, 0),
    ("udp", "", 2, 10),
    ("tcp ports 554", "", 3, 42),
    ("udp", "tcp ports 554", 4, 52),
    ("", "tcp ports 554 1755", 5, 84),
]
"""What is blocked down and up, how many are tried, and when the last of them is, s."""


@pytest.mark.parametrize(("down", "up", "count", "at"), STEPS, ids=PROTOCOLS)
def test_rollover_ends_at_what_the_path_lets_through(
    down: str, up: str, count: int, at: float, tmp_path: Path
) -> None:
    protocols = list(PROTOCOLS[:count])
    events = simulated(tmp_path, "rollover", down, up)
    tried = named(events, "protocol_tried")
    assert [event["reason"].partition(";")[0] for event in tried] == protocols
    assert [event["value"] for event in tried] == list(range(1, len(protocols) + 1))
    # Each reason says why the one before failed.
    for before, event in zip(protocols, tried[1:], strict=False):
        assert event["reason"].partition("; ")[2].startswith(f"{before}: ")
    assert at <= tried[-1]["time"] / 1e9 < at + 1
    assert len(named(events, "frame_shown")) > 100


def test_where_nothing_passes_one_error_says_what_was_tried(tmp_path: Path) -> None:
    events = simulated(tmp_path, "rollover", up="tcp")
    (end,) = named(events, "media_end")
    why = "no connection came to be for 21 s"
    assert end["reason"] == "an error: no protocol works; " + "; ".join(f"{one}: {why}" for one in PROTOCOLS)
    assert end["value"] == 0 and end["time"] / 1e9 == pytest.approx(105, abs=0.1)


def test_no_other_word_names_a_protocol(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="is not one of udp, tcp, mms_udp, mms_tcp, http, rollover"):
        simulated(tmp_path, "mms")

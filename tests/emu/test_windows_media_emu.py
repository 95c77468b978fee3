"""Protocol rollover on real sockets: each of five steps is reached, and costs what the player waits for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from driving import Beside, Person, events, side_by_side

PAIR_WAIT_S, CONNECT_WAIT_S = 2.0, 1.5

TEXT = """
id: test/windows-media-NAME
title: One clip by whatever the path lets through
path:
  down: {BLOCKED_DOWN, rate: 500 kbit/s, queue: droptail 30 kB, delay: 20 ms}
  up: {BLOCKED_UP, delay: 20 ms}
flows:
  clip:
    role: subject
    system: windows_media
    parameters: {transport: rollover, silence: 1 s, pair_wait: 2 s, connect_wait: 1500 ms, buffered: 10 s}
    clip: {source: carphone, ladder: [60k, 150k], audio: 16 kbit/s, segment: 2 s, duration: 60 s}
until: {time: 16 s}
"""
"""Long enough where a pair, late on a busy machine, tells too low a rate: 10 s of media then come in 10 s."""

PROTOCOLS = ["RTSP over UDP", "RTSP over TCP", "MMS over UDP", "MMS over TCP", "HTTP"]

PAIR, CONNECTION = "no packet-pair data", "no connection came to be for 1.5 s"

STEPS: dict[str, tuple[str, str, list[str]]] = {
    "rtsp-udp": ("", "", []),
    "rtsp-tcp": ("udp", "", [PAIR]),
    "mms-udp": ("tcp ports 554", "", [CONNECTION, CONNECTION]),
    "mms-tcp": ("udp", "tcp ports 554", [CONNECTION, CONNECTION, PAIR]),
    "http": ("tcp ports 1755 554", "", [CONNECTION] * 4),
    "nothing": ("", "tcp", [CONNECTION] * 5),
}
"""What is blocked down and up, and why each protocol before the last fails."""


def text(name: str) -> str:
    down, up, _ = STEPS[name]
    found = TEXT.replace("NAME", name)
    for place, what in (("BLOCKED_DOWN, ", down), ("BLOCKED_UP, ", up)):
        found = found.replace(place, f"block: {what}, " if what else "")
    return found


NAMES = {name: side_by_side(text(name)) for name in STEPS}


@pytest.mark.parametrize("name", [name for name in STEPS if name != "nothing"])
def test_each_step_is_reached_and_costs_what_it_waits_for(name: str, beside: Beside, anyone: Person) -> None:
    _, _, failures = STEPS[name]
    emulated, (sim,) = beside(NAMES[name]), anyone.simulated(text(name))
    reasons = []
    for trial in (emulated, sim):
        tried = events(trial, "protocol_tried")
        reasons.append([event["reason"] for event in tried])
        assert [event["reason"].partition(";")[0] for event in tried] == PROTOCOLS[: len(failures) + 1]
        for why, event in zip(failures, tried[1:], strict=True):
            assert why in event["reason"], event["reason"]
        took = [(after["time"] - before["time"]) / 1e9 for before, after in pairwise(tried)]
        for why, seconds in zip(failures, took, strict=True):
            # A round trip is 40 ms; before the packets that measure the link some messages are exchanged.
            waits, messages = (PAIR_WAIT_S, 0.6) if why == PAIR else (CONNECT_WAIT_S, 0.1)
            assert waits <= seconds < waits + messages, (why, seconds)
        assert not events(trial, "media_end")
        assert events(trial, "playout_start") and len(events(trial, "frame_shown")) > 10
        # Media that the last protocol brought: nothing of those before it was left running.
        assert all(event["time"] > tried[-1]["time"] for event in events(trial, "level_sent"))
    assert reasons[0] == reasons[1], "sockets tell what sim tells"


def test_where_nothing_passes_one_error_says_what_was_tried(beside: Beside) -> None:
    (end,) = events(beside(NAMES["nothing"]), "media_end")
    why = "; ".join(f"{one}: {CONNECTION}" for one in PROTOCOLS)
    assert end["reason"] == f"an error: no protocol works; {why}"
    assert end["time"] / 1e9 == pytest.approx(5 * CONNECT_WAIT_S, abs=0.2)

"""Progressive download on real sockets: a valid trial, and the same viewer's figures as in sim."""

from __future__ import annotations

import pytest
from driving import Beside, Person, events, said, side_by_side

TEXT = """
id: test/http
title: A download on a link that is too slow for its clip
path:
  down: {rate: 400 kbit/s, queue: droptail 50 packets, delay: 20 ms}
  up: {delay: 20 ms}
flows:
  video:
    role: subject
    system: http
    parameters: {request: 50 kB, prebuffer: 1 s, rebuffer: 1 s}
    clip: carphone-550k
until: {time: 18 s, media_end: video}
measure: {window: [0 s, 18 s]}
"""

NAME = side_by_side(TEXT)


def test_sockets_give_what_sim_gives(beside: Beside, anyone: Person) -> None:
    emulated, sim = beside(NAME), anyone.simulated(TEXT)[0]
    one, other = emulated["flows"]["video"], sim["flows"]["video"]
    assert one["goodput_bps"] == pytest.approx(other["goodput_bps"], rel=0.03)
    assert one["startup_delay_s"] == pytest.approx(other["startup_delay_s"], abs=0.3)
    assert one["stall_time_s"] == pytest.approx(other["stall_time_s"], rel=0.2, abs=0.5)
    assert other["stall_time_s"] > 1
    # Each frame once and in order, in both.
    for trial in (emulated, sim):
        shown = said(trial, "frame_shown")
        assert shown == [float(number) for number in range(len(shown))] and len(shown) > 100
        assert set(said(trial, "http_response")) == {206.0} and not said(trial, "http_failure")
        # The path's own word on the same: each request and each answer, on the one connection.
        ways = [row["reason"].split(" ", 1) for row in events(trial, "message")]
        assert {way: what.split(" ")[0] for way, what in ways} == {"up": "GET", "down": "206"}
        assert len(ways) == 2 * len(said(trial, "http_response")) and set(said(trial, "message")) == {0.0}

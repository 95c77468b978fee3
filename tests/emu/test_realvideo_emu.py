"""RealVideo on real sockets: a valid trial over UDP beside TCP, and much the same numbers as in sim."""

from __future__ import annotations

import statistics

import pytest
from driving import Beside, Person, events, side_by_side

TEXT = """
id: test/realvideo
title: One clip over UDP and over TCP at once
path:
  down: {rate: 150 kbit/s, queue: droptail 10 kB, delay: 40 ms}
  up: {delay: 40 ms}
flows:
  udp:
    role: subject
    system: realvideo
    parameters: {transport: udp}
    clip: &clip {source: carphone, ladder: [20k, 80k, 150k], audio: 8 kbit/s, segment: 2 s, duration: 60 s}
  tcp:
    role: subject
    system: realvideo
    parameters: {transport: tcp}
    clip: *clip
until: {time: 25 s}
"""

NAME = side_by_side(TEXT)

SIMULATED = 10


def test_sockets_give_what_sim_gives(beside: Beside, anyone: Person) -> None:
    emulated, sim = beside(NAME), anyone.simulated(TEXT, SIMULATED)
    for name in ("udp", "tcp"):
        spread = [trial["flows"][name]["throughput_bps"] for trial in sim]
        reach = 3 * statistics.stdev(spread) + 0.1 * statistics.mean(spread)
        found = emulated["flows"][name]["throughput_bps"]
        assert found == pytest.approx(statistics.mean(spread), abs=reach), name
    for trial in (emulated, sim[0]):
        told = events(trial)
        by_udp, by_tcp = ({row["name"] for row in told if row["flow"] == name} for name in ("udp", "tcp"))
        assert by_udp >= {"playout_start", "frame_shown", "level_changed", "delivery_asked", "packets_missed"}
        assert by_udp >= {"packet_resent", "estimate", "delay_excess", "level_sent"}
        assert by_tcp >= {"level_changed", "delivery_asked", "level_sent"}
        assert not by_tcp & {"packets_missed", "packet_resent"}

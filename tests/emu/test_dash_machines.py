"""Our origin and player on real sockets: a valid trial, and the same choices as in sim."""

from __future__ import annotations

import pytest
from driving import Beside, Person, said, side_by_side

TEXT = """
id: test/dash
title: A ladder on a link that carries half of it
path:
  down: {rate: 800 kbit/s, queue: droptail 50 packets, delay: 20 ms}
  up: {delay: 20 ms}
flows:
  video:
    role: subject
    system: dash
    parameters: {rule: throughput, buffer: 6 s, cmcd: on}
    clip: {source: carphone, ladder: [100k, 250k, 500k, 1M], audio: 48 kbit/s, segment: 2 s}
until: {time: 18 s}
measure: {window: [0 s, 18 s]}
"""

NAME = side_by_side(TEXT)


def test_sockets_give_what_sim_gives(beside: Beside, anyone: Person) -> None:
    emulated, sim = beside(NAME), anyone.simulated(TEXT)[0]
    one, other = emulated["flows"]["video"], sim["flows"]["video"]
    assert one["startup_delay_s"] == pytest.approx(other["startup_delay_s"], abs=0.3)
    assert one["stall_time_s"] == other["stall_time_s"] == 0
    assert one["level_mean_bps"] == pytest.approx(other["level_mean_bps"], rel=0.2)
    for trial in (emulated, sim):
        shown = said(trial, "frame_shown")
        assert shown == [float(number) for number in range(len(shown))] and len(shown) > 300
        assert not said(trial, "http_failure") and len(said(trial, "cmcd")) > 10
        assert len(said(trial, "decision")) >= 6

"""Darwin on real sockets: a valid trial, and the same numbers as in sim."""

from __future__ import annotations

import itertools
import statistics

import pytest
from driving import Beside, Person, events, side_by_side

TEXT = """
id: test/darwin
title: Reliable UDP on a link that is too slow for its clip
path:
  down: {rate: 240 kbit/s, queue: droptail 10 kB, delay: 40 ms}
  up: {delay: 40 ms}
flows:
  qt: {role: subject, system: darwin, parameters: {preset: paper}, clip: carphone-242k}
  vlc: {role: subject, system: darwin, parameters: {player: vlc}, clip: carphone-100k, start: 2 s}
until: {time: 25 s}
measure: {window: [5 s, 25 s]}
"""

NAME = side_by_side(TEXT)


SIMULATED = 10

# Of a flow's metric: what a real clock may add to sim's own spread, as a share of it or so much.
ALLOWED = {"throughput_bps": (0.05, 0.0), "loss_percent": (0.0, 2.0), "startup_delay_s": (0.2, 0.2)}


def test_sockets_give_what_sim_gives(beside: Beside, anyone: Person) -> None:
    emulated, sim = beside(NAME), anyone.simulated(TEXT, SIMULATED)
    for name, metric in itertools.product(("qt", "vlc"), ALLOWED):
        spread = [trial["flows"][name][metric] for trial in sim]
        share, least = ALLOWED[metric]
        # A further trial of sim would lie beyond the first part in one of some hundred cases.
        reach = 3 * statistics.stdev(spread) + max(share * statistics.mean(spread), least)
        assert emulated["flows"][name][metric] == pytest.approx(statistics.mean(spread), abs=reach), (
            name,
            metric,
        )
    # Reliable UDP was at work in both, and for QuickTime alone.
    for trial in (emulated, sim[0]):
        assert trial["flows"]["qt"]["rudp_retransmit_packets"] > 0
        assert trial["flows"]["qt"]["rudp_cwnd_mean_bytes"] > 0
        assert trial["flows"]["vlc"]["rudp_cwnd_mean_bytes"] is None
        assert trial["flows"]["qt"]["frames_shown"] > 0
    told = {row["name"] for row in events(emulated) if row["flow"] == "qt"}
    assert told >= {"rudp_cwnd", "rudp_cut", "frame_shown", "playout_start", "buffer"}

"""A forwarder that flows share, on real sockets: what sim says of it."""

from __future__ import annotations

from typing import Any

import pytest
from driving import Beside, Person, events, side_by_side

CLIP = "{source: carphone, ladder: [100k, 200k], segment: 2 s, duration: 4 s}"


def text(transport: str) -> str:
    """Two viewings, one after the other, with all faces over that."""
    given = f"{{transport: {transport}, rule: fixed}}"
    return f"""
id: test/forwarder-{transport}
title: Two viewings behind one forwarder
path:
  down: {{rate: 600 kbit/s, queue: droptail 50 packets, delay: 50 ms}}
  up: {{delay: 50 ms}}
flows:
  first: {{role: subject, system: ccn, parameters: {given}, clip: {CLIP}, via: home}}
  second: {{role: subject, system: ccn, parameters: {given}, clip: {CLIP}, via: home, start: 6 s}}
relays:
  home: {{system: ccn-forwarder, at: client, parameters: {{transport: {transport}}}}}
until: {{time: 12 s}}
"""


NAMES = {transport: side_by_side(text(transport)) for transport in ("tcp", "udp")}


def shown(trial: dict[str, Any], flow: str) -> int:
    return sum(row["flow"] == flow for row in events(trial, "frame_shown"))


@pytest.mark.parametrize("transport", NAMES)
def test_the_second_viewing_comes_out_of_the_store_as_in_sim(
    beside: Beside, anyone: Person, transport: str
) -> None:
    scenario = text(transport)
    emulated, sim = beside(NAMES[transport]), anyone.simulated(scenario)[0]
    for trial in (emulated, sim):
        assert [shown(trial, flow) for flow in ("first", "second")] == [100, 100], "both saw all of it"
        assert not events(trial, "stall", "face_down", "object_failed")
        for flow in ("first", "second"):
            assert trial["flows"][flow]["received_bytes"] == 0, "what the store hands out crosses no path"
        told = [row for row in events(trial, "forwarder") if row["flow"] == "home"]
        assert told and not told[-1]["reason"].startswith("0 out of the store")
    for name in ("received_bytes", "goodput_bps"):
        one, other = emulated["flows"]["home"][name], sim["flows"]["home"][name]
        assert one == pytest.approx(other, rel=0.02), name

"""Two Chromiums in a call over a link: what arrives, and the counter that proves the controller."""

from __future__ import annotations

import itertools
import shutil
from typing import Any

import pytest
from driving import Person, events, the_valid_one
from streamgauge.systems.webrtc_chromium import CONTROLLERS

SECONDS = 12
TEXT = """
id: test/chromium-call
title: A call on a link of 1 Mbit/s
path:
  down: {{rate: 1 Mbit/s, queue: {queue}, delay: 20 ms}}
  up: {{delay: 20 ms}}
flows:
  video:
    role: subject
    system: webrtc-chromium
    parameters: {{controller: {controller}}}
    clip: testsrc2-1500k
until: {{time: {seconds} s}}
modes: [emu]
"""
QUEUES = {"gcc": "droptail 300 ms", "scream": "dualpi2"}


def called(person: Person, controller: str) -> dict[str, Any]:
    if shutil.which("chromium") is None:
        pytest.skip("no Chromium (make setup-browsers)")
    text = TEXT.format(controller=controller, queue=QUEUES[controller], seconds=SECONDS)
    return the_valid_one(person.trials(text))


@pytest.mark.long
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_two_browsers_call(anyone: Person, controller: str) -> None:
    trial = called(anyone, controller)
    said = [one for one in events(trial) if one["flow"] == "video"]
    by_name = {
        name: [one["value"] for one in said if one["name"] == name] for name in {o["name"] for o in said}
    }
    assert {"connected", "estimate", "encoder_rate", "rtcp_rtt", "buffer", "picture_height"} <= by_name.keys()
    numbers = by_name["frame_shown"]
    assert len(numbers) > 5 * SECONDS and all(b > a for a, b in itertools.pairwise(numbers))
    assert all(latency > 0.02 for latency in by_name["live_latency"])
    assert max(by_name["estimate"]) > 300_000
    # The browser's own counter of packets, and the emulator's marks on them.
    assert (by_name["packets_sent_with_ect1"][-1] > 0) == (controller == "scream")
    # Nothing but the call is on the link, and it begins with the flow.
    assert trial["flows"]["video"]["startup_delay_s"] < SECONDS / 2

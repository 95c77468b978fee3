"""Content-centric networking on real sockets: the same packets as in virtual time."""

from __future__ import annotations

import pytest
from driving import Beside, Person, events, said, side_by_side

TEXT = """
id: test/{preset}-{transport}
title: A ladder by names
path:
  down: {{rate: 2 Mbit/s, delay: 10 ms, queue: droptail 60 kB{loss}}}
  up: {{delay: 10 ms}}
flows:
  video:
    role: subject
    system: ccn
    parameters: {{preset: {preset}, transport: {transport}, rule: bola, buffer: 8 s}}
    clip: {{source: carphone, ladder: [200k, 400k, 800k], segment: 2 s, duration: 12 s}}
until: {{media_end: video, time: 18 s}}
measure: {{window: [0 s, 18 s]}}
"""


SOUND = {
    f"{preset} over {transport}": TEXT.format(preset=preset, transport=transport, loss="")
    for preset, transport in (("ccnx-paper", "tcp"), ("ndn-today", "udp"), ("ccnx-paper", "udp"))
}
NAMES = {which: side_by_side(text) for which, text in SOUND.items()}
LOSSY = side_by_side(TEXT.format(preset="ccnx-0.8", transport="udp", loss=", loss: 2 %"))


@pytest.mark.parametrize("which", SOUND)
def test_sockets_give_what_sim_gives(beside: Beside, anyone: Person, which: str) -> None:
    emulated, sim = beside(NAMES[which]), anyone.simulated(SOUND[which])[0]
    one, other = emulated["flows"]["video"], sim["flows"]["video"]
    assert one["startup_delay_s"] == pytest.approx(other["startup_delay_s"], abs=0.3)
    assert one["stall_time_s"] == other["stall_time_s"] == 0
    # Every picture but what the last segment leaves unshown at the trial's end.
    assert one["frames_shown"] == pytest.approx(other["frames_shown"], abs=5)
    assert said(emulated, "segment_shown") == said(sim, "segment_shown")
    # As many bytes of each object.
    assert said(emulated, "object_fetched") == said(sim, "object_fetched")
    assert not events(emulated, "interest_timeout", "object_failed", "face_down")


def test_what_is_lost_is_asked_for_again(beside: Beside) -> None:
    trial = beside(LOSSY)
    assert len(said(trial, "interest_timeout")) > 3
    assert trial["flows"]["video"]["frames_shown"] > 250
    assert not events(trial, "object_failed")

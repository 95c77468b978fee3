"""The programs of libsrt and librist between namespaces: trials that mend losses."""

from __future__ import annotations

import shutil

import pytest
from driving import Beside, Person, said, side_by_side

TEXT = """
id: test/SYSTEM
title: A contribution on a link that loses packets
path:
  down: {rate: 2 Mbit/s, queue: droptail 100 packets, delay: 20 ms, loss: 3 %}
  up: {delay: 20 ms}
flows:
  video:
    role: subject
    system: SYSTEM
    parameters: {latency: 400 ms}
    clip: {source: carphone, rate: 300 kbit/s, duration: 6 s}
until: {time: 14 s, media_end: video}
modes: [emu]
"""
PROGRAMS = {"srt-libsrt": "srt-live-transmit", "rist-librist": "ristsender"}
NAMES = {
    system: side_by_side(TEXT.replace("SYSTEM", system))
    for system, program in PROGRAMS.items()
    if shutil.which(program) is not None
}


@pytest.mark.long
@pytest.mark.parametrize("system", PROGRAMS)
def test_losses_are_mended(beside: Beside, anyone: Person, system: str) -> None:
    if system not in NAMES:
        pytest.skip(f"{PROGRAMS[system]} is not here (scripts/packages-debian.txt)")
    trial = beside(NAMES[system])
    flow = trial["flows"]["video"]
    assert flow["loss_percent"] > 1 and flow["loss_after_repair_percent"] < 0.5
    shown = said(trial, "frame_shown")
    assert len(shown) >= 140 and shown == sorted(set(shown))
    assert sum(said(trial, "repeated")) >= 3 and not said(trial, "error")
    assert said(trial, "frames_decoded")[-1] >= 0.9 * len(shown)

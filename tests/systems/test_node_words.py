"""What our own machines say at a trial's end, as their adapter passes it on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge.systems.adapter import Clock, Collected, FlowSetup
from streamgauge.systems.node import NodeAdapter

CLOCK = Clock(t0_monotonic_ns=10**9, t0_realtime_ns=0, started={}, ended_monotonic_ns=10**11)


def _collected(folder: Path, **last: Any) -> Collected:
    flow = FlowSetup(name="video", index=0, system="realvideo", folder=folder)
    for side in ("server", "player"):
        flow.out(side).mkdir(parents=True)
        stats = {"received_packets": 450, "received_bytes": 188_911}
        word = {"event": "stopped", "stats": stats, **last}
        (flow.out(side) / "stdout.log").write_text(json.dumps(word) + "\n", encoding="utf-8")
    return NodeAdapter().collect(flow, CLOCK)


@pytest.mark.parametrize(
    ("last", "left"),
    [
        ({"left": {"t_monotonic_ns": 64 * 10**9, "unread_bytes": 7}}, (64 * 10**9, 7)),
        ({"left": None}, (None, 0)),
        ({}, (None, 0)),
    ],
)
def test_a_player_that_left_is_known_to_have(
    tmp_path: Path, last: dict[str, Any], left: tuple[int | None, int]
) -> None:
    found = _collected(tmp_path, **last)
    assert not found.faults
    assert (found.left_monotonic_ns, found.left_unread_bytes) == left
    assert (found.received_packets, found.counts_datagrams) == (450, True)

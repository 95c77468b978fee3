"""Short transfers, media up and a population's members in real trials.

Each trial is slow one way alone: an acknowledgement of a millisecond or two is soon late on a busy machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from driving import Person, the_valid_one
from streamgauge.metrics import compute
from streamgauge.record import Record

TRANSFERS = """
id: test/transfers
title: Short transfers down, held for a while
path:
  down: {rate: 300 kbit/s, queue: droptail 50 packets, delay: 125 ms}
  up: {delay: 125 ms}
flows:
  pages:
    role: subject
    traffic: bulk
    arrivals: {rate: 3 /s, size: 4 kB}
    events: [{at: 1.2 s, do: pause}, {at: 2.2 s, do: resume}]
until: {time: 5 s}
measure: {window: [0 s, 5 s]}
modes: [emu]
"""
UP = """
id: test/up
title: A camera and an upload up, across what each member of a population has
path:
  down: {}
  up: {rate: 400 kbit/s, queue: droptail 50 packets}
flows:
  camera:
    role: subject
    system: rtsp
    parameters: {player: ffmpeg, transport: tcp}
    clip: carphone-100k
    direction: up
  upload: {role: rival, traffic: bulk, congestion_control: reno, parameters: {bytes: 50 kB}, direction: up}
  probe: {role: rival, traffic: ping, parameters: {interval: 200 ms}, direction: up}
population:
  size: 2
  duration: uniform 3 s to 4 s
  rtt: uniform 200 ms to 300 ms
until: {time: 5 s}
measure: {window: [0 s, 5 s]}
modes: [emu]
"""


def _played(person: Person, text: str) -> Record:
    return Record.open(Path(the_valid_one(person.trials(text))["directory"]))


def _plan(record: Record) -> dict[str, Any]:
    return {flow["name"]: flow for flow in record.trial["plan"]["flows"]}


def _base_s(record: Record) -> float:
    """The round trip without queues: a member's own."""
    path = record.trial["plan"]["path"]
    stages = [stage["kind"] for way in ("down", "up") for stage in path[way]]
    return sum(kind["delay"]["delay"] for kind in stages if "delay" in kind) / 1e9


def test_transfers_are_moved_and_held(anyone: Person) -> None:
    record = _played(anyone, TRANSFERS)
    metrics = compute(record)
    arrivals = _plan(record)["pages"]["app"]["bulk"]["arrivals"]
    numbers = {
        int(reason.split()[1].strip(":"))
        for reason in record.events.filter(name="transfer_complete")["reason"]
    }
    # All but those of the pause, and perhaps the last.
    held = {number for number, one in enumerate(arrivals) if 1.2e9 <= one["at"] < 2.2e9}
    late = {number for number, one in enumerate(arrivals) if one["at"] > 3.5e9}
    wanted = set(range(len(arrivals))) - held
    assert held and wanted - late
    assert numbers <= wanted and wanted - numbers <= late
    assert metrics.value("transfers_failed", "pages") == 0
    # The handshake and the request are a round trip each.
    assert metrics.value("completion_time", "pages") >= 2 * _base_s(record)
    connections = record.packets.filter(flow="pages")["connection"].drop_nulls().n_unique()
    assert connections >= len(numbers)
    assert set(record.packets.filter(pl.col("payload_bytes") > 1000)["dir"]) == {"down"}


def test_media_goes_up(anyone: Person) -> None:
    record = _played(anyone, UP)
    metrics, base_s = compute(record), _base_s(record)
    assert 0.2 <= base_s <= 0.3
    large = record.packets.filter(pl.col("payload_bytes") > 1000)
    assert set(large.filter(flow="camera")["dir"]) == {"up"} == set(large.filter(flow="upload")["dir"])
    assert metrics.value("throughput", "camera") > 10 * metrics.value("up_throughput", "camera")
    assert metrics.value("cwnd", "upload") > 0
    assert metrics.value("rtt", "probe") == pytest.approx(base_s, abs=0.9) and base_s <= metrics.value(
        "rtt", "probe"
    )

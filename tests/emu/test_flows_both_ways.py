"""Short transfers, media up and a population's members in real trials."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from driving import Person, the_valid_one
from streamgauge.metrics import compute
from streamgauge.record import Record

SCENARIO = """
id: test/both-ways
title: Short transfers down, a camera and an upload up, of members of a population
path:
  down: {rate: 400 kbit/s, queue: droptail 50 packets}
  up: {rate: 400 kbit/s, queue: droptail 50 packets}
flows:
  pages:
    role: subject
    traffic: bulk
    arrivals: {rate: 3 /s, size: 4 kB}
    events: [{at: 2 s, do: pause}, {at: 4 s, do: resume}]
  camera:
    role: rival
    system: rtsp
    parameters: {player: ffmpeg, transport: tcp}
    clip: carphone-100k
    direction: up
  upload: {role: rival, traffic: bulk, congestion_control: reno, parameters: {bytes: 100 kB}, direction: up}
  probe: {role: rival, traffic: ping, parameters: {interval: 200 ms}, direction: up}
population:
  size: 3
  duration: uniform 4 s to 5 s
  rtt: uniform 200 ms to 300 ms
until: {time: 8 s}
measure: {window: [0 s, 8 s]}
modes: [emu]
"""


def test_transfers_are_moved_and_media_goes_up(anyone: Person) -> None:
    trial = the_valid_one(anyone.trials(SCENARIO))
    record = Record.open(Path(trial["directory"]))
    metrics = compute(record)
    plan = {flow["name"]: flow for flow in record.trial["plan"]["flows"]}
    arrivals = plan["pages"]["app"]["bulk"]["arrivals"]
    numbers = {
        int(reason.split()[1].strip(":"))
        for reason in record.events.filter(name="transfer_complete")["reason"]
    }
    # All but those of the pause, and perhaps the last.
    wanted = {number for number, one in enumerate(arrivals) if not 2e9 <= one["at"] < 4e9}
    late = {number for number, one in enumerate(arrivals) if one["at"] > 6e9}
    assert numbers <= wanted and wanted - numbers <= late
    assert metrics.value("transfers_failed", "pages") == 0
    base_s = (
        sum(
            stage["kind"]["delay"]["delay"]
            for way in ("down", "up")
            for stage in record.trial["plan"]["path"][way]
            if "delay" in stage["kind"]
        )
        / 1e9
    )
    assert 0.2 <= base_s <= 0.3
    # The handshake and the request are a round trip each.
    assert metrics.value("completion_time", "pages") >= 2 * base_s
    connections = record.packets.filter(flow="pages")["connection"].drop_nulls().n_unique()
    assert connections >= len(numbers)
    large = record.packets.filter(pl.col("payload_bytes") > 1000)
    assert set(large.filter(flow="camera")["dir"]) == {"up"} == set(large.filter(flow="upload")["dir"])
    assert set(large.filter(flow="pages")["dir"]) == {"down"}
    assert metrics.value("throughput", "camera") > 10 * metrics.value("up_throughput", "camera")
    assert metrics.value("cwnd", "upload") > 0
    assert metrics.value("rtt", "probe") == pytest.approx(base_s, abs=0.9) and base_s <= metrics.value(
        "rtt", "probe"
    )

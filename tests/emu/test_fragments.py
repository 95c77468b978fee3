"""Datagrams that no frame holds, over a path that cuts up, copies, loses and corrupts: the kernel's own
counters agree with the record."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from driving import Person, the_valid_one
from streamgauge.metrics import compute
from streamgauge.record import Record

SCENARIO = """
id: test/fragments
title: Datagrams of 4 kB over a path that cuts up, copies, loses and corrupts
path:
  down:
    rate: 800 kbit/s
    queue: droptail 200 packets
    delay: 100 ms
    loss: 2 %
    duplicate: 5 %
    corrupt: 2 %
    mtu: 1000 B
  up: {delay: 100 ms}
flows:
  large: {role: subject, traffic: cbr, parameters: {rate: 20 packets/s, size: 4 kB}}
  probe: {role: rival, traffic: ping, parameters: {interval: 500 ms}}
until: {time: 6 s}
modes: [emu]
"""


def test_fragments_cross_and_hosts_agree(anyone: Person) -> None:
    trial = the_valid_one(anyone.trials(SCENARIO))
    folder = Path(trial["directory"])
    record = Record.open(folder)
    rows = record.packets.filter(flow="large")
    stages = record.trial["stages"]
    first, last = (stages[at]["name"] for at in (0, len(record.trial["plan"]["path"]["down"]) - 1))

    # The sending host cut each datagram into three that share a number; the MTU cut the long ones again.
    sent = rows.filter(pl.col("stage") == first, pl.col("copy") == 0)
    offsets = sent.group_by("pkt").agg(pl.col("fragment_offset").unique().sort())
    assert set(map(tuple, offsets["fragment_offset"])) == {(0, 185, 370)}
    arrived = rows.filter(pl.col("stage") == last, pl.col("fate") == "delivered")
    assert arrived["ip_bytes"].max() <= 1000
    assert set(arrived["fragment_offset"]) == {0, 122, 185, 307, 370, 492}

    metrics = compute(record)
    large = metrics.flow_json("large")
    host = record.trial["host"]["player"]
    assert 0 < large["lost_packets"] < large["sent_packets"]
    assert large["fragment_packets"] == arrived.height
    assert large["corrupted_packets"] > 0
    assert large["duplicate_packets"] > 0
    # The kernel put together what arrived whole, sound or not; what was sound reached the player.
    counted = json.loads((folder / "provenance.json").read_text())["counters"]["client"]
    assert counted["Ip.ReasmOKs"] == host["reassembled"] > 0
    assert 0 < host["checksum_errors"] <= large["corrupted_packets"]
    # The counter of checksums is of all flows.
    sound = large["received_packets"]
    assert host["reassembled"] - host["checksum_errors"] <= sound <= host["reassembled"]

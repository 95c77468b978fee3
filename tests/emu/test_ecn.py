"""ECN on real sockets: what senders set, what a queue marks, what TCP agreed on."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from driving import Person, the_valid_one

# A pre-flight fills the queue: with the 10240 packets of the default it takes 20 s at this rate.
SCENARIO = """
id: test/ecn
title: Three ways to say that a flow is ECN-capable, and one that is not
path:
  down: {rate: 500 kbit/s, queue: fq_codel 1000 packets, delay: 20 ms}
  up: {delay: 20 ms}
flows:
  mgen: {role: subject, traffic: cbr, parameters: {rate: 40 packets/s, size: 1000 B, ecn: ect0}}
  ours:
    role: subject
    traffic: cbr
    parameters: {rate: 40 packets/s, size: 1000 B, burst: 2 packets, ecn: ect1}
  tcp: {role: subject, traffic: bulk, ecn: on}
  plain: {role: rival, traffic: cbr, parameters: {rate: 40 packets/s, size: 1000 B}}
until: {time: 6 s}
modes: [emu]
"""


def test_each_says_what_it_was_told_to(anyone: Person) -> None:
    # A trial in which the kernel did not agree on ECN, or agreed unasked, would be invalid.
    trial = the_valid_one(anyone.trials(SCENARIO))
    rows = pl.read_parquet(Path(trial["directory"]) / "packets.parquet").filter(pl.col("dir") == 0)
    said = rows.with_columns(capable=pl.col("flags") & 2 > 0, marked=pl.col("flags") & 4 > 0)
    by_flow = {
        flow[0]: (part["capable"].mean(), part["marked"].sum()) for flow, part in said.group_by("flow")
    }
    for flow in (0, 1):
        capable, marked = by_flow[flow]
        assert capable == 1 and marked > 0, flow
    assert by_flow[2][0] > 0.5, "all but the handshake and retransmissions (RFC 3168 section 6.1.5)"
    assert by_flow[3] == (0, 0)

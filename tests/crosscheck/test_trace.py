"""Connections out of records: one that we made row by row, and one that sim left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from streamgauge.campaign import EmuSettings, jobs_for, run_jobs
from streamgauge.crosscheck.quantities import of_flow
from streamgauge.crosscheck.trace import NEVER, traces
from streamgauge.errors import RecordError
from streamgauge.record import Record
from streamgauge.scenario import Scenario

DATA, CONTROL, BACK = 111, 222, 333


@dataclass
class Made:
    """What is needed of a record."""

    codes: pl.DataFrame
    events: pl.DataFrame
    trial: dict[str, Any]


def row(
    pkt: int, way: int, stage: int, t_in: int, t_out: int | None, t_drop: int | None = None, **more: Any
) -> dict[str, Any]:
    plain = {"copy": 0, "flow": 4, "payload_bytes": 0, "seq": 0, "flags": 0, "hash": DATA, "protocol": 0}
    return (
        plain
        | {"pkt": pkt, "dir": way, "stage": stage, "t_in": t_in, "t_out": t_out, "t_drop": t_drop}
        | more
    )


@pytest.fixture
def made() -> Made:
    rows = [
        # Two data packets pass both stages, one is dropped at the second, one repeats it and passes.
        row(1, 0, 0, 0, 10, payload_bytes=1000, seq=1),
        row(1, 0, 1, 10, 50, payload_bytes=1000, seq=1),
        row(3, 0, 0, 1, 20, payload_bytes=1000, seq=1001),
        row(3, 0, 1, 20, 60, payload_bytes=1000, seq=1001),
        row(4, 0, 0, 2, 30, payload_bytes=1000, seq=2001),
        row(4, 0, 1, 30, None, 30, payload_bytes=1000, seq=2001),
        row(8, 0, 0, 200, 210, payload_bytes=1000, seq=2001, flags=1),
        row(8, 0, 1, 210, 250, payload_bytes=1000, seq=2001, flags=1),
        # iperf3's connection for control, a copy that the path made, another flow, no TCP.
        row(2, 0, 0, 1, 15, payload_bytes=37, hash=CONTROL),
        row(2, 0, 1, 15, 55, payload_bytes=37, hash=CONTROL),
        row(1, 0, 1, 10, 51, payload_bytes=1000, seq=1, copy=1),
        row(9, 0, 0, 0, 10, payload_bytes=5000, flow=5, hash=7),
        row(10, 0, 0, 0, 10, payload_bytes=9000, protocol=1, hash=8),
        # The acknowledgement of the first two is lost, that of the repeated one is not.
        row(5, 1, 2, 61, None, 61, hash=BACK),
        row(6, 1, 2, 250, 300, hash=BACK),
        row(7, 1, 2, 40, 80, hash=444),
    ]
    events = pl.DataFrame(
        {
            "time": [100, 200, 200],
            "flow": ["a", "a", "b"],
            "name": ["tcp_cwnd", "tcp_cwnd", "tcp_cwnd"],
            "value": [14480.0, 7240.0, 1.0],
            "unit": ["B"] * 3,
        }
    )
    trial = {"flows": [{"id": 4, "name": "a"}, {"id": 6, "name": "silent"}]}
    return Made(pl.DataFrame(rows), events, trial)


def test_a_connection_row_by_row(made: Made) -> None:
    found = traces(made)
    assert list(found) == ["a"], "a flow without TCP data has no connection"
    trace = found["a"]
    assert trace.sent.tolist() == [0, 1, 2, 200]
    assert trace.arrived.tolist() == [50, 60, NEVER, 250]
    assert trace.dropped.tolist() == [NEVER, NEVER, 30, NEVER]
    assert trace.seq.tolist() == [1, 1001, 2001, 2001]
    assert trace.repeat.tolist() == [False, False, False, True]
    assert trace.ack_sent.tolist() == [61, 250]
    assert trace.ack_back.tolist() == [NEVER, 300]
    assert trace.answered.tolist() == [300, 300, NEVER, 300]
    assert trace.cwnd[1].tolist() == [14480.0, 7240.0]


def test_a_record_that_tells_connections_is_taken_at_its_word(made: Made) -> None:
    plain = traces(made)["a"]
    # By their addresses the acknowledgements of another connection look alike, and are more.
    stray = pl.DataFrame([row(20 + n, 1, 2, 5, 9, hash=BACK) for n in range(3)])
    rows = pl.concat([made.codes, stray])
    control = (pl.col("hash") == CONTROL) | (pl.col("pkt") >= 20)
    tcp = pl.when(pl.col("protocol") == 0).then(pl.when(control).then(1).otherwise(0))
    made.codes = rows.with_columns(connection=tcp.cast(pl.UInt32)).with_columns(
        # One pair of ports may serve both.
        hash=pl.when(pl.col("hash") == CONTROL).then(DATA).otherwise(pl.col("hash"))
    )
    trace = traces(made)["a"]
    assert trace.sent.tolist() == plain.sent.tolist() and trace.payload.tolist() == [1000] * 4
    assert trace.ack_sent.tolist() == [40, 61, 250], "each of its own, whatever their addresses"


def test_a_record_that_tells_no_connections_apart(made: Made) -> None:
    made.codes = made.codes.drop("hash")
    with pytest.raises(RecordError, match="no connections apart"):
        traces(made)


def test_a_flow_that_its_window_limits(tmp_path: Path) -> None:
    """11 segments a round trip on an empty path: nothing is lost, and RTT is what arithmetic says."""
    scenario = Scenario.model_validate(
        {
            "id": "test/limited",
            "title": "A window of eleven segments",
            "path": {
                "down": {"rate": "10 Mbit/s", "queue": "droptail 100 packets", "delay": "10 ms"},
                "up": {"delay": "10 ms"},
            },
            "flows": {
                "a": {
                    "role": "subject",
                    "traffic": "bulk",
                    "congestion_control": "reno",
                    "parameters": {"receive_window": "16 KiB"},
                }
            },
            "until": {"time": "5 s"},
            "host_jitter": "0 s",
        }
    )
    jobs = jobs_for(scenario, "sim", tmp_path, first_seed=1, repeat=1)
    run_jobs(jobs, keep="packets", emu=EmuSettings())
    (trace,) = traces(Record.open(jobs[0].directory)).values()
    found = of_flow(trace, 10**9, 4 * 10**9)
    transmission_s = 8 * 1514 / 10e6
    assert found["loss_percent"] == found["retransmitted_percent"] == 0
    # Segments leave in pairs, and the acknowledgement of a pair comes with its second.
    assert found["rtt_p5_s"] == pytest.approx(0.020 + 1.5 * transmission_s, abs=0.51 * transmission_s)
    # A segment without a partner waits for the next one's acknowledgement, 40 ms at most.
    assert found["rtt_p95_s"] is not None and found["rtt_p95_s"] < 0.020 + 10 * transmission_s + 0.040
    assert found["window_p50_packets"] in (10, 11)
    # One for two segments, but one for each that ends a super-segment without a partner.
    assert found["acks_per_packet"] is not None and 0.5 <= found["acks_per_packet"] < 0.6
    # Little's law.
    in_flight = (found["goodput_bps"] or 0) * (found["rtt_p50_s"] or 0) / (8 * 1448)
    assert in_flight == pytest.approx(found["window_p50_packets"], rel=0.1)
    assert np.all(trace.dropped == NEVER)

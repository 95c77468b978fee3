"""Windows, samples and layers as scenarios give them; what does not fit is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from streamgauge.errors import RecordError
from streamgauge.metrics import METRICS, compute
from synthetic import EVENTS, constant, record


def test_the_window_is_honoured() -> None:
    sent = constant(0, 50, 2, 4)
    measure = {"window": ["3 s", "5 s"], "sample": "250 ms"}
    metrics = compute(record(sent, flows=["a"], duration_s=10.0, measure=measure))
    assert metrics.value("sent_packets", "a") == 50
    assert metrics.to_json()["window_s"] == [3.0, 5.0]
    assert metrics.value("sent_packets", "a", 0.0, 10.0) == 100
    assert metrics.value("sent_packets", "a", 2.5, 3.0) == 25


def test_a_window_without_a_sample_is_refused() -> None:
    metrics = compute(record(constant(0, 50, 0, 4), flows=["a"], duration_s=4.0))
    with pytest.raises(ValueError, match="holds no sample"):
        metrics.value("throughput", "a", 1.0, 1.1)


@pytest.mark.parametrize(
    "measure", [{"window": ["5 s", "9 s"]}, {"sample": "0 s"}, {"layer": "tcp"}, {"window": ["1 kB", "2 s"]}]
)
def test_what_does_not_fit_is_refused(measure: dict[str, object]) -> None:
    with pytest.raises(RecordError):
        compute(record([], flows=["a"], duration_s=4.0, measure=measure))


def test_a_record_without_a_column_is_refused() -> None:
    made = record(constant(0, 50, 0, 1), flows=["a"], duration_s=1.0)
    made.packets = made.packets.drop("flags")
    with pytest.raises(RecordError, match="flags"):
        compute(made)


def test_unknown_subjects_are_named() -> None:
    metrics = compute(record([], flows=["a"], duration_s=1.0))
    with pytest.raises(KeyError, match="no flow or stage 'b'; it has a, bottleneck"):
        metrics.value("throughput", "b")


def test_every_named_metric_can_be_measured() -> None:
    """`that:` may name any of them: each must be there, of what the table says it is of."""
    sent = constant(0, 150, 0, 6) + constant(1, 90, 0, 6) + constant(0, 2, 6, 119)
    made = record(sent, flows=["a", "b"], duration_s=120.0)
    made.trial["plan"]["flows"][0]["start"] = 0
    made.trial["scenario"]["flows"] = {"a": {"clip": "carphone-550k"}}
    said = {
        "tcp_cwnd": "B", "tcp_srtt": "s", "rtt": "s", "playout_start": "s", "frame_shown": "1", "buffer": "s",
        "rudp_cwnd": "B", "rudp_rto": "s", "overbuffer": "s", "thinning": "1", "frame_late": "s",
        "unrepaired": "1", "discarded": "1",
        "stall": "1", "resume": "s", "transfer_complete": "s", "level_changed": "bit/s", "estimate": "bit/s",
    }  # fmt: skip
    rows = [(10**9, "a", name, 1.0, unit, "") for name, unit in said.items()]
    rows += [(2 * 10**9, flow, "level_changed", 2.0, "bit/s", "") for flow in ("a", "b")]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    metrics = compute(made)
    for name, metric in METRICS.items():
        subjects = {
            "flow": ["a"],
            "stage": ["bottleneck"],
            "flow or stage": ["a", "bottleneck"],
            "trial": [""],
        }
        for subject in subjects[metric.of]:
            assert np.isfinite(metrics.value(name, subject)), (name, subject)


def test_nothing_sent_is_null_not_zero() -> None:
    found = compute(record([], flows=["a"], duration_s=1.0)).flow_json("a")
    assert found["loss_percent"] is None
    assert found["mean_packet_bytes"] is None
    assert found["throughput_bps"] == 0

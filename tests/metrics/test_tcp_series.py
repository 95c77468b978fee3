"""Samples of TCP's state as metrics."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from streamgauge.metrics import compute
from streamgauge.report import LoadedTrial, for_entry, gather
from synthetic import EVENTS, SECOND, constant, record


def test_windows_and_round_trips_are_means_of_the_samples() -> None:
    made = record(constant(0, 150, 0, 5) + constant(1, 90, 0, 5), flows=["a", "b"], duration_s=5.0)
    rows = [
        (round(at * SECOND), flow, name, value, unit, "cubic")
        for flow, name, unit, values in (
            ("a", "tcp_cwnd", "B", {0.1: 10_000.0, 0.3: 20_000.0, 2.0: 60_000.0}),
            ("a", "tcp_srtt", "s", {0.1: 0.020, 0.3: 0.040, 2.0: 0.060}),
            ("b", "tcp_cwnd", "B", {4.9: 1_000.0}),
        )
        for at, value in values.items()
    ]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    metrics = compute(made)
    found = metrics.flow_json("a")
    assert found["cwnd_mean_bytes"] == pytest.approx(30_000)
    assert (found["cwnd_min_bytes"], found["cwnd_max_bytes"]) == (10_000, 60_000)
    assert found["srtt_mean_s"] == pytest.approx(0.040)
    # In bit, as all data: the first half second has two samples, the fifth one, the others none.
    course = metrics.series("cwnd", "a").samples()
    assert course[0] == pytest.approx(8 * 15_000) and course[4] == pytest.approx(8 * 60_000)
    assert sum(value == value for value in course) == 2
    other = metrics.flow_json("b")
    assert (other["cwnd_mean_bytes"], other["srtt_mean_s"]) == (1_000, None)


CLIP = {"frame_interval": 40_000_000, "frame_bytes": [1000]}
TCP = {"mss": 1448}


def rtp(tcp: dict[str, int] | None) -> dict[str, Any]:
    return {"rtp": {"clip": CLIP, "max_payload": 1388, "tcp": tcp}}


def darwin(transport: str) -> dict[str, Any]:
    settings = {"clip": CLIP, "server": {"max_payload": 1450}, "player": {"transport": transport}, "tcp": TCP}
    return {"darwin": settings}


@pytest.mark.parametrize(
    ("app", "asked", "shown"),
    [
        (rtp(None), {}, False),
        (rtp(TCP), {}, True),
        (darwin("udp"), {}, False),
        (darwin("tcp"), {}, True),
        ({"bulk": {"tcp": TCP, "bytes": None}}, {}, True),
        ({"cbr": {"packets_per_s": 1, "burst": 1, "payload_bytes": 500}}, {}, False),
        ("external", {"system": "rtsp", "parameters": {}}, False),
        ("external", {"system": "rtsp", "parameters": {"transport": "udp"}}, False),
        ("external", {"system": "rtsp", "parameters": {"transport": "tcp"}}, True),
        ("external", {"traffic": "bulk", "parameters": {}}, True),
        ("external", {"system": {"name": "web", "server": "nginx"}}, True),
    ],
)
def test_the_window_of_a_connection_that_carries_no_media_is_not_the_flow_s(
    app: Any, asked: dict[str, Any], shown: bool
) -> None:
    """The samples of media over UDP are of its RTSP connection, whose window says nothing of the media."""
    made = record(constant(0, 150, 0, 5), flows=["v"], duration_s=5.0)
    made.trial["plan"]["flows"] = [{"name": "v", "role": "subject", "app": app}]
    made.trial["scenario"]["flows"] = {"v": {"role": "subject", **asked}}
    rows = [
        (SECOND * at, "v", name, value, unit, "cubic")
        for at in range(1, 5)
        for name, value, unit in (("tcp_cwnd", 14_480.0 * (1 + at % 2), "B"), ("tcp_srtt", 0.02, "s"))
    ]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    metrics = compute(made)
    found = metrics.flow_json("v")
    assert found["cwnd_mean_bytes"] == (21_720 if shown else None)
    assert found["srtt_mean_s"] == (pytest.approx(0.02) if shown else None)
    (entry,) = gather([LoadedTrial(made.trial, {}, metrics)])
    (over_time,) = (figure for figure in for_entry(entry) if figure.id == "test-one-time")
    assert ("Congestion window" in over_time.to_json()) is shown

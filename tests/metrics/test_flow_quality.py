"""Delay's tail, smoothness, and completion times of transfers, worked out another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.metrics.order import percentile
from synthetic import EVENTS, PROBE, SECOND, UP, Sent, SyntheticRecord, constant, record

# The 95th percentile of the path's delay.


@given(st.lists(st.floats(-1e6, 1e6), max_size=60), st.integers(0, 100))
def test_the_percentile_is_numpys(values: list[float], percent: int) -> None:
    found = percentile(np.array(values), percent)
    assert (found is None) == (not values)
    if values:
        assert found == pytest.approx(float(np.percentile(values, percent)), rel=1e-9, abs=1e-9)


sending = st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 9), st.integers(100, 1400)), max_size=150)


@given(sending, st.sampled_from([2, 10]), st.sampled_from([None, ["2 s", "7 s"]]))
@settings(max_examples=40)
def test_the_delays_tail_by_looking_at_each_packet(
    packets: list[tuple[int, int, int]], flows: int, window: list[str] | None
) -> None:
    """Of few flows and of many, which are told apart otherwise."""
    sent = [Sent(at / 1e3, flow % flows, payload) for at, flow, payload in packets]
    names = [f"f{i}" for i in range(flows)]
    made = record(sent, flows=names, duration_s=10.0, measure={"window": window} if window else {})
    metrics = compute(made)
    begin, end = (0, 10 * SECOND) if window is None else (2 * SECOND, 7 * SECOND)
    rows = made.packets
    entered = dict(rows.filter(pl.col("stage") == 0).select("pkt", "t_in").iter_rows())
    for number, name in enumerate(names):
        left = rows.filter((pl.col("stage") == 2) & (pl.col("flow") == number)).select("pkt", "t_out")
        delays = [
            (out - entered[packet]) / SECOND
            for packet, out in left.iter_rows()
            if out is not None and begin <= out < end
        ]
        value = metrics.value("path_delay_p95", name)
        if not delays:
            assert np.isnan(value) and metrics.flow_json(name)["path_delay_p95_s"] is None
            continue
        assert value == pytest.approx(float(np.percentile(delays, 95)))
        series = metrics.series("path_delay", name)
        assert value <= series.extreme(metrics.grid.slice(), highest=True) + 1e-12


# Smoothness.


def variation(sent: list[Sent], *, sample: str = "0.5 s", duration: float = 12.0, **plan: Any) -> float:
    measure = {"sample": sample, "window": plan.pop("window", [0.0, duration])}
    made = record(sent, flows=["a"], duration_s=duration, measure=measure, rate_bps=10**7)
    made.trial["plan"]["flows"][0] |= plan
    return compute(made).value("rate_variation", "a")


def test_a_constant_rate_does_not_vary_and_one_that_halves_and_doubles_does() -> None:
    assert variation(constant(0, 50, 0, 11)) == pytest.approx(0, abs=0.02)
    wave = [
        packet
        for second in range(11)
        for packet in constant(0, 20 * (1 + 2 * (second % 2)), second, second + 1)
    ]
    # Rates of 1 and 3 in turn: mean 2 (nearly), standard deviation 1.
    assert variation(wave) == pytest.approx(0.52, abs=0.04)


rates = st.lists(st.integers(0, 60), min_size=8, max_size=11)


@given(rates, st.integers(2, 5))
@settings(max_examples=30)
def test_smoothness_has_nothing_to_do_with_samples_or_units(of: list[int], factor: int) -> None:
    sent = [packet for second, rate in enumerate(of) for packet in constant(0, rate, second, second + 1)]
    first = variation(sent)
    for sample in ("1 s", "0.3 s", "0.7 s", "50 ms", "7 s"):
        assert variation(sent, sample=sample) == pytest.approx(first, nan_ok=True)
    larger = [Sent(one.at, 0, (one.payload + 28) * factor - 28, seq=one.seq) for one in sent]
    assert variation(larger) == pytest.approx(first, nan_ok=True, abs=0.02)


def test_a_second_without_a_packet_counts_unless_the_viewer_paused() -> None:
    starved = constant(0, 50, 0, 5) + constant(0, 50, 8, 11)
    assert variation(starved) > 0.5
    paused = [(5 * SECOND, "pause"), (8 * SECOND, "resume")]
    assert variation(starved, actions=paused) == pytest.approx(0, abs=0.05)


def test_silence_by_the_plan_is_no_variation() -> None:
    sent = constant(0, 50, 0, 4) + constant(0, 50, 8, 12)
    windows = [[0, 4 * SECOND], [8 * SECOND, 12 * SECOND]]
    app = {"cbr": {"packets_per_s": 50.0, "payload_bytes": 1000, "burst": 1, "windows": windows}}
    assert variation(sent, app=app) == pytest.approx(0, abs=0.05)
    assert variation(sent) > 0.5


def test_of_few_seconds_and_of_pings_nothing_is_said() -> None:
    assert np.isnan(variation(constant(0, 50, 0, 4)))
    assert np.isnan(variation(constant(0, 50, 0, 12), window=[3.0, 7.9]))
    assert np.isfinite(variation(constant(0, 50, 0, 12), window=[3.0, 8.0]))
    pings = record(constant(0, 50, 0, 12, kind=PROBE), flows=["ping"], duration_s=12.0)
    assert compute(pings).flow_json("ping")["rate_variation"] is None


# Transfers.


def bulk(size: int | None, sent: list[Sent], **more: Any) -> SyntheticRecord:
    made = record(sent, flows=["a"], duration_s=20.0, **more)
    made.trial["plan"]["flows"][0]["app"] = {"bulk": {"bytes": size, "tcp": {}}}
    return made


def opened(at: float) -> Sent:
    """The player's first packet, with which it opens the connection."""
    return Sent(at, 0, payload=0, direction=UP)


def test_a_download_of_a_stated_size_has_a_completion_time() -> None:
    sent = [opened(1.0), *constant(0, 50, 1.5, 5)]
    metrics = compute(bulk(100_000, sent))
    found = metrics.flow_json("a")
    # The 100th packet is sent 99/50 s after the first, and takes the bottleneck's time and 10 ms more.
    took = 1.5 + 99 / 50 + 1042 * 8 / 1e6 + 0.01 - 1.0
    assert (found["transfers"], found["transfers_failed"]) == (1, 0)
    assert found["completion_time_mean_s"] == pytest.approx(took)
    assert found["completion_time_p95_s"] == pytest.approx(took)
    assert metrics.value("transfers", "a", 0.0, 3.0) == 0


def test_what_arrives_twice_counts_once() -> None:
    first = constant(0, 50, 1.5, 3.0)
    twice = [*first, *(Sent(one.at + 0.005, 0, seq=one.seq, flags=1) for one in first)]
    found = [
        compute(bulk(70_000, [opened(1.0), *sent])).value("completion_time", "a") for sent in (first, twice)
    ]
    # But for what a repeated packet waits behind.
    assert found[1] == pytest.approx(found[0], abs=0.03)


@pytest.mark.parametrize(("size", "transfers"), [(175_000, 1), (175_001, 0), (None, None)])
def test_a_download_that_does_not_end_is_under_way(size: int | None, transfers: int | None) -> None:
    found = compute(bulk(size, [opened(1.0), *constant(0, 50, 1.5, 5)])).flow_json("a")
    assert found["transfers"] == transfers
    assert (found["completion_time_mean_s"] is None) == (transfers != 1)
    # A download has no viewer, though its machine reports an end.
    assert found["frames_shown"] is None


def told(said: list[tuple[float, str, float | None]]) -> TrialMetrics:
    made = record(constant(0, 20, 0, 20), flows=["a"], duration_s=20.0)
    rows = [(round(at * SECOND), "a", name, value, "s", "") for at, name, value in said]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    return compute(made)


def test_anybody_may_say_when_a_transfer_is_complete() -> None:
    said = [
        (3.0, "transfer_complete", 1.5),
        (4.0, "transfer_complete", None),
        (9.0, "transfer_complete", 2.5),
    ]
    metrics = told([*said, (11.0, "transfer_failed", None)])
    found = metrics.flow_json("a")
    assert (found["transfers"], found["transfers_failed"]) == (3, 1)
    # Of one it is not known how long it took.
    assert found["completion_time_mean_s"] == pytest.approx(2.0)
    assert found["completion_time_p95_s"] == pytest.approx(2.45)
    assert np.isnan(metrics.value("completion_time", "a", 3.5, 5.0))


# Buffering.


def buffering(sent: list[Sent], duration: float) -> tuple[float, float]:
    made = compute(record(sent, flows=["a"], duration_s=duration, rate_bps=10**8))
    return made.value("buffering_rate", "a"), made.value("steady_rate", "a")


def test_a_transmission_lasts_from_the_first_packet_to_the_last() -> None:
    sent = constant(0, 10, 1, 4) + constant(0, 10, 60, 70)
    made = compute(record(sent, flows=["a"], duration_s=80.0))
    assert made.value("transmission_time", "a") == pytest.approx(69, abs=0.2)
    assert made.value("sending_time", "a") == pytest.approx(13, abs=0.3)
    assert compute(record(sent[:1], flows=["a"], duration_s=80.0)).flow_json("a")["transmission_s"] is None


def test_a_flow_that_fills_its_buffer_first() -> None:
    # 40 packets of 1028 bytes a second for 30 s, then 10, from 3 s on.
    sent = constant(0, 40, 3, 33) + constant(0, 10, 33, 203)
    fast, steady = buffering(sent, 210)
    assert fast == pytest.approx(40 * 8224, rel=0.01)
    assert steady == pytest.approx(10 * 8224, rel=0.01)


@given(st.integers(1, 40), st.integers(12, 150))
@settings(max_examples=15)
def test_a_constant_rate_buffers_at_it(rate: int, length: int) -> None:
    fast, steady = buffering(constant(0, rate, 0, length), length + 1)
    assert fast == pytest.approx(rate * 8224, rel=0.12)
    # The highest of ten seconds is at least the mean.
    assert fast >= rate * 8224 * 0.99
    assert np.isnan(steady) == (length - 1 / rate < 110)


def test_of_a_flow_that_is_short_nothing_is_said_and_none_of_a_ping() -> None:
    assert all(map(np.isnan, buffering(constant(0, 10, 0, 9), 12)))
    pings = record(constant(0, 1, 0, 120, kind=PROBE), flows=["ping"], duration_s=121.0)
    assert np.isnan(compute(pings).value("buffering_rate", "ping"))

"""Quantities against connections whose answers are known because we made them."""

from __future__ import annotations

import numpy as np
import pytest
from streamgauge.crosscheck.quantities import (
    QUANTITIES,
    completion_s,
    loss_events,
    of_flow,
    of_pair,
    of_start,
    quantity,
    turns,
    window,
)
from streamgauge.crosscheck.trace import NEVER, FlowTrace

MS = 1_000_000
S = 1_000 * MS
RTT = 20 * MS


def made(
    sent: np.ndarray, lost: np.ndarray | None = None, *, rtt: int = RTT, payload: int = 1000, every: int = 1
) -> FlowTrace:
    """Packets sent at times, each arriving after half a round trip; every `every`th one is acknowledged."""
    lost = np.zeros(len(sent), dtype=bool) if lost is None else lost
    arrived = np.where(lost, NEVER, sent + rtt // 2)
    acked = arrived[arrived != NEVER][every - 1 :: every]
    return FlowTrace(
        sent=sent,
        arrived=arrived,
        dropped=np.where(lost, sent, NEVER),
        payload=np.full(len(sent), payload),
        seq=payload * np.arange(len(sent)),
        repeat=np.zeros(len(sent), dtype=bool),
        ack_sent=acked,
        ack_back=acked + rtt // 2,
    )


def steady(gap: int, length: int) -> np.ndarray:
    return np.arange(0, length, gap, dtype=np.int64)


def test_rtt_is_the_path_and_a_delayed_acknowledgement_is_part_of_it() -> None:
    each = of_flow(made(steady(MS, 10 * S)), S, 9 * S)
    assert each["rtt_p5_s"] == each["rtt_p50_s"] == each["rtt_p95_s"] == pytest.approx(0.020)
    assert each["acks_per_packet"] == pytest.approx(1.0, abs=0.001)
    every_other = of_flow(made(steady(MS, 10 * S), every=2), S, 9 * S)
    assert every_other["acks_per_packet"] == pytest.approx(0.5, abs=0.001)
    assert every_other["rtt_p5_s"] == pytest.approx(0.020)
    assert every_other["rtt_p95_s"] == pytest.approx(0.021)


def test_packets_in_flight_are_rate_times_round_trip() -> None:
    trace = made(steady(MS, 10 * S))
    _, most = window(trace, S, 9 * S, RTT)
    # The packet whose acknowledgement comes at the same instant has left before the next one enters.
    assert set(most) == {20.0}
    assert of_flow(trace, S, 9 * S)["window_p50_packets"] == 20
    assert of_flow(trace, S, 9 * S)["window_period_s"] is None


def test_goodput_counts_each_byte_once() -> None:
    trace = made(steady(MS, 10 * S))
    assert of_flow(trace, S, 9 * S)["goodput_bps"] == pytest.approx(8e6, rel=0.001)
    twice = made(np.repeat(steady(MS, 10 * S), 2))
    again = FlowTrace(**{**vars(twice), "seq": 1000 * np.repeat(np.arange(len(twice.sent) // 2), 2)})
    assert of_flow(again, S, 9 * S)["goodput_bps"] == pytest.approx(8e6, rel=0.001)


def test_losses_within_a_round_trip_are_one_event() -> None:
    times = np.array([0, 10, 20, 21, 500, 519, 1000]) * MS
    began, lost = loss_events(times, 0.020)
    assert (began // MS).tolist() == [0, 21, 500, 1000]
    assert lost.tolist() == [3, 1, 2, 1]
    assert loss_events(times[:0], 0.020)[0].tolist() == []


def test_known_loss_events() -> None:
    sent = steady(MS, 11 * S)
    # Three in a row, each second.
    lost = np.isin(sent % S, [500 * MS, 501 * MS, 502 * MS])
    found = of_flow(made(sent, lost), S, 11 * S)
    assert found["loss_percent"] == pytest.approx(0.3)
    assert found["loss_events_per_s"] == pytest.approx(1.0)
    assert found["losses_per_event"] == pytest.approx(3.0)
    assert found["loss_interval_mean_s"] == pytest.approx(1.0)
    assert found["loss_interval_cov"] == pytest.approx(0.0)


def test_a_lost_packet_is_in_flight_until_a_later_one_is_acknowledged() -> None:
    sent = steady(MS, 2 * S)
    trace = made(sent, sent == S)
    _, most = window(trace, S - 200 * MS, S + 200 * MS, RTT)
    # The sender hears of it one packet later than it would have.
    assert most.max() == 21
    assert np.median(most) == 20


def test_nothing_to_measure_is_none() -> None:
    found = of_flow(made(steady(MS, 10 * S)), S, 9 * S)
    for name in ("loss_interval_mean_s", "losses_per_event", "repeats_per_loss", "window_drop_percent"):
        assert found[name] is None, name
    assert found["loss_percent"] == 0
    assert found["cwnd_p50_packets"] is None


def test_a_made_sawtooth() -> None:
    # From 20 to 40 packets a round trip, one more each time, then halved: 21 round trips.
    sizes = list(range(20, 41)) * 30
    sent = np.concatenate([k * RTT + np.arange(size) * 10_000 for k, size in enumerate(sizes)])
    found = of_flow(made(sent), 2 * S, 12 * S)
    assert found["window_drop_percent"] == pytest.approx(50, abs=3)
    assert found["window_period_s"] == pytest.approx(21 * 0.020, rel=0.03)
    assert found["window_p50_packets"] == pytest.approx(30, abs=2)


def test_turns_alternate_and_ignore_what_is_small() -> None:
    values = np.array([10, 20, 18, 20, 19, 10, 11, 10, 20, 5, 5, 30.0])
    peaks, troughs = turns(values)
    assert peaks == [1, 8]
    assert troughs == [5, 9]
    assert turns(np.array([])) == ([], [])
    assert turns(np.array([5.0, 5.0, 5.0])) == ([], [])


def test_the_start() -> None:
    sent = np.concatenate([np.repeat(100 * MS, 10), np.repeat(120 * MS, 30), steady(MS, 5 * S) + 200 * MS])
    lost = sent == 120 * MS
    lost[np.flatnonzero(lost)[:25]] = False
    found = of_start(made(sent, lost), S)
    assert found == {
        "start_losses": 5.0,
        "start_peak_packets": 40.0 - 10.0,
        "start_first_loss_s": pytest.approx(0.020),
    }


def test_completion_is_to_the_last_new_byte() -> None:
    trace = made(S + steady(MS, 100 * MS))
    assert completion_s(trace) == pytest.approx(0.099 + 0.010)


def test_shares() -> None:
    fast, slow = made(steady(MS, 10 * S)), made(steady(3 * MS, 10 * S))
    found = of_pair(fast, slow, S, 9 * S)
    assert found["share"] == pytest.approx(0.75, abs=0.001)
    assert found["share_sd"] == pytest.approx(0, abs=0.001)
    assert of_pair(slow, fast, S, 9 * S)["share"] == pytest.approx(0.25, abs=0.001)


def test_every_quantity_that_is_measured_is_declared() -> None:
    trace = made(steady(MS, 3 * S))
    measured = [
        *of_flow(trace, S, 2 * S),
        *of_start(trace, S),
        *of_pair(trace, trace, S, 2 * S),
        "completion_s",
    ]
    assert sorted(measured) == sorted(QUANTITIES)
    assert quantity("reno.share") is QUANTITIES["share"]

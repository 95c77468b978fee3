"""Gaps and bursts as they are sent, reports, and when a buffer was full: M21, M22, M24, M25 and M28."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.metrics import TrialMetrics, compute
from synthetic import EVENTS, MEDIA, RTCP, SECOND, SIGNALLING, UP, Sent, constant, record, sending_times

RETRANSMIT = 1
Packet = tuple[int, bool, bool]
"""Milliseconds since the one before, whether it is of the flow's own, and whether it is sent again."""


def measured(sent: list[Sent], said: Sequence[tuple[float, str, float | None]] = ()) -> TrialMetrics:
    made = record(sent, flows=["a", "b"], duration_s=20.0)
    rows = [(round(at * SECOND), "a", name, value, "s", "") for at, name, value in said]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    return compute(made)


packets = st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.booleans()), min_size=1, max_size=80)


@given(packets, st.floats(0, 4), st.floats(0, 4))
@settings(max_examples=100)
def test_gaps_and_bursts_by_walking(steps: list[Packet], one: float, other: float) -> None:
    """In any stretch, against the list of packets; a gap, a spacing and a burst are where they begin."""
    at, sent, own, first = 0, [], [], []
    for gap, is_own, again in steps:
        at += gap
        sent.append(Sent(at / 1e3, 0, kind=MEDIA if is_own else RTCP, flags=RETRANSMIT * again))
        own += [at] * is_own
        first += [at] * (is_own and not again)
    gaps = [(earlier, later - earlier) for earlier, later in pairwise(own)]
    bursts: list[list[int]] = []
    for time in first:
        if bursts and time - bursts[-1][-1] <= 10:
            bursts[-1].append(time)
        else:
            bursts.append([time])
    spacing = [(early[0], late[0] - early[0]) for early, late in pairwise(bursts)]
    metrics = measured(sent)
    begin, end = (round(2 * time) / 2 for time in sorted((one, other)))
    end = max(end, begin + 0.5)

    def mean(of: list[tuple[int, float]]) -> float:
        inside = [value for time, value in of if 1e3 * begin <= time < 1e3 * end]
        return statistics.mean(inside) if inside else math.nan

    expected = {
        "packet_gap": mean([(time, gap / 1e3) for time, gap in gaps]),
        "short_gaps": mean([(time, float(gap <= 5)) for time, gap in gaps]),
        "burst_spacing": mean([(time, gap / 1e3) for time, gap in spacing]),
        "burst_size": mean([(burst[0], len(burst)) for burst in bursts]),
    }
    found = {name: metrics.value(name, "a", begin, end) for name in expected}
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert metrics.value("end", "a") == pytest.approx(own[-1] / 1e3 if own else math.nan, nan_ok=True)


def test_bursts_as_a_server_sends_them() -> None:
    """Twenty packets every 300 ms, and between them what is sent again."""
    bursts = [Sent(1 + 0.3 * n + 0.001 * i, 0, seq=20 * n + i) for n in range(30) for i in range(20)]
    again = [Sent(1.2 + 0.3 * n, 0, seq=20 * n, flags=RETRANSMIT) for n in range(29)]
    metrics = measured([*bursts, *again])
    found = metrics.flow_json("a")
    assert found["burst_spacing_mean_s"] == pytest.approx(0.3)
    assert (found["burst_size_mean_packets"], found["burst_size_max_packets"]) == (20, 20)
    # Of 628 gaps 58 lead to or from a packet that is sent again, and the last burst has 19.
    assert found["short_gaps_percent"] == pytest.approx(100 * 570 / 628)
    assert found["packet_gap_max_s"] == pytest.approx(0.2 - 0.019)
    assert found["packet_gap_mean_s"] == pytest.approx((29 * 0.3 + 0.019) / 628)


def test_a_flow_of_one_packet_has_a_burst_and_no_gap() -> None:
    found = measured([Sent(3.0, 0)]).flow_json("a")
    assert (found["burst_size_mean_packets"], found["end_s"]) == (1, 3)
    assert (found["burst_spacing_mean_s"], found["packet_gap_mean_s"]) == (None, None)
    nothing = measured([Sent(3.0, 1)]).flow_json("a")
    assert (nothing["burst_size_mean_packets"], nothing["end_s"]) == (None, None)


def test_reports_are_those_to_the_server() -> None:
    reports = [Sent(0.1 * n, 0, kind=RTCP, direction=UP) for n in range(50)]
    answers = [Sent(0.1 * n, 0, kind=RTCP) for n in range(200)]
    requests = [Sent(0.1 * n, 0, kind=SIGNALLING, direction=UP) for n in range(200)]
    metrics = measured([*reports, *answers, *requests, *constant(1, 10, 0, 20)])
    assert metrics.value("report_rate", "a", 0.0, 5.0) == pytest.approx(10)
    assert metrics.value("report_rate", "a") == pytest.approx(2.5)
    assert metrics.value("report_rate", "b") == 0
    assert metrics.flow_json("a")["reports_per_s"] == pytest.approx(2.5)


def test_the_buffer_is_full_when_play_begins() -> None:
    sent = constant(0, 100, 2, 12)
    found = measured(sent, [(9.5, "playout_start", 7.0), (15.0, "playout_start", 1.0)]).flow_json("a")
    assert (found["buffering_start_s"], found["buffering_end_s"]) == (2.5, 9.5)
    assert found["end_s"] == pytest.approx(11.99)
    unsaid = measured(sent, [(9.5, "playout_start", None)]).flow_json("a")
    assert (unsaid["buffering_start_s"], unsaid["buffering_end_s"]) == (None, 9.5)
    silent = measured(sent).flow_json("a")
    assert (silent["buffering_start_s"], silent["buffering_end_s"]) == (None, None)


@given(
    st.lists(sending_times(20), min_size=1, max_size=80),
    st.floats(0, 20),
    st.floats(0, 1),
    st.sampled_from([20_000, 200_000]),
)
@settings(max_examples=60)
def test_both_periods_by_walking(sent_s: list[float], full_s: float, share: float, rate_bps: int) -> None:
    """While the buffer fills and after: what is received and lost, by the rows of the record."""
    waited_s = share * full_s
    made = record([Sent(at, 0) for at in sent_s], flows=["a"], duration_s=20.0, rate_bps=rate_bps)
    made.events = pl.DataFrame(
        [(round(full_s * SECOND), "a", "playout_start", waited_s, "s", "")], schema=EVENTS, orient="row"
    )
    metrics = compute(made)
    full = round(full_s * SECOND) / SECOND
    rows = list(made.packets.iter_rows(named=True))
    last = max(row["t_in"] for row in rows if row["stage"] == 0) / SECOND
    for name, begin, end in (("filling", full - waited_s, full), ("playing", full, last)):
        found = [metrics.value(f"{name}_{what}", "a") for what in ("time", "rate", "loss")]
        if end <= begin:
            assert all(math.isnan(value) for value in found)
            continue

        def bits(stage: int, at: str, low: float = begin, high: float = end) -> float:
            mine = [row for row in rows if row["stage"] == stage and row[at] is not None]
            return sum(8 * row["ip_bytes"] for row in mine if low * SECOND <= row[at] < high * SECOND)

        lost = [row for row in rows if row["fate"] == 1]
        gone = sum(8 * row["ip_bytes"] for row in lost if begin * SECOND <= row["t_in"] < end * SECOND)
        offered = bits(0, "t_in")
        expected = [end - begin, bits(2, "t_out") / (end - begin), gone / offered if offered else math.nan]
        assert found == pytest.approx(expected, nan_ok=True)

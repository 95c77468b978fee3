"""What holds for every record."""

from __future__ import annotations

import dataclasses
import math
import statistics
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.metrics import compute, interval, jain
from streamgauge.metrics.fairness import spearman
from streamgauge.metrics.frame import StageInfo, bottleneck_of
from streamgauge.metrics.runs import run_lengths
from synthetic import CROSS, MEDIA, PROBE, RTCP, UP, Sent, SyntheticRecord, constant, record, sending_times

DURATION = 10.0


@st.composite
def records(draw: st.DrawFn) -> SyntheticRecord:
    sent = [
        Sent(draw(sending_times(DURATION)), flow, draw(st.integers(1, 1400)), router=flow == 2)
        for flow in range(3)
        for _ in range(draw(st.integers(0, 60)))
    ]
    begin = draw(st.floats(0, 4))
    measure = {
        "window": [f"{begin:.6f} s", f"{begin + draw(st.floats(0.5, 5)):.6f} s"],
        "sample": f"{draw(st.floats(0.05, 3)):.6f} s",
        "layer": draw(st.sampled_from(["ethernet", "ip", "payload"])),
    }
    return record(
        sent,
        flows=["a", "b", "c"],
        duration_s=DURATION,
        rate_bps=draw(st.sampled_from([20_000, 200_000, 5_000_000])),
        limit_bytes=draw(st.sampled_from([1500, 10_000])),
        measure=measure,
    )


def whole(made: SyntheticRecord, layer: str = "ip") -> SyntheticRecord:
    """The same record measured from begin to end."""
    scenario = {**made.trial["scenario"], "measure": {"layer": layer}}
    return dataclasses.replace(made, trial={**made.trial, "scenario": scenario})


@given(records())
@settings(max_examples=60)
def test_what_is_sent_arrives_or_is_lost_or_is_held(made: SyntheticRecord) -> None:
    metrics = compute(whole(made, "payload"))
    for index, name in enumerate(metrics.flows):
        sent, received, lost, good = (
            metrics.value(metric, name) / 8 for metric in ("sent", "received", "lost", "goodput")
        )
        mine = made.packets.filter(made.packets["flow"] == index)
        held = mine.filter(mine["fate"] == 2)["payload_bytes"].sum()
        assert sent == pytest.approx(received + lost + held)
        # Without retransmissions each payload byte that arrives is goodput.
        assert good * DURATION == pytest.approx(received)


@given(records(), st.floats(0, DURATION), st.floats(0, DURATION))
@settings(max_examples=60)
def test_of_what_is_sent_no_more_gets_through(made: SyntheticRecord, one: float, other: float) -> None:
    """In any stretch, against the rows: what was sent in it, of that what arrived and what was lost."""
    metrics = compute(made)
    grid = metrics.grid
    try:
        part = grid.slice(*sorted((one, other)))
    except ValueError:
        part = grid.slice()
    begin, end = (int(grid.edges_ns[i]) for i in (part.start, part.stop))
    length = (end - begin) / 1e9
    column = {"ethernet": "wire_bytes", "ip": "ip_bytes", "payload": "payload_bytes"}[metrics.layer]
    for index, name in enumerate(metrics.flows):
        entry = 1 if index == 2 else 0
        rows = list(made.packets.filter(made.packets["flow"] == index).iter_rows(named=True))
        sent = [row for row in rows if row["stage"] == entry and begin <= row["t_in"] < end]
        arrived = {row["pkt"] for row in rows if row["stage"] == 2 and row["t_out"] is not None}
        lost = {row["pkt"] for row in rows if row["fate"] == 1}
        got = 8 * sum(row["payload_bytes"] for row in sent if row["pkt"] in arrived) / length
        gone = 8 * sum(row[column] for row in sent if row["pkt"] in lost) / length
        throughput, goodput, loss = (
            metrics.value(metric, name, begin / 1e9, end / 1e9)
            for metric in ("throughput", "sent_goodput", "sent_loss")
        )
        assert goodput == pytest.approx(got)
        if sent:
            assert loss * throughput == pytest.approx(gone)
            assert goodput + gone <= throughput * (1 + 1e-9)


@given(st.lists(st.tuples(st.integers(0, 150), st.booleans()), max_size=60))
@settings(max_examples=60)
def test_the_time_that_a_flow_sends_by_walking(packets: list[tuple[int, bool]]) -> None:
    """Packets at least 10 ms apart: gaps of at most 1 s count, and for the last of a run its mean gap."""
    at = {50 * place: mine for place, mine in packets}
    sent = [Sent(ms / 1e3, 0, kind=MEDIA if mine else RTCP) for ms, mine in at.items()]
    metrics = compute(record(sent, flows=["a"], duration_s=20.0))
    times = sorted(ms for ms, mine in at.items() if mine)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    longest = max(1000.0, 10 * statistics.median(gaps)) if gaps else 0.0
    expected, run = 0.0, []
    for gap in [*gaps, math.inf]:
        if gap <= longest:
            run.append(gap)
        elif run:
            expected, run = expected + sum(run) * (len(run) + 1) / len(run), []
    assert metrics.value("sending_time", "a") == pytest.approx(expected / 1e3, abs=1e-6)


def test_a_burst_is_measured_over_its_own_time() -> None:
    """1.6 Mbit/s for 0.72 s in a sample of 1 s are not 1.15 Mbit/s."""
    sent = constant(0, 200, 3, 3.72, kind=CROSS)
    made = record(sent, flows=["cross"], duration_s=6.0, measure={"sample": "1 s", "layer": "payload"})
    metrics = compute(made)
    assert metrics.value("throughput", "cross", 3.0, 4.0) == pytest.approx(1.152e6)
    assert metrics.value("sending_rate", "cross", 3.0, 4.0) == pytest.approx(1.6e6)
    assert metrics.value("sending_time", "cross", 3.0, 4.0) == pytest.approx(0.72)
    assert np.isnan(metrics.value("sending_rate", "cross", 1.0, 2.0))


@given(records())
@settings(max_examples=60)
def test_a_window_is_the_sum_of_its_parts(made: SyntheticRecord) -> None:
    metrics = compute(made)
    grid = metrics.grid
    part = grid.slice()
    assert grid.edges_ns[part.start] / 1e9 == grid.begin_s
    for name in metrics.flows:
        for metric in ("sent", "received", "lost", "sent_packets"):
            samples = metrics.series(metric, name).samples()
            assert samples[part].sum() == pytest.approx(metrics.value(metric, name))
        cut = grid.edges_ns[(grid.first + grid.last) // 2] / 1e9
        if grid.begin_s < cut < grid.end_s:
            left = metrics.value("throughput", name, grid.begin_s, cut) * (cut - grid.begin_s)
            right = metrics.value("throughput", name, cut, grid.end_s) * (grid.end_s - cut)
            assert left + right == pytest.approx(metrics.value("sent", name), abs=1e-6)


@given(records())
@settings(max_examples=60)
def test_counts_by_samples_are_counts_by_rows(made: SyntheticRecord) -> None:
    """Against the rows themselves, without samples."""
    metrics = compute(made)
    begin, end = (int(metrics.grid.edges_ns[i]) for i in (metrics.grid.first, metrics.grid.last))
    column = {"ethernet": "wire_bytes", "ip": "ip_bytes", "payload": "payload_bytes"}[metrics.layer]
    for index, name in enumerate(metrics.flows):
        entry = 1 if index == 2 else 0
        expected = dict.fromkeys(("sent", "received", "lost"), 0)
        packets = 0
        for row in made.packets.filter(made.packets["flow"] == index).iter_rows(named=True):
            if row["stage"] == entry and begin <= row["t_in"] < end:
                expected["sent"] += row[column]
            if row["stage"] == 2 and row["t_out"] is not None and begin <= row["t_out"] < end:
                expected["received"] += row[column]
                packets += 1
            if row["fate"] == 1 and begin <= row["t_in"] < end:
                expected["lost"] += row[column]
        assert metrics.value("received_packets", name) == packets
        assert {metric: metrics.value(metric, name) / 8 for metric in expected} == expected


@given(records())
@settings(max_examples=40)
def test_queue_depth_is_within_the_limit_and_matches_what_arrivals_saw(made: SyntheticRecord) -> None:
    metrics = compute(whole(made))
    series = metrics.series("queue", "bottleneck")
    limit = made.trial["plan"]["path"]["down"][1]["kind"]["bottleneck"]["queue"]["droptail"]["bytes"]
    assert series.extreme(slice(None), highest=True) <= 8 * limit
    at_bottleneck = made.packets.filter(made.packets["stage"] == 1)
    accepted = at_bottleneck.filter(at_bottleneck["fate"] != 1)
    seen = (accepted["queue_bytes"].cast(int) + accepted["wire_bytes"].cast(int)).max() or 0
    assert series.extreme(slice(None), highest=True) == pytest.approx(8 * seen)
    # Little's law: mean depth = bits · time in the queue / duration.
    end = round(DURATION * 1e9)
    area = sum(
        8 * row["wire_bytes"] * ((end if row["t_out"] is None else row["t_out"]) - row["t_in"]) / 1e9
        for row in accepted.iter_rows(named=True)
    )
    assert metrics.value("queue", "bottleneck") == pytest.approx(area / DURATION)


rates = st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=1, max_size=20).filter(
    lambda x: max(x) > 1e-3
)


@given(rates, st.floats(1e-6, 1e6))
def test_jain_lies_between_one_taker_and_an_even_share(x: list[float], scale: float) -> None:
    index = jain(x)
    assert 1 / len(x) - 1e-12 <= index <= 1 + 1e-12
    assert jain([scale * rate for rate in x]) == pytest.approx(index, rel=1e-6)
    assert jain(x[::-1]) == pytest.approx(index)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=12).filter(lambda x: len(set(x)) > 1))
def test_rank_correlation_as_scipy_has_it(x: list[int]) -> None:
    from scipy.stats import spearmanr

    assert spearman(x) == pytest.approx(spearmanr(x, range(len(x))).statistic)


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_run_lengths_by_walking(lost: list[bool]) -> None:
    lengths: dict[bool, list[int]] = {True: [], False: []}
    for i, state in enumerate(lost):
        if i and lost[i - 1] == state:
            lengths[state][-1] += 1
        else:
            lengths[state].append(1)
    runs = run_lengths(np.array(lost))
    for found, state in ((runs.bad_packets, True), (runs.good_packets, False)):
        if lengths[state]:
            assert found == pytest.approx(np.mean(lengths[state]))
        else:
            assert found is None


def test_gilbert_by_the_published_run_lengths() -> None:
    """Runs of 11.63 and 1.78 packets lose 13.27 % (De Cicco et al.); a long draw gives them back."""
    random = np.random.default_rng(7)
    stay = {False: 1 - 1 / 11.63, True: 1 - 1 / 1.78}
    lost, state = [], False
    for _ in range(200_000):
        lost.append(state)
        state = state if random.random() < stay[state] else not state
    runs = run_lengths(np.array(lost))
    assert runs.good_packets == pytest.approx(11.63, rel=0.02)
    assert runs.bad_packets == pytest.approx(1.78, rel=0.02)
    assert np.mean(lost) == pytest.approx(0.1327, rel=0.03)


def test_interval_is_students() -> None:
    """Against the table: t(0.975, 4) = 2.776 and s = 1.5811 for 1..5."""
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3
    assert found.half_width == pytest.approx(2.776 * 1.5811 / 5**0.5, rel=1e-3)
    assert interval([2.0, 2.0]).no_variation
    assert interval([2.0]).half_width is None
    assert "no variation" in interval([2.0, 2.0, 2.0]).words()
    with pytest.raises(ValueError, match="finite"):
        interval([1.0, float("nan")])


def test_a_stream_of_known_rate() -> None:
    """60 packets/s of 1000 B alone on 1 Mbit/s: every number by hand."""
    made = record(constant(0, 60, 0, 20), flows=["v"], duration_s=20.5, measure={"window": ["0 s", "20 s"]})
    found = compute(made).flow_json("v")
    assert found["throughput_bps"] == 60 * 1028 * 8
    assert found["goodput_bps"] == pytest.approx(60 * 1000 * 8, rel=0.001)
    assert found["loss_percent"] == 0
    assert found["mean_packet_bytes"] == 1028
    assert found["sent_packets_per_s"] == 60
    transmission = 1042 * 8 / 1e6
    assert found["queue_delay_mean_s"] == pytest.approx(transmission, rel=1e-6)
    assert found["path_delay_mean_s"] == pytest.approx(transmission + 0.01, rel=1e-6)
    assert compute(made, layer="payload").flow_json("v")["throughput_bps"] == 60 * 1000 * 8
    assert compute(made, layer="ethernet").flow_json("v")["throughput_bps"] == 60 * 1042 * 8


def test_round_trips_are_matched_by_sequence_number() -> None:
    """Requests at 0, 1, 2 s; replies 50 ms later; the third is lost. The way back takes 10 ms."""
    sent = [Sent(float(i), 0, 56, kind=PROBE, seq=i) for i in range(3)]
    sent += [Sent(i + 0.05, 0, 56, kind=PROBE, seq=i, direction=UP) for i in range(2)]
    metrics = compute(record(sent, flows=["ping"], duration_s=4.0))
    assert metrics.flows["ping"].rtt_source == "probe"
    assert metrics.value("rtt", "ping") == pytest.approx(0.06)
    assert metrics.series("rtt", "ping").denominator.sum() == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("first_arrives", [True, False])
def test_a_byte_is_goodput_once(first_arrives: bool) -> None:
    """A retransmission counts exactly if what it repeats was lost."""
    sent: list[Any] = [Sent(1.0, 0, 1000, seq=5000), Sent(2.0, 0, 1000, seq=5000, flags=1)]
    made = record(sent, flows=["tcp"], duration_s=4.0, limit_bytes=10_000)
    if not first_arrives:
        first = pl.col("pkt") == 0
        rows = made.packets.filter(~(first & (pl.col("stage") == 2))).with_columns(
            fate=pl.when(first & (pl.col("stage") == 1)).then(1).otherwise("fate").cast(pl.UInt8),
            t_out=pl.when(first & (pl.col("stage") == 1)).then(None).otherwise("t_out"),
        )
        made = dataclasses.replace(made, packets=rows)
    metrics = compute(made)
    assert metrics.value("goodput", "tcp") * 4 / 8 == 1000
    assert metrics.value("retransmitted", "tcp") == 0.5
    assert metrics.value("unrepaired", "tcp") == 0
    assert metrics.value("lost_packets", "tcp") == (0 if first_arrives else 1)


def test_what_no_retransmission_brought_is_unrepaired() -> None:
    """Of three packets one is lost for good, and one arrives when it is sent again."""
    sent: list[Any] = [Sent(at, 0, 1000, seq=int(5000 * at)) for at in (1.0, 1.2, 1.4)]
    sent.append(Sent(2.0, 0, 1000, seq=6000, flags=1))
    made = record(sent, flows=["udp"], duration_s=4.0, limit_bytes=10_000)
    lost = pl.col("pkt").is_in([0, 1])
    rows = made.packets.filter(~(lost & (pl.col("stage") == 2))).with_columns(
        fate=pl.when(lost & (pl.col("stage") == 1)).then(1).otherwise("fate").cast(pl.UInt8),
        t_out=pl.when(lost & (pl.col("stage") == 1)).then(None).otherwise("t_out"),
    )
    metrics = compute(dataclasses.replace(made, packets=rows))
    assert metrics.value("lost_packets", "udp") == 2
    assert metrics.value("unrepaired", "udp") == pytest.approx(1 / 3)


def test_sequence_numbers_wrap() -> None:
    """Two packets of one number, neither of them a retransmission, are two packets."""
    sent = [Sent(0.5, 0, 100, seq=7), Sent(1.0, 0, 100, seq=7), Sent(1.5, 0, 100, seq=7, flags=1)]
    assert compute(record(sent, flows=["rtp"], duration_s=2.0)).value("goodput", "rtp") * 2 / 8 == 200


def test_instantaneous_index_counts_flows_from_their_start() -> None:
    sent = constant(0, 40, 0, 10) + constant(1, 40, 5, 10, kind=CROSS)
    samples = compute(record(sent, flows=["a", "b"], duration_s=10.0)).jain_samples
    assert np.isnan(samples[:10]).all()
    assert samples[11:] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("subject", "shared"), [("a", ("a", "b")), ("up", ("up", "too")), (None, ("a", "b"))]
)
def test_the_index_is_of_flows_that_go_one_way(subject: str | None, shared: tuple[str, ...]) -> None:
    """Two even flows down at 40 packets/s from 0 s, and up two of 10 and 30 packets/s."""
    sent = constant(0, 40, 0, 10) + constant(1, 40, 0, 10)
    for flow, rate in ((2, 10), (3, 30)):
        sent += [dataclasses.replace(one, direction=UP) for one in constant(flow, rate, 0, 10)]
    made = record(sent, flows=["a", "b", "up", "too"], duration_s=10.0)
    for flow, planned in zip(made.trial["flows"], made.trial["plan"]["flows"], strict=True):
        flow["role"] = "subject" if flow["name"] == subject else "rival"
        planned |= {"direction": "up"} if flow["name"] in ("up", "too") else {}
    found = compute(made)
    index = 1.0 if "a" in shared else (10 + 30) ** 2 / (2 * (10**2 + 30**2))
    assert found.jain_flows == shared
    assert found.jain == pytest.approx(index, abs=1e-3)
    assert np.nanmean(found.jain_samples) == pytest.approx(index, abs=0.01)


def test_losses_by_hand() -> None:
    """Ten packets at once into a queue of three: 3 pass, 7 are lost, in one run; a late one passes."""
    sent = [Sent(1.0, 0, 972) for _ in range(10)] + [Sent(3.0, 0, 972), Sent(4.0, 0, 972)]
    measure = {"window": ["0 s", "4 s"]}
    made = record(sent, flows=["v"], duration_s=5.0, limit_bytes=3 * 1014, measure=measure)
    found = compute(made).flow_json("v")
    assert (found["sent_packets"], found["received_packets"], found["lost_packets"]) == (11, 4, 7)
    assert found["loss_percent"] == pytest.approx(100 * 7 / 11)
    assert found["gap_percent"] == pytest.approx(100 * 7 / 11)
    assert found["loss_bps"] == 7 * 8000 / 4
    assert found["bad_run_packets"] == 7
    assert found["good_run_packets"] == 2  # runs of 3 and 1; the packet at 4 s is outside the window
    assert found["received_packets_per_s"] == 1
    stage = compute(made).stage_json("bottleneck")
    assert (stage["good_run_packets"], stage["bad_run_packets"]) == (2, 7)
    assert stage["queue_max_packets"] == 3
    assert stage["full_queue_delay_s"] == pytest.approx(3 * 1014 * 8 / 1e6)
    assert stage["achieved_percent"] == pytest.approx(100 * 4 / 11)


def test_copies_made_by_the_path_are_not_sent_or_received_twice() -> None:
    import polars as pl

    made = record([Sent(1.0, 0, 972)], flows=["v"], duration_s=2.0)
    after = made.packets.filter(pl.col("stage") > 0).with_columns(copy=pl.lit(1, pl.UInt8))
    doubled = dataclasses.replace(made, packets=pl.concat([made.packets, after]))
    metrics = compute(doubled)
    assert metrics.value("sent_packets", "v") == metrics.value("received_packets", "v") == 1
    assert metrics.value("goodput", "v") * 2 / 8 == 972
    # At the bottleneck it takes room and time like any other packet.
    assert metrics.value("offered", "v") * 2 / 8 == 2000


def test_of_several_rates_the_bottleneck_is_the_one_of_that_name_or_the_first() -> None:
    def stages(*names: str) -> list[StageInfo]:
        return [StageInfo(n, name, n % 2, True, {}) for n, name in enumerate(names)]

    found = [bottleneck_of(stages("dsl", "radio", "bottleneck", "bottleneck"), way) for way in (0, 1)]
    assert [one.id for one in found if one is not None] == [2, 3]
    found = [bottleneck_of(stages("dsl", "radio", "far", "near"), way) for way in (0, 1)]
    assert [one.id for one in found if one is not None] == [0, 1]
    assert bottleneck_of([]) is None

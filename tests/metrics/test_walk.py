"""Every count and delay of a simulated trial, against a walk through its packets, one by one, by name."""

from __future__ import annotations

import bisect
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from streamgauge.campaign import run
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.record import Record
from streamgauge.scenario import from_text

SCENARIO = """
id: test/walk
title: A download, a constant stream and a ping that lose packets together
path: {down: {rate: 600 kbit/s, queue: droptail 8 kB, delay: 10 ms}, up: {delay: 15 ms}}
flows:
  ftp: {role: subject, traffic: bulk}
  cross: {role: rival, traffic: cbr, start: 1 s, parameters: {rate: 60 packets/s, size: 500 B}}
  ping: {role: subject, traffic: ping, parameters: {interval: 200 ms}}
until: {time: 12 s}
measure: {window: [2 s, 11 s], sample: 0.7 s}
"""
Sums = dict[tuple[str, str], Any]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    scenarios = from_text(SCENARIO)
    result = run(scenarios, {"test/walk": ["sim"]}, tmp_path_factory.mktemp("walk"), repeat=1)
    return Record.open(result.outcomes[0].job.directory)


@pytest.fixture(scope="module")
def metrics(record: Record) -> TrialMetrics:
    return compute(record)


def walk(record: Record, edges: list[int]) -> tuple[Sums, Sums]:
    """Per (metric, flow): sums per sample, and observed values per sample."""
    sums: Sums = defaultdict(lambda: np.zeros(len(edges) - 1))
    seen: Sums = defaultdict(lambda: [[] for _ in range(len(edges) - 1)])
    entered: dict[int, int] = {}
    brought: set[tuple[str, int]] = set()
    first, last = {"down": "bottleneck", "up": "up.delay"}, {"down": "delay", "up": "up.delay"}
    rows = list(record.packets.iter_rows(named=True))
    for row in sorted(rows, key=lambda row: row["t_in"]):
        sample, flow, bits = bisect.bisect_right(edges, row["t_in"]) - 1, row["flow"], 8 * row["ip_bytes"]
        if row["stage"] == first[row["dir"]]:
            entered[row["pkt"]] = row["t_in"]
            sums["sent" if row["dir"] == "down" else "up_throughput", flow][sample] += bits
            if row["dir"] == "down":
                sums["sent_packets", flow][sample] += 1
                sums["retransmitted", flow][sample] += bits * (row["flags"] & 1)
        if row["stage"] == "bottleneck" and row["t_out"] is not None:
            seen["queue_delay", flow][sample].append((row["t_out"] - row["t_in"]) / 1e9)
        if row["dir"] == "down" and row["fate"] == "dropped":
            sums["lost", flow][sample] += bits
            sums["lost_packets", flow][sample] += 1
    for row in sorted((row for row in rows if row["t_out"] is not None), key=lambda row: row["t_out"]):
        sample, flow = bisect.bisect_right(edges, row["t_out"]) - 1, row["flow"]
        if row["stage"] == "bottleneck":
            sums["achieved", flow][sample] += 8 * row["ip_bytes"]
        if row["dir"] == "down" and row["stage"] == last["down"]:
            sums["received", flow][sample] += 8 * row["ip_bytes"]
            sums["received_packets", flow][sample] += 1
            seen["path_delay", flow][sample].append((row["t_out"] - entered[row["pkt"]]) / 1e9)
            # In so short a trial no sequence number comes around again.
            if row["seq"] is None or (flow, row["seq"]) not in brought:
                sums["goodput", flow][sample] += 8 * row["payload_bytes"]
                brought.add((flow, row["seq"]))
    return sums, seen


def test_counts_and_delays_are_those_of_a_walk(record: Record, metrics: TrialMetrics) -> None:
    sums, seen = walk(record, metrics.grid.edges_ns.tolist())
    assert {metric for metric, _ in sums} >= {"lost", "retransmitted", "up_throughput"}
    for (metric, flow), expected in sums.items():
        np.testing.assert_array_equal(metrics.series(metric, flow).numerator, expected, f"{metric}.{flow}")
    for (metric, flow), observed in seen.items():
        series = metrics.series(metric, flow)
        assert series.low is not None and series.high is not None and series.denominator is not None
        assert series.denominator.tolist() == [len(values) for values in observed]
        for index, values in enumerate(observed):
            assert series.numerator[index] == pytest.approx(sum(values), rel=1e-12)
            if values:
                assert (series.low[index], series.high[index]) == (min(values), max(values))


def test_a_bottleneck_is_the_sum_of_its_flows(metrics: TrialMetrics) -> None:
    for metric in ("offered", "achieved"):
        parts = sum(metrics.series(metric, flow).numerator for flow in metrics.flows)
        np.testing.assert_array_equal(metrics.series(metric, "bottleneck").numerator, parts)


def test_every_echo_is_matched(record: Record, metrics: TrialMetrics) -> None:
    requests, replies = {}, {}
    for row in record.packets.iter_rows(named=True):
        if row["kind"] == "probe" and row["stage"] == "bottleneck":
            requests[row["seq"]] = row["t_in"]
        if row["kind"] == "probe" and row["stage"] == "up.delay" and row["t_out"] is not None:
            replies[row["seq"]] = row["t_out"]
    series = metrics.series("rtt", "ping")
    assert series.denominator is not None
    assert 20 < series.denominator.sum() == len(replies) <= len(requests)
    waited = sum((back - requests[seq]) / 1e9 for seq, back in replies.items())
    assert series.numerator.sum() == pytest.approx(waited, rel=1e-12)

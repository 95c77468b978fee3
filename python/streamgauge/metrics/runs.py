"""M6: lengths of runs of delivered and of lost packets, the Gilbert model as measured. M15: loss events."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import PACKETS, PERCENT
from streamgauge.metrics.delay import round_trip
from streamgauge.metrics.frame import DOWN, DROPPED, StageInfo, Trial
from streamgauge.metrics.grid import SECOND_NS
from streamgauge.metrics.queueing import crossing


@dataclass(frozen=True)
class RunLengths:
    """Mean run lengths in packets; None where there is no such run."""

    good_packets: float | None
    bad_packets: float | None


def run_lengths(lost: npt.NDArray[np.bool_]) -> RunLengths:
    """Mean lengths of runs in a sequence of packets, in order of arrival.

    A two-state chain with probabilities p_good, p_bad of staying has l_good = 1/(1 - p_good) and
    l_bad = 1/(1 - p_bad), in packets, and loses l_bad / (l_good + l_bad) of all packets (Gilbert 1960;
    De Cicco et al., Figure 2: 11.63 and 1.78). The estimate of each is packets in that state over runs of
    it; the first and the last run are counted although the trial cuts them.
    """
    if len(lost) == 0:
        return RunLengths(None, None)
    if not lost.any():
        return RunLengths(float(len(lost)), None)
    changes = np.flatnonzero(np.diff(lost.astype(np.int8)))
    begins_bad = bool(lost[0])
    runs = len(changes) + 1
    bad_runs = (runs + 1) // 2 if begins_bad else runs // 2
    good_runs = runs - bad_runs
    bad = int(lost.sum())
    good = len(lost) - bad
    return RunLengths(good / good_runs if good_runs else None, bad / bad_runs if bad_runs else None)


def loss_event_rate(sent: int, lost_s: npt.NDArray[np.float64], rtt_s: float) -> float | None:
    """Returns the share of packets with which a loss event begins: losses within a round trip of an event's
    first loss are of the same event (RFC 5348 section 5.2). None for no packets.

    Args:
        sent: how many packets.
        lost_s: when those that were lost were sent, in s, ascending.
        rtt_s: the flow's round trip.
    """
    if not sent:
        return None
    times = lost_s.tolist()
    events, at = 0, 0
    while at < len(times):
        events += 1
        at = bisect_right(times, times[at] + rtt_s, at)
    return events / sent


def flow_runs(trial: Trial, flow: int) -> dict[str, float | None]:
    """Returns runs of a flow's packets in the order it sent them in the window, lost if dropped anywhere on
    the way."""
    offered, window = trial.offered[DOWN], trial.offered[DOWN].window
    sent = offered.of(flow)
    found = run_lengths(trial.lost[DOWN][sent[(sent >= window.start) & (sent < window.stop)]])
    return {"good_run": found.good_packets, "bad_run": found.bad_packets}


def stage_runs(trial: Trial, stage: StageInfo) -> dict[str, float | None]:
    """Returns runs of the packets that arrived at a bottleneck in the window."""
    arrivals = trial.once(crossing, stage).arrivals
    found = run_lengths(arrivals["fate"][arrivals.window] == DROPPED)
    return {"good_run": found.good_packets, "bad_run": found.bad_packets}


def loss_events(trial: Trial, flow: int) -> dict[str, float | None]:
    """Returns the loss event rate of a flow's packets in the window, by its mean round trip there; nothing of
    a flow without one."""
    rtt, source = trial.once(round_trip, flow)
    if source is None:
        return {}
    offered, window = trial.offered[DOWN], trial.offered[DOWN].window
    rtt_s = rtt.value(trial.grid.slice())
    if not np.isfinite(rtt_s):
        return {"loss_event_rate": None}
    sent = offered.of(flow)
    sent = sent[(sent >= window.start) & (sent < window.stop)]
    lost = sent[trial.lost[DOWN][sent]]
    rate = loss_event_rate(len(sent), offered.times_ns[lost] / SECOND_NS, rtt_s)
    return {"loss_event_rate": rate}


METRICS = (
    Metric(
        "good_run",
        PACKETS,
        "flow or stage",
        "Mean run of delivered packets",
        formula=(
            "mean run of delivered packets, in the order sent; of a bottleneck, in the order of arrival"
        ),
        flow=flow_runs,
        stage=stage_runs,
        number="M6",
        whole=False,
    ),
    Metric(
        "bad_run",
        PACKETS,
        "flow or stage",
        "Mean run of lost packets",
        formula="mean run of lost packets, in the same order",
        flow=flow_runs,
        stage=stage_runs,
        number="M6",
        whole=False,
    ),
    Metric(
        "loss_event_rate",
        PERCENT,
        "flow",
        "Loss events per packet sent",
        formula=(
            "100 · loss events / packets offered, in the window; losses within a mean round trip of "
            "an event's first loss belong to that event (RFC 5348 section 5.2); null without an `rtt`"
        ),
        flow=loss_events,
        number="M15",
        better="less",
        reads=("rtt",),
        json="loss_event_percent",
    ),
)

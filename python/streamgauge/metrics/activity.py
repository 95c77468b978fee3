"""When a flow sends: between its first packet and its last, pauses left out."""

from __future__ import annotations

import numpy as np

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import RATE, TIME
from streamgauge.metrics.course import Spans
from streamgauge.metrics.frame import DOWN, PROBE, RTCP, SIGNALLING, Trial
from streamgauge.metrics.grid import SECOND_NS, Floats, Ints
from streamgauge.metrics.rates import sent_bits
from streamgauge.metrics.result import Measured, Series

PAUSE_S = 1.0
"""A longer gap between two packets is a pause, unless most gaps of that flow are as long."""
USUAL_GAPS = 10
"""A pause is longer than this number of the flow's usual (median) gaps."""

_OWN = np.ones(256, dtype=np.bool_)
"""Whether packets of a kind count."""
_OWN[[PROBE, RTCP, SIGNALLING]] = False


_NONE = np.empty(0, dtype=np.int64)


def own_packets(trial: Trial) -> tuple[Ints, ...]:
    """Returns for each flow the places, among the packets offered, of those with payload of its own:
    signalling, RTCP and probes do not count, nor do packets without payload."""
    offered = trial.offered[DOWN]
    own = (offered["payload_bytes"] > 0) & _OWN[offered["kind"]]
    sent = (offered.of(row) for row in range(len(trial.flows)))
    return tuple(mine[own[mine]] for mine in sent)


def own_times(trial: Trial) -> tuple[Ints, ...]:
    """Returns for each flow the times at which its own packets (`own_packets`) are offered, ns."""
    return tuple(trial.offered[DOWN].times_ns[mine] for mine in trial.once(own_packets))


def transmission_s(own: Ints) -> float | None:
    """Returns the time from a flow's first own packet (`own_times`) to its last, with pauses, in s.

    None of fewer than two packets. The received bytes over this time are a clip's average bandwidth (Chung,
    Claypool and Zhu, section IV).
    """
    return float(own[-1] - own[0]) / SECOND_NS if len(own) > 1 else None


def sending_seconds(trial: Trial) -> Floats:
    """Returns how long each flow sends payload of its own (`own_times`) in each sample, in s, [flow, sample].

    A run of n packets without a pause takes n times its mean gap, which makes its bits over that time the
    sending rate; a single packet takes none.
    """
    own = trial.once(own_times)
    return np.array([_runs(times).seconds(trial.grid) for times in own]).reshape(-1, len(trial.grid))


def _runs(times_ns: Ints) -> Spans:
    gaps = np.diff(times_ns)
    if not len(gaps):
        return Spans.none()
    # Without such a long gap the usual gap has no effect, and its computation is the most expensive part
    # here.
    longer = gaps.max() > PAUSE_S * SECOND_NS
    usual = float(np.median(gaps)) if longer else 0.0
    pauses = np.flatnonzero(gaps > max(PAUSE_S * SECOND_NS, USUAL_GAPS * usual)) if longer else _NONE
    first = np.concatenate([[0], pauses + 1])
    last = np.concatenate([pauses, [len(gaps)]])
    count = last - first
    taken = (times_ns[last] - times_ns[first]) / np.maximum(count, 1) * (count + 1)
    several = count > 0
    begin = times_ns[first][several]
    return Spans(begin, begin + np.rint(taken[several]).astype(np.int64))


def sending(trial: Trial, flow: int) -> Measured:
    """Returns when a flow sends: for how long, at which rate, from when and until when."""
    offered, own = trial.offered[DOWN], trial.once(own_times)[flow]
    seconds, sent = trial.row(sending_seconds, flow), offered.of(flow)
    return Measured(
        {"sending_time": Series(seconds), "sending_rate": Series(trial.row(sent_bits, flow), seconds)},
        {
            "transmission_time": transmission_s(own),
            "start": float(offered.times_ns[sent[0]]) / SECOND_NS if len(sent) else None,
            "end": float(own[-1]) / SECOND_NS if len(own) else None,
        },
    )


METRICS = (
    Metric(
        "sending_time",
        TIME,
        "flow",
        "Time sending",
        formula="time in which the flow sends payload of its own, without pauses; see below",
        flow=sending,
        number="M7",
        json="sending_s",
    ),
    Metric(
        "sending_rate",
        RATE,
        "flow",
        "Rate while sending",
        formula="bits offered / `sending_time`",
        flow=sending,
        number="M7",
        json="sending_bps",
    ),
    Metric(
        "transmission_time",
        TIME,
        "flow",
        "From the first packet to the last",
        formula=(
            "from the first packet of the flow's own to the last, pauses included, regardless of the "
            "window; bytes received over this time are a clip's average bandwidth (M11)"
        ),
        flow=sending,
        number="M20",
        json="transmission_s",
    ),
    Metric(
        "start",
        TIME,
        "flow",
        "First packet",
        formula="time of the first packet",
        flow=sending,
        number="M7",
    ),
    Metric(
        "end",
        TIME,
        "flow",
        "Last packet of its own",
        formula="time of the last packet of the flow's own",
        flow=sending,
        number="M22",
    ),
)

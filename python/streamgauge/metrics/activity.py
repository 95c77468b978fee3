"""When a flow sends: between its first packet and its last, pauses left out."""

from __future__ import annotations

import numpy as np

from streamgauge.metrics.course import Spans
from streamgauge.metrics.frame import DOWN, PROBE, RTCP, SIGNALLING, Trial
from streamgauge.metrics.grid import SECOND_NS, Floats, Ints

PAUSE_S = 1.0
"""A longer gap between two packets is a pause, unless gaps of that flow are mostly so long."""
USUAL_GAPS = 10
"""A pause is longer than so many of the flow's usual (median) gaps."""

_OWN = np.ones(256, dtype=np.bool_)
"""Whether packets of a kind count."""
_OWN[[PROBE, RTCP, SIGNALLING]] = False


_NONE = np.empty(0, dtype=np.int64)


def sending_seconds(trial: Trial) -> Floats:
    """How long each flow sends payload of its own in each sample, in s, [flow, sample].

    Signalling, RTCP and probes do not count, nor do packets without payload. A run of n packets without a
    pause takes n times its mean gap, so that its bits over that time are the rate it was sent at; a packet
    that stands alone takes none.
    """
    offered = trial.offered[DOWN]
    own = (offered["payload_bytes"] > 0) & _OWN[offered["kind"]]
    found = np.zeros((len(trial.flows), len(trial.grid)))
    for row in range(len(trial.flows)):
        mine = offered.of(row)
        found[row] = _runs(offered.times_ns[mine[own[mine]]]).seconds(trial.grid)
    return found


def _runs(times_ns: Ints) -> Spans:
    gaps = np.diff(times_ns)
    if not len(gaps):
        return Spans.none()
    # Where no gap is so long what is usual does not matter, and to know it costs most of all here.
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

"""M14: how fast a flow fills its player's buffer, and what it settles to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgauge.metrics.frame import DOWN, Trial
from streamgauge.metrics.grid import SECOND_NS, Ints

__all__ = ["buffering_rates"]

BUFFERING_S = 80
"""From a flow's first packet, in which it fills its buffer."""
INTERVAL_S = 10
"""Over which its rate is averaged; a flow or a rest that is shorter has none."""
STEADY_S = 100
"""From a flow's first packet, after which it has settled."""


def buffering_rates(trial: Trial, own: Sequence[Ints]) -> list[dict[str, float | None]]:
    """Of each flow its buffering rate and its steady rate, bit/s, as it is received.

    The first is the highest mean over 10 s of its first 80 s, here from each second on; the other the mean
    from 100 s to its end (Chung, Claypool and Zhu, section V-D, who do not say whether intervals of 10 s
    overlap). Counted from the first to the last packet of the flow's own that is offered, whatever the
    measurement window is. None of a ping, and of a flow or a rest shorter than 10 s.

    Args:
        trial: the trial.
        own: when each flow's own packets are offered (`streamgauge.metrics.activity.own_times`).
    """
    delivered = trial.delivered[DOWN]
    bits = delivered.bits(trial.bytes_column)
    found: list[dict[str, float | None]] = []
    for row, flow in enumerate(trial.flows):
        buffering = steady = None
        times = own[row]
        length_s = (times[-1] - times[0]) / SECOND_NS if len(times) else 0.0
        if length_s >= INTERVAL_S and not flow.is_ping:
            mine = delivered.of(row)
            since_s = (delivered.times_ns[mine] - times[0]) / SECOND_NS
            seconds = int(min(length_s, BUFFERING_S))
            first = (since_s >= 0) & (since_s < seconds)
            per_second = np.bincount(since_s[first].astype(np.int64), bits[mine][first], seconds)
            sums = np.concatenate([[0.0], np.cumsum(per_second)])
            buffering = float((sums[INTERVAL_S:] - sums[:-INTERVAL_S]).max()) / INTERVAL_S
            if length_s >= STEADY_S + INTERVAL_S:
                rest = (since_s >= STEADY_S) & (since_s <= length_s)
                steady = float(bits[mine][rest].sum()) / (length_s - STEADY_S)
        found.append({"buffering_rate": buffering, "steady_rate": steady})
    return found

"""M24 and M25: the gaps and the bursts in which packets are sent."""

from __future__ import annotations

import numpy as np

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import PACKETS, PERCENT, TIME
from streamgauge.metrics.activity import own_packets, own_times
from streamgauge.metrics.course import observed, summed
from streamgauge.metrics.frame import DOWN, RETRANSMIT, Trial
from streamgauge.metrics.grid import SECOND_NS
from streamgauge.metrics.result import Series

__all__ = ["BURST_GAP_S", "METRICS", "SHORT_GAP_S", "bursts", "packet_gaps"]

BURST_GAP_S = 0.01
"""A longer gap ends a burst: twelve packets of 1500 bytes at 14 Mbit/s, or one at 1.2 Mbit/s."""
SHORT_GAP_S = 0.005
"""Nichols counts the packets within a few milliseconds of the one before."""


def packet_gaps(trial: Trial, flow: int) -> dict[str, Series]:
    """Returns the gaps between a flow's own packets as they are offered to the path, before any queue, and
    which share of them is at most 5 ms (Nichols, *Measurement of Windows Streaming Media*, section 4.1,
    Figures 32 to 35). A gap counts when it begins.
    """
    own = trial.once(own_times)[flow]
    begins, gaps_s = own[:-1], np.diff(own) / SECOND_NS
    gaps = observed(trial.grid, begins, gaps_s)
    short = summed(trial.grid, begins, (gaps_s <= SHORT_GAP_S).astype(np.float64))
    return {"packet_gap": gaps, "short_gaps": Series(short, gaps.denominator)}


def bursts(trial: Trial, flow: int) -> dict[str, Series]:
    """From one burst of a flow's own packets to the next, begin to begin, and how many packets a burst has.

    A burst is a run of packets with gaps of at most 10 ms; it counts when it begins. Repeats are left out: a
    server repeats a packet at the report of its loss, which falls between the bursts of its regular sending.
    """
    offered, grid, packets = trial.offered[DOWN], trial.grid, trial.once(own_packets)[flow]
    first = packets[(offered["flags"][packets] & RETRANSMIT) == 0]
    times = offered.times_ns[first]
    begins = np.flatnonzero(np.diff(times, prepend=-np.inf) > BURST_GAP_S * SECOND_NS)
    sizes = np.diff(np.append(begins, len(times)))
    began = times[begins]
    spacing_s = np.diff(began) / SECOND_NS
    return {
        "burst_spacing": observed(grid, began[:-1], spacing_s),
        "burst_size": observed(grid, began, sizes.astype(np.float64)),
    }


METRICS = (
    Metric(
        "packet_gap",
        TIME,
        "flow",
        "Gap between packets sent",
        formula="mean gap between the offers of the flow's own packets, before any queue",
        flow=packet_gaps,
        number="M24",
        json={"packet_gap_mean_s": "mean", "packet_gap_max_s": "max"},
    ),
    Metric(
        "short_gaps",
        PERCENT,
        "flow",
        "Gaps between packets sent of at most 5 ms",
        formula="100 · gaps of at most 5 ms / gaps",
        flow=packet_gaps,
        number="M24",
    ),
    Metric(
        "burst_spacing",
        TIME,
        "flow",
        "From one burst to the next",
        formula="mean time from the start of a burst to the next; see below",
        flow=bursts,
        number="M25",
        json="burst_spacing_mean_s",
    ),
    Metric(
        "burst_size",
        PACKETS,
        "flow",
        "Packets in a burst",
        formula="mean packets of a burst; see below",
        flow=bursts,
        number="M25",
        json={"burst_size_mean_packets": "mean", "burst_size_max_packets": "max"},
        whole=False,
    ),
)

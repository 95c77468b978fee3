"""Numbers of one trial that distinguish congestion controls.

Goodput does not: Reno and CUBIC both fill a link. Each number here is a function of a connection's packets at
the sender's tap and at the end of the path (`FlowTrace`), over the window given, and `None` where there is
nothing to measure. A name contains its unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from streamgauge.crosscheck.compared import ComparedQuantity, Found
from streamgauge.crosscheck.trace import NEVER, FlowTrace, Ints

__all__ = [
    "QUANTITIES",
    "completion_s",
    "loss_events",
    "of_flow",
    "of_pair",
    "of_start",
    "quantity",
    "turns",
    "window",
]

Floats = npt.NDArray[np.float64]

SECOND: Final = 1e9
TURN = 0.15
"""By which share the window has to turn back for a peak or trough of its sawtooth: CUBIC gives up 30 %, Reno
50 %, and a packet more or less is 10 % of the smallest windows here."""
SHARE_OVER_S = 1.0
"""Length of a sample of a flow's share."""


_ALL = (
    ComparedQuantity(
        "goodput_bps", "Mbit/s", "goodput (sanity check: the same for every controller)", 0.05, 0, 1e-6
    ),
    ComparedQuantity("loss_percent", "%", "data packets dropped", 0.1, 0.02),
    ComparedQuantity("loss_events_per_s", "/s", "loss events", 0.1, 0.02),
    ComparedQuantity("loss_interval_mean_s", "s", "time between loss events, mean", 0.1, 0.005, if_any=True),
    ComparedQuantity(
        "loss_interval_cov",
        "",
        "time between loss events, standard deviation over mean",
        0.1,
        0.1,
        if_any=True,
    ),
    ComparedQuantity("losses_per_event", "packets", "packets lost in a loss event", 0.1, 0.25, if_any=True),
    ComparedQuantity("rtt_p5_s", "ms", "RTT, 5th percentile", 0.1, 0.001, 1e3),
    ComparedQuantity("rtt_p50_s", "ms", "RTT, median", 0.1, 0.001, 1e3),
    ComparedQuantity("rtt_p95_s", "ms", "RTT, 95th percentile", 0.1, 0.001, 1e3),
    ComparedQuantity("window_p50_packets", "packets", "packets in flight, median over round trips", 0.1, 0.5),
    ComparedQuantity("window_drop_percent", "%", "sawtooth: fall from peak to trough", 0.1, 5.0),
    ComparedQuantity("window_period_s", "s", "sawtooth: time from peak to peak", 0.1, 0.005),
    ComparedQuantity(
        "cwnd_p50_packets", "packets", "the sender's congestion window, median", 0.1, 1.0, if_any=True
    ),
    ComparedQuantity(
        "cwnd_p95_packets",
        "packets",
        "the sender's congestion window, 95th percentile",
        0.1,
        1.0,
        if_any=True,
    ),
    ComparedQuantity("retransmitted_percent", "%", "data packets that repeat", 0.1, 0.02),
    ComparedQuantity(
        "repeats_per_loss", "", "retransmissions for each packet dropped", 0.0, 0.05, if_any=True
    ),
    ComparedQuantity("acks_per_packet", "", "acknowledgements for each data packet", 0.0, 0.05),
    ComparedQuantity("start_losses", "packets", "start: packets dropped before the window", 0.1, 2.0),
    ComparedQuantity(
        "start_peak_packets", "packets", "start: most packets in flight before the window", 0.1, 2.0
    ),
    ComparedQuantity(
        "start_first_loss_s", "s", "start: from first packet to first drop", 0.1, 0.02, if_any=True
    ),
    ComparedQuantity("share", "", "share of the goodput", 0.0, 0.1, fixed=True),
    ComparedQuantity("share_sd", "", "standard deviation of the share over seconds", 0.1, 0.05),
    ComparedQuantity("completion_s", "s", "from first data sent to last data arrived", 0.1, 0.005),
)
QUANTITIES: Final[Mapping[str, ComparedQuantity]] = {one.name: one for one in _ALL}


def quantity(metric: str) -> ComparedQuantity:
    """Returns the quantity of a row's metric, which may begin with its flow: ``reno.share``."""
    return QUANTITIES[metric.rpartition(".")[2]]


def loss_events(times: Ints, rtt_s: float) -> tuple[Ints, Ints]:
    """Groups losses into loss events: all within one round trip of an event's first loss are one event, as in
    RFC 5348 section 5.2.

    Args:
        times: when packets were dropped, ns, ascending.
        rtt_s: the round-trip time.

    Returns:
        When each event began, ns, and how many packets it lost.
    """
    began: list[int] = []
    lost: list[int] = []
    reach = round(rtt_s * SECOND)
    for time in times.tolist():
        if not began or time > began[-1] + reach:
            began.append(time)
            lost.append(1)
        else:
            lost[-1] += 1
    return np.array(began, dtype=np.int64), np.array(lost, dtype=np.int64)


def window(trace: FlowTrace, begin_ns: int, end_ns: int, step_ns: int) -> tuple[Floats, Floats]:
    """Most packets in flight in each step of the window: (times of the steps' middles in s, packets).

    A packet is in flight from the sender's tap until the sender hears of it (`FlowTrace.answered`); one that
    was lost, until the sender hears of any that was sent after it.
    """
    steps = (end_ns - begin_ns) // step_ns
    if steps < 1 or len(trace.sent) == 0:
        return np.zeros(0), np.zeros(0)
    answered = trace.answered
    later = np.append(np.minimum.accumulate(answered[::-1])[::-1][1:], NEVER)
    gone = np.where(answered == NEVER, later, answered)
    gone = gone[gone != NEVER]
    times = np.concatenate([trace.sent, gone])
    change = np.concatenate([np.ones(len(trace.sent)), -np.ones(len(gone))])
    # An acknowledged byte leaves before the bytes enter that it lets out.
    order = np.lexsort((change, times))
    times, level = times[order], np.cumsum(change[order])
    edges = begin_ns + step_ns * np.arange(steps + 1)
    first = np.searchsorted(times, edges, side="left")
    # Each step has the level with which it begins, and every level reached within it.
    before = np.where(first > 0, level[np.maximum(first - 1, 0)], 0.0)[:-1]
    padded = np.append(level, 0.0)
    within = np.maximum.reduceat(padded, np.minimum(first[:-1], len(level)))
    most = np.where(first[1:] > first[:-1], np.maximum(within, before), before)
    middles = np.asarray((edges[:-1] + step_ns / 2) / SECOND, dtype=np.float64)
    return middles, np.asarray(most, dtype=np.float64)


def turns(values: Floats, least: float = TURN) -> tuple[list[int], list[int]]:
    """Peaks and troughs of a series: the places where it turns back by more than a share `least` of the peak.

    Peaks and troughs alternate and begin with a peak; values after the last turn are not one.
    """
    peaks: list[int] = []
    troughs: list[int] = []
    if len(values) == 0:
        return peaks, troughs
    high = low = 0
    rising = True
    for place, value in enumerate(values):
        if rising:
            if value > values[high]:
                high = place
            elif value < (1 - least) * values[high]:
                peaks.append(high)
                rising, low = False, place
        elif value < values[low]:
            low = place
        elif value * (1 - least) > values[low]:
            troughs.append(low)
            rising, high = True, place
    return peaks, troughs


def _percentile(values: Floats | Ints, share: float) -> float | None:
    return float(np.percentile(values, share)) if len(values) else None


def _within(times: Ints, begin_ns: int, end_ns: int) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = (times >= begin_ns) & (times < end_ns)
    return inside


def _first_arrivals(trace: FlowTrace) -> npt.NDArray[np.bool_]:
    """Returns whether a packet is the first to bring its bytes."""
    order = np.argsort(trace.arrived, kind="stable")
    _, first = np.unique(trace.seq[order], return_index=True)
    brings = np.zeros(len(order), dtype=np.bool_)
    brings[order[first]] = True
    brings &= trace.arrived != NEVER
    return brings


def of_flow(trace: FlowTrace, begin_ns: int, end_ns: int) -> Found:
    """Returns every quantity of a long-lived flow over the window."""
    offered = _within(trace.sent, begin_ns, end_ns)
    count = int(offered.sum())
    arrivals = _within(trace.arrived, begin_ns, end_ns) & _first_arrivals(trace)
    length_s = (end_ns - begin_ns) / SECOND
    found: Found = {"goodput_bps": 8 * float(trace.payload[arrivals].sum()) / length_s}
    answered = trace.answered
    timed = offered & (answered != NEVER)
    rtt = (answered[timed] - trace.sent[timed]) / SECOND
    for share in (5, 50, 95):
        found[f"rtt_p{share}_s"] = _percentile(rtt, share)
    rtt_s = found["rtt_p50_s"] or 0.0
    drops = np.sort(trace.dropped[_within(trace.dropped, begin_ns, end_ns)])
    began, lost = loss_events(drops, rtt_s)
    found["loss_percent"] = 100 * len(drops) / count if count else None
    found["loss_events_per_s"] = len(began) / length_s
    between = np.diff(began) / SECOND
    # No quantile: with two events in each cycle, soon after each other, a median jumps from one to the other.
    found["loss_interval_mean_s"] = float(between.mean()) if len(between) else None
    found["loss_interval_cov"] = float(between.std() / between.mean()) if len(between) > 1 else None
    found["losses_per_event"] = float(lost.mean()) if len(lost) else None
    repeats = int(trace.repeat[offered].sum())
    found["retransmitted_percent"] = 100 * repeats / count if count else None
    found["repeats_per_loss"] = repeats / len(drops) if len(drops) else None
    acks = int(_within(trace.ack_back, begin_ns, end_ns).sum())
    arrived = int(_within(trace.arrived, begin_ns, end_ns).sum())
    found["acks_per_packet"] = acks / arrived if arrived else None
    found |= _sawtooth(trace, begin_ns, end_ns, rtt_s)
    times, cwnd = trace.cwnd
    packets = cwnd[_within(times, begin_ns, end_ns)] / max(1, int(trace.payload.max()))
    found["cwnd_p50_packets"] = _percentile(packets, 50)
    found["cwnd_p95_packets"] = _percentile(packets, 95)
    return found


def _sawtooth(trace: FlowTrace, begin_ns: int, end_ns: int, rtt_s: float) -> Found:
    found: Found = {"window_p50_packets": None, "window_drop_percent": None, "window_period_s": None}
    if not rtt_s:
        return found
    times, most = window(trace, begin_ns, end_ns, round(rtt_s * SECOND))
    found["window_p50_packets"] = _percentile(most, 50)
    peaks, troughs = turns(most)
    falls = [1 - most[low] / most[high] for high, low in zip(peaks, troughs, strict=False)]
    if falls:
        found["window_drop_percent"] = 100 * float(np.mean(falls))
    if len(peaks) > 1:
        found["window_period_s"] = float(times[peaks[-1]] - times[peaks[0]]) / (len(peaks) - 1)
    return found


def of_start(trace: FlowTrace, until_ns: int) -> Found:
    """Returns the start of a flow, up to a time: the cost of slow start, and its end."""
    if len(trace.sent) == 0:
        return dict.fromkeys(("start_losses", "start_peak_packets", "start_first_loss_s"))
    drops = trace.dropped[trace.dropped < until_ns]
    began = int(trace.sent[0])
    answered = trace.answered
    timed = answered != NEVER
    step = int((answered[timed] - trace.sent[timed]).min()) if timed.any() else until_ns
    _, most = window(trace, began, until_ns, max(step, 1))
    return {
        "start_losses": float(len(drops)),
        "start_peak_packets": float(most.max()) if len(most) else None,
        "start_first_loss_s": (int(drops.min()) - began) / SECOND if len(drops) else None,
    }


def completion_s(trace: FlowTrace) -> float:
    """From when the first data is sent to when the last new data has arrived."""
    brings = _first_arrivals(trace)
    return float(trace.arrived[brings].max() - trace.sent.min()) / SECOND


def of_pair(first: FlowTrace, second: FlowTrace, begin_ns: int, end_ns: int) -> Found:
    """Returns how two flows share: the first one's part of the goodput, and how it varies from second to
    second."""
    edges = np.arange(begin_ns, end_ns + 1, round(SHARE_OVER_S * SECOND))
    got = []
    for trace in (first, second):
        brings = _first_arrivals(trace)
        got.append(np.histogram(trace.arrived[brings], edges, weights=trace.payload[brings])[0])
    both = got[0] + got[1]
    busy = both > 0
    if not busy.any():
        return {"share": None, "share_sd": None}
    over = got[0][busy] / both[busy]
    return {"share": float(got[0].sum() / both.sum()), "share_sd": float(over.std())}

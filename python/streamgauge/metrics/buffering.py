"""M14, M21 and M22: how fast a flow fills its player's buffer, when it was full, and its settled rate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import PERCENT, RATE, TIME
from streamgauge.metrics.activity import own_times, sending
from streamgauge.metrics.frame import DOWN, Trial
from streamgauge.metrics.grid import SECOND_NS
from streamgauge.metrics.passage import Passage

__all__ = ["METRICS", "buffering", "buffering_phases", "buffering_rates", "buffering_times"]

BUFFERING_S = 80
"""From a flow's first packet, in which it fills its buffer."""
INTERVAL_S = 10
"""Over which its rate is averaged; a flow or a rest that is shorter has none."""
STEADY_S = 100
"""From a flow's first packet, after which it has settled."""


def buffering_rates(trial: Trial) -> list[dict[str, float | None]]:
    """Returns for each flow its buffering rate and its steady rate, bit/s, as received.

    The first is the highest mean over 10 s of its first 80 s, here from each second on; the other the mean
    from 100 s to its end (Chung, Claypool and Zhu, section V-D; it is not stated whether intervals of 10 s
    overlap). Counted from the first to the last packet of the flow's own that is offered, in any measurement
    window. None for a ping, and for a flow or a rest shorter than 10 s.
    """
    delivered, own = trial.delivered[DOWN], trial.once(own_times)
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


def buffering_times(trial: Trial, flow: int) -> dict[str, float | None]:
    """Returns the times at which a flow's player asked to play and its buffer was full, s of the trial;
    nothing for one that does not report the start of play.

    Nichols (*Measurement of Windows Streaming Media*, section 3.2.3) has the buffering period begin with
    RTSP's PLAY and last until the player's buffer was full; both are those of its first `playout_start` here,
    with the time since the request to play as its value. Without a value the begin is not known.
    """
    times, values = trial.said.of("playout_start", flow)
    if not len(times):
        return {}
    end_s = float(times[0]) / SECOND_NS
    start_s = end_s - float(values[0])
    return {"buffering_start": start_s if np.isfinite(start_s) else None, "buffering_end": end_s}


def buffering_phases(
    trial: Trial, flow: int, times: Mapping[str, float | None], end_s: float | None
) -> dict[str, float | None]:
    """Returns how long a flow fills its player's buffer (`filling_time`, s), the rate of its arrival
    (`filling_rate`, bit/s) and the share lost meanwhile (`filling_loss`); and the same from there to the
    flow's last packet (`playing_time`, `playing_rate`, `playing_loss`): Nichols, section 3.2.3, measures
    rates and losses of each period as a whole. Losses count when packets are dropped.

    Args:
        trial: the trial.
        flow: its place among the trial's flows.
        times: `buffering_times` of the flow.
        end_s: when its last packet is offered, s of the trial.
    """
    start, full = times.get("buffering_start"), times.get("buffering_end")
    if full is None:
        return {}
    found: dict[str, float | None] = {}
    for name, begin, end in (("filling", start, full), ("playing", full, end_s)):
        found |= dict.fromkeys((f"{name}_time", f"{name}_rate", f"{name}_loss"))
        if begin is None or end is None or end <= begin:
            continue
        offered, received, lost = (
            _bits_between(trial, passed[DOWN], flow, begin, end)
            for passed in (trial.offered, trial.delivered, trial.dropped)
        )
        found |= {f"{name}_time": end - begin, f"{name}_rate": received / (end - begin)}
        found[f"{name}_loss"] = lost / offered if offered else None
    return found


def _bits_between(trial: Trial, passage: Passage, flow: int, begin_s: float, end_s: float) -> float:
    mine = passage.of(flow)
    times = passage.times_ns[mine]
    inside = (times >= begin_s * SECOND_NS) & (times < end_s * SECOND_NS)
    return float(passage.bits(trial.bytes_column)[mine][inside].sum())


def buffering(trial: Trial, flow: int) -> dict[str, float | None]:
    """Returns everything about a flow's buffer by its packets and the start of play."""
    times, end_s = buffering_times(trial, flow), trial.once(sending, flow).scalars["end"]
    return trial.once(buffering_rates)[flow] | times | buffering_phases(trial, flow, times, end_s)


METRICS = (
    Metric(
        "buffering_start",
        TIME,
        "flow",
        "When its player asked to play",
        formula="time of the player's request to play; see below",
        flow=buffering,
        number="M21",
        reads=("playout_start",),
    ),
    Metric(
        "buffering_end",
        TIME,
        "flow",
        "When its player's buffer was full",
        formula="time of the full buffer; see below",
        flow=buffering,
        number="M21",
        reads=("playout_start",),
    ),
    Metric(
        "filling_time",
        TIME,
        "flow",
        "Time to fill the buffer",
        formula="from `buffering_start` to `buffering_end`",
        flow=buffering,
        number="M22",
        reads=("playout_start",),
        json="filling_s",
    ),
    Metric(
        "filling_rate",
        RATE,
        "flow",
        "Receiver rate until the buffer is full",
        formula="bits delivered in this time / `filling_time`",
        flow=buffering,
        number="M22",
        reads=("playout_start",),
        json="filling_bps",
    ),
    Metric(
        "filling_loss",
        PERCENT,
        "flow",
        "Loss until the buffer is full",
        formula="100 · bits lost in this time / bits offered",
        flow=buffering,
        number="M22",
        better="less",
        reads=("playout_start",),
    ),
    Metric(
        "playing_time",
        TIME,
        "flow",
        "Time from the full buffer to the last packet",
        formula="from `buffering_end` to `end`",
        flow=buffering,
        number="M22",
        reads=("playout_start",),
        json="playing_s",
    ),
    Metric(
        "playing_rate",
        RATE,
        "flow",
        "Receiver rate once the buffer is full",
        formula="bits delivered in this time / `playing_time`",
        flow=buffering,
        number="M22",
        reads=("playout_start",),
        json="playing_bps",
    ),
    Metric(
        "playing_loss",
        PERCENT,
        "flow",
        "Loss once the buffer is full",
        formula="100 · bits lost in this time / bits offered",
        flow=buffering,
        number="M22",
        better="less",
        reads=("playout_start",),
    ),
    Metric(
        "buffering_rate",
        RATE,
        "flow",
        "Receiver rate while the buffer fills",
        formula="highest receiver rate of 10 s in the first 80 s; see below",
        flow=buffering,
        number="M14",
        json="buffering_bps",
    ),
    Metric(
        "steady_rate",
        RATE,
        "flow",
        "Receiver rate once it has settled",
        formula="mean receiver rate from 100 s to the flow's end; see below",
        flow=buffering,
        number="M14",
        json="steady_bps",
    ),
)

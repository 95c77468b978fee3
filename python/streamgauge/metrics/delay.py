"""M10: round-trip time, and the one-way delay of a flow's packets through the path."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import TIME
from streamgauge.metrics.course import averaged
from streamgauge.metrics.frame import DOWN, PROBE, UP, Trial
from streamgauge.metrics.grid import SECOND_NS, Floats, Ints, Mask
from streamgauge.metrics.order import percentile
from streamgauge.metrics.passage import HIDDEN, NEVER, Instants, Passage, Samples
from streamgauge.metrics.result import Measured, Series

_FEW = 8
"""Flows."""


@dataclass(frozen=True)
class PathDelays:
    """Time through the path of every delivered packet of every flow, at its departure."""

    delivered: Passage
    delay_s: Floats
    known: Mask
    """Whether the packet's entry is known."""

    @classmethod
    def of(cls, trial: Trial, direction: int = DOWN) -> PathDelays:
        """Last stage's departure less first stage's arrival; hosts' own time is not in it."""
        offered, delivered = trial.offered[direction], trial.delivered[direction]
        entries = trial.entries[direction]
        known = entries != -1
        delay = np.zeros(len(delivered))
        delay[known] = (delivered.times_ns[known] - offered.times_ns[entries[known]]) / SECOND_NS
        return cls(delivered, delay, known)

    def samples(self) -> Samples:
        """Over time."""
        return self.delivered.observe(self.delay_s, self.known)

    def percentiles(self, percent: float) -> list[float | None]:
        """Returns percentiles for each flow's packets that are delivered in the measurement window; None if
        there is none."""
        window = self.delivered.window
        # Where all is one flow's, or flows are few, to look for each is faster than to sort them.
        flow, delay = self.delivered.flow[window], self.delay_s[window]
        if not self.known.all():
            flow, delay = flow[self.known[window]], delay[self.known[window]]
        count = self.delivered.shape[0] - 1
        if count <= _FEW:
            return [percentile(delay[flow == row], percent) for row in range(count)]
        order = np.argsort(flow.astype(np.uint16), kind="stable")
        bounds = np.searchsorted(flow[order], np.arange(count + 1))
        return [percentile(delay[order[low:high]], percent) for low, high in itertools.pairwise(bounds)]


def one_way(trial: Trial, direction: int = DOWN) -> Samples:
    """One-way path delay: last stage's departure less first stage's arrival, in s, at the departure.

    Every delivered packet of every flow; hosts' own time is not in it.
    """
    return (trial.once(_delays_down) if direction == DOWN else PathDelays.of(trial, direction)).samples()


def probe_rtt(trial: Trial) -> Samples:
    """M10: round-trip time of ICMP echo, in s, at the time of the request.

    A request is matched with the reply of the same sequence number that follows it; RTT is the
    reply's departure from the path less the request's arrival (ping from monitor to sink: Hessler and Welzl,
    section 2). Requests without a reply are left out.
    """
    sent, request = _probes(trial.offered[DOWN])
    back = _answered(sent, request, *_probes(trial.delivered[UP]))
    requests = Instants(trial.grid, len(trial.flows), sent, request >> 32)
    return requests.observe((back - sent) / SECOND_NS, back != NEVER)


def _probes(passage: Passage) -> tuple[Ints, Ints]:
    """Returns the times of echo packets (ns), and the common key of a request and its reply: flow and
    number."""
    # Few packets are, and mostly none: their places are quicker to take than a mask is to go through.
    chosen = np.flatnonzero((passage["kind"] == PROBE) & (passage["seq"] != HIDDEN))
    return passage.times_ns[chosen], (passage.flow[chosen] << 32) | passage["seq"][chosen].astype(np.int64)


def _answered(sent: Ints, request: Ints, back: Ints, reply: Ints) -> Ints:
    """Returns for each request the time of the first reply to it from then on; `NEVER` if there is none."""
    times, echo = np.concatenate([sent, back]), np.concatenate([request, reply])
    is_reply = np.arange(len(times)) >= len(sent)
    order = np.lexsort((is_reply, times, echo))
    times, echo, is_reply = times[order], echo[order], is_reply[order]
    # From the end, each place learns of the next reply after it.
    last = len(order) - 1
    following = np.minimum.accumulate(np.where(is_reply, np.arange(len(order)), last)[::-1])[::-1]
    found = is_reply[following] & (echo[following] == echo)
    answered = np.empty(len(order), dtype=np.int64)
    answered[order] = np.where(found, times[following], NEVER)
    return answered[: len(sent)]


def reported_rtt(trial: Trial) -> Samples:
    """M10 as the flows' own machines reported it: events named ``rtt``, in s."""
    instants, values = trial.said.instants(trial.grid, "rtt")
    return instants.observe(values)


DelaySource = Literal["probe", "event", "path"]


def round_trips(trial: Trial) -> list[tuple[Samples, DelaySource | None]]:
    """Returns M10 of each flow, per sample, in s, with its source.

    ``probe``: its echo packets in the record; ``event``: its machine's ``rtt`` reports; ``path``: for a flow
    with packets both ways, its mean delay down plus its mean delay up in each sample, weighted by the packets
    down (the network's part of the RTT; hosts' time is not in it). None if it has none of these.
    """
    probes, reported = probe_rtt(trial), reported_rtt(trial)
    down, up = trial.once(one_way), one_way(trial, UP)
    return [
        _best(probes.of(flow), reported.of(flow), down.of(flow), up.of(flow))
        for flow in range(len(trial.flows))
    ]


def _best(
    probes: Samples, reported: Samples, down: Samples, up: Samples
) -> tuple[Samples, DelaySource | None]:
    if probes.count.any():
        return probes, "probe"
    if reported.count.any():
        return reported, "event"
    if not down.count.any() or not up.count.any():
        return down, None
    # Reports and acknowledgements may be rare: a sample without any takes the mean way back.
    usual = up.total.sum() / up.count.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        back = np.where(up.count > 0, up.total / up.count, usual)
    low, high = down.low + np.fmin(up.low, usual), down.high + np.fmax(up.high, usual)
    return Samples(down.total + back * down.count, down.count, low, high), "path"


def _delays_down(trial: Trial) -> PathDelays:
    return PathDelays.of(trial)


def _percentiles(trial: Trial) -> list[float | None]:
    return trial.once(_delays_down).percentiles(95)


def round_trip(trial: Trial, flow: int) -> tuple[Series, DelaySource | None]:
    """Returns M10 of a flow, with its source."""
    samples, source = trial.once(round_trips)[flow]
    return averaged(samples), source


def delays(trial: Trial, flow: int) -> Measured:
    """Returns a flow's delay through the path, and its round trip if there is a source of it."""
    found = {"path_delay": averaged(trial.once(one_way).of(flow))}
    rtt, source = trial.once(round_trip, flow)
    if source is not None:
        found["rtt"] = rtt
    return Measured(found, {"path_delay_p95": trial.once(_percentiles)[flow]})


METRICS = (
    Metric(
        "rtt",
        TIME,
        "flow",
        "Round-trip time",
        formula="mean round-trip time; see below. `rtt_source` names its source",
        flow=delays,
        number="M10",
        better="less",
        reads=("rtt",),
        json={"rtt_mean_s": "mean", "rtt_min_s": "min", "rtt_max_s": "max"},
        label="round-trip time",
    ),
    Metric(
        "path_delay",
        TIME,
        "flow",
        "One-way path delay",
        formula="mean of last stage's `t_out` − first stage's `t_in`",
        flow=delays,
        number="M10",
        better="less",
        json={"path_delay_mean_s": "mean", "path_delay_max_s": "max"},
    ),
    Metric(
        "path_delay_p95",
        TIME,
        "flow",
        "95th percentile of the one-way path delay",
        formula=(
            "95th percentile of this delay over the packets delivered in the window, interpolated "
            "(type 7 of Hyndman and Fan); for the window only"
        ),
        flow=delays,
        number="M10",
        better="less",
        compared=(
            ComparedBy(
                "flow",
                20,
                "95th percentile of delay",
                Margin(absolute=0.005, relative=0.05),
                title="95th percentile of the one-way delay of the packets that arrived",
            ),
        ),
    ),
)

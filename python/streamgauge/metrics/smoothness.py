"""Smoothness of a flow's received rate."""

from __future__ import annotations

import math

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import NUMBER
from streamgauge.metrics.activity import own_times
from streamgauge.metrics.course import Spans
from streamgauge.metrics.frame import DOWN, Trial
from streamgauge.metrics.grid import SECOND_NS, Floats, Ints
from streamgauge.metrics.rates import received_bits
from streamgauge.metrics.session import pauses_of

SCALE_NS = round(SECOND_NS)
FEWEST_SECONDS = 5
"""Least length for a result."""


def rate_variations(trial: Trial) -> list[float | None]:
    """Returns for each flow the coefficient of variation of its receiver rate, at a time scale of 1 s, in the
    window.

    Standard deviation (n - 1) over mean of the rates of whole seconds, which is 0 for a rate that never
    changes (Floyd, Handley, Padhye and Widmer, *Equation-Based Congestion Control for Unicast Applications*,
    SIGCOMM 2000, with other time scales; RFC 5166 on oscillations). Seconds are
    counted from the window's begin by the times of packets, whatever the trial's samples are; those count
    that lie between the first packet of the flow's own that is offered and the last, and in no pause of its
    viewer's and no time in which its plan has it be silent. Among these a second without a packet counts.
    None of a ping, of fewer than 5 seconds, and where nothing arrives.
    """
    grid, own = trial.grid, trial.once(own_times)
    begin, end = int(grid.edges_ns[grid.first]), int(grid.edges_ns[grid.last])
    edges = np.arange(begin, end + 1, SCALE_NS, dtype=np.int64)
    if len(edges) <= FEWEST_SECONDS:
        return [None] * len(trial.flows)
    bits = _per_second(trial, trial.once(received_bits), edges)
    found: list[float | None] = []
    for row, flow in enumerate(trial.flows):
        active = Spans.none() if flow.is_ping else _active(trial, row, own[row])
        found.append(_variation(bits[row][active.hold(edges[:-1], edges[1:])]))
    return found


def _per_second(trial: Trial, received: Floats, edges: Ints) -> Floats:
    """Bits that arrive in each second, [flow, second]."""
    grid, delivered = trial.grid, trial.delivered[DOWN]
    place = np.searchsorted(grid.edges_ns, edges)
    if np.array_equal(grid.edges_ns[place], edges):
        # Each second is a whole number of samples.
        return np.asarray(np.add.reduceat(received[:, : place[-1]], place[:-1], axis=1))
    cuts = np.searchsorted(delivered.times_ns, edges)
    inside, count = slice(cuts[0], cuts[-1]), len(edges) - 1
    cell = delivered.flow[inside] * count + np.repeat(np.arange(count), np.diff(cuts))
    bits = delivered.bits(trial.bytes_column)[inside]
    return np.bincount(cell, bits, len(received) * count).astype(np.float64, copy=False).reshape(-1, count)


def _active(trial: Trial, flow: int, own: Ints) -> Spans:
    """Returns when a flow sends, or would."""
    if not len(own):
        return Spans.none()
    first, last = int(own[0]), int(own[-1])
    told = trial.facts[flow]
    on = told.windows if told is not None and told.windows else ((first, last),)
    whole = Spans(*(np.array(bounds, dtype=np.int64) for bounds in zip(*on, strict=True)))
    return whole.clipped(first, last).without(pauses_of(trial, flow))


def _variation(bits: Floats) -> float | None:
    if len(bits) < FEWEST_SECONDS:
        return None
    mean = float(bits.sum()) / len(bits)
    # As np.std, in a third of the time.
    return math.sqrt(float(np.square(bits - mean).sum()) / (len(bits) - 1)) / mean if mean > 0 else None


def rate_variation(trial: Trial, flow: int) -> dict[str, float | None]:
    """Returns one flow's of `rate_variations`."""
    return {"rate_variation": trial.once(rate_variations)[flow]}


METRICS = (
    Metric(
        "rate_variation",
        NUMBER,
        "flow",
        "Variation of the receiver rate from second to second",
        formula="standard deviation / mean of the receiver rate, per second; see below",
        flow=rate_variation,
        number="M7",
        better="less",
        compared=(
            ComparedBy(
                "flow",
                40,
                "rate variation",
                Margin(absolute=0.05),
                title="Variation of the received rate over seconds",
            ),
        ),
    ),
)

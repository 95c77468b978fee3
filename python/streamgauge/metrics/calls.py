"""Losses of a call after repair and jitter buffer (RFC 8868 section 4)."""

from __future__ import annotations

import numpy as np

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import PERCENT
from streamgauge.metrics.course import summed
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import Floats
from streamgauge.metrics.rates import received_packets, sent_packets
from streamgauge.metrics.result import Series
from streamgauge.systems.machines import MACHINES

__all__ = ["METRICS", "call_losses"]

_UNREPAIRED, _DISCARDED = "unrepaired", "discarded"


def call_losses(trial: Trial, flow: int) -> dict[str, Series]:
    """Returns packets given up over packets sent, and late packets over packets received; nothing for a flow
    with a player that reports neither."""
    said, machine = trial.said, MACHINES.get(trial.machine(flow))
    tells = machine is not None and {_UNREPAIRED, _DISCARDED} <= machine.events.keys()
    if not (tells or said.has(_UNREPAIRED, flow) or said.has(_DISCARDED, flow)):
        return {}

    def packets(name: str) -> Floats:
        times, values = said.of(name, flow)
        known = np.isfinite(values)
        return summed(trial.grid, times[known], values[known])

    return {
        "loss_after_repair": Series(packets(_UNREPAIRED), trial.row(sent_packets, flow)),
        "discarded": Series(packets(_DISCARDED), trial.row(received_packets, flow)),
    }


METRICS = (
    Metric(
        "loss_after_repair",
        PERCENT,
        "flow",
        "Packets given up of those sent",
        formula="100 · packets that a call's receiver gave up / packets offered (RFC 8868)",
        flow=call_losses,
        better="less",
        reads=("unrepaired",),
        section="viewer",
    ),
    Metric(
        "discarded",
        PERCENT,
        "flow",
        "Packets that came too late of those received",
        formula="100 · packets too late for their picture / packets received (RFC 8868)",
        flow=call_losses,
        better="less",
        reads=("discarded",),
        section="viewer",
    ),
)

"""Losses of a call after repair and jitter buffer (RFC 8868 section 4)."""

from __future__ import annotations

import numpy as np

from streamgauge.metrics.course import summed
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import Floats
from streamgauge.metrics.result import Series
from streamgauge.systems.machines import MACHINES

__all__ = ["call_losses"]

_UNREPAIRED, _DISCARDED = "unrepaired", "discarded"


def call_losses(trial: Trial, flow: int, sent: Floats, received: Floats) -> dict[str, Series]:
    """Returns packets given up over packets sent, and late packets over packets received; nothing for a flow
    with a player that reports neither.

    Args:
        trial: the trial.
        flow: the flow's row.
        sent: packets that are offered, by sample.
        received: packets that arrive, by sample.
    """
    said, machine = trial.said, MACHINES.get(trial.machine(flow))
    tells = machine is not None and {_UNREPAIRED, _DISCARDED} <= machine.events.keys()
    if not (tells or said.has(_UNREPAIRED, flow) or said.has(_DISCARDED, flow)):
        return {}

    def packets(name: str) -> Floats:
        times, values = said.of(name, flow)
        known = np.isfinite(values)
        return summed(trial.grid, times[known], values[known])

    return {
        "loss_after_repair": Series(packets(_UNREPAIRED), sent),
        "discarded": Series(packets(_DISCARDED), received),
    }

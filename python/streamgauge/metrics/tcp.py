"""The state of TCP as the sending end reports it: congestion window and smoothed round-trip time."""

from __future__ import annotations

from streamgauge.metrics.frame import Trial
from streamgauge.metrics.passage import Samples


def sampled(trial: Trial, name: str) -> Samples:
    """The events called `name` of all flows, in their unit, at their times.

    Each counts once: samples come at regular times, so that their mean is the mean over time as long as the
    connection is open.
    """
    instants, values = trial.said.instants(trial.grid, name)
    return instants.observe(values)

"""The state of TCP as the sending end reports it: congestion window and smoothed round-trip time."""

from __future__ import annotations

import numpy as np
import polars as pl

from streamgauge.metrics.frame import Trial
from streamgauge.metrics.passage import Instants, Samples


def sampled(trial: Trial, name: str) -> Samples:
    """The events called `name` of all flows, in their unit, at their times.

    Each counts once: samples come at regular times, so that their mean is the mean over time as long as the
    connection is open.
    """
    said = trial.events.filter((pl.col("name") == name) & pl.col("value").is_not_null()).sort("time")
    rows = {flow.name: row for row, flow in enumerate(trial.flows)}
    flow = np.array([rows.get(name, len(trial.flows)) for name in said["flow"]], dtype=np.int64)
    instants = Instants(trial.grid, len(trial.flows), said["time"].to_numpy().astype(np.int64), flow)
    return instants.observe(said["value"].to_numpy())

"""How long nothing of a flow arrives, and how much arrives of all flows together."""

from __future__ import annotations

import numpy as np
from streamgauge.claims.dimension import RATE, TIME
from streamgauge.metrics import ComparedBy, Margin, Metric, Series, Trial
from streamgauge.metrics.rates import good_bits


def longest_outage(trial: Trial, flow: int) -> dict[str, float | None]:
    """Returns the longest time in the window between two arrivals of a flow, s."""
    arrived = trial.delivered[0]
    times_ns = arrived.times_ns[arrived.of(flow)]
    begin_ns, end_ns = trial.grid.edges_ns[[trial.grid.first, trial.grid.last]]
    inside = times_ns[(times_ns >= begin_ns) & (times_ns < end_ns)]
    return {"longest_outage": float(np.diff(inside).max()) / 1e9 if len(inside) > 1 else None}


def all_goodput(trial: Trial) -> Series:
    """Returns the goodput of all flows together."""
    arrived, _ = trial.once(good_bits)
    return Series(arrived[: len(trial.flows)].sum(axis=0), trial.grid.widths_s)


METRICS = (
    Metric(
        "longest_outage",
        TIME,
        "flow",
        "Longest outage",
        formula="longest time between two arrivals in the window",
        flow=longest_outage,
        better="less",
        label="longest outage",
        compared=(ComparedBy("flow", 60, "longest outage", Margin(absolute=0.1)),),
    ),
    Metric(
        "all_goodput",
        RATE,
        "trial",
        "Goodput of all flows",
        formula="sum of the goodput of all flows",
        trial=all_goodput,
        better="more",
    ),
)

"""Transfers of a stated size: the time of each, by its player's reports, or by its packets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import NUMBER, TIME
from streamgauge.metrics.course import counted
from streamgauge.metrics.frame import DOWN, UP, Trial
from streamgauge.metrics.grid import SECOND_NS
from streamgauge.metrics.order import percentile
from streamgauge.metrics.rates import new_bits
from streamgauge.metrics.reported import EventSeries
from streamgauge.metrics.result import Measured, Series

COMPLETE, FAILED = "transfer_complete", "transfer_failed"


def transferred(trial: Trial, flow: int) -> Measured:
    """Returns a flow's metrics over time, and those of the window alone; none of a flow that is no transfers.

    A transfer counts when all of it has arrived; its completion time, the flow completion time of the
    literature, is from the opening of its connection until then. A transfer under way at the window's end is
    not among them. One that its player reports without a value counts, and its time is not known.
    """
    said, grid = trial.said, trial.grid
    app = trial.plans[flow].get("app", "external")
    settings = next(iter(app.values())) if isinstance(app, Mapping) else {}
    if (
        said.has(COMPLETE, flow)
        or said.has(FAILED, flow)
        or ("arrivals" in settings and not settings.get("bytes"))
    ):
        times, took_s = said.of(COMPLETE, flow)
    elif settings.get("bytes"):
        times, took_s = _whole(trial, flow, int(settings["bytes"]))
    else:
        return Measured({})
    sample = np.searchsorted(grid.edges_ns, times, side="right") - 1
    known = np.isfinite(took_s)
    inside = known & (sample >= 0) & (sample < len(grid))
    total = np.bincount(sample[inside], weights=took_s[inside], minlength=len(grid)).astype(np.float64)
    window = took_s[known & (sample >= grid.first) & (sample < grid.last)]
    done = counted(grid, times)
    series = {
        "transfers": Series(done),
        "transfers_failed": Series(counted(grid, said.of(FAILED, flow)[0])),
        "completion_time": Series(total, done if known.all() else counted(grid, times[known])),
    }
    return Measured(series, {"completion_time_p95": percentile(window, 95)})


def _whole(trial: Trial, flow: int, size: int) -> EventSeries:
    """Returns when `size` bytes of a flow had arrived, and how long after its first packet either way, by
    which its connection is opened; nothing if they had not all arrived by the trial's end.

    A sender in blocks may send some bytes more, and a protocol's own messages count as well: iperf3 has four
    bytes of them.
    """
    delivered = trial.delivered[DOWN]
    mine = delivered.of(flow)
    reached = np.cumsum(new_bits(trial)[mine])
    place = int(np.searchsorted(reached, 8 * size))
    if place == len(reached):
        return np.empty(0, dtype=np.int64), np.empty(0)
    end = delivered.times_ns[mine[place : place + 1]]
    begins = [
        offered.times_ns[rows[0]]
        for offered in (trial.offered[DOWN], trial.offered[UP])
        if len(rows := offered.of(flow))
    ]
    return end, (end - min(begins)) / SECOND_NS


METRICS = (
    Metric(
        "transfers",
        NUMBER,
        "flow",
        "Transfers completed",
        formula="transfers completed",
        flow=transferred,
        better="more",
        reads=(
            "transfer_complete",
            "transfer_failed",
        ),
        section="transfers",
    ),
    Metric(
        "transfers_failed",
        NUMBER,
        "flow",
        "Transfers that failed",
        formula="transfers refused, reset, timed out or cut short",
        flow=transferred,
        better="less",
        reads=(
            "transfer_complete",
            "transfer_failed",
        ),
        section="transfers",
    ),
    Metric(
        "completion_time",
        TIME,
        "flow",
        "Completion time of transfers",
        formula="mean of the completion times",
        flow=transferred,
        better="less",
        reads=(
            "transfer_complete",
            "transfer_failed",
        ),
        json="completion_time_mean_s",
        label="completion time",
        section="transfers",
        compared=(ComparedBy("viewer", 110, "completion time", Margin(relative=0.05)),),
    ),
    Metric(
        "completion_time_p95",
        TIME,
        "flow",
        "95th percentile of completion times",
        formula="their 95th percentile, interpolated; for the window only",
        flow=transferred,
        better="less",
        reads=("transfer_complete",),
        section="transfers",
    ),
)

"""Short transfers that arrive at random: how long each took, by what their player said."""

from __future__ import annotations

import numpy as np

from streamgauge.metrics.course import counted
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.result import Series

COMPLETE, FAILED = "transfer_complete", "transfer_failed"


def transferred(trial: Trial, flow: int) -> tuple[dict[str, Series], dict[str, float | None]]:
    """A flow's metrics over time, and those of the window alone; none of a flow that is no transfers.

    A transfer counts when all of it has arrived; its completion time, the flow completion time of the
    literature, is from the opening of its connection until then. What is under way at the window's end is not
    among them.
    """
    said, grid = trial.said, trial.grid
    app = trial.plans[flow].get("app", "external")
    planned = not isinstance(app, str) and any("arrivals" in settings for settings in app.values())
    if not planned and not said.has(COMPLETE, flow) and not said.has(FAILED, flow):
        return {}, {}
    times, took_s = said.of(COMPLETE, flow)
    done = counted(grid, times)
    sample = np.searchsorted(grid.edges_ns, times, side="right") - 1
    inside = (sample >= 0) & (sample < len(grid))
    total = np.bincount(sample[inside], weights=took_s[inside], minlength=len(grid)).astype(np.float64)
    window = took_s[(sample >= grid.first) & (sample < grid.last)]
    series = {
        "transfers": Series(done),
        "transfers_failed": Series(counted(grid, said.of(FAILED, flow)[0])),
        "completion_time": Series(total, done),
    }
    p95 = float(np.percentile(window, 95)) if len(window) else None
    return series, {"completion_time_p95": p95}

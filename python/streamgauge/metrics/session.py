"""When a flow's viewer watches, as far as the plan and the player say."""

from __future__ import annotations

import numpy as np

from streamgauge.metrics.course import Spans
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS


def pauses_of(trial: Trial, flow: int) -> Spans:
    """When the viewer himself had paused it, by the plan."""
    begins: list[int] = []
    ends: list[int] = []
    for at, what in trial.plans[flow].get("actions", ()):
        if what == "pause" and len(begins) == len(ends):
            begins.append(at)
        elif what in ("resume", "stop") and len(begins) > len(ends):
            ends.append(at)
    if not begins:
        return Spans.none()
    ends += [round(trial.duration_s * SECOND_NS)] * (len(begins) - len(ends))
    return Spans(np.array(begins, dtype=np.int64), np.array(ends, dtype=np.int64))


def over_ns(trial: Trial, flow: int) -> int:
    """When nothing was to be shown any more: the media's end, its stop, or the trial's end."""
    ends = [round(trial.duration_s * SECOND_NS), *trial.said.of("media_end", flow)[0].tolist()]
    ends += [at for at, what in trial.plans[flow].get("actions", ()) if what == "stop"]
    return int(min(ends))

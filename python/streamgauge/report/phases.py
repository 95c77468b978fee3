"""When a flow had the path to itself, and when others sent beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.grid import Mask
from streamgauge.report.numbers import Stretch

__all__ = ["Phases", "activity", "phases", "spoken_stretches"]


def activity(trial: TrialMetrics, flow: str) -> Mask:
    """Returns the samples in which a flow sends for at least half of the time; if there are none, for any
    part of it."""
    seconds = trial.flows[flow].series["sending_time"].numerator
    mostly: Mask = seconds >= 0.5 * trial.grid.widths_s
    return mostly if mostly.any() else seconds > 0


@dataclass(frozen=True)
class Phases:
    """When a subject ran alone, and when others sent beside it, inside the measurement window, in s."""

    before: tuple[float, float] | None
    """From its start to the first packet of any other flow."""
    during: tuple[float, float]
    company: tuple[str, ...]
    """The other flows that sent meanwhile, cross traffic and subjects."""


def phases(
    trial: TrialMetrics, subject: str, first_sent: Callable[[str, float], Sequence[float]]
) -> Phases | None:
    """Returns a subject's time without and with other flows, by one trial; None if it was never beside one.

    No other flow sends in the time alone, in any of the trials, where each draws its own starts: `first_sent`
    returns a flow's first sending in each of them from a time on, in s.
    """
    grid = trial.grid
    others = [name for name, flow in trial.flows.items() if name != subject and not flow.info.is_ping]
    mine = np.zeros(len(grid), dtype=np.bool_)
    mine[grid.slice()] = True
    own = np.flatnonzero(mine & activity(trial, subject))
    if not len(own):
        return None
    mine[: own[0]] = mine[own[-1] + 1 :] = False
    beside = {name: found for name in others if (found := mine & activity(trial, name)).any()}
    if not beside:
        return None
    shared = np.flatnonzero(np.logical_or.reduce(list(beside.values())))
    edges = grid.edges_ns / 1e9
    during = float(edges[shared[0]]), float(edges[shared[-1] + 1])
    if during[1] - during[0] < grid.sample_s:
        return None
    begin = float(edges[own[0]])
    until = min([during[0], *(at for name in others for at in first_sent(name, begin))])
    before = (begin, until) if until - begin >= max(1.0, 2 * grid.sample_s) else None
    return Phases(before, during, tuple(beside))


def spoken_stretches(subject: str, found: Phases) -> list[Stretch]:
    """Returns the sentences of an answer on a subject and its company in these stretches."""
    begin, end = found.during
    said: list[Stretch] = [
        (metric, subject, begin, end) for metric in ("throughput", "sent_loss", "sent_goodput", "queue_delay")
    ]
    said += [
        (metric, flow, begin, end) for flow in found.company for metric in ("sending_rate", "sending_time")
    ]
    if found.before is not None:
        said += [(metric, subject, *found.before) for metric in ("throughput", "sent_loss")]
    return said

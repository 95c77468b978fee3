"""Events with names of their own, from which no metric here is made: their values, and their number."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamgauge.claims.dimension import EVENT_UNITS
from streamgauge.claims.names import count_metric, event_metric
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.result import Series
from streamgauge.systems.machines import MACHINES
from streamgauge.systems.player_events import MEASURED

_TOLD_OF_ALL = {
    "tcp_in_flight": "B", "tcp_retransmits": "1", "tcp_ssthresh": "B", "tcp_pacing_rate": "bit/s",
    "message": "1",
}  # fmt: skip
"""The test bed's own events of any flow (docs/tcp.md, docs/records.md), beside those of metrics, with the
units of their values."""


@dataclass
class OwnEvents:
    """Own events of one flow."""

    series: dict[str, Series] = field(default_factory=dict)
    units: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """As `FlowMetrics.events`."""


def own_events(trial: Trial) -> list[OwnEvents]:
    """Returns for each flow its events with names from which no metric is made.

    Each has a count, and, if it has values, their mean with extremes over the events that have one. Events
    before the trial's start or after its end are part of neither.
    """
    said, grid = trial.said, trial.grid
    found = [OwnEvents() for _ in trial.flows]
    keys = [(name, row) for name, row in said.names() if name not in MEASURED]
    if not keys:
        return found
    told = [said.of(name, row) for name, row in keys]
    lengths = [len(times) for times, _ in told]
    times = np.concatenate([times for times, _ in told])
    values = np.concatenate([values for _, values in told])
    # All of them at once: the samples of one event follow those of the one before.
    size = len(grid)
    sample = np.searchsorted(grid.edges_ns, times, side="right") - 1
    cell = np.repeat(np.arange(0, len(keys) * size, size), lengths) + sample
    inside = (sample >= 0) & (sample < size)
    valued = inside & ~np.isnan(values)
    if not inside.all():
        cell, values, valued = cell[inside], values[inside], valued[inside]
    shape = (len(keys), size)
    count = weight = np.bincount(cell, minlength=len(keys) * size).astype(np.float64).reshape(shape)
    if not valued.all():
        cell, values = cell[valued], values[valued]
        weight = np.bincount(cell, minlength=count.size).astype(np.float64).reshape(shape)
    total = np.bincount(cell, values, count.size).reshape(shape)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(low.ravel(), cell, values)
    np.maximum.at(high.ravel(), cell, values)
    empty = weight == 0
    low[empty] = high[empty] = np.nan
    for place, (name, row) in enumerate(keys):
        own, counted, whole = found[row], count[place], weight[place]
        own.series[count_metric(name)] = Series(counted)
        if np.isnan(told[place][1]).all():
            own.units[name] = ()
            continue
        units = own.units[name] = _units(trial, name, row)
        if len(units) == 1:
            scale = EVENT_UNITS[units[0]][0]
            of = (total[place], whole, low[place], high[place])
            if weight is count or np.array_equal(whole, counted):
                # One array is kept once.
                of = (of[0], counted, *of[2:])
            if scale != 1:
                of = (scale * of[0], of[1], scale * of[2], scale * of[3])
            own.series[event_metric(name)] = Series(*of)
    return found


def _units(trial: Trial, name: str, flow: int) -> tuple[str, ...]:
    """Returns the units of an event's values; their look-up in the record takes time, which machines of ours
    save."""
    machine = MACHINES.get(trial.machine(flow)) if trial.flows[flow].ours else None
    known = None if machine is None else machine.events.get(name, _TOLD_OF_ALL.get(name))
    units = (known,) if known is not None else trial.said.units(name, flow)
    # No unit is that of a number.
    return tuple(dict.fromkeys(unit or "1" for unit in units))

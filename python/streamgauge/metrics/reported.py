"""Reports of the flows' machines, by event and flow: one pass over the events for all metrics that read
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from streamgauge.metrics.grid import Floats, Grid, Ints
from streamgauge.metrics.passage import Instants

EventSeries = tuple[Ints, Floats]
"""Times (ns, ascending) and values; NaN where an event has none. Milliseconds are converted into seconds."""

_NOTHING: EventSeries = (np.empty(0, dtype=np.int64), np.empty(0))


class ReportedEvents:
    """The events of a trial's flows."""

    def __init__(
        self,
        told: Mapping[tuple[str, str | None], EventSeries],
        flows: Sequence[str],
        units: Callable[[], Mapping[tuple[str, str | None], tuple[str, ...]]] = dict,
    ) -> None:
        """Args: told: a record's, by name and flow. flows: the trial's flows by name, in its order. units:
        gives the units of their values, likewise. It is called for unknown events only.
        """
        self._flows = list(flows)
        self._told = told
        self._units = units

    def of(self, name: str, flow: int) -> EventSeries:
        """Returns the events called `name` of the flow in that place."""
        return self._told.get((name, self._flows[flow]), _NOTHING)

    def has(self, name: str, flow: int) -> bool:
        """Returns whether that flow has the event at all."""
        return (name, self._flows[flow]) in self._told

    def units(self, name: str, flow: int) -> tuple[str, ...]:
        """Returns the units of that flow's values of the event, as the record has them; none if it has no
        value."""
        return self._units().get((name, self._flows[flow]), ())

    def names(self) -> Iterator[tuple[str, int]]:
        """Yields each event name of a flow, with the flow."""
        place = {name: row for row, name in enumerate(self._flows)}
        for name, flow in self._told:
            if flow is not None and flow in place:
                yield name, place[flow]

    def instants(self, grid: Grid, name: str) -> tuple[Instants, Floats]:
        """Returns the events called `name` of all flows that have a value, as instants with these."""
        told = [self.of(name, flow) for flow in range(len(self._flows))]
        times = np.concatenate([_NOTHING[0], *(times for times, _ in told)])
        values = np.concatenate([_NOTHING[1], *(values for _, values in told)])
        flow = np.repeat(np.arange(len(told)), [len(times) for times, _ in told])
        order = np.argsort(times, kind="stable")
        order = order[~np.isnan(values[order])]
        return Instants(grid, len(self._flows), times[order], flow[order]), values[order]

"""What the flows' machines said, by event and flow: one look at the events for all metrics that read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from streamgauge.metrics.grid import Floats, Grid, Ints
from streamgauge.metrics.passage import Instants

Told = tuple[Ints, Floats]
"""Times (ns, ascending) and values; NaN where an event has none. Milliseconds are told in seconds."""

_NOTHING: Told = (np.empty(0, dtype=np.int64), np.empty(0))


class Said:
    """The events of a trial's flows."""

    def __init__(
        self,
        told: Mapping[tuple[str, str | None], Told],
        flows: Sequence[str],
        units: Callable[[], Mapping[tuple[str, str | None], tuple[str, ...]]] = dict,
    ) -> None:
        """Args:
        told: a record's, by name and flow.
        flows: the trial's flows by name, in its order.
        units: gives the units of their values, likewise. It is asked for what nobody knows before.
        """
        self._flows = list(flows)
        self._told = told
        self._units = units

    def of(self, name: str, flow: int) -> Told:
        """The events called `name` of the flow in that place."""
        return self._told.get((name, self._flows[flow]), _NOTHING)

    def has(self, name: str, flow: int) -> bool:
        """Whether that flow said so at all."""
        return (name, self._flows[flow]) in self._told

    def units(self, name: str, flow: int) -> tuple[str, ...]:
        """In which that flow said values of it, as the record has them; none if it said no value."""
        return self._units().get((name, self._flows[flow]), ())

    def names(self) -> Iterator[tuple[str, int]]:
        """Each name that a flow said, with the flow."""
        place = {name: row for row, name in enumerate(self._flows)}
        for name, flow in self._told:
            if flow is not None and flow in place:
                yield name, place[flow]

    def instants(self, grid: Grid, name: str) -> tuple[Instants, Floats]:
        """The events called `name` of all flows that have a value, as instants with these."""
        told = [self.of(name, flow) for flow in range(len(self._flows))]
        times = np.concatenate([_NOTHING[0], *(times for times, _ in told)])
        values = np.concatenate([_NOTHING[1], *(values for _, values in told)])
        flow = np.repeat(np.arange(len(told)), [len(times) for times, _ in told])
        order = np.argsort(times, kind="stable")
        order = order[~np.isnan(values[order])]
        return Instants(grid, len(self._flows), times[order], flow[order]), values[order]

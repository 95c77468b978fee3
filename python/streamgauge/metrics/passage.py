"""Packets passing a point of the path, counted per flow and sample: all flows at once.

A record is read into plain integer columns once; each metric then needs a selection of rows, sorted by time
once, and a few sums over (flow, sample) cells. Two-dimensional results have a row for each flow of the trial,
in its order, and a last one for packets of none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from streamgauge.metrics.grid import Codes, Floats, Grid, Ints, Mask, differences

NEVER = np.iinfo(np.int64).min
"""`t_out` of a packet that did not leave."""
_SPARSE = 4
"""Most places for each row in a table of packets by number."""
HIDDEN = -1
"""`seq` of a packet that shows none."""


@dataclass(frozen=True)
class Samples:
    """A quantity observed at instants: sum, count, least and most (NaN if none), each [flow, sample]."""

    total: Floats
    count: Floats
    low: Floats
    high: Floats

    def of(self, flow: int) -> Samples:
        """Returns one flow's, each [sample]."""
        return Samples(self.total[flow], self.count[flow], self.low[flow], self.high[flow])

    def together(self) -> Samples:
        """Returns all flows' and the rest's, each [sample]."""
        low, high = np.fmin.reduce(self.low), np.fmax.reduce(self.high)
        return Samples(self.total.sum(axis=0), self.count.sum(axis=0), low, high)


class Instants:
    """Things that happened to flows at ascending times."""

    def __init__(self, grid: Grid, flows: int, times_ns: Ints, flow: Ints) -> None:
        """Args:
        grid: the samples to count in.
        flows: how many flows the trial has.
        times_ns: when, ascending.
        flow: to which flow, by its place in the trial; `flows` for none of them.
        """
        self.grid = grid
        self.shape = (flows + 1, len(grid))
        self.times_ns = times_ns
        self.flow = flow

    def __len__(self) -> int:
        return len(self.times_ns)

    @cached_property
    def _cuts(self) -> Ints:
        return self.grid.cuts(self.times_ns)

    @cached_property
    def _cell(self) -> Ints:
        """Returns the (flow, sample) cell of each instant inside the trial."""
        sample = np.repeat(np.arange(len(self.grid)), differences(self._cuts))
        return self.flow[self._inside] * len(self.grid) + sample

    @property
    def _inside(self) -> slice:
        return slice(int(self._cuts[0]), int(self._cuts[-1]))

    @property
    def window(self) -> slice:
        """Returns those inside the measurement window."""
        return slice(int(self._cuts[self.grid.first]), int(self._cuts[self.grid.last]))

    def total(self, weights: npt.NDArray[Any] | None = None) -> Floats:
        """Sum of `weights` (or the count), [flow, sample]."""
        if weights is None:
            return self._count
        return self._sum(self._cell, weights[self._inside])

    def count(self, where: Mask) -> Floats:
        """Returns how many of those `where` it holds, [flow, sample]."""
        return self.total(where) if where.any() else np.zeros(self.shape)

    @cached_property
    def _count(self) -> Floats:
        return self._sum(self._cell, None)

    def _sum(self, cell: Ints, weights: npt.NDArray[Any] | None) -> Floats:
        cells = self.shape[0] * self.shape[1]
        return np.bincount(cell, weights, cells).astype(np.float64, copy=False).reshape(self.shape)

    def observe(self, values: Floats, where: Mask | None = None) -> Samples:
        """Gathers one value an instant, of those instants `where` it holds."""
        cell, values, count = self._cell, values[self._inside], None
        if where is not None:
            chosen = where[self._inside]
            if not chosen.all():
                cell, values = cell[chosen], values[chosen]
                count = self._sum(cell, None)
        if not len(cell):
            nothing = np.full(self.shape, np.nan)
            return Samples(np.zeros(self.shape), np.zeros(self.shape), nothing, nothing)
        count = self.total() if count is None else count
        total = self._sum(cell, values)
        low, high = np.full(self.shape, np.inf), np.full(self.shape, -np.inf)
        np.minimum.at(low.ravel(), cell, values)
        np.maximum.at(high.ravel(), cell, values)
        low[count == 0] = high[count == 0] = np.nan
        return Samples(total, count, low, high)

    @cached_property
    def _by_flow(self) -> tuple[Ints, Ints]:
        # Few flows fit 16 bits, which numpy sorts by radix.
        order = np.argsort(self.flow.astype(np.uint16), kind="stable")
        return order, np.searchsorted(self.flow[order], np.arange(self.shape[0] + 1))

    @property
    def by_flow(self) -> Ints:
        """Returns the places of all instants by flow, each flow's in time's order."""
        return self._by_flow[0]

    def of(self, flow: int) -> Ints:
        """Returns the places of one flow's instants, in time's order."""
        order, bounds = self._by_flow
        return order[bounds[flow] : bounds[flow + 1]]


class Passage(Instants):
    """Rows of a record, by the time in one of its columns."""

    def __init__(self, grid: Grid, flows: int, table: Mapping[str, Codes], rows: Mask, *, at: str) -> None:
        """Args:
        grid: the samples to count in.
        flows: how many flows the trial has.
        table: the record's columns.
        rows: which rows.
        at: the column of times: ``t_in`` or ``t_out``.
        """
        chosen = np.flatnonzero(rows)
        times = table[at][chosen]
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            chosen, times = chosen[order], times[order]
        self._table, self._rows = table, chosen
        self._columns: dict[str, Codes] = {}
        self._bits: dict[str, Floats] = {}
        super().__init__(grid, flows, times.astype(np.int64), self["flow"].astype(np.int64))

    def __getitem__(self, column: str) -> Codes:
        """Returns a column of the record at these rows; not to be written to."""
        found = self._columns.get(column)
        if found is None:
            # Faster than an index by a third.
            found = self._columns[column] = self._table[column].take(self._rows)
        return found

    def bits(self, column: str) -> Floats:
        """Returns a column of bytes at these rows, in bits; not to be written to."""
        found = self._bits.get(column)
        if found is None:
            found = self._bits[column] = 8.0 * self[column]
        return found

    @cached_property
    def _by_packet(self) -> tuple[Ints, Codes]:
        packets = self["pkt"]
        order = np.argsort(packets, kind="stable")
        return order, packets[order]

    @cached_property
    def _places(self) -> Ints | None:
        """Returns the place of each packet by its number, -1 of one that is not here; None if numbers lie far
        apart, or some packet is here twice."""
        packets = self["pkt"]
        last = int(packets.max(initial=0))
        if last > _SPARSE * (len(packets) + len(self._table["pkt"])):
            return None
        places = np.full(last + 1, -1)
        here = np.arange(len(packets))
        places[packets] = here
        return places if (places[packets] == here).all() else None

    def find(self, other: Passage) -> Ints:
        """Returns for each packet of `other` its place here, -1 if it is not here."""
        wanted = other["pkt"]
        if not len(wanted) or not len(self):
            return np.full(len(wanted), -1)
        if (places := self._places) is not None:
            if int(wanted.max()) < len(places):
                return places[wanted]
            known = wanted < len(places)
            return np.where(known, places[np.where(known, wanted, 0)], -1)
        order, packets = self._by_packet
        place = np.searchsorted(packets, wanted).clip(max=len(packets) - 1)
        return np.where(packets[place] == wanted, order[place], -1)

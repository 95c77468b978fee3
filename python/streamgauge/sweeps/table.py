"""The table of a sweep: a row for each metric of each flow at each point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.claims.dimension import JSON_UNITS
from streamgauge.claims.names import METRICS
from streamgauge.metrics.interval import Interval
from streamgauge.scenario.over import Axis
from streamgauge.sweeps.measures import MetricOf
from streamgauge.sweeps.points import SweepPoint
from streamgauge.units import Bdp, Frequency, Packets, Percent, Quantity, Rate, Size, Time

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SweepRow", "frame_of", "number_columns", "rows_json"]

_SUFFIXES: dict[type[Quantity], tuple[str, int]] = {
    Rate: ("bps", 1),
    Size: ("bytes", 1),
    Time: ("s", 10**9),
    Percent: ("percent", 1),
    Packets: ("packets", 1),
    Frequency: ("per_s", 1),
    Bdp: ("bdp", 1),
}
"""How the name of a column of such numbers ends, and how many base units there are in one of it."""


@dataclass(frozen=True)
class SweepRow:
    """A metric at a point, over its valid trials, in canonical units."""

    point: SweepPoint
    measured: MetricOf
    interval: Interval | None
    """``None`` if no valid trial has a value."""
    valid: int
    """Valid trials; those with a value may be fewer."""
    invalid: int
    """Repetitions without a valid trial."""
    directory: Path
    """Folder of the point's trials."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Returns the interval's ends; of a quantity that cannot be below zero it ends there. ``None`` if
        there is none."""
        found = self.interval
        if found is None or found.low is None or found.high is None:
            return None
        low = found.low if METRICS[self.measured.metric].signed else max(0.0, found.low)
        return min(low, found.mean), found.high


@dataclass(frozen=True)
class NumberColumn:
    """The values of an axis as numbers."""

    name: str
    """With their unit at its end: ``path.down.rate_bps``."""
    numbers: tuple[float, ...]


def number_columns(axes: Sequence[Axis]) -> list[NumberColumn | None]:
    """Returns one for each axis; ``None`` for one with values that are no numbers."""
    found: list[NumberColumn | None] = []
    for axis in axes:
        told = axis.quantities()
        if told is None:
            found.append(None)
            continue
        numbers, suffix = [], "number"
        for value in told[1]:
            base = 1
            if isinstance(value, Quantity):
                suffix, base = _SUFFIXES[type(value)]
                value = value.amount
            numbers.append(float(value) / base)
        found.append(NumberColumn(f"{axis.address}_{suffix}", tuple(numbers)))
    return found


def rows_json(rows: Sequence[SweepRow], axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """Returns the rows of ``streamgauge.sweep/1``."""
    columns = number_columns(axes)
    return [_row_json(row, axes, columns) for row in rows]


def _row_json(row: SweepRow, axes: Sequence[Axis], columns: Sequence[NumberColumn | None]) -> dict[str, Any]:
    unit, factor = JSON_UNITS[METRICS[row.measured.metric].dimension]
    ends, point, found = row.ends, row.point, row.interval
    return {
        "scenario": point.scenario.id,
        "mode": point.mode,
        "point": {axis.address: axis.labels[place] for axis, place in zip(axes, point.at, strict=True)},
        "numbers": {
            column.name: column.numbers[place]
            for column, place in zip(columns, point.at, strict=True)
            if column is not None
        },
        "flow": row.measured.flow,
        "stage": row.measured.stage,
        "metric": row.measured.metric,
        "unit": unit,
        "mean": None if found is None else found.mean * factor,
        "interval": None if ends is None else [ends[0] * factor, ends[1] * factor],
        "n": 0 if found is None else found.n,
        "invalid": row.invalid,
        "directory": str(row.directory),
    }


def frame_of(rows: Sequence[SweepRow], axes: Sequence[Axis]) -> pl.DataFrame:
    """Returns the rows as a tidy frame.

    Its columns are ``scenario`` and ``mode``; for each axis its values in their original text
    (``path.down.rate``) and, if they are numbers, as such (``path.down.rate_bps``); ``flow``, its ``role``
    and ``stage``; ``metric`` and ``unit``; ``mean``, ``low`` and ``high`` of the 95 % interval; ``n`` and
    ``invalid``; and ``directory``, the folder of the point's trials.
    """
    import polars as pl

    columns = number_columns(axes)
    schema: dict[str, Any] = {"scenario": pl.String, "mode": pl.String}
    for axis, column in zip(axes, columns, strict=True):
        schema[axis.address] = pl.String
        if column is not None:
            schema[column.name] = pl.Float64
    schema |= dict.fromkeys(("flow", "role", "stage", "metric", "unit"), pl.String)
    schema |= dict.fromkeys(("mean", "low", "high"), pl.Float64)
    schema |= {"n": pl.Int64, "invalid": pl.Int64, "directory": pl.String}
    data = []
    for row in rows:
        told = _row_json(row, axes, columns)
        low, high = told["interval"] or (None, None)
        flow = row.point.scenario.flows.get(told["flow"] or "")
        role = None if flow is None else flow.role
        here = told | told["point"] | told["numbers"] | {"low": low, "high": high, "role": role}
        data.append([here[name] for name in schema])
    return pl.DataFrame(data, schema=schema, orient="row")

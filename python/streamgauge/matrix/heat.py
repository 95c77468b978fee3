"""Heat maps as tables: a row a kind of scenario, a column a system, a cell its value, the deeper the colour
the better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from streamgauge.claims.dimension import NUMBER, Dimension, pick_unit, plain
from streamgauge.compare import COMPARED, ComparedRow, say_value
from streamgauge.compare.words import say_rank
from streamgauge.matrix.judged import JudgedKind, JudgedMatrix

__all__ = ["HeatCell", "HeatMap", "HeatRow", "heat_maps", "short_number"]

_TRIMMED = 0.03
"""Share of the values at either end that have the colour of those next to them: an outlier does not make all
others alike."""


@dataclass(frozen=True)
class HeatCell:
    """A value, from 0 for the worst to 1 for the best of the map."""

    text: str
    share: float
    first: bool
    """Whether it has the first rank, and not all have."""
    said: str


@dataclass(frozen=True)
class HeatRow:
    """A kind of scenario."""

    kind: str
    label: str
    group: str
    """Where a new group begins its name; empty otherwise."""
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True)
class HeatMap:
    """A measure of all systems in all kinds."""

    measure: str
    title: str
    short: str
    unit: str
    better: str
    systems: tuple[str, ...]
    """Labels of the columns."""
    total: tuple[HeatCell | None, ...]
    """The row of all kinds; empty without it."""
    rows: tuple[HeatRow, ...]


def heat_maps(found: JudgedMatrix, measures: Sequence[str]) -> list[HeatMap]:
    """Returns one of each measure that is known, in the mode that answers."""
    mode = found.main
    kinds = [one for one in found.kinds if one.mode == mode]
    made = []
    for measure in measures:
        values = sorted(
            row.value for one in kinds for row in one.rows if row.metric == measure and row.value is not None
        )
        if not values:
            continue
        about = COMPARED[measure]
        low, high = (values[min(len(values) - 1, int(at * len(values)))] for at in (_TRIMMED, 1 - _TRIMMED))
        scale, unit = pick_unit(max(abs(low), abs(high)), about.dimension)
        systems = [
            system for system in found.matrix.systems if any(one.row(system.name, measure) for one in kinds)
        ]

        cells = partial(_cells, measure=measure, low=low, high=high, scale=scale)
        names = [system.name for system in systems]
        overall = found.of("overall", mode)
        rows, group = [], ""
        for one in kinds:
            if not any(one.row(system.name, measure) for system in systems):
                continue
            begins = one.kind.group if one.kind.group != group else ""
            group = one.kind.group
            rows.append(HeatRow(one.kind.name, one.kind.label, begins, cells(one, names)))
        made.append(
            HeatMap(
                measure=measure,
                title=about.title,
                short=about.short,
                unit=unit,
                better=about.better,
                systems=tuple(system.label for system in systems),
                total=() if overall is None else cells(overall, names),
                rows=tuple(rows),
            )
        )
    return made


def _cells(
    one: JudgedKind, systems: Sequence[str], *, measure: str, low: float, high: float, scale: float
) -> tuple[HeatCell | None, ...]:
    rows = (one.row(system, measure) for system in systems)
    return tuple(None if row is None else _cell(row, one, low, high, scale) for row in rows)


def _cell(row: ComparedRow, one: JudgedKind, low: float, high: float, scale: float) -> HeatCell:
    assert row.value is not None
    share = 1.0 if high <= low else min(1.0, max(0.0, (row.value - low) / (high - low)))
    if row.about.better == "less":
        share = 1.0 - share
    first = row.rank == 1 and one.tells_apart(row.metric)
    rank = f", rank {say_rank(row)}" if row.rank else ""
    text = short_number(row.value / scale, row.about.dimension)
    return HeatCell(text, round(share, 2), first, f"{say_value(row)}{rank}, n = {row.n}")


def short_number(value: float, dimension: Dimension) -> str:
    """Returns a value as it fits a cell, in the map's unit."""
    if dimension == NUMBER and abs(value) < 10:
        return f"{value:.2f}"
    return plain(round(value), 4) if abs(value) >= 10 else f"{value:.2g}" if abs(value) >= 0.01 else "0"

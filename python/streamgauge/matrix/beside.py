"""Emulated values beside simulated ones, as the page shows them: a table of the measures, and of each measure
a map of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.claims.dimension import PERCENT, Dimension, pick_unit, say
from streamgauge.compare import say_value
from streamgauge.matrix.agreement import CellPair, MeasureAgreement, agreements
from streamgauge.matrix.heat import short_number
from streamgauge.matrix.judged import JudgedMatrix

__all__ = ["BesideCell", "BesideMap", "BesideRow", "EmulatedBesidePart", "beside_part", "brief_of"]

_LEAD = ("shown_rate", "harm")


@dataclass(frozen=True)
class BesideCell:
    """One value of each, in the map's unit."""

    sim: str
    emu: str
    alike: bool
    said: str


@dataclass(frozen=True)
class BesideRow:
    """A kind of scenario."""

    kind: str
    label: str
    cells: tuple[BesideCell | None, ...]


@dataclass(frozen=True)
class BesideMap:
    """A measure of all systems in the kinds that were emulated."""

    short: str
    title: str
    unit: str
    systems: tuple[str, ...]
    rows: tuple[BesideRow, ...]


@dataclass(frozen=True)
class EmulatedBesidePart:
    """Emulation beside simulation on a page."""

    brief: str
    table: tuple[tuple[str, ...], ...]
    """For each measure its name; cells alike of how many; the median apart; orders, those of them that are
    the same, level and turned; tau."""
    maps: tuple[BesideMap, ...]


def beside_part(found: JudgedMatrix) -> EmulatedBesidePart | None:
    """Everything; None without emulated trials of simulated cells."""
    measured = agreements(found)
    if not measured:
        return None
    return EmulatedBesidePart(
        brief=brief_of(measured),
        table=tuple(_line(one) for one in measured),
        maps=tuple(_map(found, one) for one in measured),
    )


def brief_of(measured: Sequence[MeasureAgreement]) -> str:
    """Returns ``Bit rate seen: 48 of 52 cells alike, of 120 orders beyond doubt 117 the same and 1 turned``;
    and of harm."""
    told = []
    for name in _LEAD:
        one = next((one for one in measured if one.about.name == name), None)
        if one is not None:
            orders = f", of {one.orders} orders beyond doubt {one.same} the same and {one.turned} turned"
            cells = f"{one.about.short}: {one.alike} of {len(one.pairs)} cells alike"
            told.append(cells + (orders if one.orders else ""))
    text = "; ".join(told)
    return text[:1].upper() + text[1:]


def _line(one: MeasureAgreement) -> tuple[str, ...]:
    tau = "" if one.tau is None else f"{one.tau:.2f}"
    counts = (one.orders, one.same, one.level, one.turned)
    return (
        one.about.short,
        f"{one.alike} of {len(one.pairs)}",
        _difference(one.middle_gap, one.about.dimension),
        *(str(count) for count in counts),
        tau,
    )


def _difference(value: float, dimension: Dimension) -> str:
    """Between shares it is in points."""
    text = say(value, dimension, 2)
    return text.replace("%", "points") if dimension == PERCENT else text


def _map(found: JudgedMatrix, one: MeasureAgreement) -> BesideMap:
    by_cell = {(pair.kind, pair.system): pair for pair in one.pairs}
    scale, unit = pick_unit(max(abs(pair.sim.value or 0.0) for pair in one.pairs), one.about.dimension)
    names = [
        system.name for system in found.matrix.systems if any(p.system == system.name for p in one.pairs)
    ]
    kinds = [kind for kind in found.matrix.kinds if any(pair.kind == kind.name for pair in one.pairs)]
    return BesideMap(
        short=one.about.short,
        title=one.about.title,
        unit=unit,
        systems=tuple(found.label(name) for name in names),
        rows=tuple(
            BesideRow(
                kind.name, kind.label, tuple(_cell(by_cell.get((kind.name, name)), scale) for name in names)
            )
            for kind in kinds
        ),
    )


def _cell(pair: CellPair | None, scale: float) -> BesideCell | None:
    if pair is None:
        return None
    dimension = pair.about.dimension
    half = (
        ""
        if pair.half is None
        else f"; one more simulated trial within ± {_difference(pair.half, dimension)}"
    )
    return BesideCell(
        sim=short_number((pair.sim.value or 0.0) / scale, dimension),
        emu=short_number((pair.emu.value or 0.0) / scale, dimension),
        alike=pair.is_alike,
        said=f"simulated {say_value(pair.sim)}, emulated {say_value(pair.emu)}{half}",
    )

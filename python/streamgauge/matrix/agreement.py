"""Emulated cells compared with simulated ones: how many are alike, and whether the order of systems is the
same.

A cell is *alike* in a measure if its emulated value lies where one more simulated trial would have been (the
95 % prediction interval: for n simulated and m emulated trials t(0.975, n - 1) s sqrt(1/n + 1/m) about the
simulated mean), or no further from the mean than the measure's margin (docs/compare.md). For the orders of
two systems that simulation has beyond doubt, the number that emulation has as well is reported; one is
*turned* where emulation has them the other way about by more than the margin, and *level* where they lie
within it. Kendall's tau-b (Kendall 1945, Biometrika 33:239) is that of the means of all systems in a kind,
averaged over the kinds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from streamgauge.compare import COMPARED, ComparedMetric, ComparedRow
from streamgauge.matrix.judged import MEASURES, JudgedMatrix
from streamgauge.metrics.interval import Interval, interval

__all__ = ["CellPair", "MeasureAgreement", "agreements", "pairs_of"]


@dataclass(frozen=True, kw_only=True)
class CellPair:
    """A measure of a cell, simulated and emulated."""

    kind: str
    system: str
    sim: ComparedRow
    emu: ComparedRow

    @property
    def about(self) -> ComparedMetric:
        """Returns the measured metric."""
        return self.sim.about

    @property
    def intervals(self) -> tuple[Interval, Interval]:
        """Returns those of both, the simulated one first."""
        first, second = (interval([value for _, value in row.values]) for row in (self.sim, self.emu))
        return first, second

    @property
    def gap(self) -> float:
        """Returns how far the emulated mean is above the simulated one, in canonical units."""
        return (self.emu.value or 0.0) - (self.sim.value or 0.0)

    @property
    def half(self) -> float | None:
        """Half of the interval in which the mean of as many further simulated trials would lie; None for a
        single one."""
        n, m = len(self.sim.values), len(self.emu.values)
        spread = self.intervals[0].half_width
        return None if spread is None else spread * math.sqrt(1 + n / m)

    @property
    def margin(self) -> float:
        """Differences up to this are practically equal."""
        return self.about.margin.about(self.emu.value or 0.0)

    @property
    def is_alike(self) -> bool:
        """Returns whether emulation agrees."""
        return abs(self.gap) <= max(self.half or 0.0, self.margin)


@dataclass(frozen=True, kw_only=True)
class MeasureAgreement:
    """How emulation agrees with simulation in one measure."""

    about: ComparedMetric
    pairs: tuple[CellPair, ...]
    same: int
    """Orders of two systems that simulation has beyond doubt and emulation has as well."""
    level: int
    """Those that lie within the margin in emulation."""
    turned: int
    """Those that are the other way about there, by more than the margin."""
    tau: float | None
    """Kendall's tau-b, the mean over the kinds in which it is known."""

    @property
    def alike(self) -> int:
        """Returns how many cells."""
        return sum(one.is_alike for one in self.pairs)

    @property
    def orders(self) -> int:
        """That simulation has beyond doubt, of two systems that emulation has as well."""
        return self.same + self.level + self.turned

    @property
    def middle_gap(self) -> float:
        """Returns the median of how far cells are apart, in canonical units."""
        return statistics.median(abs(one.gap) for one in self.pairs)


def agreements(found: JudgedMatrix) -> list[MeasureAgreement]:
    """Returns one of each measure that any cell has in both modes."""
    made = []
    for measure in MEASURES:
        pairs = list(pairs_of(found, measure))
        if not pairs:
            continue
        kinds = [[one for one in pairs if one.kind == kind] for kind in dict.fromkeys(p.kind for p in pairs)]
        orders = [order for mine in kinds for order in _orders(mine)]
        taus = [tau for mine in kinds if (tau := _tau(mine)) is not None]
        made.append(
            MeasureAgreement(
                about=COMPARED[measure],
                pairs=tuple(pairs),
                same=orders.count("same"),
                level=orders.count("level"),
                turned=orders.count("turned"),
                tau=math.fsum(taus) / len(taus) if taus else None,
            )
        )
    return made


def pairs_of(found: JudgedMatrix, measure: str) -> Iterator[CellPair]:
    """Yields every cell that has the measure in both modes."""
    for kind in found.matrix.kinds:
        sim, emu = found.of(kind.name, "sim"), found.of(kind.name, "emu")
        if sim is None or emu is None:
            continue
        for system in found.matrix.systems:
            a, b = sim.row(system.name, measure), emu.row(system.name, measure)
            if a is not None and b is not None:
                yield CellPair(kind=kind.name, system=system.name, sim=a, emu=b)


def _orders(pairs: Sequence[CellPair]) -> Iterator[str]:
    """Yields for each order that simulation has beyond doubt in a kind, its kind in emulation."""
    emu = {one.system: one for one in pairs}
    for worse in pairs:
        for name in worse.sim.beaten_by:
            better = emu.get(name)
            if better is None:
                continue
            sign = 1.0 if worse.about.better == "more" else -1.0
            ahead = sign * ((better.emu.value or 0.0) - (worse.emu.value or 0.0))
            within = abs(ahead) <= worse.about.margin.about(worse.emu.value or 0.0)
            yield "level" if within else "same" if ahead > 0 else "turned"


def _tau(pairs: Iterable[CellPair]) -> float | None:
    """Kendall's tau-b of the means; None where one of both has no two that differ."""
    signs = [
        (
            _sign((a.sim.value or 0.0) - (b.sim.value or 0.0)),
            _sign((a.emu.value or 0.0) - (b.emu.value or 0.0)),
        )
        for a, b in combinations(pairs, 2)
    ]
    untied = math.prod(sum(sign[side] != 0 for sign in signs) for side in (0, 1))
    return sum(x * y for x, y in signs) / math.sqrt(untied) if untied else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)

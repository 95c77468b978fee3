"""Rows: one quantity of one case, with a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from streamgauge.crosscheck.compared import ComparedCase, ComparedQuantity, CrosscheckMatter, Found
from streamgauge.crosscheck.equivalence import QuantityComparison, compare
from streamgauge.crosscheck.trials import CaseRuns

__all__ = ["ComparisonRow", "ComparisonVerdict", "rows_of"]

ComparisonVerdict = Literal["equivalent", "different", "inconclusive", "explained", "unexplained"]


@dataclass(frozen=True)
class ComparisonRow:
    """Comparison of one quantity of one case. Numbers in SI units, as in the quantity's name."""

    case: str
    metric: str
    asked: ComparedQuantity
    comparison: QuantityComparison
    verdict: ComparisonVerdict
    explained: dict[str, Any] | None = None
    """``{"switch": the change in sim, "before": sim's mean, "after": with it}``."""
    ns3: QuantityComparison | None = None

    @property
    def is_coarse(self) -> bool:
        """The margin is more than half of the reference's mean: equivalence means little."""
        margin, emu = self.comparison.margin, self.comparison.emu
        return margin is not None and bool(emu) and margin > 0.5 * abs(emu or 0.0)

    def with_verdict(
        self, verdict: ComparisonVerdict, explained: dict[str, Any] | None = None
    ) -> ComparisonRow:
        """Returns the row, judged further."""
        return replace(self, verdict=verdict, explained=explained)

    def to_json(self) -> dict[str, Any]:
        """Returns its place in the document."""
        asked = self.asked
        found = {
            "case": self.case,
            "metric": self.metric,
            "words": asked.words,
            "unit": asked.unit,
            "factor": asked.factor,
            **{key: value for key, value in asdict(self.comparison).items() if key != "finding"},
            "verdict": self.verdict,
            "coarse": self.is_coarse,
        }
        if self.explained is not None:
            found["explained"] = self.explained
        if self.ns3 is not None:
            found["ns3"] = {"mean": self.ns3.sim, "n": self.ns3.n_sim, "verdict": self.ns3.finding}
        return found


def rows_of(
    matter: CrosscheckMatter,
    case: ComparedCase,
    sim: CaseRuns,
    emu: CaseRuns,
    ns3: Sequence[Found] | None = None,
) -> list[ComparisonRow]:
    """Returns a row for each quantity that a case leaves in either."""
    rows = []
    for metric in dict.fromkeys([*emu.metrics, *sim.metrics]):
        simulated, real = sim.values(metric), emu.values(metric)
        asked = matter.quantity(metric)
        if asked.if_any and (_is_rare(simulated) or _is_rare(real)):
            continue
        if all(value is None for value in (*simulated, *real)):
            continue  # a value that a system never reports, or never reaches, is no agreement
        compared = compare_as(case, asked, simulated, real)
        judged: ComparisonVerdict = compared.finding
        row = ComparisonRow(case.id, metric, asked, compared, judged)
        if ns3 is not None:
            row = replace(row, ns3=compare_as(case, asked, [run.get(metric) for run in ns3], real))
        rows.append(row)
    return rows


def _is_rare(values: Sequence[float | None]) -> bool:
    return 2 * sum(value is not None for value in values) < len(values)


def compare_as(
    case: ComparedCase,
    asked: ComparedQuantity,
    simulated: Sequence[float | None],
    real: Sequence[float | None],
) -> QuantityComparison:
    """Compares by the quantity's floors, and as means or distributions as the case asks."""
    return compare(
        simulated,
        real,
        relative=asked.relative,
        absolute=asked.absolute,
        fixed=asked.fixed,
        distribution=case.is_mix,
    )

"""Why a row differs: the simulated mechanism that, turned off, moves it inside the margin.

A difference counts as explained only by a switch that does so; an argument alone explains nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.crosscheck.compared import ComparedCase
from streamgauge.crosscheck.rows import ComparisonRow, compare_as
from streamgauge.crosscheck.trials import Bench, CaseRuns
from streamgauge.errors import ScenarioError

__all__ = ["explain"]

Moved = dict[tuple[str, str], dict[str, dict[str, Any]]]


def explain(
    bench: Bench,
    wanted: Sequence[ComparedCase],
    found: Mapping[str, tuple[CaseRuns, CaseRuns]],
    rows: Sequence[ComparisonRow],
) -> list[ComparisonRow]:
    """Tries each switch on the cases that have a row that is `different`.

    Returns:
        All rows; those that differ read `explained`, by the switch that explains most rows of their case, or
        `unexplained`.
    """
    cases = {case.id: case for case in wanted}
    open_ = [row for row in rows if row.verdict == "different"]
    moved: Moved = {}
    for switch, variant in bench.matter.switches.items():
        if bench.interrupted:
            break
        changed = []
        for name in dict.fromkeys(row.case for row in open_):
            try:
                changed.append(bench.matter.vary(cases[name], variant))
            except ScenarioError:
                continue  # a switch that this case has not
        runs = bench.simulate(switch.replace(" ", "-"), changed)
        for row in open_:
            sim, real = runs.get(row.case), found[row.case][1]
            if sim is not None and _is_alike(cases[row.case], row, sim, real):
                after = {"before": row.comparison.sim, "after": _mean(sim, row)}
                moved.setdefault((row.case, row.metric), {})[switch] = after
    return [_judged(row, moved) for row in rows]


def _is_alike(case: ComparedCase, row: ComparisonRow, sim: CaseRuns, real: CaseRuns) -> bool:
    found = compare_as(case, row.asked, sim.values(row.metric), real.values(row.metric))
    return found.finding == "equivalent"


def _mean(runs: CaseRuns, row: ComparisonRow) -> float | None:
    values = [value for value in runs.values(row.metric) if value is not None]
    return sum(values) / len(values) if values else None


def _judged(row: ComparisonRow, moved: Moved) -> ComparisonRow:
    if row.verdict != "different":
        return row
    mine = moved.get((row.case, row.metric), {})
    if not mine:
        return row.with_verdict("unexplained")
    # One mechanism that explains much is likelier than many that explain a row each.
    reach = {
        switch: sum(switch in others for (case, _), others in moved.items() if case == row.case)
        for switch in mine
    }
    switch = max(mine, key=lambda name: reach[name])
    return row.with_verdict("explained", {"switch": switch, **mine[switch]})

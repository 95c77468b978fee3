"""Why a row differs: which mechanism of what is simulated, turned off, moves it inside the margin.

A difference counts as explained only by a switch that does so; an argument alone explains nothing. What sim
has not, and a real program can leave off, is a switch of the reference: further real trials, so few that the
margin there is the floor alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from streamgauge.crosscheck.compared import ComparedCase
from streamgauge.crosscheck.rows import ComparisonRow, compare_as
from streamgauge.crosscheck.trials import Bench, CaseRuns
from streamgauge.errors import ScenarioError

__all__ = ["explain"]

REAL_TRIALS: Final = 2
"""Of each case, with a switch of what is real."""
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
    tried: dict[str, Mapping[str, CaseRuns]] = {}
    for switch, variant in bench.matter.switches.items():
        if bench.interrupted:
            break
        changed = []
        for name in dict.fromkeys(row.case for row in open_):
            try:
                changed.append(bench.matter.vary(cases[name], variant))
            except ScenarioError:
                continue  # a switch that this case has not
        tried[switch] = bench.simulate(switch.replace(" ", "-"), changed)
        for row in open_:
            sim, real = tried[switch].get(row.case), found[row.case][1]
            if sim is not None and _is_alike(cases[row.case], row, sim, real):
                after = {"before": row.comparison.sim, "after": _mean(sim, row)}
                moved.setdefault((row.case, row.metric), {})[switch] = after
    left = [row for row in open_ if (row.case, row.metric) not in moved]
    if bench.reference == "emu":
        _by_what_is_real(bench, cases, found, left, tried, moved)
    return [_judged(row, moved) for row in rows]


def _by_what_is_real(
    bench: Bench,
    cases: Mapping[str, ComparedCase],
    found: Mapping[str, tuple[CaseRuns, CaseRuns]],
    open_: Sequence[ComparisonRow],
    tried: Mapping[str, Mapping[str, CaseRuns]],
    moved: Moved,
) -> None:
    """Tries the switches of the reference, each by itself and together with one of sim's."""
    for switch, variant in bench.matter.real_switches.items():
        if bench.interrupted or bench.matter.vary_real is None:
            return
        changed = []
        for name in dict.fromkeys(row.case for row in open_):
            try:
                changed.append(bench.matter.vary_real(cases[name], variant))
            except ScenarioError:
                continue
        reals = bench.refer(f"real-{switch.replace(' ', '-')}", changed, REAL_TRIALS)
        for row in open_:
            real = reals.get(row.case)
            if real is None:
                continue
            sims = {switch: found[row.case][0]}
            sims |= {f"{switch}, {name}": runs[row.case] for name, runs in tried.items() if row.case in runs}
            for words, sim in sims.items():
                if _is_alike(cases[row.case], row, sim, real, by_floor=True):
                    told = {"before": row.comparison.sim, "after": _mean(sim, row), "emu": _mean(real, row)}
                    moved.setdefault((row.case, row.metric), {})[words] = told
                    break


def _is_alike(
    case: ComparedCase, row: ComparisonRow, sim: CaseRuns, real: CaseRuns, *, by_floor: bool = False
) -> bool:
    asked = replace(row.asked, fixed=True) if by_floor else row.asked
    found = compare_as(case, asked, sim.values(row.metric), real.values(row.metric))
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

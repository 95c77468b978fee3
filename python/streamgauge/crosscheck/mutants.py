"""Deliberate faults. A comparison that calls it equivalent proves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from streamgauge.crosscheck.compared import ComparedCase
from streamgauge.crosscheck.rows import ComparisonRow, rows_of
from streamgauge.crosscheck.trials import Bench, CaseRuns
from streamgauge.errors import ScenarioError

__all__ = ["try_mutants"]


def try_mutants(
    bench: Bench,
    wanted: Sequence[ComparedCase],
    found: Mapping[str, tuple[CaseRuns, CaseRuns]],
    rows: Sequence[ComparisonRow],
) -> list[dict[str, Any]]:
    """Runs each mutant in sim in place of the cases it is for, against the same runs of the reference.

    A case rejects a mutant if a quantity that was not `different` without it is `different` with it.

    Returns:
        For each mutant with a case here: ``{"name", "words", "rejected", "cases": {id: [row, ...]}}``,
        where the rows are those that reject it; `rejected` is None, with `why`, if it could not be run.
    """
    results: list[dict[str, Any]] = []
    before = {(row.case, row.metric): row for row in rows}
    for mutant in bench.matter.mutants:
        mine = [case for case in wanted if fnmatchcase(case.id, mutant.cases) and found[case.id][1].taken]
        if not mine:
            continue
        result: dict[str, Any] = {"name": mutant.name, "words": mutant.words}
        try:
            wrong = [bench.matter.vary(case, mutant.variant) for case in mine]
        except ScenarioError as error:
            results.append(result | {"rejected": None, "why": str(error), "cases": {}})
            continue
        runs = bench.simulate(mutant.name, wrong)
        if bench.interrupted:
            break
        by_case: dict[str, list[dict[str, Any]]] = {}
        for case in mine:
            judged = rows_of(bench.matter, case, runs[case.id], found[case.id][1])
            by_case[case.id] = [
                row.to_json()
                for row in judged
                if row.comparison.finding == "different"
                and (case.id, row.metric) in before
                and before[case.id, row.metric].comparison.finding != "different"
            ]
        results.append(result | {"rejected": any(by_case.values()), "cases": by_case})
    return results

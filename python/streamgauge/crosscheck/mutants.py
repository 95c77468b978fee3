"""Simulated TCPs that are wrong on purpose. A comparison that calls one of them equivalent proves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from streamgauge.crosscheck.cases import Case
from streamgauge.crosscheck.rows import ComparisonRow, rows_of
from streamgauge.crosscheck.trials import Bench, CaseRuns, Variant, varied
from streamgauge.errors import ScenarioError

__all__ = ["MUTANTS", "Mutant", "try_mutants"]


@dataclass(frozen=True)
class Mutant:
    """What is wrong, and in which cases it is tried."""

    name: str
    words: str
    cases: str
    """A glob of ids."""
    variant: Variant


MUTANTS: Final = (
    Mutant(
        "reno-is-cubic", "CUBIC runs where Reno is asked for", "reno/*kb", {"congestion_control": "cubic"}
    ),
    Mutant(
        "no-delayed-ack",
        "every segment is acknowledged at once",
        "reno/*kb",
        {"parameters.delayed_ack": "0 ms"},
    ),
    Mutant("no-hystart", "CUBIC's slow start ends by loss alone", "cubic/*kb", {"parameters.hystart": "off"}),
)


def try_mutants(
    bench: Bench,
    wanted: Sequence[Case],
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
    for mutant in MUTANTS:
        mine = [case for case in wanted if fnmatchcase(case.id, mutant.cases) and found[case.id][1].taken]
        if not mine:
            continue
        result: dict[str, Any] = {"name": mutant.name, "words": mutant.words}
        try:
            wrong = [varied(case, mutant.variant) for case in mine]
        except ScenarioError as error:
            results.append(result | {"rejected": None, "why": str(error), "cases": {}})
            continue
        runs = bench.simulate(mutant.name, wrong)
        if bench.interrupted:
            break
        by_case: dict[str, list[dict[str, Any]]] = {}
        for case in mine:
            judged = rows_of(case, runs[case.id], found[case.id][1])
            by_case[case.id] = [
                row.to_json()
                for row in judged
                if row.comparison.finding == "different"
                and (case.id, row.metric) in before
                and before[case.id, row.metric].comparison.finding != "different"
            ]
        results.append(result | {"rejected": any(by_case.values()), "cases": by_case})
    return results

"""The measured parts of docs/fidelity-contribution.md, from a crosscheck's document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from streamgauge.crosscheck.contribution.quantities import QUANTITIES
from streamgauge.crosscheck.filling import (
    MARKS,
    Document,
    MeasuredPage,
    coarse,
    counted,
    differences,
    measured_on,
    mutants,
    number,
    trials_left_out,
)

__all__ = ["PAGE"]

_COLUMNS: Final = ("rtt", "loss", "latency")


def _summary(document: Document) -> str:
    real = sum(case["valid"]["emu"] for case in document["cases"])
    simulated = sum(case["valid"]["sim"] for case in document["cases"])
    lines = [
        measured_on(document),
        f"{counted(document)}, from {real} valid real trials of {len(document['cases'])} conditions and "
        f"{simulated} simulated ones.",
    ]
    if document["not_asked"]:
        lines.append(f"Not run: {len(document['not_asked'])} of the conditions.")
    return "\n\n".join(lines + trials_left_out(document))


def _conditions(document: Document) -> str:
    """Returns a row a case: the drawn values."""
    lines = ["| case | round trip | loss | latency | real trials |", "|---|---|---|---|---|"]
    for case in document["cases"]:
        cells = [case["conditions"][column] for column in _COLUMNS]
        lines.append(f"| `{case['id']}` | {' | '.join(cells)} | {case['valid']['emu']} |")
    return "\n".join(lines)


def _systems(document: Document) -> str:
    """Returns a table for each system: rows are its conditions, columns quantities, a cell sim / emu."""
    tables = []
    for subject, rows in _by_subject(document["rows"]):
        mine = {(row["case"].partition("/")[2], row["metric"]): row for row in rows}
        asked = [one for name, one in QUANTITIES.items() if any(metric == name for _, metric in mine)]
        heads = [f"{one.words}{f', {one.unit}' if one.unit else ''}" for one in asked]
        lines = [
            f"**{subject}** (sim / emu)",
            "",
            f"| | {' | '.join(heads)} |",
            "|---" * (len(asked) + 1) + "|",
        ]
        for condition in dict.fromkeys(condition for condition, _ in mine):
            cells = [_cell(mine.get((condition, one.name))) for one in asked]
            lines.append(f"| {condition} | {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{number(row['sim'], row)} / {number(row['emu'], row)}{MARKS[row['verdict']]}"


def _by_subject(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    return [
        (subject, list(some)) for subject, some in groupby(rows, lambda row: row["case"].partition("/")[0])
    ]


PAGE: Final = MeasuredPage(
    blocks={
        "summary": _summary,
        "conditions": _conditions,
        "mutants": mutants,
        "systems": _systems,
        "differences": differences,
        "coarse": coarse,
    },
    figures=lambda document: [],
)
"""docs/fidelity-contribution.md."""

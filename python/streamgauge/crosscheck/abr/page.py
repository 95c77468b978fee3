"""The measured parts of docs/fidelity-abr.md, from a crosscheck's document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import mean, stdev
from typing import Any, Final

from streamgauge.claims.dimension import plain
from streamgauge.crosscheck.abr.draw import figures
from streamgauge.crosscheck.abr.quantities import QUANTITIES
from streamgauge.crosscheck.abr.shares import sentences
from streamgauge.crosscheck.filling import (
    MARKS,
    Document,
    MeasuredPage,
    coarse,
    counted,
    differences,
    drawn,
    measured_on,
    mutants,
    number,
    trials_left_out,
)

__all__ = ["PAGE"]

_DIGITS: Final = 3


def _summary(document: Document) -> str:
    lines = [measured_on(document), _trials(document), " ".join(sentences(document))]
    if document["not_asked"]:
        names = ", ".join(f"`{name}`" for name in document["not_asked"])
        lines.append(f"Not measured in this run, {len(document['not_asked'])} cases: {names}.")
    if document.get("real_of"):
        lines.append(_real_of(document["real_of"]))
    return "\n\n".join(lines + trials_left_out(document))


def _real_of(runs: Sequence[Mapping[str, Any]]) -> str:
    """When the real trials ran that this run took from earlier ones."""
    lines = [
        f"- {run['date'][:16].replace('T', ' ')} (commit {run['commit'][:10]}): {_cases(len(run['cases']))}"
        for run in sorted(runs, key=lambda run: str(run["date"]))
    ]
    return "\n".join(["The real trials are those of earlier runs, by date:", "", *lines])


def _cases(number_of: int) -> str:
    """In words."""
    return "1 case" if number_of == 1 else f"{number_of} cases"


def _trials(document: Document) -> str:
    valid = sum(case["valid"]["emu"] for case in document["cases"])
    return (
        f"{counted(document)}, from {valid} valid real trials of {len(document['cases'])} conditions and "
        f"{sum(case['valid']['sim'] for case in document['cases'])} simulated ones."
    )


def _conditions(document: Document) -> str:
    """Returns a row for each case: its draws."""
    columns = ("rate", "rtt", "queue", "ladder", "segment", "buffer", "begin")
    lines = [f"| case | {' | '.join(columns)} | real trials |", "|---" * (len(columns) + 2) + "|"]
    for case in document["cases"]:
        cells = [case["conditions"][column] for column in columns]
        lines.append(f"| `{case['id']}` | {' | '.join(cells)} | {case['valid']['emu']} |")
    return "\n".join(lines)


def _players(document: Document) -> str:
    """A table for each player: rows are its conditions, columns quantities, a cell sim / emu."""
    tables = []
    for subject, rows in _by_subject(document["rows"]):
        mine = {(row["case"].partition("/")[2], row["metric"]): row for row in rows}
        metrics = [metric for metric in QUANTITIES if any(name == metric for _, name in mine)]
        heads = []
        for metric in metrics:
            asked = QUANTITIES[metric]
            heads.append(f"{asked.words}{f', {asked.unit}' if asked.unit else ''}")
        lines = [f"**{subject}** (sim / emu)", "", f"| | {' | '.join(heads)} |"]
        lines.append("|---" * (len(metrics) + 1) + "|")
        for kind in dict.fromkeys(kind for kind, _ in mine):
            cells = [_cell(mine.get((kind, metric))) for metric in metrics]
            lines.append(f"| {kind} | {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{number(row['sim'], row)} / {number(row['emu'], row)}{MARKS[row['verdict']]}"


def _intervals(document: Document) -> str:
    """Every row with its spread, margin and interval."""
    lines = [
        "| case | quantity | sim - emu | 90 % interval | margin | verdict |",
        "|---|---|---|---|---|---|",
    ]
    last = ""
    for row in document["rows"]:
        case = f"`{row['case']}`" if row["case"] != last else ""
        last = row["case"]
        unit = f" {row['unit']}" if row["unit"] else ""
        if row["low"] is None:
            off, span, margin = "", "", ""
        else:
            off = number(row["sim"] - row["emu"], row) + unit
            span = f"{number(row['low'], row)} to {number(row['high'], row)}"
            margin = number(row["margin"], row)
        verdict = f"**{row['verdict']}**" if row["verdict"] == "unexplained" else row["verdict"]
        lines.append(f"| {case} | {row['metric']} | {off} | {span} | {margin} | {verdict} |")
    return "\n".join(lines)


def _bias(document: Document) -> str:
    """Over all conditions of a player: the mean of sim less emu, and whether it is systematic."""
    heads = [f"{asked.words}{f', {asked.unit}' if asked.unit else ''}" for asked in QUANTITIES.values()]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(QUANTITIES) + 1) + "|"]
    every = [("all", list(document["rows"])), *_by_subject(document["rows"])]
    for subject, rows in [*every[1:], every[0]]:
        cells = []
        for metric in QUANTITIES:
            mine = [row for row in rows if row["metric"] == metric and None not in (row["sim"], row["emu"])]
            cells.append(_mean_off(mine))
        lines.append(f"| {subject} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean_off(rows: Sequence[Mapping[str, Any]]) -> str:
    """The mean of the differences with its 90 % interval (Student), in the rows' unit."""
    off = [(row["sim"] - row["emu"]) * row["factor"] for row in rows]
    if len(off) < 2:
        return ""
    from scipy.stats import t

    half = float(t.ppf(0.95, len(off) - 1)) * stdev(off) / math.sqrt(len(off))
    return f"{plain(mean(off), _DIGITS)} ({plain(mean(off) - half, 2)} to {plain(mean(off) + half, 2)})"


def _by_subject(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    return [
        (subject, list(some)) for subject, some in groupby(rows, lambda row: row["case"].partition("/")[0])
    ]


PAGE: Final = MeasuredPage(
    blocks={
        "summary": _summary,
        "conditions": _conditions,
        "mutants": mutants,
        "figures": lambda document: drawn(figures(document)),
        "players": _players,
        "bias": _bias,
        "intervals": _intervals,
        "differences": differences,
        "coarse": coarse,
    },
    figures=figures,
)
"""docs/fidelity-abr.md."""

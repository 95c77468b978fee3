"""The measured parts of docs/fidelity-systems.md, from a crosscheck's document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from streamgauge.claims.dimension import plain
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
    with_unit,
)
from streamgauge.crosscheck.systems.draw import figures
from streamgauge.crosscheck.systems.quantities import QUANTITIES

__all__ = ["PAGE"]

_FINDINGS: Final = ("equivalent", "inconclusive", "different")
_COLUMNS: Final = ("rate", "rtt", "queue", "loss", "beside")


def _summary(document: Document) -> str:
    real = sum(case["valid"]["emu"] for case in document["cases"])
    simulated = sum(case["valid"]["sim"] for case in document["cases"])
    lines = [
        *(_of_run(run, document) for run in document.get("runs") or [document]),
        f"{counted(document)}, from {real} valid real trials of {len(document['cases'])} conditions and "
        f"{simulated} simulated ones.",
    ]
    if document["not_asked"]:
        told = _listed(document["not_asked"])
        lines.append(f"Not measured, {len(document['not_asked'])} conditions: {told}.")
    return "\n\n".join(lines + trials_left_out(document))


def _of_run(run: Document, document: Document) -> str:
    """Returns the machine of the real trials, and their conditions if others ran elsewhere."""
    if run is document:
        return measured_on(document)
    conditions = [f"- {systems}: {numbers}" for systems, numbers in _grouped(run["cases"])]
    return "\n".join([f"{measured_on(run)} Conditions:", "", *conditions])


def _listed(cases: Iterable[str]) -> str:
    """Cases by condition: ``05 to 07 of `rtp`; 01 of `dash```, systems with the same ones together."""
    return "; ".join(f"{numbers} of {systems}" for systems, numbers in _grouped(cases))


def _grouped(cases: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of systems and their conditions, such as ``("`rtp`", "05 to 07, 09")``."""
    of: dict[str, list[str]] = {}
    for name in cases:
        who, _, condition = name.partition("/")
        of.setdefault(who, []).append(condition)
    same: dict[str, list[str]] = {}
    for who, conditions in of.items():
        same.setdefault(_spans(conditions), []).append(f"`{who}`")
    return [(", ".join(names), numbers) for numbers, names in same.items()]


def _spans(conditions: Sequence[str]) -> str:
    """Numbers with three or more in a row as a span: ``01, 03 to 07``."""
    runs: list[list[str]] = []
    for one in conditions:
        if runs and int(one) == int(runs[-1][-1]) + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    parts = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else run for run in runs]
    return ", ".join(part for some in parts for part in some)


def _counts(document: Document) -> str:
    """Returns a row a system: how many rows of each verdict, and how many mutants were rejected."""
    lines = [
        f"| system | conditions | real trials, valid | invalid | {' | '.join(MARKS)} | mutants rejected |",
        "|---" * (len(MARKS) + 5) + "|",
    ]
    for subject, rows in _by_subject(document["rows"]):
        cases = [case for case in document["cases"] if case["subject"] == subject]
        words = [row["verdict"] for row in rows]
        mine = [one for one in document["mutants"] if one["name"].partition(":")[0] == subject]
        cells = [
            f"`{subject}`",
            str(len(cases)),
            str(sum(case["valid"]["emu"] for case in cases)),
            str(sum(len(case["invalid"]) for case in cases)),
            *(str(words.count(word)) for word in MARKS),
            f"{sum(bool(one['rejected']) for one in mine)} of {len(mine)}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _machines(document: Document) -> str:
    """Returns how real trials of virtual machines agree with this machine's."""
    rows = document.get("machines") or []
    if not rows:
        return "Not measured in this run."
    words = [row["verdict"] for row in rows]
    cases = list(dict.fromkeys(row["case"] for row in rows))
    counts = ", ".join(f"{words.count(word)} {word}" for word in _FINDINGS if word in words)
    lines = [f"{len(rows)} rows of {len(cases)} conditions ({_listed(cases)}): {counts}.", ""]
    for row in rows:
        if row["verdict"] == "equivalent":
            continue
        values = f"virtual {number(row['virtual'], row)}, host {with_unit(row['host'], row)}"
        margin = f", margin {number(row['margin'], row)}" if row["margin"] is not None else ""
        span = f"{number(row['low'], row)} to {number(row['high'], row)}" if row["low"] is not None else ""
        why = row["why"] or f"the 90 % interval of the difference is {span}"
        lines.append(f"- `{row['case']}` {row['metric']}: {values}{margin}: *{row['verdict']}*: {why}.")
    return "\n".join(lines).rstrip()


def _conditions(document: Document) -> str:
    """Returns a row a case: the drawn values."""
    lines = [f"| case | {' | '.join(_COLUMNS)} | real trials |", "|---" * (len(_COLUMNS) + 2) + "|"]
    guests = {
        name for run in document.get("runs") or () if run.get("virtual_machine") for name in run["cases"]
    }
    for case in document["cases"]:
        cells = [case["conditions"][column] for column in _COLUMNS]
        real = f"{case['valid']['emu']}{', virtual' if case['id'] in guests else ''}"
        lines.append(f"| `{case['id']}` | {' | '.join(cells)} | {real} |")
    return "\n".join(lines)


def _systems(document: Document) -> str:
    """Returns a table for each system: rows are its conditions, columns quantities, a cell sim / emu."""
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
        for number_ in dict.fromkeys(condition for condition, _ in mine):
            cells = [_cell(mine.get((number_, metric))) for metric in metrics]
            lines.append(f"| {number_} | {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{number(row['sim'], row)} / {number(row['emu'], row)}{MARKS[row['verdict']]}"


def _bias(document: Document) -> str:
    """Over all conditions of a system: the mean of sim less emu, as a share of the margin."""
    heads = [asked.words for asked in QUANTITIES.values()]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(QUANTITIES) + 1) + "|"]
    for subject, rows in _by_subject(document["rows"]):
        cells = [_mean_off([row for row in rows if row["metric"] == metric]) for metric in QUANTITIES]
        lines.append(f"| {subject} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean_off(rows: Sequence[Mapping[str, Any]]) -> str:
    off = [(row["sim"] - row["emu"]) / row["margin"] for row in rows if row["margin"]]
    return plain(sum(off) / len(off), 2) if off else ""


def _by_subject(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    return [
        (subject, list(some)) for subject, some in groupby(rows, lambda row: row["case"].partition("/")[0])
    ]


PAGE: Final = MeasuredPage(
    blocks={
        "summary": _summary,
        "counts": _counts,
        "conditions": _conditions,
        "machines": _machines,
        "mutants": mutants,
        "figures": lambda document: drawn(figures(document)),
        "systems": _systems,
        "bias": _bias,
        "differences": differences,
        "coarse": coarse,
    },
    figures=figures,
)
"""docs/fidelity-systems.md."""

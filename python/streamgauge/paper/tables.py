"""A paper's tables beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from streamgauge.claims.dimension import json_value, show_in
from streamgauge.claims.names import METRICS
from streamgauge.metrics import Interval
from streamgauge.metrics.result import flow_keys
from streamgauge.paper.machines import mode_json
from streamgauge.paper.published import Paper, PaperTable, SharesTable, TableColumn
from streamgauge.paper.reading import Reading
from streamgauge.paper.shares import shares_json, shares_text
from streamgauge.terminal import lay_out

__all__ = ["Line", "lines_of", "ours", "table_json", "tables_text", "theirs"]


@dataclass(frozen=True)
class Line:
    """A line: published and ours by metric, canonical. The index is on an experiment's first."""

    experiment: str
    label: str
    flow: str
    scenario: str
    published: dict[str, float]
    printed: Mapping[str, str]
    ours: dict[str, Interval | None]
    n: int


@cache
def _keys() -> Mapping[str, str]:
    """Returns keys in JSON by metric."""
    return {"jain": "jain"} | {metric: key for key, (metric, part) in flow_keys().items() if part == "mean"}


def lines_of(table: PaperTable, reading: Reading, mode: str) -> list[Line]:
    """Returns the table's lines with the measurements of a mode."""
    made = []
    for row in table.rows:
        entry = reading.by_id.get(row.scenario)
        group = entry.group(mode) if entry else None
        for index, flow in enumerate(row.flows):
            published = dict(flow.values)
            if {"throughput", "loss_rate"} <= set(published):
                # Derived from a paper's rates.
                published["loss"] = published["loss_rate"] / published["throughput"]
            metrics = [column.metric for column in table.columns if column.metric != "jain"]
            ours = {name: group.over(name, flow.flow) if group else None for name in metrics}
            if index == 0 and row.jain is not None:
                published["jain"] = row.jain
                ours["jain"] = group.over("jain") if group else None
            made.append(
                Line(
                    experiment=row.experiment if index == 0 else "",
                    label=flow.label,
                    flow=flow.flow,
                    scenario=row.scenario,
                    published=published,
                    printed=flow.printed,
                    ours=ours,
                    n=len(group.valid) if group else 0,
                )
            )
    return made


def theirs(line: Line, column: TableColumn) -> str:
    """Returns a published number as the tables print it; empty where there is none."""
    value = line.published.get(column.metric)
    if value is None:
        return ""
    return line.printed.get(column.metric) or f"{value / column.scale:.{column.digits}f}"


def ours(line: Line, column: TableColumn) -> tuple[str, str]:
    """Returns our mean, and half its interval; both empty where there is nothing to compare."""
    found = line.ours.get(column.metric)
    if found is None:
        return ("–" if column.metric in line.published else "", "")
    half = None if found.half_width is None else found.half_width / column.scale
    shown = show_in(found.mean / column.scale, half, column.digits, signed=False)
    return shown.mean, shown.interval


def tables_text(paper: Paper, reading: Reading, columns: int | None = None) -> str:
    """Returns all tables for a terminal, one after another, none wider than `columns`."""
    return "\n\n".join(
        shares_text(table, paper, reading, columns)
        if isinstance(table, SharesTable)
        else _means_text(table, reading, columns)
        for table in paper.tables
    )


def _means_text(table: PaperTable, reading: Reading, columns: int | None) -> str:
    modes = reading.modes
    by_mode = [lines_of(table, reading, mode) for mode in modes]
    counts = {mode: _counted(lines) for mode, lines in zip(modes, by_mode, strict=True)}
    name = f"reading {reading.name}" if reading.name else ""
    if len(modes) == 1:
        told = ", ".join(part for part in (reading.words(modes[0]), name) if part) + f"; {counts[modes[0]]}"
    else:
        told = "; ".join(part for part in (name, ", ".join(f"{m} {counts[m]}" for m in modes)) if part)
    head = f"{table.title} beside ours ({told}, ± half the 95 % interval)"
    ours_are = modes if len(modes) > 1 else ["ours"]
    rows: list[list[str]] = [
        ["", "", *(part for column in table.columns for part in (column.title, *[""] * len(modes)))],
        ["", "", *(["paper", *ours_are] * len(table.columns))],
    ]
    for lines in zip(*by_mode, strict=True):
        cells = [lines[0].experiment, lines[0].label]
        for column in table.columns:
            cells.append(theirs(lines[0], column))
            cells += [" ".join(ours(line, column)).rstrip() for line in lines]
        rows.append(cells)
    together = 1 + len(modes)
    kinds = f"ll{'r' * together * len(table.columns)}"
    laid = lay_out(rows, kinds, columns=columns, keys=2, together=together, indent=2)
    return "\n".join([head, *(text.plain for text in laid)])


def _counted(lines: Sequence[Line]) -> str:
    """Returns the number of their trials: ``n = 0 to 3``."""
    counts = {line.n for line in lines}
    return f"n = {min(counts)}" if len(counts) == 1 else f"n = {min(counts)} to {max(counts)}"


def table_json(table: PaperTable | SharesTable, paper: Paper, readings: Sequence[Reading]) -> dict[str, Any]:
    """Returns a table with every reading's and mode's numbers; keys end in their unit."""
    if isinstance(table, SharesTable):
        return shares_json(table, paper, readings)

    def plain(metric: str, value: float) -> float:
        return json_value(value, METRICS[metric].dimension)[0]

    lines = []
    for index, line in enumerate(lines_of(table, readings[0], "")):
        measured = []
        for reading in readings:
            for mode in reading.modes:
                found = lines_of(table, reading, mode)[index]
                numbers = {
                    _keys()[metric]: {
                        "mean": plain(metric, value.mean),
                        "interval": None
                        if value.low is None or value.high is None
                        else [plain(metric, value.low), plain(metric, value.high)],
                        "n": value.n,
                    }
                    for metric, value in found.ours.items()
                    if value is not None
                }
                measured.append({"reading": reading.name or None, **mode_json(mode), **numbers})
        published = {_keys()[metric]: plain(metric, value) for metric, value in line.published.items()}
        lines.append(
            {
                "scenario": line.scenario,
                "flow": line.flow,
                "label": line.label,
                "published": published,
                "measured": measured,
            }
        )
    return {"id": table.id, "title": table.title, "lines": lines}

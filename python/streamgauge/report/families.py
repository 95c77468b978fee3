"""Scenarios that differ in one thing, side by side; with a paper's table beside ours where it has one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from streamgauge.checks.published import published_value
from streamgauge.claims.dimension import json_value, number, show_in
from streamgauge.metrics import METRICS
from streamgauge.report.chart import DrawnFigure, bars
from streamgauge.report.model import Entry, entry_labels
from streamgauge.terminal import lay_out

COLUMNS = {"sent": "sent, kB", "received": "received, kB", "loss": "loss, %"}
"""The metrics of a paper's table: our name and the column's."""


@dataclass(frozen=True)
class Cell:
    """One number of a table: its value, its interval and its origin, as text."""

    text: str
    interval: str = ""


@dataclass(frozen=True)
class FamilyTable:
    """A paper's table beside ours: a row a scenario, a column a metric and an origin of it."""

    title: str
    source: str
    origins: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    n: str
    figure: DrawnFigure


def tables(entries: Sequence[Entry]) -> list[FamilyTable]:
    """Returns every paper's table with at least two rows that were run."""
    folder = resources.files("streamgauge.report") / "published"
    found = []
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".json"):
            data = json.loads(file.read_text(encoding="utf-8"))
            mine = [entry for entry in entries if entry.id in data.get("scenarios", ())]
            if len(mine) >= 2:
                found.append(_table(data, mine, file.name.removesuffix(".json")))
    return found


def _table(data: Mapping[str, Any], entries: list[Entry], id_: str) -> FamilyTable:
    modes = [mode for mode in ("sim", "emu") if any(entry.group(mode) for entry in entries)]
    origins = ("published", *modes)
    flow = str(data["flow"])
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    drawn: list[tuple[Any, ...]] = []
    short = entry_labels(entries)
    for entry in entries:
        label = short[entry.id]
        published = data["scenarios"][entry.id]
        cells = []
        for metric, title in COLUMNS.items():
            theirs = _scaled(published_value(published[metric])[0], metric)
            digits = 2 if metric == "loss" else 1
            cells.append(Cell(f"{theirs:.{digits}f}"))
            drawn.append((label, theirs, "published", title, None, None))
            for mode in modes:
                group = entry.group(mode)
                ours = group.over(metric, flow) if group else None
                if ours is None:
                    cells.append(Cell("–"))
                    continue
                mean = _scaled(ours.mean, metric)
                low = None if ours.low is None else max(0.0, _scaled(ours.low, metric))
                high = None if ours.high is None else _scaled(ours.high, metric)
                shown = show_in(mean, None if high is None else high - mean, digits, signed=False)
                cells.append(Cell(shown.mean, shown.interval))
                drawn.append((label, float(number(mean, 5).replace("\u202f", "")), mode, title, low, high))
        rows.append((label, tuple(cells)))
    counts = {
        mode: sorted({len(group.valid) for entry in entries if (group := entry.group(mode))})
        for mode in modes
    }
    n = "; ".join(f"n = {' to '.join(map(str, _ends(count)))} in {mode}" for mode, count in counts.items())
    figure = bars(
        f"table-{id_}",
        "Published beside ours",
        f"Means over the whole run; whiskers are 95 % intervals ({n}). Published are single runs.",
        [row for row in drawn if row[3] != COLUMNS["sent"]],
        y="",
        kinds=origins,
    )
    return FamilyTable(
        "The paper's table beside ours",
        str(data["source"]),
        origins,
        tuple(COLUMNS.values()),
        tuple(rows),
        n,
        figure,
    )


def table_text(
    table: FamilyTable, metrics: Sequence[str] = ("received", "loss"), columns: int | None = None
) -> str:
    """Returns a paper's table beside ours for a terminal, `metrics` of it, aligned, and no wider than
    `columns`."""
    count = len(table.origins)
    chosen = [list(COLUMNS).index(metric) for metric in metrics]
    groups = [word for i in chosen for word in (f"{table.metrics[i]}:", *[""] * (count - 1))]
    lines = [["", *groups], ["", *table.origins * len(chosen)]]
    for label, cells in table.rows:
        shown = [cell for i in chosen for cell in cells[i * count : (i + 1) * count]]
        lines.append([label, *(f"{cell.text} {cell.interval}".strip() for cell in shown)])
    kinds = f"l{'r' * (len(lines[0]) - 1)}"
    laid = lay_out(lines, kinds, columns=columns, together=count, indent=2)
    return "\n".join([f"{table.source}; {table.n}", *(line.plain for line in laid)])


def _ends(count: list[int]) -> list[int]:
    return [count[0]] if count[0] == count[-1] else [count[0], count[-1]]


def _scaled(value: float, metric: str) -> float:
    """kB and percent, as the tables print."""
    found, unit = json_value(value, METRICS[metric].dimension)
    return found / 1e3 if unit == "bytes" else found

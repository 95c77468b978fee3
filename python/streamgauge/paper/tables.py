"""A paper's tables beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.claims.dimension import json_value, show_in
from streamgauge.claims.names import METRICS
from streamgauge.metrics import Interval
from streamgauge.paper.published import Paper, PaperTable
from streamgauge.paper.reading import Reading
from streamgauge.terminal import lay_out

__all__ = ["COLUMNS", "Line", "lines_of", "table_json", "tables_text"]

COLUMNS = {"throughput": "TP, kb/s", "loss_rate": "LR, kb/s", "loss": "loss, %", "jain": "JFI"}
"""Metrics of a table by our names; loss is what the paper's rates make, LR / TP."""
_SCALE = {"throughput": 1e3, "loss_rate": 1e3, "loss": 0.01, "jain": 1.0}
_DIGITS = {"throughput": 1, "loss_rate": 1, "loss": 1, "jain": 2}


@dataclass(frozen=True)
class Line:
    """A line: published and ours by metric, canonical. The index stands on an experiment's first."""

    experiment: str
    label: str
    flow: str
    scenario: str
    published: dict[str, float]
    ours: dict[str, Interval | None]
    n: int


def lines_of(table: PaperTable, reading: Reading, mode: str) -> list[Line]:
    """The table's lines with what was measured in a mode."""
    made = []
    for row in table.rows:
        entry = reading.by_id.get(row.scenario)
        group = entry.group(mode) if entry else None
        for index, flow in enumerate(row.flows):
            published = dict(flow.values)
            if {"throughput", "loss_rate"} <= set(published):
                published["loss"] = published["loss_rate"] / published["throughput"]
            metrics = [name for name in COLUMNS if name != "jain"]
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
                    ours=ours,
                    n=len(group.valid) if group else 0,
                )
            )
    return made


def theirs(line: Line, metric: str) -> str:
    """A published number as the tables print it; empty where there is none."""
    value = line.published.get(metric)
    if value is None:
        return ""
    return f"{value / _SCALE[metric]:.{2 if metric in ('throughput', 'loss_rate') else _DIGITS[metric]}f}"


def ours(line: Line, metric: str) -> tuple[str, str]:
    """Our mean, and half its interval; both empty where there is nothing to compare."""
    found = line.ours.get(metric)
    if found is None:
        return ("–" if metric in line.published else "", "")
    scale, digits = _SCALE[metric], _DIGITS[metric]
    half = None if found.half_width is None else found.half_width / scale
    shown = show_in(found.mean / scale, half, digits, signed=False)
    return shown.mean, shown.interval


def tables_text(paper: Paper, reading: Reading, columns: int | None = None) -> str:
    """All tables for a terminal, one after another for each mode, none wider than `columns`."""
    said = []
    for table in paper.tables:
        for mode in reading.modes:
            lines = lines_of(table, reading, mode)
            counts = {line.n for line in lines}
            preset = f", preset {reading.preset}" if reading.preset else ""
            n = f"n = {min(counts)}" if len(counts) == 1 else f"n = {min(counts)} to {max(counts)}"
            head = f"{table.title} beside ours ({mode}{preset}; {n}, ± half the 95 % interval)"
            rows: list[list[str]] = [
                ["", "", *(part for title in COLUMNS.values() for part in (title, ""))],
                ["", "", *(["paper", "ours"] * len(COLUMNS))],
            ]
            for line in lines:
                cells = [line.experiment, line.label]
                for metric in COLUMNS:
                    cells += [theirs(line, metric), " ".join(ours(line, metric)).rstrip()]
                rows.append(cells)
            kinds = f"ll{'r' * 2 * len(COLUMNS)}"
            laid = lay_out(rows, kinds, columns=columns, keys=2, together=2, indent=2)
            said.append("\n".join([head, *(text.plain for text in laid)]))
    return "\n\n".join(said)


def table_json(table: PaperTable, readings: Sequence[Reading]) -> dict[str, Any]:
    """A table with every preset's and mode's numbers; keys end in their unit."""
    names = {"throughput": "throughput_bps", "loss_rate": "loss_bps", "loss": "loss_percent", "jain": "jain"}

    def plain(metric: str, value: float) -> float:
        return json_value(value, METRICS[metric].dimension)[0]

    lines = []
    for index, line in enumerate(lines_of(table, readings[0], "")):
        measured = []
        for reading in readings:
            for mode in reading.modes:
                found = lines_of(table, reading, mode)[index]
                numbers = {
                    names[metric]: {
                        "mean": plain(metric, value.mean),
                        "interval": None
                        if value.low is None or value.high is None
                        else [plain(metric, value.low), plain(metric, value.high)],
                        "n": value.n,
                    }
                    for metric, value in found.ours.items()
                    if value is not None
                }
                measured.append({"preset": reading.preset or None, "mode": mode, **numbers})
        published = {names[metric]: plain(metric, value) for metric, value in line.published.items()}
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

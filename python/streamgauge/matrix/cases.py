"""A family of cases with media made as they are sent: its systems by their mean rank, case by case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.compare import say_value
from streamgauge.documents import write_whole
from streamgauge.matrix.judged import JudgedKind, JudgedMatrix
from streamgauge.report.page import render_page

__all__ = ["left_out", "mean_rank", "ranked", "render_cases", "write_cases"]

_MODE = {"sim": "simulated", "emu": "emulated"}


def mean_rank(block: JudgedKind, system: str) -> float | None:
    """Returns a system's rank, averaged over the measures that are known of it; None if none is."""
    ranks = [
        row.rank
        for measure in block.measures
        if (row := block.row(system, measure.name)) is not None and row.rank is not None
    ]
    return sum(ranks) / len(ranks) if ranks else None


def ranked(found: JudgedMatrix, block: JudgedKind) -> list[tuple[float, str]]:
    """Returns mean ranks and systems, the best first; equals in the file's order."""
    ranks = [(mean_rank(block, one.name), place, one.name) for place, one in enumerate(found.matrix.systems)]
    known = sorted((rank, place, name) for rank, place, name in ranks if rank is not None)
    return [(rank, name) for rank, _, name in known]


def left_out(found: JudgedMatrix) -> list[str]:
    """Returns a line for each reason against cells, with their number and the first of them."""
    cells: dict[str, list[str]] = {}
    for cell in found.matrix.cells:
        for mode, why in cell.refused.items():
            cells.setdefault(f"{_MODE[mode]}: {why}", []).append(cell.scenario.id)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}, {why}"
        for why, names in cells.items()
    ]


def write_cases(found: JudgedMatrix, out: Path) -> Path:
    """Writes the page; it appears whole or not at all."""
    return write_whole(out, render_cases(found))


def render_cases(found: JudgedMatrix) -> str:
    """Returns the page as text."""
    return render_page(
        "streamgauge.matrix",
        "cases.html.j2",
        question=found.matrix.question,
        trials=found.trials,
        cases=[_case(found, block) for block in (*found.overall, *found.kinds)],
        left_out=left_out(found),
        notes=found.notes,
    )


def _case(found: JudgedMatrix, block: JudgedKind) -> dict[str, Any]:
    rows = []
    for rank, system in ranked(found, block):
        values = [block.row(system, measure.name) for measure in block.measures]
        told = [("" if one is None else say_value(one), one is not None and one.rank == 1) for one in values]
        rows.append({"rank": f"{rank:.1f}", "system": found.label(system), "values": told})
    invalid = f", {block.invalid} invalid" if block.invalid else ""
    return {
        "slug": f"case-{block.kind.name}-{block.mode}".replace(".", "-"),
        "label": block.kind.label,
        "question": block.kind.question,
        "basis": f"{_MODE.get(block.mode, block.mode)}, n = {block.n}{invalid}",
        "heads": [measure.short for measure in block.measures],
        "rows": rows,
    }

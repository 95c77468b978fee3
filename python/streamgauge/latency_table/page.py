"""The table as a page of its own, or as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.documents import write_whole
from streamgauge.errors import ScenarioError
from streamgauge.latency_table.cells import CONFIDENCE, LatencyTable
from streamgauge.latency_table.figure import heat_map, interval_said, said, theory_said
from streamgauge.report.chart import save
from streamgauge.report.draw import FORMATS
from streamgauge.report.page import render_page

__all__ = ["check_file", "write_report"]


def check_file(file: Path, tables: int = 1) -> None:
    """Raises ScenarioError for a file of another kind than a page or, of one table, a figure."""
    known = (".html", *FORMATS) if tables == 1 else (".html",)
    if file.suffix not in known:
        of = f" for {tables} systems" if tables > 1 else ""
        raise ScenarioError(f"--report {file}: expected a name that ends in {', '.join(known)}{of}")


def write_report(found: Sequence[LatencyTable], file: Path) -> Path:
    """Writes the page of all tables, or by another suffix the first one's heat map alone.

    Raises:
        OSError: if the file cannot be written.
    """
    if file.suffix != ".html":
        return save(heat_map(found[0]), file)
    return write_whole(file, render(found))


def render(found: Sequence[LatencyTable]) -> str:
    """Returns the page as text."""
    drawn = [heat_map(table) for table in found]
    first = found[0]
    names = " and ".join(table.system for table in found)
    title = drawn[0].title if len(found) == 1 else drawn[0].title.replace(first.system, names, 1)
    return render_page(
        "streamgauge.latency_table",
        "latency_table.html.j2",
        title=title,
        caption=drawn[0].caption,
        maps=drawn,
        rtts=first.rtts,
        confidence=f"{100 * CONFIDENCE:g} %",
        rows=[row for loss in first.losses for row in _rows(found, loss)],
        has_theory=any(theory_said(cell) for table in found for cell in table.cells),
    )


def _rows(
    found: Sequence[LatencyTable], loss: str
) -> list[tuple[str, str, list[tuple[str, str, float | None]]]]:
    """Returns loss, name and cells of each table's row, and of the row of plain ARQ."""
    rows: list[tuple[str, str, list[tuple[str, str, float | None]]]] = []
    for table in found:
        cells = sorted(table.row(loss), key=lambda cell: table.rtts.index(cell.rtt))
        rows.append((loss, table.system, [(said(one), interval_said(one), one.round_trips) for one in cells]))
    theory = [
        theory_said(one) for one in sorted(found[0].row(loss), key=lambda one: found[0].rtts.index(one.rtt))
    ]
    if any(theory):
        rows.append((loss, "plain ARQ", [(text, "", None) for text in theory]))
    return rows

"""The table as a page of its own, or as a figure."""

from __future__ import annotations

from pathlib import Path

from streamgauge.documents import write_whole
from streamgauge.errors import ScenarioError
from streamgauge.latency_table.cells import CONFIDENCE, LatencyTable
from streamgauge.latency_table.figure import heat_map, interval_said, said
from streamgauge.report.chart import save
from streamgauge.report.draw import FORMATS
from streamgauge.report.page import render_page

__all__ = ["check_file", "write_report"]


def check_file(file: Path) -> None:
    """Raises ScenarioError for a file of another kind than a page or a figure."""
    known = (".html", *FORMATS)
    if file.suffix not in known:
        raise ScenarioError(f"--report {file}: expected a name that ends in {', '.join(known)}")


def write_report(found: LatencyTable, file: Path) -> Path:
    """Writes the page, or by another suffix the heat map alone.

    Raises:
        OSError: if the file cannot be written.
    """
    if file.suffix != ".html":
        return save(heat_map(found), file)
    return write_whole(file, render(found))


def render(found: LatencyTable) -> str:
    """Returns the page as text."""
    drawn = heat_map(found)
    return render_page(
        "streamgauge.latency_table",
        "latency_table.html.j2",
        title=drawn.title,
        caption=drawn.caption,
        map=drawn,
        rtts=found.rtts,
        confidence=f"{100 * CONFIDENCE:g} %",
        rows=[
            (
                loss,
                [
                    (said(cell), interval_said(cell), cell.round_trips)
                    for cell in sorted(found.row(loss), key=lambda cell: found.rtts.index(cell.rtt))
                ],
            )
            for loss in found.losses
        ],
    )

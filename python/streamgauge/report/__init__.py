"""The report: one self-contained page, its figures as SVG, PNG or PDF too, the answer in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from streamgauge.checks import CheckResult
from streamgauge.report.answer import answer_text
from streamgauge.report.build import build, write_figures
from streamgauge.report.chart import DrawnFigure, save
from streamgauge.report.families import table_text, tables
from streamgauge.report.figures import for_entry
from streamgauge.report.model import Entry, LoadedTrial, gather, load
from streamgauge.report.saving import Saving

__all__ = [
    "DrawnFigure",
    "Entry",
    "LoadedTrial",
    "Saving",
    "answer",
    "answer_of",
    "build",
    "for_entry",
    "gather",
    "load",
    "save",
    "write_figures",
    "write_report",
]


def write_report(directory: Path, out: Path, *, checks: Sequence[CheckResult] | None = None) -> Path:
    """Writes the report of every trial below `directory` to `out`; see `build`."""
    return build(directory, out, checks=checks)


def answer(source: Path | Iterable[LoadedTrial], *, checks: Sequence[CheckResult] | None = None) -> str:
    """Returns the answers in plain words, for a terminal: each question once, then a line a scenario.

    A paper's table with several rows that were run follows, beside ours.

    Raises:
        RecordError: if a folder is given that holds no trial.
    """
    return answer_of(gather(load(source) if isinstance(source, Path) else source, checks))


def answer_of(entries: Sequence[Entry], columns: int | None = None) -> str:
    """Returns `answer` from scenarios that were gathered already; tables have at most `columns` characters a
    line."""
    said = [table_text(table, columns=columns) for table in tables(entries)]
    return "\n\n".join([answer_text(entries), *said])

"""Every figure of a report as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.report.families import tables
from streamgauge.report.figures import for_entry
from streamgauge.report.model import Entry
from streamgauge.report.saving import Saving

__all__ = ["write_all"]


def write_all(entries: Sequence[Entry], folder: Path, formats: Sequence[str]) -> list[Path]:
    """Writes the figures of scenarios that were gathered already into a folder, ``ID.FORMAT``; a picture that
    is there already and would be the same is left.

    Args:
        formats: ``svg``, ``png``, ``pdf``, ``csv`` and ``py``; see `Saving.add`.

    Raises:
        OSError: if one cannot be written.
        CannotRunError: if a process that draws ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with Saving() as saving:
        for figure in (figure for entry in entries for figure in for_entry(entry)):
            saving.add(figure, [folder / f"{figure.id}.{name}" for name in formats])
        for table in tables(entries):
            saving.add(table.figure, [folder / f"{table.figure.id}.{name}" for name in formats])
        return saving.wait()

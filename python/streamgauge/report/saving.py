"""Many figures as files, drawn side by side on all cores, those that are there already left as they are."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from streamgauge.documents import write_whole
from streamgauge.processors import processors
from streamgauge.report.chart import DrawnFigure
from streamgauge.report.draw import FORMATS
from streamgauge.report.drawers import Drawers, digest, keep_drawn
from streamgauge.report.exports import WRITTEN, check_format, written

__all__ = ["Saving", "save_all"]

_INDEX = ".drawn.json"


class Saving:
    """Draws figures while its owner does something else.

    A picture of the same description in the folder, untouched since, is not drawn again. Drawings are kept as
    SVG for pages too (`streamgauge.report.drawers`).
    """

    def __init__(self, processes: int | None = None) -> None:
        self._drawers = Drawers(processes)
        self._waiting: list[Future[list[Path]]] = []
        self._indices: dict[Path, _Index] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        for future in self._waiting:
            future.cancel()
        self._drawers.__exit__(kind)

    def add(self, figure: DrawnFigure, files: Sequence[Path]) -> None:
        """Wants a figure as files of one folder, by their suffixes: a picture .svg, .png or .pdf, its data
        .csv, a program that draws it of these .py.

        Raises:
            ValueError: for another suffix.
        """
        for file in files:
            check_format(file)
            if file.parent not in self._indices:
                self._indices[file.parent] = _Index(file.parent)
        self._waiting.append(self._drawers.submit(partial(self._save, figure, list(files))))

    def _save(self, figure: DrawnFigure, files: list[Path]) -> list[Path]:
        for file in files:
            if file.suffix in WRITTEN:
                write_whole(file, written(figure, file.suffix))
        description = json.dumps(figure.vega_lite(), ensure_ascii=False)
        of = digest(description)
        pictures = {file.suffix: file for file in files if file.suffix in FORMATS}
        missing = {
            suffix: file for suffix, file in pictures.items() if not self._indices[file.parent].has(file, of)
        }
        if missing:
            svg = self._drawers.draw(description, missing, str(next(iter(missing.values()))))
            for file in missing.values():
                self._indices[file.parent].add(file, of)
            keep_drawn({of: svg})
        return files

    def wait(self, told: Callable[[int], None] | None = None) -> list[Path]:
        """Waits until all exist, and reports after each the number of finished ones; returns the files in
        their order.

        Raises:
            OSError: if a file cannot be written.
            CannotRunError: if a process that draws ends.
        """
        found: list[Path] = []
        for done, future in enumerate(self._waiting):
            if told is not None:
                told(done)
            found += future.result()
        for index in self._indices.values():
            index.write()
        return found


def save_all(figures: Sequence[DrawnFigure], folder: Path, formats: Sequence[str]) -> list[Path]:
    """Writes every figure of a report as a file of each format, ``svg``, ``png``, ``pdf``, ``csv`` or ``py``;
    see `Saving`."""
    with Saving(min(len(figures), processors()) or 1) as saving:
        for figure in figures:
            saving.add(figure, [folder / f"{figure.id}.{suffix}" for suffix in formats])
        return saving.wait()


class _Index:
    """Which description each figure of a folder was drawn from, and how the file was left."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _INDEX
        self._lock = threading.Lock()
        self._known: dict[str, list[Any]] = {}
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(self._file.read_text(encoding="utf-8"))
            self._known = known if isinstance(known, dict) else {}

    def has(self, file: Path, of: str) -> bool:
        try:
            return self._known.get(file.name) == _left(file, of)
        except OSError:
            return False

    def add(self, file: Path, of: str) -> None:
        with self._lock:
            self._known[file.name] = _left(file, of)

    def write(self) -> None:
        text = json.dumps(self._known, indent=1, sort_keys=True)
        write_whole(self._file, text)


def _left(file: Path, of: str) -> list[Any]:
    stat = file.stat()
    return [of, stat.st_size, stat.st_mtime_ns]

"""Many figures as files, drawn side by side on all cores, those that are there already left as they are."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from streamgauge.errors import CannotRunError
from streamgauge.report import draw
from streamgauge.report.chart import DrawnFigure, check_suffix

__all__ = ["Saving", "save_all"]

_INDEX = ".drawn.json"
_SCALE = 2.0


class Saving:
    """Draws figures while its owner does something else.

    Vega holds Python's lock while it draws, so each core has a process (`streamgauge.report.draw`). A file
    that a folder has already of the same description, untouched since, is not drawn again.
    """

    def __init__(self, processes: int | None = None) -> None:
        count = processes or _cores()
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="drawing")
        self._mine = threading.local()
        self._children: list[subprocess.Popen[str]] = []
        self._futures: list[Future[list[Path]]] = []
        self._indices: dict[Path, _Index] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        for future in self._futures:
            future.cancel()
        if kind is not None:
            for child in self._children:
                child.kill()
        self._threads.shutdown()
        for child in self._children:
            with contextlib.suppress(BrokenPipeError):
                child.communicate()

    def add(self, figure: DrawnFigure, files: Sequence[Path]) -> None:
        """Wants a figure as files of one folder, by their suffixes.

        Raises:
            ValueError: for another suffix than .svg, .png and .pdf.
        """
        for file in files:
            check_suffix(file)
            if file.parent not in self._indices:
                self._indices[file.parent] = _Index(file.parent)
        self._futures.append(self._threads.submit(self._save, figure, list(files)))

    def wait(self, told: Callable[[int], None] | None = None) -> list[Path]:
        """Waits until all are there, and says after each how many are; returns the files in their order.

        Raises:
            OSError: if a file cannot be written.
            CannotRunError: if a process that draws ends.
        """
        found: list[Path] = []
        for done, future in enumerate(self._futures):
            if told is not None:
                told(done)
            found += future.result()
        for index in self._indices.values():
            index.write()
        return found

    def _save(self, figure: DrawnFigure, files: list[Path]) -> list[Path]:
        description = json.dumps(figure.vega_lite(), ensure_ascii=False)
        of = _digest(description)
        missing = {file.suffix: file for file in files if not self._indices[file.parent].has(file, of)}
        if missing:
            self._ask(description, missing)
            for file in missing.values():
                self._indices[file.parent].add(file, of)
        return files

    def _ask(self, description: str, files: dict[str, Path]) -> None:
        child = self._child()
        assert child.stdin is not None and child.stdout is not None
        names = {suffix: str(file) for suffix, file in files.items()}
        asked = {"description": description, "files": names, "scale": _SCALE}
        try:
            child.stdin.write(json.dumps(asked) + "\n")
            child.stdin.flush()
        except BrokenPipeError:
            said = ""
        else:
            said = child.stdout.readline()
        if not said:
            status = child.wait()
            raise CannotRunError(
                f"the process that draws figures ended with status {status} at {next(iter(files.values()))}; "
                "free some memory and run the same command again, which draws what is missing."
            )
        answer: dict[str, Any] = json.loads(said)
        if "refused" in answer:
            raise ValueError(answer["refused"])
        if "errno" in answer:
            raise OSError(answer["errno"], answer["strerror"], answer["file"])

    def _child(self) -> subprocess.Popen[str]:
        """This thread's own."""
        if not hasattr(self._mine, "child"):
            # Not by multiprocessing, which would run the program that we are once more.
            self._mine.child = subprocess.Popen(
                [sys.executable, "-P", draw.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            self._children.append(self._mine.child)
        child: subprocess.Popen[str] = self._mine.child
        return child


def save_all(figures: Sequence[DrawnFigure], folder: Path, formats: Sequence[str]) -> list[Path]:
    """Writes every figure of a report as a file of each format, ``svg``, ``png`` or ``pdf``; see `Saving`."""
    with Saving(min(len(figures), _cores()) or 1) as saving:
        for figure in figures:
            saving.add(figure, [folder / f"{figure.id}.{suffix}" for suffix in formats])
        return saving.wait()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _digest(description: str) -> str:
    """Of all that decides what a file shows."""
    return hashlib.blake2b((_drawn_by() + description).encode(), digest_size=16).hexdigest()


@functools.cache
def _drawn_by() -> str:
    return f"{version('vl-convert-python')} {_SCALE} {Path(draw.__file__).read_text(encoding='utf-8')}"


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
        partial = self._file.with_name(f"{_INDEX}.{os.getpid()}")
        partial.write_text(text, encoding="utf-8")
        partial.replace(self._file)


def _left(file: Path, of: str) -> list[Any]:
    stat = file.stat()
    return [of, stat.st_size, stat.st_mtime_ns]

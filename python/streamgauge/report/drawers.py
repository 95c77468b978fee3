"""Processes that draw side by side on all cores, and earlier drawings, kept in the user's cache."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from streamgauge.errors import CannotRunError
from streamgauge.media.sources import cache_folder
from streamgauge.processors import processors
from streamgauge.report import draw

__all__ = ["SCALE", "Drawers", "digest", "drawn_before", "keep_drawn"]

Result = TypeVar("Result")

SCALE = 2.0
"""Pixels of a PNG for each of CSS."""
_UNLIMITED = "ulimit -v unlimited"
_MOST_BYTES = 256 * 2**20
"""Size of the cache; beyond that half is left, the most recently used."""


class Drawers:
    """Draws while its owner does something else.

    Vega holds Python's lock while it draws, so each core has a process (`streamgauge.report.draw`).
    """

    def __init__(self, processes: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(processes or processors(), thread_name_prefix="drawing")
        self._mine = threading.local()
        self._children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if kind is not None:
            for child in self._children:
                child.kill()
        self._threads.shutdown(cancel_futures=kind is not None)
        for child in self._children:
            with contextlib.suppress(BrokenPipeError):
                child.communicate()

    def submit(self, task: Callable[[], Result]) -> Future[Result]:
        """Runs something that calls `draw`, in one of as many threads as there are processes."""
        return self._threads.submit(task)

    def draw(self, description: str, files: Mapping[str, Path], of: str) -> str:
        """Draws a Vega-Lite description as files, by their suffixes, and returns it as SVG; `of` names it in
        errors.

        Raises:
            OSError: if a file cannot be written.
            ValueError: if Vega refuses the description.
            CannotRunError: if the process that draws ends.
        """
        child = self._child()
        assert child.stdin is not None and child.stdout is not None
        names = {suffix: str(file) for suffix, file in files.items()}
        try:
            child.stdin.write(json.dumps({"description": description, "files": names, "scale": SCALE}) + "\n")
            child.stdin.flush()
        except BrokenPipeError:
            said = ""
        else:
            said = child.stdout.readline()
        if not said:
            status = child.wait()
            remedy = f"raise it ({_UNLIMITED})" if (limit := _address_space()) else "free some memory"
            why = (
                f": V8 reserves more address space than the limit of {limit / 1e6:.0f} MB allows"
                if limit
                else ""
            )
            raise CannotRunError(
                f"the process that draws figures ended with status {status} at {of}{why}. "
                f"To draw the rest, {remedy} and run the same command again."
            )
        answer: dict[str, Any] = json.loads(said)
        if "refused" in answer:
            raise ValueError(answer["refused"])
        if "errno" in answer:
            raise OSError(answer["errno"], answer["strerror"], answer["file"])
        return str(answer["svg"])

    def _child(self) -> subprocess.Popen[str]:
        """This thread's own."""
        if not hasattr(self._mine, "child"):
            # Not by multiprocessing, which would run the program that we are once more.
            self._mine.child = subprocess.Popen(
                [sys.executable, "-P", draw.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Under such a limit V8 writes a trace of its stack, and the cause is known.
                stderr=subprocess.DEVNULL if _address_space() else None,
                encoding="utf-8",
                errors="replace",
            )
            self._children.append(self._mine.child)
        child: subprocess.Popen[str] = self._mine.child
        return child


def _address_space() -> int:
    """Returns the limit of this process's address space, B; 0 if there is none."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return 0
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return 0 if limit == resource.RLIM_INFINITY else limit


def digest(description: str) -> str:
    """Returns the digest of all that decides a picture's content."""
    return hashlib.blake2b((_drawn_by() + description).encode(), digest_size=16).hexdigest()


@functools.cache
def _drawn_by() -> str:
    return f"{version('vl-convert-python')} {SCALE} {Path(draw.__file__).read_text(encoding='utf-8')}"


def _kept() -> Path:
    return cache_folder() / "figures"


def drawn_before(of: str) -> str | None:
    """Returns the SVG of this `digest`, if it was drawn before and is still kept."""
    file = _kept() / f"{of}.svg"
    try:
        svg = file.read_text(encoding="utf-8")
        # The least recently used files are deleted first.
        os.utime(file)
    except (OSError, UnicodeDecodeError):
        return None
    return svg if svg.startswith("<svg") and svg.endswith("</svg>") else None


def keep_drawn(drawn: Mapping[str, str]) -> None:
    """Keeps SVG by `digest`. A cache that cannot be written costs time, and nothing else."""
    with contextlib.suppress(OSError):
        _kept().mkdir(parents=True, exist_ok=True)
        for of, svg in drawn.items():
            partial = _kept() / f".{of}.{os.getpid()}"
            partial.write_text(svg, encoding="utf-8")
            partial.replace(_kept() / f"{of}.svg")
        _prune()


def _prune() -> None:
    files = sorted(
        ((found.stat(), found) for found in _kept().glob("*.svg")), key=lambda one: one[0].st_mtime
    )
    total = sum(stat.st_size for stat, _ in files)
    if total > _MOST_BYTES:
        for stat, file in files:
            if total <= _MOST_BYTES / 2:
                break
            file.unlink(missing_ok=True)
            total -= stat.st_size

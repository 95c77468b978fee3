"""Progress on stderr, with the time left, for anything that takes more than a second."""

from __future__ import annotations

import re
import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from streamgauge.campaign import Progress as Told

__all__ = ["Bar", "clock"]

_QUIET_S = 1.0
_LINE_EVERY_S = 15.0
_NUMBERS = re.compile(r"[\d.]+")


def _so_far(told: Told) -> str:
    """``26 a second, 3 invalid``; empty if there is nothing of that to tell."""
    said = []
    if told.rate is not None and told.rate >= 1:
        said.append(f"{told.rate:.0f} a second")
    elif told.rate is not None:
        said.append(f"{1 / told.rate:.0f} s each")
    if told.invalid:
        said.append(f"{told.invalid} invalid")
    return ", ".join(said)


def clock(seconds: float | None) -> str:
    """``1:05 left``."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} left"


class Bar:
    """A bar on a terminal, a line now and then where there is none. `of` is what is counted."""

    def __init__(self, of: str = "trials") -> None:
        self._of = of
        self._console = Console(stderr=True)
        self._began = time.monotonic()
        self._said = self._began
        self._words = ""
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def count(self, done: int, total: int) -> None:
        """Shows that so many are done, of which each takes as long as another."""
        spent = time.monotonic() - self._began
        self.update(Told(done, total, spent / done * (total - done), ""))

    def update(self, told: Told) -> None:
        """Shows how far it is."""
        now = time.monotonic()
        if now - self._began < _QUIET_S and (told.left_s or 0) < _QUIET_S:
            return
        if not self._console.is_terminal:
            words = _NUMBERS.sub("", told.now)
            if now - self._said >= _LINE_EVERY_S or (told.done == 0 and words != self._words):
                self._said, self._words = now, words
                parts = (f"{told.done}/{told.total} {self._of}", _so_far(told), clock(told.left_s))
                print(f"{', '.join(filter(None, parts))} {told.now}".rstrip(), file=sys.stderr, flush=True)
            return
        if self._bar is None:
            self._bar = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[so_far]}"),
                TextColumn("{task.fields[left]}"),
                TextColumn("{task.description}"),
                console=self._console,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=told.total, so_far="", left="")
        assert self._task is not None
        # Of several at once, a line each.
        words = "\n".join(told.running) if len(told.running) > 1 else told.now
        self._bar.update(
            self._task,
            completed=told.done,
            total=told.total,
            description=words,
            so_far=_so_far(told),
            left=clock(told.left_s),
        )

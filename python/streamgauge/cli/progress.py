"""Progress on stderr, with the time left, for anything that takes more than a second."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from streamgauge.campaign import Progress as Told
from streamgauge.terminal import tell

__all__ = ["BAR", "Bar", "BarWithWords", "Log", "clock"]

_QUIET_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 15.0, 300.0
"""Without a terminal: the pause between lines while nothing happens, at first and at most."""
_TENTH_S = 5.0
"""Time below which finished tenths are not printed."""
BAR = 30
"""Columns of the bar itself."""
_NUMBERS = re.compile(r"[\d.:]+")


class Log:
    """Events that deserve a line in a file: the first, each new wait, a finished tenth, and the progress
    after ever longer pauses. No line is printed twice."""

    def __init__(self) -> None:
        self._said_at: float | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._share = 0.0
        self._kinds: set[str] = set()
        self._lines: set[str] = set()

    def tell(self, line: str, *, words: str = "", share: float = 0.0) -> None:
        """Prints `line` if it is worth it.

        Args:
            line: the printed line.
            words: the part that makes it new, unless printed before, but for the numbers in it.
            share: the finished share, 0 to 1.
        """
        now = time.monotonic()
        since = float("inf") if self._said_at is None else now - self._said_at
        kind = _NUMBERS.sub("", words)
        tenth = math.floor(10 * share) > math.floor(10 * self._share) and since >= _TENTH_S
        if line in self._lines or not (
            since >= self._pause_s or tenth or (words and kind not in self._kinds)
        ):
            return
        if since < float("inf") and since >= self._pause_s:
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self._said_at, self._share = now, share
        self._kinds.add(kind)
        self._lines.add(line)
        tell(line, sys.stderr)


def _so_far(told: Told) -> str:
    """Returns ``26 a second, 3 invalid``; empty if there is neither."""
    said = []
    if told.rate is not None and told.rate >= 1:
        said.append(f"{told.rate:.0f} a second")
    elif told.rate is not None:
        said.append(f"{1 / told.rate:.0f} s each")
    if told.invalid:
        said.append(f"{told.invalid} invalid")
    return ", ".join(said)


def clock(seconds: float | None) -> str:
    """Returns ``1:05 left``."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} left"


class BarWithWords(Progress):
    """A bar that puts its words below it where beside it there is no room."""

    def show(self, task: TaskID, words: str, **fields: Any) -> None:
        """Updates a task: its words, and the values of its other columns."""
        beside = [part for part in fields.values() if isinstance(part, str) and part]
        total = fields.get("total") or ""
        length = BAR + len(f" {total}/{total} {' '.join(beside)} {words}")
        below = length > self.console.width or "\n" in words
        self.update(task, description="" if below else escape(words), below=words if below else "", **fields)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yields the bar, and the lines below."""
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if task.fields.get("below"):
                yield Text(task.fields["below"])


class Bar:
    """A bar on a terminal, a line now and then where there is none. `of` is the counted unit."""

    def __init__(self, of: str = "trials") -> None:
        self._of = of
        self._console = Console(stderr=True)
        self._began = time.monotonic()
        self._log = Log()
        self._bar: BarWithWords | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def count(self, done: int, total: int) -> None:
        """Shows the number of finished items, each of which takes as long as another."""
        spent = time.monotonic() - self._began
        self.update(Told(done, total, spent / done * (total - done), ""))

    def update(self, told: Told) -> None:
        """Shows how far it is."""
        now = time.monotonic()
        if now - self._began < _QUIET_S and (told.left_s or 0) < _QUIET_S and not told.waits:
            return
        if not sys.stderr.isatty():
            if told.done < told.total:
                self._log_line(told)
            return
        if self._bar is None:
            self._bar = BarWithWords(
                BarColumn(BAR),
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
        # For several at once, a line each.
        words = "\n".join(told.running) if len(told.running) > 1 else told.now
        left = clock(told.left_s)
        self._bar.show(
            self._task, words, completed=told.done, total=told.total, so_far=_so_far(told), left=left
        )

    def _log_line(self, told: Told) -> None:
        """Waits are printed at once, as are events before the first is finished."""
        counted = f"{told.done}/{told.total} {self._of}"
        parts = ", ".join(filter(None, (counted, _so_far(told), clock(told.left_s))))
        # For a single one under way, its name and its progress.
        words = told.running[0] if len(told.running) == 1 and not told.waits else told.now
        news = told.now if told.waits or not told.done else ""
        share = told.done / told.total if told.total else 0.0
        self._log.tell(f"{parts}: {words}" if words else parts, words=news, share=share)

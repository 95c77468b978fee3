"""How far a campaign is: below a notebook's cell, or on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from streamgauge.campaign import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = ["ProgressBar", "words_of"]

_QUIET_S = 1.0
"""Time below which no bar appears."""
_EVERY_S = 0.2
"""A notebook keeps each update in its file while it runs, so they are not too many."""


def words_of(told: Progress) -> str:
    """Returns ``12 of 40 trials, 1 invalid, 0:35 left``."""
    said = [f"{told.done} of {told.total} trial{'' if told.total == 1 else 's'}"]
    if told.invalid:
        said.append(f"{told.invalid} invalid")
    if told.left_s is not None:
        minutes, seconds = divmod(round(told.left_s), 60)
        said.append(f"{minutes}:{seconds:02d} left")
    return ", ".join(said)


class ProgressBar:
    """Shows progress until it ends, and then takes it away.

    Args:
        progress: True shows it, False does not; a function is called with each `campaign.Progress` instead.
    """

    def __init__(self, progress: bool | Callable[[Progress], None]) -> None:
        self._told = progress if callable(progress) else None
        self._show = self._shown() if progress is True else None
        self._began = self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._show is not None:
            self._show.end()

    def update(self, told: Progress) -> None:
        """Shows the campaign's progress."""
        if self._told is not None:
            self._told(told)
        now = time.monotonic()
        soon = now - self._began < _QUIET_S and (told.left_s or 0) < _QUIET_S
        if self._show is None or soon or (now - self._said < _EVERY_S and told.done < told.total):
            return
        self._said = now
        self._show.update(told)

    @staticmethod
    def _shown() -> _Cell | _Terminal | None:
        """Returns the place where a user sees it; None if there is none."""
        if (display := _display()) is not None:
            return _Cell(display)
        return _Terminal() if sys.stderr.isatty() else None


def _display() -> Any:
    """Returns IPython's `display`, if a notebook's kernel runs us. A running kernel has imported it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if getattr(shell, "kernel", None) is None else sys.modules["IPython.display"].display


class _Cell:
    """A bar below a notebook's cell: plain HTML, which needs no widgets."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def update(self, told: Progress) -> None:
        words, now = words_of(told), told.now or ""
        html = (
            f'<progress value="{told.done}" max="{max(1, told.total)}" '
            f'style="vertical-align:middle;width:16em"></progress> '
            f'{escape(words)} <span style="opacity:.65">{escape(now)}</span>'
        )
        self._put({"text/html": html, "text/plain": f"{words} {now}".rstrip()})

    def _put(self, data: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def end(self) -> None:
        if self._handle is not None:
            self._put({"text/html": "", "text/plain": ""})


class _Terminal:
    """A bar on a terminal."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def update(self, told: Progress) -> None:
        if self._bar is None or self._task is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True), transient=True
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=told.total)
        self._bar.update(self._task, completed=told.done, total=told.total, description=words_of(told))

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()

"""A session in the terminal: a line a direction, redrawn as samples come."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live as Redrawn
from rich.table import Table
from rich.text import Text

from streamgauge.claims.dimension import plain
from streamgauge.live.session import LiveSession

__all__ = ["Sparklines", "rows_of", "spark"]

BARS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
LONGEST = 60
"""Points of a line; of a minute and more each is the most of several samples."""
ROWS = (
    ("rate", "delivered_bps", 1e-3, "kbit/s"),
    ("queue", "queue_s", 1e3, "ms"),
    ("delay p95", "delay_p95_s", 1e3, "ms"),
    ("lost", "lost", 1, "packets"),
)


def spark(values: Sequence[float | None], points: int) -> str:
    """Returns the last values as bars of eight heights, the highest of them full; a gap where there is
    none."""
    chosen = values[-points:]
    top = max((value for value in chosen if value is not None), default=0.0)
    return "".join(_bar(value, top) for value in chosen)


def _bar(value: float | None, top: float) -> str:
    if value is None or value <= 0 or top <= 0:
        return BARS[0] if value is None else BARS[1]
    return BARS[1 + round((len(BARS) - 2) * value / top)]


def rows_of(samples: Sequence[dict[str, Any]], points: int) -> list[tuple[str, str, str]]:
    """Name, bars and the last value of each line."""
    found = []
    for direction in ("down", "up"):
        for name, key, scale, unit in ROWS:
            values = [None if one[direction][key] is None else scale * one[direction][key] for one in samples]
            last = next((value for value in reversed(values) if value is not None), None)
            said = "-" if last is None else f"{plain(last, 3)} {unit}"
            found.append((f"{direction} {name}", spark(values, points), said))
    return found


class Sparklines:
    """Draws a session on a stream that is a terminal; elsewhere a line a second, for a log."""

    def __init__(self, session: LiveSession, stream: TextIO) -> None:
        self._session = session
        self._console = Console(file=stream)
        self._redrawn: Redrawn | None = None
        self._lock = threading.Lock()
        self._drawn_s = -1.0

    def __enter__(self) -> Sparklines:
        if self._console.is_terminal:
            self._redrawn = Redrawn(console=self._console, refresh_per_second=10, transient=False)
            self._redrawn.start()
        self._session.listen(self._take)
        return self

    def __exit__(self, *_: object) -> None:
        self._session.forget(self._take)
        if self._redrawn is not None:
            self._redrawn.stop()

    def _take(self, sample: dict[str, Any]) -> None:
        with self._lock:
            if self._redrawn is not None:
                self._redrawn.update(self._table(sample))
            elif sample["t_s"] - self._drawn_s >= 1 or sample["ended"]:
                self._drawn_s = sample["t_s"]
                self._console.print(self._line(sample), highlight=False, soft_wrap=True)

    def _line(self, sample: dict[str, Any]) -> str:
        parts = [f"live: {plain(sample['t_s'], 4)} s"]
        for direction in ("down", "up"):
            way = sample[direction]
            parts.append(
                f"{direction} {plain(way['delivered_bps'] / 1e3, 3)} kbit/s, "
                f"{plain(1e3 * way['queue_s'], 3)} ms queued, {way['lost']} lost"
            )
        return "; ".join([*parts, sample["verdict"]])

    def _table(self, sample: dict[str, Any]) -> Table:
        points = max(10, min(LONGEST, self._console.width - 34))
        table = Table.grid(padding=(0, 1))
        for name, bars, value in rows_of(list(self._session.samples)[-points:], points):
            table.add_row(Text(name), Text(bars, style="cyan"), Text(value, justify="right"))
        table.add_row(Text(f"{plain(sample['t_s'], 4)} s"), Text(sample["verdict"], style="bold"), Text(""))
        return table

"""A session shown for as long as a block lasts: on a page, or in the terminal."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from streamgauge.live.server import LiveServer, needs_extra
from streamgauge.live.session import LiveSession

__all__ = ["LiveAsked", "check", "shown"]


@dataclass(frozen=True)
class LiveAsked:
    """How a trial is to be shown."""

    how: Literal["page", "terminal"] = "page"
    port: int = 0
    """Port of the page; 0 picks a free one."""
    pace: float = 1.0
    """Speed of sim: seconds of the trial in a second."""


def check(asked: LiveAsked) -> None:
    """Raises StreamGaugeError for trials that cannot be shown, before anything starts."""
    if asked.how == "page":
        needs_extra()


@contextmanager
def shown(session: LiveSession, asked: LiveAsked, say: Callable[[str], None]) -> Iterator[None]:
    """Shows the session; the line ``live: URL`` is printed on stderr."""
    if asked.how == "terminal":
        from streamgauge.live.sparklines import Sparklines

        with Sparklines(session, sys.stderr):
            yield
        return
    server = LiveServer(session, asked.port)
    server.start()
    print(f"live: {server.url}", file=sys.stderr, flush=True)
    _open(server.url, say)
    try:
        yield
    finally:
        server.stop()


def _open(url: str, say: Callable[[str], None]) -> None:
    """Opens the page where there is a screen to open it on."""
    has_screen = (
        os.uname().sysname == "Darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    try:
        opened = bool(has_screen) and webbrowser.open(url)
    except webbrowser.Error:
        opened = False
    if not opened:
        say("no browser was opened; open the address of the line 'live: ...' in one")

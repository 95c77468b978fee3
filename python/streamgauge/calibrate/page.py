"""A live page that is open while a pass is measured: its server, and a reader of its stream."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit

from streamgauge.emu.errors import TrialBrokenError
from streamgauge.live.beginning import session_for
from streamgauge.live.server import LiveServer

__all__ = ["OpenPage"]

PATIENCE_S = 10


class OpenPage:
    """Shows a plan's trial to a reader that takes every sample, as a browser does."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        title = str(plan["scenario"])
        self._session = session_for(
            plan, title=title, mode="emu", scenario=lambda _changes, _until: "", say=lambda _line: None
        )
        self._server = LiveServer(self._session)
        self._reader = threading.Thread(target=self._read, name="reader", daemon=True)
        self._reading = threading.Event()
        self.samples = 0
        """Samples that the reader has taken."""

    @property
    def descriptor(self) -> int:
        """Returns the emulator's end of the socket."""
        return self._session.theirs.fileno()

    def __enter__(self) -> Self:
        self._server.start()
        self._reader.start()
        if not self._reading.wait(PATIENCE_S):
            raise TrialBrokenError("the live page does not answer; run the calibration again.")
        return self

    def listen(self) -> None:
        """Takes samples, once the emulator has its end."""
        self._session.theirs.close()
        self._session.start()

    def __exit__(self, *_: object) -> None:
        self._session.ended.wait(timeout=1)
        self._server.stop()
        self._session.close()
        self._reader.join(timeout=PATIENCE_S)

    def _read(self) -> None:
        place = urlsplit(self._server.url)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE_S)
        # The server may end first.
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", f"/events?{place.query}")
            name = b""
            for line in connection.getresponse():
                # Its first event: the page is open.
                self._reading.set()
                if line.startswith(b"event: "):
                    name = line
                elif line.startswith(b"data: "):
                    self.samples += not name
                    name = b""
        connection.close()

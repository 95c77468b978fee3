"""A client of the page's server, in the standard library alone, and a command that is shown."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PATIENCE_S = 120


class Shown:
    """A command that runs with ``--live``."""

    def __init__(self, arguments: list[str], **more: Any) -> None:
        command = [sys.executable, "-m", "streamgauge", *arguments]
        self.popen = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            **more,
        )
        self.said: list[str] = []
        self._url = threading.Event()
        self.url = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._out = threading.Thread(target=self._drain, daemon=True)
        self._out.start()
        assert self._url.wait(PATIENCE_S), "\n".join(self.said)
        assert self.url, "\n".join(self.said)

    def _read(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self.said.append(line.rstrip("\n"))
            if line.startswith("live: http"):
                self.url = line.removeprefix("live: ").strip()
                self._url.set()
        self._url.set()

    def _drain(self) -> None:
        assert self.popen.stdout is not None
        self.popen.stdout.read()

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def request(
        self, method: str, path: str, body: str | None = None, *, token: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and what was answered."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            asked = f"{path}?token={self.token if token is None else token}"
            connection.request(method, asked, body, {key.title(): value for key, value in headers.items()})
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = "json" in (answer.getheader("content-type") or "")
            return answer.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def change(self, **settings: str) -> tuple[int, Any]:
        """Asks for ``down_rate="500 kbit/s"``."""
        said = {key.replace("_", ".", 1): value for key, value in settings.items()}
        return self.request("POST", "/change", json.dumps(said))

    def events(self) -> Iterator[tuple[str, Any]]:
        """Name and data of each event, until the stream ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", f"/events?token={self.token}")
            answer = connection.getresponse()
            assert answer.status == 200
            name = "message"
            for raw in answer:
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))
                    name = "message"
        finally:
            connection.close()

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        status = self.popen.wait(timeout=PATIENCE_S)
        self._reader.join(timeout=10)
        return status


@contextmanager
def shown(arguments: list[str], **more: Any) -> Iterator[Shown]:
    environment = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    found = Shown(arguments, env=environment, **more)
    try:
        yield found
    finally:
        if found.popen.poll() is None:
            found.popen.kill()
            found.popen.wait()


def left(runs: Path) -> tuple[Path, Path]:
    """The record and the scenario that a shown trial left in a folder."""
    (trial,) = runs.glob("live/scenario=*/mode=*/seed=*/trial.json")
    return trial.parent, trial.parent.parent / f"{trial.parent.name}.yaml"

"""Our player by names, and ndnd's forwarder."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import pytest
from streamgauge.emu.engine import engine

NDND = """core:
  log_level: ERROR
  log_file: LOG
faces:
  udp: {enabled_unicast: true, port_unicast: PORT, enabled_multicast: false}
  tcp: {enabled: true, port_unicast: PORT}
  unix: {enabled: true, socket_path: SOCKET}
  websocket: {enabled: false}
  http3: {enabled: false}
"""


def play(url: str, *options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [str(engine()), "play", "--json", *options, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def report(url: str, *options: str) -> dict[str, Any]:
    """What our player says of a URL."""
    found: dict[str, Any] = json.loads(play(url, *options).stdout.splitlines()[-1])
    return found


class Ndnd:
    """`ndnd fw run`, with faces over TCP and UDP; the test is left out where there is no ndnd."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("ndnd")
        if program is None:
            pytest.skip("ndnd is not here")
        self.program = program
        with socket.socket() as unused, socket.socket(type=socket.SOCK_DGRAM) as same:
            unused.bind(("127.0.0.1", 0))
            self.port = unused.getsockname()[1]
            same.bind(("127.0.0.1", self.port))
        path, self.settings, log = folder / "nfd.sock", folder / "ndnd.yml", folder / "ndnd.log"
        text = NDND.replace("PORT", str(self.port)).replace("SOCKET", str(path)).replace("LOG", str(log))
        self.settings.write_text(text)
        self.socket = path
        self.environment = {**os.environ, "NDN_CLIENT_TRANSPORT": f"unix://{path}"}

    def __enter__(self) -> Self:
        self.running = subprocess.Popen([self.program, "fw", "run", str(self.settings)])
        until = time.monotonic() + 20
        while not self.socket.exists() and time.monotonic() < until:
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self.running.terminate()
        self.running.wait(20)

    def run(self, *command: str) -> None:
        """A command of ndnd's to it."""
        subprocess.run(
            [self.program, *command],
            env=self.environment,
            check=True,
            timeout=20,
            stdout=subprocess.DEVNULL,
        )

    def put(self, name: str, content: Path) -> subprocess.Popen[bytes]:
        """`ndnd put` of a file, which goes on until it is ended."""
        with content.open("rb") as given:
            return subprocess.Popen(
                [self.program, "put", name],
                env=self.environment,
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

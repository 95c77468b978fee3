"""Our player by names, ndnd's forwarder, and a producer of python-ndn's packets."""

from __future__ import annotations

import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from streamgauge.emu.engine import engine

SEGMENT_BYTES = 4096
"""Content of a Data packet of `PythonProducer`."""

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


def ndnd() -> str | None:
    """Where it is: beside this Python, where `make setup-ndnd` puts it, or on the PATH."""
    return shutil.which("ndnd", path=Path(sys.executable).parent) or shutil.which("ndnd")


class Ndnd:
    """`ndnd fw run`, with faces over TCP and UDP; the test is left out where there is no ndnd."""

    def __init__(self, folder: Path) -> None:
        program = ndnd()
        if program is None:
            pytest.skip("ndnd is not here (make setup-ndnd)")
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


def files(folder: Path) -> dict[str, Path]:
    """By name below the folder."""
    return {str(one.relative_to(folder)): one for one in sorted(folder.rglob("*")) if one.is_file()}


def manifest(folder: Path) -> str:
    (found,) = (name for name in files(folder) if name.endswith(".mpd"))
    return found


class PythonProducer(socketserver.BaseRequestHandler):
    """Answers Interests for segments of files; packets are read and written by python-ndn."""

    folder: Path

    def handle(self) -> None:
        from ndn import encoding as enc

        content = {name: path.read_bytes() for name, path in files(self.folder).items()}
        waiting = b""
        while more := self.request.recv(65536):
            waiting += more
            while len(waiting) > 4:
                kind, begin = enc.parse_tl_num(waiting)
                length, width = enc.parse_tl_num(waiting, begin)
                end = begin + width + length
                if len(waiting) < end:
                    break
                packet, waiting = waiting[:end], waiting[end:]
                # An NDNLPv2 packet has the Interest for its fragment.
                bare = packet if kind == enc.TypeNumber.INTEREST else bytes(enc.parse_lp_packet(packet)[1])
                self.answer(enc, content, bare)

    def answer(self, enc: Any, content: dict[str, bytes], interest: bytes) -> None:
        from ndn.security import DigestSha256Signer

        name, *_ = enc.parse_interest(interest)
        *path, last = name
        version = enc.Component.from_version(1)
        if enc.Component.to_str(last) == "32=metadata":
            # Its version, and nothing of its size: as ndnd's producer tells it.
            told = enc.MetaInfo(freshness_period=10)
            found = [*name, version, enc.Component.from_segment(0)]
            versioned = enc.Name.encode([*path, version])
            self.request.sendall(bytes(enc.make_data(found, told, versioned, DigestSha256Signer())))
            return
        parts = [bytes(enc.Component.get_value(one)).decode() for one in path[1:] if one != version]
        known = content.get("/".join(parts))
        if known is None or enc.Component.get_type(last) != enc.Component.TYPE_SEGMENT:
            return
        number = enc.Component.to_number(last)
        final = enc.Component.from_segment((len(known) - 1) // SEGMENT_BYTES)
        part = known[number * SEGMENT_BYTES : (number + 1) * SEGMENT_BYTES]
        told = enc.MetaInfo(freshness_period=1000, final_block_id=final)
        self.request.sendall(bytes(enc.make_data(name, told, part, DigestSha256Signer())))


@contextmanager
def producing(handler: type[PythonProducer], files_of: Path) -> Iterator[int]:
    """Such a producer of a folder's files, at a port."""
    with_files = type(handler.__name__, (handler,), {"folder": files_of})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), with_files) as server:
        server.daemon_threads = True
        # It looks so often whether it is to end.
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()

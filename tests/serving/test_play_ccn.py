"""Our player and consumer with other people's NDN producers."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import put_ladder
from play_ndn import Ndnd, report
from starved import again_if_starved

pytestmark = pytest.mark.emu

SECONDS = 4
FRAMES = 25 * SECONDS
SEGMENT_BYTES = 4096


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ladder as ffmpeg packaged it: files that anybody may have as named content."""
    folder = tmp_path_factory.mktemp("packaged")
    put_ladder(folder, "ladder", SECONDS)
    return folder / "packaged"


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


@pytest.fixture
def python_producer(packaged: Path) -> Iterator[int]:
    """Its port."""
    pytest.importorskip("ndn", reason="python-ndn is not here")

    class Handler(PythonProducer):
        folder = packaged

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize("metadata", ["true", "false"])
@again_if_starved
def test_our_player_plays_what_python_ndn_produces(
    python_producer: int, packaged: Path, metadata: str
) -> None:
    address = f"ndn://127.0.0.1:{python_producer}/clip/{manifest(packaged)}"
    said = report(address, f"--set=metadata={metadata}")
    assert said["frames_shown"] == FRAMES and said["interests_expired"] == 0, said


@again_if_starved
def test_our_player_plays_what_ndnd_puts(tmp_path: Path, packaged: Path) -> None:
    with Ndnd(tmp_path) as ndnd:
        running = [ndnd.put(f"/clip/{name}", path) for name, path in files(packaged).items()]
        try:
            wait_for(ndnd.port)
            said = report(f"ndn://127.0.0.1:{ndnd.port}/clip/{manifest(packaged)}")
        finally:
            for one in running:
                one.terminate()
            for one in running:
                one.wait(20)
    assert said["frames_shown"] == FRAMES, said
    assert said["interests"] > 10


def wait_for(port: int) -> None:
    """Until the forwarder takes connections, and producers have told it their names."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    time.sleep(2)

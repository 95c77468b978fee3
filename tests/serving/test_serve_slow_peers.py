"""Peers that ask slowly, take slowly, or never ask: everybody else is served."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from conftest import Server
from starved import again_if_starved

HTTP = b"GET /%s HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n"
NSPLAYER = b"GET /h264.mp4 HTTP/1.1\r\nHost: x\r\nUser-Agent: NSPlayer/7.10.0.3059\r\n\r\n"
MMS_SESSION = bytes.fromhex("cefa0bb0")


def mms_connect() -> bytes:
    """The first message of a client of MMS over TCP ([MS-MMSP] section 2.2.4.2)."""
    name = "NSPlayer/7.0.0.1956\0".encode("utf-16-le")
    name += bytes(-len(name) % 8)
    body = struct.pack("<IIII", 0, 0x0004000B, 0x0003001C, 0)[:16] + name
    body += bytes(-len(body) % 8)
    message = struct.pack("<II", (8 + len(body)) // 8, 0x00030001) + body
    chunks = (16 + len(message)) // 8
    head = struct.pack(
        "<BBBB4sI4sIHHd", 1, 0, 0, 0, MMS_SESSION, len(message) + 16, b"MMS ", chunks, 0, 0, 0.0
    )
    return head + message


RTSP = b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n"

ASKED = {
    "http": ("http", HTTP % b"h264.mp4"),
    "dash": ("dash", HTTP % b"none.mpd"),
    "darwin": ("darwin", RTSP),
    "realvideo": ("realvideo", RTSP),
    "windows media by RTSP": ("windows_media", RTSP),
    "windows media by HTTP": ("windows_media", NSPLAYER),
    "windows media by MMS": ("windows_media", mms_connect()),
}
"""Systems by what is spoken to them, with a request that each answers."""


@contextmanager
def peers(
    server: Server, count: int, text: bytes = b"", source: str = "127.0.0.1"
) -> Iterator[list[socket.socket]]:
    """So many connections that have said so much."""
    with ExitStack() as all_of:
        made = []
        for _ in range(count):
            made.append(socket.create_connection(("127.0.0.1", server.port), 10, (source, 0)))
            all_of.enter_context(made[-1])
            made[-1].sendall(text)
        yield made


def answer(server: Server, text: bytes, source: str = "127.0.0.1") -> bytes:
    """The beginning of what a newcomer is answered."""
    with peers(server, 1, text, source) as (peer,):
        peer.settimeout(10)
        return peer.recv(40)


def is_served(said: bytes) -> bool:
    """It is an answer, and not that there is no room."""
    words = (b"HTTP/1.0 ", b"HTTP/1.1 ", b"RTSP/1.0 ", b"\1\0\0\0" + MMS_SESSION)
    return said.startswith(words) and b" 503 " not in said


def eventually(check: Callable[[], bool]) -> bool:
    """True as soon as it holds; a newcomer has a second to ask."""
    until = time.monotonic() + 20
    while not (held := check()) and time.monotonic() < until:
        time.sleep(0.2)
    return held


@pytest.mark.parametrize("spoken", ASKED)
@again_if_starved
def test_who_has_not_asked_makes_room(clips: Path, spoken: str) -> None:
    system, request = ASKED[spoken]
    with Server(clips, "--max-sessions=20", system=system) as server:
        # Half a request each, or nothing.
        with peers(server, 10, request[:9]) as slow, peers(server, 10):
            assert eventually(lambda: is_served(answer(server, request)))
            slow[0].settimeout(10)
            assert slow[0].recv(1) == b"", "the oldest went first"
        closed = server.wait_for("closed")
        assert closed["why"] == "made room for another: it asked for nothing"


@pytest.mark.parametrize("spoken", ASKED)
@again_if_starved
def test_a_request_has_to_be_whole_in_time(clips: Path, spoken: str) -> None:
    system, request = ASKED[spoken]
    with Server(clips, "--request-within=1", system=system) as server:
        # By HTTP Windows Media answers one request a connection.
        first = b"" if spoken == "windows media by HTTP" else request
        with peers(server, 1) as (silent,), peers(server, 1, first) as (asks,):
            asks.settimeout(20)
            assert not first or is_served(asks.recv(40))
            # The next request comes a byte at a time, and would take longer than it may.
            with pytest.raises(OSError):
                for byte in request * 100:
                    asks.sendall(bytes([byte]))
                    time.sleep(0.1)
            silent.settimeout(20)
            assert silent.recv(1) == b""
        for count in (1, 2):
            assert server.wait_for("closed", count=count)["why"] == "its request was not whole in time"


@again_if_starved
def test_clients_of_one_address_leave_room_for_others(clips: Path) -> None:
    with Server(clips, "--max-per-address=5", "--max-sessions=20", system="http") as server:
        with peers(server, 5, ASKED["http"][1]) as there:
            for peer in there:
                assert peer.recv(40)
            assert b" 503 " in answer(server, ASKED["http"][1])
            assert is_served(answer(server, ASKED["http"][1], "127.0.0.2"))
        assert eventually(lambda: is_served(answer(server, ASKED["http"][1])))


@again_if_starved
def test_an_address_has_250_clients_by_default(clips: Path) -> None:
    with Server(clips, system="http") as server, peers(server, 260, b"G"):
        assert is_served(answer(server, ASKED["http"][1], "127.0.0.2"))
        assert eventually(lambda: is_served(answer(server, ASKED["http"][1])))


@again_if_starved
def test_who_has_had_its_answer_makes_room_for_who_asks(clips: Path) -> None:
    with Server(clips, "--max-sessions=5", system="http") as server:
        with peers(server, 5, ASKED["http"][1]) as there:
            for peer in there:
                assert peer.recv(40)
            assert b" 503 " in answer(server, ASKED["http"][1]), "they may ask again"
            assert eventually(lambda: is_served(answer(server, ASKED["http"][1])))
        assert "asked for nothing more" in server.wait_for("closed")["why"]


@again_if_starved
def test_forged_addresses_keep_nobody_out(clips: Path) -> None:
    with Server(clips, "--max-sessions=5", system="ccn") as server, ExitStack() as forged:
        for last in range(10, 20):
            one = forged.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            one.bind((f"127.0.0.{last}", 0))
            one.sendto(interest(b"clip/h264.mp4"), ("127.0.0.1", server.port))
        with socket.create_connection(("127.0.0.1", server.port), 10) as face:
            face.sendall(interest(b"clip/none/seg=0"))
            assert face.recv(1000)
        closed = server.wait_for("closed")
        assert closed["why"] == "made room for another: it asked for nothing"


def interest(name: bytes) -> bytes:
    """An Interest for a name of these components."""
    parts = b"".join(bytes([8, len(part)]) + part for part in name.split(b"/"))
    body = bytes([7, len(parts)]) + parts + bytes([10, 4, 1, 2, 3, 4])
    return bytes([5, len(body)]) + body


@again_if_starved
def test_an_address_that_is_not_proven_is_sent_no_more_than_it_sends(clips: Path) -> None:
    with Server(clips, system="ccn") as server, socket.socket(type=socket.SOCK_DGRAM) as forged:
        forged.connect(("127.0.0.1", server.port))
        forged.settimeout(0.5)
        sent = got = 0
        for name in (b"clip/none/seg=0", b"elsewhere/x", b"clip/h264.mp4", b"a") * 5:
            sent += forged.send(interest(name))
            try:
                while True:
                    got += len(forged.recv(65536))
                    assert got <= sent, name
            except TimeoutError:
                pass
            forged.settimeout(0.02)
        assert server.stop() == 0
        closed = server.wait_for("closed")
        assert closed["datagram_bytes_sent"] <= closed["datagram_bytes_received"] and closed["data_sent"] == 0

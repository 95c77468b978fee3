"""Peers that ask slowly, take slowly, or never ask: everybody else is served."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from conftest import Server
from starved import again_if_starved

HTTP = b"GET /%s HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n"
RTSP = b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n"

ASKED = {
    "http": HTTP % b"h264.mp4",
    "dash": HTTP % b"none.mpd",
    "darwin": RTSP,
    "realvideo": RTSP,
    "windows_media": RTSP,
}
"""A request that each system answers."""


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
    return said.startswith((b"HTTP/1.1 ", b"RTSP/1.0 ")) and b" 503 " not in said


def eventually(check: Callable[[], bool]) -> bool:
    """True as soon as it holds; a newcomer has a second to ask."""
    until = time.monotonic() + 20
    while not (held := check()) and time.monotonic() < until:
        time.sleep(0.2)
    return held


@pytest.mark.parametrize("system", ASKED)
@again_if_starved
def test_who_has_not_asked_makes_room(clips: Path, system: str) -> None:
    with Server(clips, "--max-sessions=20", system=system) as server:
        # Half a request each, or nothing.
        with peers(server, 10, ASKED[system][:9]) as slow, peers(server, 10):
            assert eventually(lambda: is_served(answer(server, ASKED[system])))
            slow[0].settimeout(10)
            assert slow[0].recv(1) == b"", "the oldest went first"
        closed = server.wait_for("closed")
        assert closed["why"] == "made room for another: it asked for nothing"


@again_if_starved
def test_a_request_has_to_be_whole_in_time(clips: Path) -> None:
    for system in ASKED:
        with Server(clips, "--request-within=1", system=system) as server:
            with peers(server, 1) as (silent,), peers(server, 1, ASKED[system]) as (asks,):
                asks.settimeout(20)
                assert is_served(asks.recv(40))
                began = time.monotonic()
                # The next request comes a byte at a time.
                with pytest.raises(OSError):
                    for byte in ASKED[system] * 100:
                        asks.sendall(bytes([byte]))
                        time.sleep(0.1)
                assert time.monotonic() - began < 9
                silent.settimeout(20)
                assert silent.recv(1) == b""
            for count in (1, 2):
                assert server.wait_for("closed", count=count)["why"] == "its request was not whole in time"


@again_if_starved
def test_clients_of_one_address_leave_room_for_others(clips: Path) -> None:
    with Server(clips, "--max-per-address=5", "--max-sessions=20", system="http") as server:
        with peers(server, 5, ASKED["http"]) as there:
            for peer in there:
                assert peer.recv(40)
            assert b" 503 " in answer(server, ASKED["http"])
            assert is_served(answer(server, ASKED["http"], "127.0.0.2"))
        assert eventually(lambda: is_served(answer(server, ASKED["http"])))


@again_if_starved
def test_an_address_has_250_clients_by_default(clips: Path) -> None:
    with Server(clips, system="http") as server, peers(server, 260, b"G"):
        assert is_served(answer(server, ASKED["http"], "127.0.0.2"))
        assert eventually(lambda: is_served(answer(server, ASKED["http"])))


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

"""Bad input to our producer and our player on real sockets: who sends it is refused, and nobody else notices."""

from __future__ import annotations

import json
import random
import select
import socket
import socketserver
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, put_ladder
from hypothesis import given, settings
from hypothesis import strategies as st
from play_ndn import report
from starved import again_if_starved
from streamgauge.emu.engine import engine

enc: Any = pytest.importorskip("ndn.encoding", reason="python-ndn is not here")

pytestmark = pytest.mark.emu

SECONDS = 4
FRAMES = 25 * SECONDS

MOST_GROWTH = 32 << 20
"""Bytes of memory that bad input may cost a server: less than all of it would be if it were kept."""

NO = 3
"""ContentType of an application's no."""


def number(value: int) -> bytes:
    """A type or a length."""
    if value < 253:
        return bytes([value])
    return struct.pack(">BH", 253, value) if value < 1 << 16 else struct.pack(">BI", 254, value)


def element(kind: int, value: bytes) -> bytes:
    return number(kind) + number(len(value)) + value


def interest(name: bytes) -> bytes:
    """An Interest for the components of `name`."""
    return element(5, element(7, name) + element(10, b"\1\2\3\4"))


def generic(*components: bytes) -> bytes:
    return b"".join(element(8, one) for one in components)


def nested(kind: int, depth: int) -> bytes:
    inside = b""
    for _ in range(depth):
        inside = element(kind, inside)
    return inside


class Peer:
    """A face to a server, by hand."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.waiting = b""

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def packet(self) -> bytes:
        """The next whole packet, or nothing where the server has closed."""
        while True:
            packet, self.waiting = cut(self.waiting)
            if packet:
                return packet
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return b""
            if not more:
                return b""
            self.waiting += more

    def is_served(self) -> bool:
        """Asks for what nobody has: a Nack comes."""
        self.socket.sendall(interest(generic(b"nobody's")))
        return self.packet()[:1] == b"\x64"

    def fetch(self, path: str) -> bytes:
        """An object, segment by segment."""
        got, segment, last = b"", 0, 0
        while segment <= last:
            name = enc.Name.from_str(f"/clip/{path}/seg={segment}")
            self.socket.sendall(interest(b"".join(bytes(one) for one in name)))
            found, meta, content, _ = enc.parse_data(self.packet())
            assert [bytes(one) for one in found] == [bytes(one) for one in name]
            last = enc.Component.to_number(meta.final_block_id)
            got += bytes(content)
            segment += 1
        return got


def cut(waiting: bytes) -> tuple[bytes, bytes]:
    """The first packet of a stream, if it is whole, and what is behind it."""
    if len(waiting) < 4:
        return b"", waiting
    _, begin = enc.parse_tl_num(waiting)
    length, width = enc.parse_tl_num(waiting, begin)
    end = begin + width + length
    return (waiting[:end], waiting[end:]) if len(waiting) >= end else (b"", waiting)


@pytest.fixture(scope="module")
def ladders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ladders")
    put_ladder(folder, "ladder", SECONDS)
    return folder


@pytest.fixture(scope="module")
def server(ladders: Path) -> Iterator[Server]:
    """One for all: so each test also sees that it lives after those before."""
    with Server(ladders, system="ccn") as server:
        # Hundreds of faces come and go, and a server waits for who reads what it says of them.
        assert server.process.stdout is not None
        said = server.process.stdout
        reader = threading.Thread(target=lambda: [None for _ in said], daemon=True)
        reader.start()
        yield server
        assert server.stop() == 0
        reader.join()


OBJECT = "ladder/v1/2.m4s"


@pytest.fixture(scope="module")
def content(server: Server) -> bytes:
    with Peer(server.port) as peer:
        return peer.fetch(OBJECT)


def test_a_flood_of_unknown_names_is_refused_and_costs_nobody(server: Server, content: bytes) -> None:
    names = 100_000
    unknown = [generic(b"clip", b"%d.m4s" % n) if n % 2 else generic(b"%d" % n) for n in range(names)]
    flood = b"".join(map(interest, unknown))
    before = server.resident_bytes()
    with Peer(server.port) as rude, Peer(server.port) as other:
        sender = threading.Thread(target=rude.socket.sendall, args=(flood,))
        refused = 0

        def count() -> None:
            nonlocal refused
            while refused < names and (packet := rude.packet()):
                is_nack = packet[0] == 0x64
                refused += is_nack or enc.parse_data(packet)[1].content_type == NO

        reader = threading.Thread(target=count)
        began = time.monotonic()
        sender.start()
        reader.start()
        longest, most, fetched = 0.0, 0, 0
        while reader.is_alive():
            since = time.monotonic()
            assert other.fetch(OBJECT) == content
            longest = max(longest, time.monotonic() - since)
            most = max(most, server.resident_bytes())
            fetched += 1
        print(time.monotonic() - began, longest, fetched, most - before, refused)
        sender.join()
    assert refused == names
    assert most - before < MOST_GROWTH


LONG = b"\xff" + (1 << 62).to_bytes(8, "big")
"""A length of nine bytes."""

ENDS_THE_FACE = {
    "no packet's type": element(7, generic(b"a")),
    "longer than packets are": b"\x05\xfe\x00\x01\x00\x00",
    "a length of nine bytes": b"\x05" + LONG,
    "the longest length": b"\x05" + b"\xff" * 9,
    "nine bytes for a short length": b"\x05\xff" + bytes(7) + b"\x05hello",
    "three bytes for a short length": b"\x05\xfd\x00\x05hello",
    "a type of nine bytes": LONG + b"\x01",
    "a name of 10,000 components": interest(generic(*[b""] * 10_000)),
    "a link's packet of wrong fields": element(0x64, element(0x52, b"") + element(0x51, bytes(8))),
    "a link's packet whose field overruns": element(0x64, b"\x50" + LONG),
    "one fragment of too many": element(
        0x64, element(0x51, bytes(8)) + element(0x53, b"\xff" * 8) + element(0x50, b"x")
    ),
}

IS_DROPPED = {
    "empty": element(5, b""),
    "no name": element(5, element(10, bytes(4))),
    "a name of nothing": interest(b""),
    "a name that overruns": element(5, b"\x07\x7f" + generic(b"a")),
    "a name whose length has nine bytes": element(5, b"\x07" + LONG + generic(b"a")),
    "a component that overruns": interest(b"\x08\x7fa"),
    "a component whose length has nine bytes": interest(b"\x08" + LONG),
    "a component of type 0": interest(element(0, b"a")),
    "a name of 4,000 components": interest(generic(*[b""] * 4_000)),
    "no nonce": element(5, element(7, generic(b"a"))),
    "a nonce of three bytes": element(5, element(7, generic(b"a")) + element(10, bytes(3))),
    "what nobody knows and must be known": element(5, element(7, generic(b"a")) + element(31, b"")),
    "parameters and no digest": element(5, element(7, generic(b"a")) + element(10, bytes(4)) + b"\x24\x00"),
    "Interests, 1,000 deep": nested(5, 1_000),
    "names, 1,000 deep": element(5, nested(7, 1_000)),
    "links' packets, 1,000 deep": element(0x64, element(0x50, nested(0x64, 1_000))),
    "a Data that nobody asked for": element(6, element(7, generic(b"a")) + element(0x15, b"x")),
    "a Nack of nothing": element(0x64, element(0x0320, b"") + element(0x50, b"")),
    "an idle link's packet": element(0x64, b""),
}


@pytest.mark.parametrize("wrong", ENDS_THE_FACE.values(), ids=ENDS_THE_FACE)
def test_what_is_no_packet_ends_its_face(server: Server, wrong: bytes) -> None:
    with Peer(server.port) as good, Peer(server.port) as bad:
        bad.socket.sendall(wrong)
        assert bad.packet() == b""
        assert good.is_served()


@pytest.mark.parametrize("wrong", IS_DROPPED.values(), ids=IS_DROPPED)
def test_what_is_malformed_inside_is_dropped(server: Server, wrong: bytes) -> None:
    with Peer(server.port) as peer:
        peer.socket.sendall(wrong * 3)
        assert peer.is_served()


def packets() -> st.SearchStrategy[bytes]:
    """Bytes, behind the head of a packet or of its name, or none."""
    heads = st.sampled_from([(), (5,), (6,), (5, 7), (6, 7), (0x64,), (0x64, 0x50), (0x64, 0x50, 5, 7)])

    def headed(kinds: tuple[int, ...], inside: bytes) -> bytes:
        for kind in reversed(kinds):
            inside = element(kind, inside)
        return inside

    return st.builds(headed, heads, st.binary(max_size=400))


@settings(max_examples=100, deadline=None)
@given(came=st.lists(packets(), min_size=1, max_size=4))
def test_whatever_comes_the_server_lives(server: Server, came: list[bytes]) -> None:
    with Peer(server.port) as good, Peer(server.port) as bad:
        bad.socket.sendall(b"".join(came))
        bad.socket.shutdown(socket.SHUT_WR)
        while bad.packet():
            pass
        assert good.is_served()


def wait_until(is_so: Callable[[], bool], within_s: float = 10) -> bool:
    until = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


ASKS = interest(b"".join(bytes(one) for one in enc.Name.from_str(f"/clip/{OBJECT}/seg=0")))


@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("said", [ASKS[:-3], ASKS * 1_000], ids=["in mid-packet", "in mid-answer"])
def test_faces_that_go_leave_nothing(server: Server, content: bytes, said: bytes, is_reset: bool) -> None:
    before, memory = server.descriptors(), server.resident_bytes()
    peers = [Peer(server.port) for _ in range(50)]
    for peer in peers:
        peer.socket.sendall(said)
    assert wait_until(lambda: server.descriptors() >= before + len(peers))
    for peer in peers:
        if is_reset:
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.socket.close()
    assert wait_until(lambda: server.descriptors() <= before), server.descriptors() - before
    assert server.resident_bytes() - memory < MOST_GROWTH
    with Peer(server.port) as peer:
        assert peer.fetch(OBJECT) == content


def test_of_who_never_reads_little_is_kept(server: Server, content: bytes) -> None:
    before = server.resident_bytes()
    peers = [Peer(server.port) for _ in range(20)]
    asked = 0
    for peer in peers:
        # Each Interest of 50 B asks for 8 kB: until the server reads no further.
        peer.socket.setblocking(False)
        while select.select([], [peer.socket], [], 0.1)[1]:
            asked += peer.socket.send(ASKS * 1_000)
    assert asked > len(peers) * 100_000
    assert server.resident_bytes() - before < MOST_GROWTH
    busy = server.cpu_s()
    time.sleep(0.5)
    assert server.cpu_s() - busy < 0.25, "it waits for them without a processor"
    with Peer(server.port) as peer:
        assert peer.fetch(OBJECT) == content
    for peer in peers:
        peer.socket.close()

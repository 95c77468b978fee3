"""Bad input to our producer and our player on real sockets: who sends it is refused, nobody else notices."""

from __future__ import annotations

import json
import select
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, put_ladder
from hypothesis import given, settings
from hypothesis import strategies as st
from play_ndn import PythonProducer, manifest, producing
from streamgauge.emu.engine import engine

enc: Any = pytest.importorskip("ndn.encoding", reason="python-ndn is not here")

pytestmark = pytest.mark.emu

SECONDS = 1

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
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
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


OBJECT = "ladder/v1/1.m4s"


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
        sender.start()
        reader.start()
        longest, most = 0.0, 0
        while reader.is_alive():
            since = time.monotonic()
            assert other.fetch(OBJECT) == content
            longest = max(longest, time.monotonic() - since)
            most = max(most, server.resident_bytes())
        sender.join()
    assert refused == names
    assert most - before < MOST_GROWTH
    assert 0 < longest < 5
    with Peer(server.port) as later:
        assert later.fetch(OBJECT) == content


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


@settings(max_examples=100)
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


def descriptors_at_rest(server: Server) -> int:
    """How many it has open once it has closed those of faces that went just now."""
    found: list[int] = []

    def is_steady() -> bool:
        found.append(server.descriptors())
        return len(found) >= 15 and len(set(found[-15:])) == 1

    assert wait_until(is_steady)
    return found[-1]


ASKS = interest(b"".join(bytes(one) for one in enc.Name.from_str(f"/clip/{OBJECT}/seg=0")))


@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("said", [ASKS[:-3], ASKS * 1_000], ids=["in mid-packet", "in mid-answer"])
def test_faces_that_go_leave_nothing(server: Server, content: bytes, said: bytes, is_reset: bool) -> None:
    before, memory = descriptors_at_rest(server), server.resident_bytes()
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
    peers = [Peer(server.port) for _ in range(10)]
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


def data(name: Any, content: bytes = b"x", **told: Any) -> bytes:
    """A sound Data."""
    from ndn.security import DigestSha256Signer

    meta = enc.MetaInfo(freshness_period=1000, **told)
    return bytes(enc.make_data(name, meta, content, DigestSha256Signer()))


def unsound(name: bytes, content: bytes) -> bytes:
    """A Data of parts that may be wrong, without a right digest."""
    signature = element(0x16, element(0x1B, b"\0")) + element(0x17, bytes(32))
    return element(6, element(7, name) + content + signature)


def nack(reason: int, asked: bytes) -> bytes:
    return element(0x64, element(0x0320, element(0x0321, bytes([reason]))) + element(0x50, asked))


def numbered(segment: int) -> Any:
    return enc.Component.from_segment(segment)


def is_metadata(name: list[Any]) -> bool:
    return bool(enc.Component.to_str(name[-1]) == "32=metadata")


@dataclass
class Asked:
    """What a player asked for: the packet, and its name."""

    packet: bytes
    name: list[Any]

    @property
    def plain(self) -> bytes:
        """Components of the name."""
        return b"".join(map(bytes, self.name))

    @property
    def segment(self) -> int:
        return int(enc.Component.to_number(self.name[-1]))

    def ending(self, last: Any) -> bytes:
        """Its Data, with a FinalBlockId."""
        return data(self.name, bytes(4000), final_block_id=last)

    def of_size(self, segment_bytes: bytes, size: bytes) -> bytes:
        """The metadata that it asked for, with these sizes."""
        version = enc.Component.from_version(1)
        told = bytes(enc.Name.encode([*self.name[:-1], version]))
        told += element(0xF500, segment_bytes) + element(0xF502, size)
        return data([*self.name, version, numbered(0)], told)


Wrong = Callable[[Asked], bytes]
"""What a producer says to that."""

EITHER: dict[str, Wrong] = {
    "nothing": lambda asked: b"",
    "Data of another name": lambda asked: data("/clip/other/seg=0") * 100,
    "Data of a shorter name": lambda asked: data(asked.name[:-1]),
    "a Data without a name": lambda asked: data([]),
    "a Data of 10,000 components": lambda asked: unsound(generic(*[b""] * 10_000), element(0x15, b"x")),
    "a Data of 1,000 components": lambda asked: unsound(generic(*[b""] * 1_000), element(0x15, b"x")),
    "a wrong digest": lambda asked: unsound(asked.plain, element(0x15, b"x")),
    "a content that overruns": lambda asked: unsound(asked.plain, b"\x15\xfd\x20\x00x"),
    "a content of nine bytes' length": lambda asked: unsound(asked.plain, b"\x15" + LONG),
    "no signature": lambda asked: element(6, element(7, asked.plain) + element(0x15, b"x")),
    "elements, 1,000 deep": lambda asked: data(asked.name, nested(0x15, 1_000), final_block_id=numbered(0)),
    "bytes that are no packet": lambda asked: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no": lambda asked: data(asked.name, content_type=NO),
    "Nacks of no route": lambda asked: nack(150, asked.packet),
    "Nacks of congestion": lambda asked: nack(50, asked.packet),
    "Nacks of what was not asked": lambda asked: nack(150, interest(asked.plain)),
    "Nacks of nothing": lambda asked: element(0x64, element(0x0320, b"") + element(0x50, b"")),
    "its own Interest": lambda asked: asked.packet * 100,
    "Interests of others": lambda asked: b"".join(interest(generic(b"%d" % n)) for n in range(1000)),
}

OF_SEGMENTS: dict[str, Wrong] = {
    "Data of another segment": lambda asked: data([*asked.name[:-1], numbered(asked.segment + 1000)]),
    "Data of a longer name": lambda asked: data([*asked.name, numbered(0)]),
    "an end that moves on": lambda asked: asked.ending(numbered(asked.segment + 1)),
    "an end that is over": lambda asked: asked.ending(numbered(0 if asked.segment else 5)),
    "an end that comes nearer": lambda asked: asked.ending(numbered(3 if asked.segment else 1 << 60)),
    "an end that is none": lambda asked: asked.ending(enc.Component.from_str("x")),
    "no end": lambda asked: data(asked.name, bytes(4000)),
}

OF_METADATA: dict[str, Wrong] = {
    "a size of all that can be": lambda asked: asked.of_size(b"\1", b"\xff" * 8),
    "a size of nothing": lambda asked: asked.of_size(b"\1", b"\0"),
    "segments of nothing": lambda asked: asked.of_size(b"\0", b"\1"),
    "segments of all that can be": lambda asked: asked.of_size(b"\xff" * 8, b"\xff" * 8),
    "a size that is none": lambda asked: asked.of_size(bytes(3), bytes(3)),
    "another object": lambda asked: data([*asked.name, numbered(0)], bytes(enc.Name.encode("/else"))),
    "the root": lambda asked: data([*asked.name, numbered(0)], b"\7\0"),
    "itself": lambda asked: data([*asked.name, numbered(0)], bytes(enc.Name.encode(asked.name))),
}

ENDLESS = {"an end that is none", "no end"}
"""What makes a media segment that has no end. It is fetched for as long as somebody watches, as an answer of
HTTP without end would be; of a manifest that is too long the player ends by itself."""


def cases() -> Iterator[Any]:
    """Of what, in which objects, and what."""
    # What is wrong in either is wrong in the first packet of all, and in the midst of play.
    for of, objects, told in (
        ("metadata", ".mpd", EITHER | OF_METADATA),
        ("metadata", ".m4s", OF_METADATA),
        ("segments", ".mpd", OF_SEGMENTS),
        ("segments", ".m4s", EITHER | OF_SEGMENTS),
    ):
        for what, wrong in told.items():
            if not (objects == ".m4s" and what in ENDLESS):
                yield pytest.param(of, objects, wrong, id=f"{objects}, {of}: {what}")


class Bad(PythonProducer):
    """Says what is wrong in place of metadata or of segments of some objects."""

    of: str
    objects: str
    wrong: Wrong
    #: It closes after so many bytes of that.
    closes_after: int | None = None

    def handle(self) -> None:
        with suppress(OSError):
            super().handle()

    def answer(self, enc: Any, content: dict[str, bytes], interest: bytes) -> None:
        name, *_ = enc.parse_interest(interest)
        is_good = self.objects not in enc.Name.to_str(name) or is_metadata(name) != (self.of == "metadata")
        if is_good:
            super().answer(enc, content, interest)
            return
        self.request.sendall(type(self).wrong(Asked(interest, list(name)))[: self.closes_after])
        if self.closes_after is not None:
            raise ConnectionAbortedError


def played(packaged: Path, *options: str, **told: Any) -> subprocess.CompletedProcess[str]:
    """Our player from a `Bad` producer."""
    given = ("interest_tries=2", "tries=1", "skips=0", "buffer=2 s")
    command = [str(engine()), "play", "--json", *(f"--set={one}" for one in given), *options]
    with producing(type("Told", (Bad,), told), packaged) as port:
        command.append(f"ndn://127.0.0.1:{port}/clip/{manifest(packaged)}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode in (0, 1, 3, 4) and "panicked" not in done.stderr, done
    return done


def why_it_ends(packaged: Path, **told: Any) -> str:
    """Why it ended early, or that it played bytes of no known container, whose pictures are not counted."""
    done = played(packaged, "--set=interest_lifetime=100 ms", **told)
    if done.returncode not in (0, 1):
        return done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    why: str = said["outcome"]
    if done.returncode == 0:
        assert said["frames_shown"] is None and said["uncounted"], said
    else:
        assert why.startswith("ended early ("), why
    return why


@pytest.mark.parametrize(("of", "objects", "wrong"), [*cases()])
def test_our_player_ends_by_a_bad_producer(ladders: Path, of: str, objects: str, wrong: Wrong) -> None:
    told = {"of": of, "objects": objects, "wrong": staticmethod(wrong)}
    why = why_it_ends(ladders / "packaged", **told)
    # Which object it is, unless it came and was nothing to show.
    came = ("played to the end", "neither an MPD", "manifest", "the segment is empty")
    assert objects in why or any(words in why for words in came), why


@pytest.mark.parametrize("what", sorted(ENDLESS))
def test_our_player_goes_on_with_a_segment_without_end(ladders: Path, what: str) -> None:
    told = {"of": "segments", "objects": ".m4s", "wrong": staticmethod(OF_SEGMENTS[what])}
    done = played(ladders / "packaged", "--set=interest_lifetime=2 s", "--duration=1.5", **told)
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["outcome"] == "stopped as asked" and said["bytes_received"] > 100_000, said


@pytest.mark.parametrize("objects", [".mpd", ".m4s"])
@pytest.mark.parametrize("closes_after", [0, 1, 3, 2_000])
def test_our_player_ends_by_a_producer_that_goes(ladders: Path, objects: str, closes_after: int) -> None:
    told = {"of": "segments", "objects": objects, "closes_after": closes_after}
    wrong = staticmethod(lambda asked: asked.ending(numbered(0)))
    assert "did not come" in why_it_ends(ladders / "packaged", **told, wrong=wrong)

"""Our producer and our player on real sockets, with each other and with other people's NDN programs."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, put_ladder
from play_ndn import Ndnd, play, report
from starved import again_if_starved
from streamgauge.emu.engine import engine

pytestmark = pytest.mark.emu

SECONDS = 6
FRAMES = 25 * SECONDS

SEGMENT_BYTES = 8000
"""Content of a Data packet of the usual preset."""

NACK = 3
"""ContentType of an application's no."""


OVER = {"tcp": ("--transport=tcp",), "udp": ("--transport=udp", "--set=interest_window=4")}
"""Options of our player. So few segments on their way are lost in no UDP socket's buffer."""


@pytest.fixture(scope="module")
def ladders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ladder, and the same as ffmpeg packaged it."""
    folder = tmp_path_factory.mktemp("ladders")
    put_ladder(folder, "test card", SECONDS)
    return folder


@pytest.fixture(scope="module")
def server(ladders: Path) -> Iterator[Server]:
    with Server(ladders, system="ccn") as server:
        yield server


@pytest.fixture(scope="module")
def by_http(ladders: Path) -> Iterator[Server]:
    with Server(ladders, system="dash") as server:
        yield server


def url(server: Server, path: str) -> str:
    return f"ndn://127.0.0.1:{server.port}/clip/{path}"


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("form", ["manifest.mpd", "ranges.mpd", "master.m3u8"])
@again_if_starved
def test_our_player_plays_a_ladder_to_its_end(server: Server, form: str, transport: str) -> None:
    said = report(url(server, f"test%20card/{form}"), *OVER[transport])
    assert said["transport"] == transport
    assert said["frames_shown"] == FRAMES, said
    assert said["interests"] > 10 and said["interests_expired"] == 0, said


@again_if_starved
def test_our_player_plays_what_ffmpeg_packaged_and_names_of_the_paper(ladders: Path) -> None:
    (mpd,) = (ladders / "packaged").glob("*.mpd")
    with Server(ladders, "--preset=ccnx-paper", "--set=prefix=/a/b", system="ccn") as server:
        address = f"ndn://127.0.0.1:{server.port}/a/b/packaged/{mpd.name}"
        options = ("metadata=false", "window_control=in-order", "interest_window=5")
        said = report(address, *(f"--set={option}" for option in options))
        assert said["frames_shown"] == FRAMES, said
        playing = server.wait_for("playing")
        assert playing["transport"] == "tcp" and playing["path"].startswith("/packaged/")
        closed = server.wait_for("closed")
        assert closed["interests_received"] >= closed["data_sent"] > 10
        assert server.stop() == 0


@again_if_starved
def test_the_same_bytes_come_over_udp(tmp_path: Path, ladders: Path) -> None:
    with Server(ladders, system="ccn") as server:
        saved = []
        for transport in ("tcp", "udp"):
            kept = tmp_path / transport
            options = (*OVER[transport], f"--save={kept}", "--set=rule=fixed")
            address = url(server, "test%20card/manifest.mpd")
            command = [str(engine()), "play", *options, address]
            said = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout
            assert f"over NDN ({transport.upper()} face)" in said
            saved.append(kept.read_bytes())
        assert saved[0] == saved[1] != b""
        playing = [server.wait_for("playing", count=count)["transport"] for count in (1, 2)]
        assert playing == ["tcp", "udp"]
        # Over UDP nobody says goodbye: the face is there until the server stops, or for a silent minute.
        assert server.stop() == 0
        closed = server.wait_for("closed", count=2)
        assert closed["why"] == "server stopped" and closed["client"].startswith("127.0.0.1:")
        assert closed["data_sent"] > 10 and closed["datagrams_sent"] > 4 * closed["data_sent"]
        # One more proves that the player is where it says.
        assert closed["datagrams_received"] == closed["interests_received"] + 1


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@again_if_starved
def test_a_name_that_is_nobodys_is_told_at_once(server: Server, transport: str) -> None:
    for path, why, status in (("test%20card/none.mpd", "404", 3), ("../x.mpd", "502", 4)):
        began = time.monotonic()
        done = play(url(server, path), "--set=tries=1", f"--transport={transport}", status=status)
        # An Interest's lifetime is 4 s: nobody waited for that.
        assert time.monotonic() - began < 4 and why in done.stderr, done.stderr


def test_nobody_there_is_one_clear_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refused = play(f"ndn://127.0.0.1:{unused.getsockname()[1]}/clip/a.mpd", status=4).stderr
    assert "refused or out of reach" in refused and "streamgauge serve" in refused
    with socket.socket(type=socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"ndn://127.0.0.1:{silent.getsockname()[1]}/clip/a.mpd"
        options = ("--set=tries=1", "--set=interest_lifetime=200ms")
        unanswered = play(address, "--transport=udp", *options, status=4).stderr
    # Its host says now that nobody is there.
    began = time.monotonic()
    refused = play(address, "--transport=udp", status=4).stderr
    assert time.monotonic() - began < 3
    assert "no answer over UDP" in unanswered and "streamgauge serve" in unanswered
    assert f"no program has UDP port {address.split(':')[2].split('/')[0]}" in refused
    assert "find host nobody.invalid" in play("ndn://nobody.invalid/clip/a.mpd", status=4).stderr
    assert "has no host" in play("ndn:///clip/a.mpd", status=2).stderr


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@again_if_starved
def test_a_server_that_goes_ends_the_play(ladders: Path, transport: str) -> None:
    with Server(ladders, system="ccn") as server:
        command = [str(engine()), "play", "--set=buffer=2s", "--set=tries=1", "--set=skips=0"]
        command += [f"--transport={transport}", "--set=interest_lifetime=1s"]
        address = url(server, "test%20card/manifest.mpd")
        with subprocess.Popen([*command, address], stdout=subprocess.PIPE, text=True) as playing:
            server.wait_for("playing")
            time.sleep(1)
            assert server.stop() == 0
            said, _ = playing.communicate(timeout=60)
        assert playing.returncode == 1 and "ended early" in said, said


def interest(name: bytes) -> bytes:
    """An Interest for a name of one component."""
    body = bytes([7, len(name) + 2, 8, len(name)]) + name + bytes([10, 4, 1, 2, 3, 4])
    return bytes([5, len(body)]) + body


def answer(connection: socket.socket, wanted: int) -> bytes:
    """What comes until there are so many bytes, or the other end closes."""
    got = b""
    while len(got) < wanted and (more := connection.recv(65536)):
        got += more
    return got


def test_bytes_that_are_no_packets_end_their_face_alone(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as good:
        for wrong in (b"GET / HTTP/1.1\r\n\r\n", b"\x05\xfe\x7f\xff\xff\xff", b"\x06\xfd\x00\x01", b"\x00"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as bad:
                bad.sendall(wrong)
                assert answer(bad, 1) == b"", wrong
            good.sendall(interest(b"x"))
            # A Nack (NDNLPv2): NoRoute, and the Interest.
            nack = answer(good, 1)
            assert nack[0] == 0x64 and struct.pack(">I", 0x01020304) in nack


def test_a_full_server_returns_the_interest(ladders: Path) -> None:
    with Server(ladders, "--max-sessions=1", system="ccn") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as first:
            first.sendall(interest(b"x"))
            assert answer(first, 1)
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as second:
                second.sendall(interest(b"y"))
                # NackReason (0x0321): Congestion (50).
                assert b"\xfd\x03\x21\x01\x32" in answer(second, 1000)
        server.wait_for("closed")
        assert server.stop() == 0


TRUSTS = "--set=prove_addresses=false"
"""Answers any datagram, as a server on a network where nobody forges an address."""


@pytest.fixture
def sender() -> Iterator[socket.socket]:
    with socket.socket(type=socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.1", 0))
        sender.settimeout(20)
        yield sender


def test_a_datagram_that_is_no_packet_is_dropped(ladders: Path, sender: socket.socket) -> None:
    with Server(ladders, TRUSTS, system="ccn") as server:
        there = ("127.0.0.1", server.port)
        wrong = [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x05\xfe\x7f\xff\xff\xff", b"\x06\x00", b"\x64\x00"]
        # Of somebody new, then of somebody who has a face.
        for _ in range(2):
            for bytes_ in [*wrong, bytes(65_507)]:
                sender.sendto(bytes_, there)
            sender.sendto(interest(b"x"), there)
            # A Nack (NDNLPv2): NoRoute (150), and the Interest.
            nack = sender.recv(65536)
            assert nack[0] == 0x64 and b"\xfd\x03\x21\x01\x96" in nack
        assert server.stop() == 0
        closed = server.wait_for("closed")
        opened = [line["client"] for line in server.said if line["event"] == "opened"]
        assert opened == [f"127.0.0.1:{sender.getsockname()[1]}"]
        # Of these the last of `wrong` is an idle packet.
        assert (closed["interests_received"], closed["packets_dropped"]) == (2, len(wrong))


def test_a_full_server_returns_the_datagram(ladders: Path, sender: socket.socket) -> None:
    with (
        Server(ladders, "--max-per-address=1", "--timeout=1", TRUSTS, system="ccn") as server,
        socket.socket(type=socket.SOCK_DGRAM) as other,
    ):
        there = ("127.0.0.1", server.port)
        other.settimeout(20)
        sender.sendto(interest(b"x"), there)
        assert sender.recv(65536)
        before = server.descriptors()
        for _ in range(50):
            other.sendto(interest(b"y"), there)
            # NackReason (0x0321): Congestion (50).
            assert b"\xfd\x03\x21\x01\x32" in other.recv(65536)
        assert server.descriptors() == before
        assert "1 clients of this address" in server.wait_for("refused")["why"]
        # He counts with those over TCP.
        with socket.create_connection(there, timeout=20) as third:
            third.sendall(interest(b"z"))
            assert b"\xfd\x03\x21\x01\x32" in answer(third, 1000)
        assert server.wait_for("closed")["why"] == "client has vanished"
        other.sendto(interest(b"y"), there)
        # NoRoute (150): it has a face now.
        assert b"\xfd\x03\x21\x01\x96" in other.recv(65536)
        # Whoever asks without end is told of no more than once a second.
        assert len([line for line in server.said if line["event"] == "refused"]) < 10
        assert server.stop() == 0


@again_if_starved
def test_many_senders_have_a_face_each(ladders: Path) -> None:
    with Server(ladders, "--max-sessions=60", TRUSTS, system="ccn") as server:
        senders = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(60)]
        try:
            # Twice, and before the server could make the first a socket.
            for sender in senders:
                sender.settimeout(20)
                for name in (b"a", b"b"):
                    sender.sendto(interest(name), ("127.0.0.1", server.port))
            for sender in senders:
                assert all(b"\xfd\x03\x21" in sender.recv(65536) for _ in range(2))
        finally:
            for sender in senders:
                sender.close()
        assert server.wait_for("opened", count=60)["sessions"] == 60
        assert server.stop() == 0
        server.wait_for("closed", count=60)
        assert sum(line.get("interests_received", 0) for line in server.said) == 120


def test_the_face_answers_from_the_address_that_was_asked(ladders: Path) -> None:
    with Server(ladders, system="ccn", listen="0.0.0.0:0") as server:
        # Its host's usual source address for this client is another.
        said = report(f"ndn://127.0.0.7:{server.port}/clip/test%20card/manifest.mpd", *OVER["udp"])
        assert said["frames_shown"] == FRAMES, said


def elements(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Types and values of TLV elements of up to 252 bytes each."""
    while content:
        wide = content[0] == 0xFD
        kind = int.from_bytes(content[1:3], "big") if wide else content[0]
        at = 3 if wide else 1
        end = at + 1 + content[at]
        yield kind, content[at + 1 : end]
        content = content[end:]


def with_ndn(port: int, consume: Callable[[Any], Awaitable[None]]) -> None:
    """Runs `consume` with python-ndn's application on a TCP face."""
    pytest.importorskip("ndn", reason="python-ndn is not here")
    from ndn.appv2 import NDNApp
    from ndn.transport.stream_face import TcpFace

    async def main() -> None:
        app = NDNApp(face=TcpFace("127.0.0.1", port))

        async def after_start() -> None:
            try:
                await consume(app)
            finally:
                app.shutdown()

        await app.main_loop(after_start())

    asyncio.run(asyncio.wait_for(main(), 60))


def test_python_ndn_gets_the_bytes_that_http_gives(server: Server, by_http: Server) -> None:
    pytest.importorskip("ndn", reason="python-ndn is not here")
    from ndn import encoding as enc
    from ndn.appv2 import pass_all

    path = "test card/v1/2.m4s"
    address = f"http://127.0.0.1:{by_http.port}/{path.replace(' ', '%20')}"
    with urllib.request.urlopen(address, timeout=20) as response:
        wanted = response.read()
    last = (len(wanted) - 1) // SEGMENT_BYTES
    assert last > 2

    async def consume(app: Any) -> None:
        name = enc.Name.from_str(f"/clip/{path.replace(' ', '%20')}")
        discovery = [*name, enc.Component.from_str("32=metadata")]
        found, content, _ = await app.express(discovery, pass_all, can_be_prefix=True, must_be_fresh=True)
        assert enc.Name.is_prefix(discovery, found)
        told = dict(elements(bytes(content)))
        versioned = enc.Name.decode(bytes([7, len(told[7])]) + told[7])[0]
        assert enc.Name.is_prefix(name, versioned) and len(versioned) == len(name) + 1
        assert told[0x1A] == enc.Component.from_segment(last)
        sizes = [int.from_bytes(told[kind], "big") for kind in (0xF500, 0xF502)]
        assert sizes == [SEGMENT_BYTES, len(wanted)]
        got = b""
        for number in range(last + 1):
            segment = [*versioned, enc.Component.from_segment(number)]
            found, content, context = await app.express(segment, pass_all)
            assert enc.Name.to_str(found) == enc.Name.to_str(segment)
            assert context["meta_info"].final_block_id == enc.Component.from_segment(last)
            got += bytes(content)
        assert got == wanted
        nothing = enc.Name.from_str("/clip/test%20card/none.mpd/seg=0")
        _, _, context = await app.express(nothing, pass_all)
        assert context["meta_info"].content_type == NACK

    with_ndn(server.port, consume)


@pytest.fixture
def forwarder(tmp_path: Path, ladders: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of ndnd's forwarder, which has a route to our server over TCP or UDP, and sends no Nack."""
    with Ndnd(tmp_path) as ndnd, Server(ladders, TRUSTS, system="ccn") as server:
        face = f"face={request.param}4://127.0.0.1:{server.port}"
        ndnd.run("fw", "route-add", "prefix=/clip", face, "persistency=permanent")
        yield ndnd.port


@pytest.mark.parametrize(
    ("forwarder", "transport"), [("tcp", "tcp"), ("udp", "udp"), ("tcp", "udp")], indirect=["forwarder"]
)
@again_if_starved
def test_our_player_plays_through_another_forwarder(forwarder: int, transport: str) -> None:
    address = f"ndn://127.0.0.1:{forwarder}/clip/test%20card/manifest.mpd"
    said = report(address, *OVER[transport])
    assert said["frames_shown"] == FRAMES and said["interests_expired"] == 0, said

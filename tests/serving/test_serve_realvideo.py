"""RealMedia files from our server, played by MPlayer; the dialogue with FFmpeg, over TCP and over UDP."""

from __future__ import annotations

import socket
import subprocess
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import FILM_RATE, FILM_SECONDS, Server
from mplayer import mplayer, pictures
from starved import again_if_starved

WAV_HEADER_BYTES = 44


@pytest.fixture(scope="module")
def server(films: Path) -> Iterator[Server]:
    with Server(films, system="realvideo") as server:
        yield server


def url(server: Server, name: str = "film.rm") -> str:
    return f"rtsp://127.0.0.1:{server.port}/{name}"


def sound(source: str, folder: Path) -> bytes:
    """What MPlayer would send to a loudspeaker."""
    samples = folder / "sound.wav"
    samples.unlink(missing_ok=True)
    mplayer(source, "-vo", "null", "-novideo", "-ao", f"pcm:fast:file={samples}")
    return samples.read_bytes()[WAV_HEADER_BYTES:]


@again_if_starved
def test_mplayer_shows_every_picture_as_from_the_file(server: Server, films: Path, tmp_path: Path) -> None:
    expected = pictures(str(films / "film.rm"), tmp_path)
    assert len(expected) == FILM_SECONDS * FILM_RATE
    assert pictures(url(server), tmp_path) == expected
    assert server.wait_for("playing")["transport"] == "tcp"


@again_if_starved
def test_mplayer_hears_all_of_the_sound(server: Server, tmp_path: Path) -> None:
    # Of a file MPlayer writes minutes of silence behind the sound where it is to leave the pictures out.
    heard = sound(url(server), tmp_path)
    assert len(heard) / (44_100 * 2 * 2) == pytest.approx(FILM_SECONDS, abs=0.1)
    samples = array("h", heard)
    assert max(samples) > 1_000


@again_if_starved
def test_who_says_nothing_while_it_plays_is_not_given_up(films: Path, tmp_path: Path) -> None:
    # As MPlayer over TCP: what it takes is its sign of life.
    with Server(films, "--timeout", "2", system="realvideo") as server:
        assert len(pictures(url(server), tmp_path)) == FILM_SECONDS * FILM_RATE


@again_if_starved
def test_a_film_that_is_cut_short_is_played_up_to_there(server: Server, tmp_path: Path) -> None:
    shown = pictures(url(server, "cut.rm"), tmp_path)
    assert FILM_SECONDS * FILM_RATE // 4 < len(shown) < FILM_SECONDS * FILM_RATE


@again_if_starved
def test_mplayer_has_the_level_of_a_folder_that_its_bandwidth_allows(
    server: Server, films: Path, tmp_path: Path
) -> None:
    for level, options in (("200k.rm", []), ("40k.rm", ["-bandwidth", "100000"])):
        expected = pictures(str(films / "levels.rm" / level), tmp_path)
        assert len(expected) == FILM_SECONDS * FILM_RATE
        assert pictures(url(server, "levels.rm"), tmp_path, *options) == expected, level


@again_if_starved
def test_one_file_is_at_every_path(films: Path, tmp_path: Path) -> None:
    with Server(films / "film.rm", system="realvideo") as server:
        expected = pictures(str(films / "film.rm"), tmp_path)
        for path in ("film.rm", "anything/else"):
            assert pictures(url(server, path), tmp_path) == expected
        assert server.wait_for("playing")["path"] == "/film.rm"


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_ffmpeg_goes_through_the_whole_dialogue(films: Path, transport: str) -> None:
    # It knows no codec of what a description of RDT says (FFmpeg 5.1), and so judges signalling alone; over
    # UDP it does not end with the stream.
    with Server(films, system="realvideo") as server:
        command = [
            "ffmpeg",
            "-nostdin",
            "-loglevel",
            "error",
            "-rtsp_transport",
            transport,
            "-i",
            url(server),
        ]
        with subprocess.Popen([*command, "-f", "null", "-"], stderr=subprocess.DEVNULL) as player:
            assert server.wait_for("playing")["transport"] == transport
            try:
                player.wait(timeout=FILM_SECONDS + 2)
            except subprocess.TimeoutExpired:
                player.terminate()
        assert server.wait_for("closed")["rdt_packets_sent"] > 20


def ask(server: Server, text: str) -> str:
    """The answer to a request."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(text.encode())
        return connection.recv(65536).decode(errors="replace")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("none.rm", 415),
        ("notes.txt", 415),
        ("empty.rm", 415),
        ("absent.rm", 404),
    ],
)
def test_what_cannot_be_played_is_refused(server: Server, name: str, status: int) -> None:
    answer = ask(
        server, f"DESCRIBE {url(server, name)} RTSP/1.0\r\nCSeq: 1\r\nAccept: application/sdp\r\n\r\n"
    )
    assert answer.startswith(f"RTSP/1.0 {status} "), answer


def test_a_description_has_what_players_of_the_time_need(server: Server) -> None:
    said = ask(server, f"DESCRIBE {url(server)} RTSP/1.0\r\nCSeq: 1\r\nAccept: application/sdp\r\n\r\n")
    for line in ("a=IsRealDataType:integer;1", "a=StreamCount:integer;2", "a=control:streamid=1"):
        assert line in said
    assert said.count("a=OpaqueData:buffer;") == 2
    assert said.index("a=OpaqueData") < said.rindex("a=ASMRuleBook")
    challenge = ask(server, f"OPTIONS {url(server)} RTSP/1.0\r\nCSeq: 1\r\n\r\n")
    assert "RealChallenge1: " in challenge


def test_a_flood_of_wishes_leaves_others_served(server: Server) -> None:
    # Rules that there are not, and a rate of nothing: passed over. The server is there for the next.
    setup = f"SETUP {url(server)}/streamid=0 RTSP/1.0\r\nCSeq: 1\r\nTransport: x-pn-tng/tcp;mode=play\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(setup.encode())
        answer = connection.recv(65536).decode()
        session = next(line.split()[1] for line in answer.splitlines() if line.startswith("Session:"))
        session = session.partition(";")[0]
        for number in range(2, 500):
            wish = f"stream={number % 40};rule={number * 7}"
            head = f"SET_PARAMETER {url(server)} RTSP/1.0\r\nCSeq: {number}\r\nSession: {session}\r\n"
            rate = "SetDeliveryBandwidth: Bandwidth=0;BackOff=0\r\n"
            connection.sendall(f"{head}Subscribe: {wish}\r\n{rate}\r\n".encode())
        connection.sendall(f"PLAY {url(server)} RTSP/1.0\r\nCSeq: 999\r\nSession: {session}\r\n\r\n".encode())
        came = b""
        while b"CSeq: 999" not in came:
            came += connection.recv(65536)
    assert b"RTSP/1.0 200 Ok" in came
    assert "a=IsRealDataType" in ask(
        server, f"DESCRIBE {url(server)} RTSP/1.0\r\nCSeq: 1\r\nAccept: application/sdp\r\n\r\n"
    )

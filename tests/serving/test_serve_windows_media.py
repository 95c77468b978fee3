"""Windows Media files from our server, played by FFmpeg over UDP and TCP: each packet as from the file."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import FILM_RATE, FILM_SECONDS, WMV_RATES, Server
from starved import again_if_starved
from windows_media_client import RTP_BYTES, WmsClient, nack, stream_of

TRANSPORTS = ["udp", "tcp"]

Packet = tuple[str, str]
"""Of a stream: bytes and their digest."""


@pytest.fixture(scope="module")
def server(wmvs: Path) -> Iterator[Server]:
    with Server(wmvs, system="windows_media") as server:
        yield server


def url(server: Server, name: str = "film.wmv") -> str:
    return f"rtsp://127.0.0.1:{server.port}/{name}"


def ffmpeg(source: str, *options: str, transport: str | None = None) -> list[list[str]]:
    """What ffmpeg says of each packet or picture: stream, times, bytes, digest."""
    asked = [] if transport is None else ["-rtsp_transport", transport]
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", *asked, "-i", source, *options]
    done = subprocess.run([*command, "-f", "framemd5", "-"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return [[word.strip() for word in line.split(",")] for line in lines]


def packets(source: str, transport: str | None = None) -> list[list[Packet]]:
    """The coded packets of each stream, streams in the order of their bytes."""
    found: dict[str, list[Packet]] = {}
    for stream, _, _, _, size, digest in ffmpeg(source, "-map", "0", "-c", "copy", transport=transport):
        found.setdefault(stream, []).append((size, digest))
    return sorted(found.values(), key=lambda stream: sum(int(size) for size, _ in stream))


@pytest.mark.parametrize("transport", TRANSPORTS)
@again_if_starved
def test_ffmpeg_has_every_packet_as_from_the_file(server: Server, wmvs: Path, transport: str) -> None:
    count = len([line for line in server.said if line["event"] == "playing"])
    expected = packets(str(wmvs / "film.wmv"))
    assert len(expected) == 2 and len(expected[1]) == FILM_SECONDS * FILM_RATE
    assert packets(url(server), transport) == expected
    assert server.wait_for("playing", count=count + 1)["transport"] == transport


@pytest.mark.parametrize("transport", TRANSPORTS)
@again_if_starved
def test_ffmpeg_shows_every_picture_at_its_time(server: Server, wmvs: Path, transport: str) -> None:
    options = ["-map", "0:v", "-vsync", "passthrough", "-copyts"]
    expected = ffmpeg(str(wmvs / "film.wmv"), *options)
    shown = ffmpeg(url(server), *options, transport=transport)
    assert [line[-1] for line in shown] == [line[-1] for line in expected]
    times = [[int(line[2]) for line in lines] for lines in (shown, expected)]
    # Those of a stream begin with its first.
    began = [one[0] for one in times]
    assert [at - began[0] for at in times[0]] == [at - began[1] for at in times[1]]


@pytest.mark.parametrize("transport", TRANSPORTS)
@again_if_starved
def test_every_rate_of_a_file_is_there_packet_by_packet(server: Server, wmvs: Path, transport: str) -> None:
    expected = packets(str(wmvs / "levels.wmv"))
    assert len(expected) == len(WMV_RATES) + 1
    assert packets(url(server, "levels.wmv"), transport) == expected
    # And they are those that were encoded.
    for rate, encoded in zip(WMV_RATES, expected[1:], strict=True):
        assert packets(str(wmvs / "levels-files.wmv" / f"{rate}.wmv"))[1] == encoded


@again_if_starved
def test_files_of_a_folder_are_one_object(server: Server, wmvs: Path) -> None:
    assert packets(url(server, "levels-files.wmv"), "tcp") == packets(str(wmvs / "levels.wmv"))


@again_if_starved
def test_sound_alone_is_played(server: Server, wmvs: Path) -> None:
    expected = packets(str(wmvs / "sound.wma"))
    assert len(expected) == 1 and packets(url(server, "sound.wma"), "udp") == expected


@again_if_starved
def test_a_film_that_is_cut_short_is_played_up_to_there(server: Server, wmvs: Path) -> None:
    (_, whole), (_, shown) = packets(str(wmvs / "film.wmv")), packets(url(server, "cut.wmv"), "udp")
    assert len(whole) // 4 < len(shown) < len(whole)
    assert shown == whole[: len(shown)]


@again_if_starved
def test_who_says_nothing_while_it_takes_is_not_given_up(wmvs: Path) -> None:
    with Server(wmvs, "--timeout", "2", system="windows_media") as server:
        assert packets(url(server), "tcp") == packets(str(wmvs / "film.wmv"))


@again_if_starved
def test_one_file_is_at_every_path(wmvs: Path) -> None:
    with Server(wmvs / "film.wmv", system="windows_media") as server:
        for path in ("film.wmv", "anything/else"):
            assert packets(url(server, path), "tcp") == packets(str(wmvs / "film.wmv"))
        assert server.wait_for("playing")["path"] == "/film.wmv"


def ask(server: Server, text: str) -> str:
    """The answer to a request."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(text.encode())
        return connection.recv(65536).decode(errors="replace")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("none.wmv", 415),
        ("head.wmv", 415),
        ("broken.wmv", 415),
        ("notes.txt", 415),
        ("empty.wmv", 415),
        ("absent.wmv", 404),
    ],
)
def test_what_cannot_be_played_is_refused(server: Server, name: str, status: int) -> None:
    answer = ask(
        server, f"DESCRIBE {url(server, name)} RTSP/1.0\r\nCSeq: 1\r\nAccept: application/sdp\r\n\r\n"
    )
    assert answer.startswith(f"RTSP/1.0 {status} "), answer


def test_a_description_has_what_players_of_the_time_need(server: Server) -> None:
    said = ask(
        server, f"DESCRIBE {url(server, 'levels.wmv')} RTSP/1.0\r\nCSeq: 1\r\nAccept: application/sdp\r\n\r\n"
    )
    assert "Server: WMServer/9" in said and "Supported: com.microsoft.wm.srvppair" in said
    header = said.index("a=pgmpu:data:application/vnd.ms.wms-hdr.asfv1;base64,")
    assert header < said.index("m=")
    for number in range(1, len(WMV_RATES) + 2):
        assert f"a=control:stream={number}\r\na=stream:{number}\r\n" in said
    assert "a=control:rtx\r\na=stream:65536\r\n" in said
    assert said.count("b=RS:0\r\nb=RR:0\r\n") == len(WMV_RATES) + 2


def taken(client: WmsClient, seconds: float) -> list[bytes]:
    """Media that comes in so long."""
    (*_, media) = client.pairs
    media.rtp.setblocking(True)
    came, until = [], time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        media.rtp.settimeout(left)
        try:
            came.append(media.rtp.recv(65536))
        except TimeoutError:
            break
    return came


@again_if_starved
def test_the_link_is_measured_by_three_packets_in_a_row(server: Server) -> None:
    client = WmsClient(server.port, "/long.wmv")
    client.set_up()
    assert client.tell("application/x-rtsp-udp-packetpair", "type: high-entropy-packetpair").status == 200
    assert client.again is not None
    client.again.rtp.settimeout(5)
    sizes = [len(client.again.rtp.recv(65536)) for _ in range(3)]
    assert [bytes_ + 28 for bytes_ in sizes] == [1_498, 1_499, 1_500]
    client.close()


@again_if_starved
def test_another_rate_comes_from_its_next_key_frame_on_and_less_of_it(server: Server) -> None:
    client = WmsClient(server.port, "/long.wmv")
    client.play_streams(1, 4)
    before = [stream_of(datagram) for datagram in taken(client, 3)]
    assert {1, 4} == set(before)
    assert client.switch(4, 2).status == 200
    # A key frame comes each 2 s.
    taken(client, 3)
    after = [stream_of(datagram) for datagram in taken(client, 3)]
    assert {1, 2} == set(after) and after.count(2) < before.count(4)
    assert client.switch(2, 2, level=2).status == 200
    taken(client, 1)
    assert {stream_of(datagram) for datagram in taken(client, 2)} == {1}
    client.close()


@again_if_starved
def test_play_begins_where_it_is_told_with_the_next_key_frame(server: Server) -> None:
    client = WmsClient(server.port, "/long.wmv")
    client.set_up(1, 4)
    played = client.ask("PLAY", Range="npt=19.5-")
    assert played.status == 200 and played.headers["range"].startswith("npt=19.5")
    pictures = [datagram for datagram in taken(client, 2) if stream_of(datagram) == 4]
    (at_ms,) = struct.unpack_from("!I", pictures[0], 4)
    is_key = pictures[0][RTP_BYTES] & 0x80
    # A key frame comes each 2 s; those of sound are sooner.
    assert is_key and 20_000 <= at_ms < 20_000 + 1_000 // FILM_RATE, at_ms
    assert client.ask("PLAY", Range="npt=90-").status == 457
    client.close()


@again_if_starved
def test_what_is_lost_comes_again_as_it_was(server: Server) -> None:
    client = WmsClient(server.port, "/long.wmv")
    client.play_streams(1, 4)
    sent = taken(client, 3)
    lost = sent[2::3]
    (ssrc,) = {struct.unpack_from("!I", datagram, 8)[0] for datagram in sent}
    client.say_lost(nack(7, ssrc, *(struct.unpack_from("!H", datagram, 2)[0] for datagram in lost)))
    assert client.again is not None
    client.again.rtp.settimeout(5)
    assert [client.again.rtp.recv(65536) for _ in lost] == lost
    client.close()


@again_if_starved
def test_media_comes_faster_to_who_asks_and_is_told_how_fast(server: Server) -> None:
    counts = []
    for asked in (None, "AccelDuration=8000;AccelBandwidth=5912000"):
        client = WmsClient(server.port, "/long.wmv")
        headers = {} if asked is None else {"X_Accelerate_Streaming": asked}
        played = client.play_streams(1, 4, **headers)
        granted = played.headers.get("x-accelerate-streaming")
        assert (granted is None) == (asked is None)
        counts.append(len(taken(client, 3)))
        client.close()
    assert counts[1] > 2.5 * counts[0], counts

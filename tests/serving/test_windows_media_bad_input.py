"""Clients that are broken or mean it ill: each has its answer, and another player sees all of its film."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import FILM_RATE, FILM_SECONDS, WMV_RATES, Server
from starved import again_if_starved
from streamgauge.emu.engine import engine
from windows_media_client import WmsClient, nack

MOST_GROWTH_BYTES = 32 << 20
STREAM_SWITCH = "application/x-wms-streamswitch"
PACKET_PAIR = "application/x-rtsp-udp-packetpair"


@pytest.fixture(scope="module")
def server(wmvs: Path) -> Iterator[Server]:
    with Server(wmvs, system="windows_media") as server:
        yield server


def another_player_sees_all_of_it(server: Server, while_: Callable[[], None]) -> None:
    """Plays the film, and meanwhile does that again and again."""
    url = f"rtsp://127.0.0.1:{server.port}/film.wmv"
    command = [engine(), "play", "--json", "--set=silence=1s", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as player:
        while player.poll() is None:
            while_()
            while server.listen(0):
                pass  # Its pipe would fill up with who comes and goes.
        assert player.stdout is not None
        report = json.loads(player.stdout.read())
    assert report["frames_shown"] == FILM_SECONDS * FILM_RATE and report["stalls"] == 0, report


@again_if_starved
def test_floods_over_udp_leave_others_served_and_memory_bounded(server: Server) -> None:
    client = WmsClient(server.port, "/long.wmv")
    client.play_streams(1, 4, X_Accelerate_Streaming="AccelDuration=4294967295;AccelBandwidth=4294967295")
    before = server.resident_bytes()
    broken = [os.urandom(size) for size in (1, 3, 40, 1400)] + [b"\x91\xcd\xff\xff" + os.urandom(60)]
    everything = range(0, 65_536, 256)
    wanted = [nack(0, 0, *everything), nack(1, 2, 3), nack(0, 0) + os.urandom(9)]

    def flood() -> None:
        for datagram in (*broken, *wanted) * 20:
            client.say_lost(datagram)
        client.drain()
        time.sleep(0.001)

    another_player_sees_all_of_it(server, flood)
    assert client.ask("GET_PARAMETER").status == 200
    assert server.resident_bytes() - before < MOST_GROWTH_BYTES
    client.close()


@again_if_starved
def test_floods_on_the_connection_leave_others_served(server: Server) -> None:
    def flood() -> None:
        client = WmsClient(server.port, "/film.wmv")
        client.say(os.urandom(4_000) + b"\r\n\r\n" + b"$\x09\x0f\xa0" + os.urandom(4_000))
        client.close()
        client = WmsClient(server.port, "/film.wmv")
        client.set_up(1, transport="tcp")
        for number in range(0, 70_000, 997):
            client.send_body(STREAM_SWITCH, f"SSEntry: 1 {number} {number % 9} a b\r\n")
        client.close()
        time.sleep(0.01)

    another_player_sees_all_of_it(server, flood)


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/x-nobody-knows", "anything", 451),
        ("text/parameters", "speed: 7\r\n", 451),
        # Streams that are not there, are not played, are of the other kind; a level that is none; no URL.
        (STREAM_SWITCH, "SSEntry: 4 77 0 a b\r\n", 451),
        (STREAM_SWITCH, "SSEntry: 77 4 0 a b\r\n", 451),
        (STREAM_SWITCH, "SSEntry: 2 3 0 a b\r\n", 451),
        (STREAM_SWITCH, "SSEntry: 4 1 0 a b\r\n", 451),
        (STREAM_SWITCH, "SSEntry: 4 260 0 a b\r\n", 451),
        (STREAM_SWITCH, "SSEntry: 4 3 9 a b\r\n", 451),
        (STREAM_SWITCH, "SSEntry: 4 3 0 a\r\n", 451),
        (STREAM_SWITCH, "\r\n", 451),
        (STREAM_SWITCH, "SSEntry: 4 3 0 a b\r\n", 200),
        (STREAM_SWITCH, "SSEntry: 4 4 2 a b\r\n", 200),
        # Over TCP there is nothing to measure the link with.
        (PACKET_PAIR, "type: high-entropy-packetpair", 451),
        (PACKET_PAIR, "type: pigeons", 451),
        ("application/x-wms-Logconnectstats", "<XML>" + "no" * 1_000, 200),
    ],
)
def test_a_wish_has_its_status(server: Server, kind: str, body: str, status: int) -> None:
    client = WmsClient(server.port, "/levels.wmv")
    client.set_up(1, 1 + len(WMV_RATES), transport="tcp")
    assert client.tell(kind, body).status == status
    assert client.ask("PLAY", Range="npt=0-").status == 200
    client.close()


def test_malformed_requests_have_their_status(server: Server) -> None:
    tcp = b"Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"
    for text, status in (
        (b"NO WAY\r\n\r\n", 400),
        (b"OPTIONS * RTSP/7.0\r\nCSeq: 1\r\n\r\n", 505),
        (b"FETCH rtsp://h/film.wmv RTSP/1.0\r\nCSeq: 1\r\n\r\n", 501),
        (b"SETUP rtsp://h/film.wmv/stream=7 RTSP/1.0\r\nCSeq: 1\r\n" + tcp + b"\r\n", 404),
        (b"SETUP rtsp://h/film.wmv/stream=200 RTSP/1.0\r\nCSeq: 1\r\n" + tcp + b"\r\n", 404),
        (b"SETUP rtsp://h/film.wmv/rtx RTSP/1.0\r\nCSeq: 1\r\n" + tcp + b"\r\n", 461),
        (b"SETUP rtsp://h/film.wmv/stream=1 RTSP/1.0\r\nCSeq: 1\r\nTransport: pigeons\r\n\r\n", 461),
        (b"PLAY rtsp://h/film.wmv RTSP/1.0\r\nCSeq: 1\r\nSession: 7\r\n\r\n", 454),
    ):
        client = WmsClient(server.port, "/film.wmv")
        client.say(text)
        assert client.answer().status == status, text
        client.close()


@again_if_starved
def test_a_player_that_never_reports_is_served_until_it_is_given_up(wmvs: Path) -> None:
    # Over UDP it takes all, and says nothing of it; another one plays beside it.
    with Server(wmvs, "--timeout", "12", system="windows_media") as server:
        files = server.descriptors()
        client = WmsClient(server.port, "/long.wmv")
        client.play_streams(1, 4)
        another_player_sees_all_of_it(server, lambda: time.sleep(0.1))
        assert client.drain() > 50
        closed = [server.wait_for("closed", within_s=30, count=number) for number in (1, 2)]
        assert {one["why"] for one in closed} == {"client closed the connection", "client has vanished"}
        assert server.descriptors() == files
        client.close()


@again_if_starved
def test_a_player_that_takes_nothing_over_tcp_is_freed(wmvs: Path) -> None:
    with Server(wmvs, "--timeout", "2", system="windows_media") as server:
        files, before = server.descriptors(), server.resident_bytes()
        client = WmsClient(server.port, "/long.wmv")
        # The kernel takes some first, faster than it is shown.
        fast = "AccelDuration=60000;AccelBandwidth=100000000"
        client.play_streams(1, 4, transport="tcp", X_Accelerate_Streaming=fast)
        closed = server.wait_for("closed", within_s=60)
        assert closed["why"] == "client has vanished", closed
        assert server.descriptors() == files
        assert server.resident_bytes() - before < MOST_GROWTH_BYTES
        client.close()

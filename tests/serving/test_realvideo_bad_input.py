"""Clients that are broken or mean it ill: each has its answer, and another player sees all of its film."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import FILM_RATE, FILM_SECONDS, Server
from realmedia_client import RealClient, nak
from starved import again_if_starved
from streamgauge.emu.engine import engine

MOST_GROWTH_BYTES = 32 << 20


@pytest.fixture(scope="module")
def server(films: Path) -> Iterator[Server]:
    with Server(films, system="realvideo") as server:
        yield server


def another_player_sees_all_of_it(server: Server, while_: Callable[[], None]) -> None:
    """Plays the film, and meanwhile does that again and again."""
    url = f"rtsp://127.0.0.1:{server.port}/film.rm"
    with subprocess.Popen([engine(), "play", "--json", url], stdout=subprocess.PIPE, text=True) as player:
        while player.poll() is None:
            while_()
            while server.listen(0):
                pass  # Its pipe would fill up with who comes and goes.
        assert player.stdout is not None
        report = json.loads(player.stdout.read())
    assert report["frames_shown"] == FILM_SECONDS * FILM_RATE and report["stalls"] == 0, report


@again_if_starved
def test_floods_over_udp_leave_others_served_and_memory_bounded(server: Server) -> None:
    client = RealClient(server.port, "/long.rm")
    client.play_rdt()
    client.ask("SET_PARAMETER", SetDeliveryBandwidth="Bandwidth=4294967295;BackOff=0")
    before = server.resident_bytes()
    broken = [os.urandom(size) for size in (1, 3, 40, 1400)] + [b"\xc0\xff\x02" + os.urandom(60)]
    wanted = [nak(0, 500, 500), nak(0, 60_000, 2_000), nak(9, 10, 10), b"\x00\xff\x03" * 400]

    def flood() -> None:
        for datagram in (*broken, *wanted) * 20:
            client.tell(datagram)
        client.drain()
        time.sleep(0.001)

    another_player_sees_all_of_it(server, flood)
    assert client.ask("SET_PARAMETER").status == 200
    assert server.resident_bytes() - before < MOST_GROWTH_BYTES
    client.close()


@again_if_starved
def test_floods_on_the_connection_leave_others_served(server: Server) -> None:
    def flood() -> None:
        client = RealClient(server.port, "/film.rm")
        client.say(os.urandom(4_000) + b"\r\n\r\n" + b"$\x09\x0f\xa0" + os.urandom(4_000))
        client.close()
        client = RealClient(server.port, "/film.rm")
        client.set_up(transport="tcp")
        for rule in range(0, 70_000, 997):
            client.tell_parameter("Subscribe", f"stream={rule % 9};rule={rule}")
        client.close()
        time.sleep(0.01)

    another_player_sees_all_of_it(server, flood)


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Subscribe", "stream=0;rule=77", 451),
        ("Subscribe", "stream=77;rule=0", 451),
        ("Subscribe", "all", 451),
        ("SetDeliveryBandwidth", "Bandwidth=99999999999;BackOff=0", 451),
        ("SetDeliveryBandwidth", "Bandwidth=4294967295;BackOff=0", 200),
        ("SetDeliveryBandwidth", "Bandwidth=0;BackOff=0", 200),
    ],
)
def test_a_wish_has_its_status(server: Server, header: str, value: str, status: int) -> None:
    client = RealClient(server.port, "/film.rm")
    client.set_up(transport="tcp")
    assert client.ask("SET_PARAMETER", **{header: value}).status == status
    assert client.ask("PLAY", Range="npt=0-").status == 200
    client.close()


def test_malformed_requests_have_their_status(server: Server) -> None:
    for text, status in (
        (b"NO WAY\r\n\r\n", 400),
        (b"OPTIONS * RTSP/7.0\r\nCSeq: 1\r\n\r\n", 505),
        (b"FETCH rtsp://h/film.rm RTSP/1.0\r\nCSeq: 1\r\n\r\n", 501),
        (b"SETUP rtsp://h/film.rm/streamid=7 RTSP/1.0\r\nCSeq: 1\r\nTransport: x-pn-tng/tcp\r\n\r\n", 404),
        (b"SETUP rtsp://h/film.rm/streamid=0 RTSP/1.0\r\nCSeq: 1\r\nTransport: pigeons\r\n\r\n", 461),
        (b"PLAY rtsp://h/film.rm RTSP/1.0\r\nCSeq: 1\r\nSession: 7\r\n\r\n", 454),
    ):
        client = RealClient(server.port, "/film.rm")
        client.say(text)
        assert client.answer().status == status, text
        client.close()


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@again_if_starved
def test_a_player_that_has_vanished_is_freed(films: Path, transport: str) -> None:
    with Server(films, "--timeout", "2", system="realvideo") as server:
        files = server.descriptors()
        client = RealClient(server.port, "/long.rm")
        # Over TCP it reads nothing more; the kernel takes some first, faster than it is shown.
        client.play_rdt(transport=transport, SetDeliveryBandwidth="Bandwidth=100000000;BackOff=0")
        closed = server.wait_for("closed", within_s=60)
        assert closed["why"] == "client has vanished", closed
        assert server.descriptors() == files
        client.close()

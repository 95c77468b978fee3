"""Any player of HTTP over named content: the proxy on real sockets."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import Process, Server, put_ladder
from play_ndn import Ndnd, report
from programs import mpv, pictures, vlc
from starved import again_if_starved
from streamgauge.emu.engine import engine

pytestmark = pytest.mark.emu

SECONDS = 4
MANIFEST = "card/manifest.mpd"
SEGMENT = "card/v1/2.m4s"


class Proxy(Process):
    """`streamgauge-engine proxy --json`."""

    def __init__(self, url: str, *options: str) -> None:
        super().__init__([str(engine()), "proxy", "--json", "--listen", "127.0.0.1:0", *options, url])
        self.port = int(self.wait_for("ready")["port"])

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def answered(self) -> list[dict[str, Any]]:
        """What it said of requests so far."""
        return [line for line in self.said if line["event"] == "answered"]


@pytest.fixture(scope="module")
def ladders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ladders")
    put_ladder(folder, "card", SECONDS)
    return folder


@pytest.fixture(scope="module")
def producer(ladders: Path) -> Iterator[Server]:
    with Server(ladders, system="ccn") as producer:
        yield producer


@pytest.fixture(scope="module")
def proxy(producer: Server) -> Iterator[Proxy]:
    with Proxy(f"ndn://127.0.0.1:{producer.port}/clip") as proxy:
        yield proxy


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers by their lower-case names, body."""
    asked = urllib.request.Request(url, method=method, headers=headers)
    try:
        answer = urllib.request.urlopen(asked, timeout=20)
    except urllib.error.HTTPError as refused:
        answer = refused
    with answer:
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()


@pytest.mark.parametrize("name", [MANIFEST, "card/timeline.mpd", "card/master.m3u8", SEGMENT])
def test_its_answers_are_those_of_http(proxy: Proxy, ladders: Path, name: str) -> None:
    with Server(ladders, system="dash") as origin:
        direct = get(f"http://127.0.0.1:{origin.port}/{name}")
    status, headers, body = get(proxy.url(name))
    assert (status, body) == (200, direct[2])
    assert headers["content-type"] == direct[1]["content-type"]
    assert headers["access-control-allow-origin"] == "*"
    status, headers, nothing = get(proxy.url(name), "HEAD")
    assert (status, headers["content-length"], nothing) == (200, str(len(body)), b"")
    status, headers, part = get(proxy.url(name), Range="bytes=100-299")
    assert (status, part, headers["content-range"]) == (206, body[100:300], f"bytes 100-299/{len(body)}")
    assert get(proxy.url(name), Range=f"bytes={len(body)}-")[0] == 416


@pytest.mark.parametrize(
    ("method", "name", "status"),
    [
        ("GET", "card/nothing.mpd", 404),
        ("GET", "card/../../etc/passwd", 404),
        ("POST", MANIFEST, 405),
        ("GET", "", 400),
        ("OPTIONS", MANIFEST, 204),
    ],
)
def test_what_cannot_be_answered_gets_a_quick_no(proxy: Proxy, method: str, name: str, status: int) -> None:
    begun = time.monotonic()
    assert get(proxy.url(name), method)[0] == status
    assert time.monotonic() - begun < 2


def test_requests_at_once_each_get_their_own(proxy: Proxy) -> None:
    names = [f"card/v{level}/{number}.m4s" for level in (0, 1) for number in range(1, SECONDS // 2 + 1)]
    with concurrent.futures.ThreadPoolExecutor(len(names) * 3) as pool:
        found = list(pool.map(lambda name: get(proxy.url(name))[2], names * 3))
    assert found == [get(proxy.url(name))[2] for name in names] * 3
    assert len(set(found)) == len(names)


def test_each_request_is_told(producer: Server) -> None:
    with Proxy(f"ndn://127.0.0.1:{producer.port}") as proxy:
        body = get(proxy.url(f"clip/{SEGMENT}"))[2]
        get(proxy.url("clip/none"))
        assert proxy.stop() == 0
        proxy.wait_for("stopped")
    first, second = proxy.answered()
    told = {key: first[key] for key in ("method", "path", "status", "whole", "bytes", "expired")}
    assert told == {
        "method": "GET", "path": f"/clip/{SEGMENT}", "status": 200, "whole": True, "bytes": len(body),
        "expired": 0,
    }  # fmt: skip
    # One for its metadata, and one for each 8000 B.
    assert first["interests"] == 1 + -(-len(body) // 8000)
    assert (second["status"], second["bytes"]) == (404, 0)
    assert proxy.wait_for("stopped")["by_status"] == {"200": 1, "404": 1}


def test_who_goes_in_the_middle_leaves_nothing(producer: Server) -> None:
    with Proxy(f"ndn://127.0.0.1:{producer.port}/clip") as proxy:
        before = proxy.descriptors()
        for _ in range(20):
            asking = socket.create_connection(("127.0.0.1", proxy.port))
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            asking.sendall(f"GET /{SEGMENT} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            asking.recv(100)
            # It has not read all, so that its end resets the connection.
            asking.close()
        assert get(proxy.url(MANIFEST))[0] == 200
        until = time.monotonic() + 5
        while proxy.descriptors() > before and time.monotonic() < until:
            time.sleep(0.05)
        assert proxy.descriptors() <= before


def test_more_connections_than_it_takes_wait(producer: Server) -> None:
    with Proxy(f"ndn://127.0.0.1:{producer.port}/clip", "--max-connections=2") as proxy:
        idle = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(2)]
        time.sleep(0.3)
        with pytest.raises(TimeoutError):
            asking = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=0.5)
            asking.request("GET", f"/{MANIFEST}")
            asking.getresponse()
        for one in idle:
            one.close()
        assert get(proxy.url(MANIFEST))[0] == 200


def test_connections_of_one_address_leave_room_for_others(producer: Server) -> None:
    with Proxy(f"ndn://127.0.0.1:{producer.port}/clip", "--max-per-address=3") as proxy, ExitStack() as held:
        for _ in range(3):
            held.enter_context(socket.create_connection(("127.0.0.1", proxy.port)))
        with pytest.raises(OSError):
            get(proxy.url(MANIFEST))
        assert proxy.wait_for("refused")["client"].startswith("127.0.0.1:")
        other = http.client.HTTPConnection(
            "127.0.0.1", proxy.port, timeout=20, source_address=("127.0.0.2", 0)
        )
        other.request("GET", f"/{MANIFEST}")
        assert other.getresponse().status == 200
        other.close()


def test_a_forwarder_that_goes_and_comes_back_is_asked_again(ladders: Path) -> None:
    first = Server(ladders, system="ccn")
    with Proxy(f"ndn://127.0.0.1:{first.port}/clip", "--set=store_bytes=0") as proxy:
        assert get(proxy.url(SEGMENT))[0] == 200
        first.__exit__()
        time.sleep(0.2)
        begun = time.monotonic()
        status, _, why = get(proxy.url(SEGMENT))
        assert status == 502 and why and time.monotonic() - begun < 3
        with Server(ladders, system="ccn", listen=f"127.0.0.1:{first.port}"):
            until = time.monotonic() + 10
            while (status := get(proxy.url(SEGMENT))[0]) != 200 and time.monotonic() < until:
                assert status == 502
                time.sleep(0.2)
        assert status == 200


@again_if_starved
def test_our_player_plays_over_it(proxy: Proxy) -> None:
    assert report(proxy.url(MANIFEST))["frames_shown"] == 25 * SECONDS


def test_mpv_plays_over_it(proxy: Proxy) -> None:
    mpv(proxy.url(MANIFEST))


def test_vlc_plays_over_it(proxy: Proxy) -> None:
    with tempfile.TemporaryDirectory() as home:
        said = vlc(proxy.url(MANIFEST), Path(home))
    assert "MPD profile" in said
    fetched = {int(number) for number in re.findall(r"/v\d/(\d+)\.m4s", json.dumps(said_of(proxy)))}
    assert fetched >= set(range(1, SECONDS // 2 + 1))


@pytest.mark.parametrize(("player", "form"), [("dashjs", MANIFEST), ("hlsjs", "card/master.m3u8")])
def test_a_browser_plays_over_it(proxy: Proxy, tmp_path: Path, player: str, form: str) -> None:
    assert pictures(player, proxy.url(form), tmp_path) > 20


def test_it_asks_by_way_of_a_forwarder_of_others(producer: Server, tmp_path: Path) -> None:
    with Ndnd(tmp_path) as ndnd:
        ndnd.run(
            "fw", "route-add", "prefix=/clip", f"face=tcp4://127.0.0.1:{producer.port}",
            "persistency=permanent",
        )  # fmt: skip
        with Proxy(f"ndn://127.0.0.1:{ndnd.port}/clip") as proxy:
            assert report(proxy.url(MANIFEST))["frames_shown"] == 25 * SECONDS


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["ndn://127.0.0.1:1/clip"], 4, "refused or out of reach"),
        (["http://127.0.0.1/"], 3, "which no proxy here asks by"),
        (["ndn://127.0.0.1/clip", "--preset=none"], 3, "ndn-today"),
        (["ndn://127.0.0.1/clip", "--set=interest_window=0"], 3, "interest_window"),
        (["ndn://127.0.0.1/clip", "--set=window=3"], 3, "choose among"),
    ],
)
def test_what_it_cannot_do_is_said_before_it_begins(arguments: list[str], status: int, words: str) -> None:
    # By its public name, which says bad input by status 3.
    done = subprocess.run(
        ["streamgauge proxy", "proxy", "--listen", "127.0.0.1:0", *arguments],
        executable=engine(),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == status and words in done.stderr, done.stderr
    assert "answering" not in done.stdout


def test_a_port_that_is_taken_is_named(producer: Server) -> None:
    command = [str(engine()), "proxy", "--listen", f"127.0.0.1:{producer.port}"]
    done = subprocess.run(
        [*command, f"ndn://127.0.0.1:{producer.port}"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 4 and "another program has this port" in done.stderr, done.stderr


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(producer: Server, which: signal.Signals) -> None:
    with Proxy(f"ndn://127.0.0.1:{producer.port}") as proxy:
        assert proxy.stop(which) == 0


def said_of(proxy: Proxy) -> list[dict[str, Any]]:
    """Of all requests, once what it said is read."""
    get(proxy.url("card/last-of-all"))
    until = time.monotonic() + 5
    while not any("last-of-all" in one["path"] for one in proxy.answered()) and time.monotonic() < until:
        proxy.listen(0.1)
    return proxy.answered()

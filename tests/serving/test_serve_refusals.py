"""What the real server says to bad input, and that it goes on serving."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Serve
from rtsp_client import Client, ack
from streamgauge.emu.engine import engine


@pytest.fixture
def library(clips: Path, tmp_path: Path) -> Path:
    """A folder with what must not be served in it and around it."""
    folder = tmp_path / "videos"
    (folder / "sub folder").mkdir(parents=True)
    for name in ("h264.mp4", "mjpeg.mov"):
        shutil.copy(clips / name, folder)
    shutil.copy(clips / "h264.mp4", folder / "sub folder" / "käse & brot.mp4")
    shutil.copy(clips / "h264.mp4", tmp_path / "secret.mp4")
    (folder / "out.mp4").symlink_to(tmp_path / "secret.mp4")
    (folder / "up.mp4").symlink_to("../secret.mp4")
    (folder / "around").symlink_to(tmp_path)
    (folder / "in.mp4").symlink_to("h264.mp4")
    (folder / "junk.mp4").write_bytes(os.urandom(5000))
    (folder / "empty.mp4").touch()
    (folder / "notes.txt").write_text("hello")
    os.mkfifo(folder / "pipe.mp4")
    return folder


PATHS = [
    ("/h264.mp4", 200),
    ("//h264.mp4", 200),
    ("/%68264.mp4", 200),
    ("/in.mp4", 200),
    ("/sub%20folder/k%C3%A4se%20%26%20brot.mp4", 200),
    ("/none.mp4", 404),
    ("/", 404),
    ("/sub%20folder", 404),
    ("/sub%20folder/", 404),
    ("/pipe.mp4", 404),
    ("/../secret.mp4", 404),
    ("/%2e%2e/secret.mp4", 404),
    ("/%2e%2e%2fsecret.mp4", 404),
    ("/sub%20folder/../../secret.mp4", 404),
    ("/..%5csecret.mp4", 404),
    ("/out.mp4", 404),
    ("/up.mp4", 404),
    ("/around/secret.mp4", 404),
    ("/around/videos/h264.mp4", 404),
    ("//etc/passwd", 404),
    ("/h264.mp4%00.txt", 404),
    ("/notes.txt", 415),
    ("/junk.mp4", 415),
    ("/empty.mp4", 415),
    ("/mjpeg.mov", 415),
]


def test_paths_stay_in_the_folder_and_say_what_is_wrong(serve: Serve, library: Path) -> None:
    server = serve(folder=library)
    secret = str(library.parent / "secret.mp4")
    found = {}
    for path, _ in [*PATHS, (secret, 404), ("/" + secret, 404)]:
        client = Client(server.port, path)
        found[path] = client.ask("DESCRIBE", Accept="application/sdp").status
        client.close()
    assert found == {**dict(PATHS), secret: 404, "/" + secret: 404}
    assert server.stop() == 0


def test_a_file_that_changes_is_read_again(serve: Serve, library: Path) -> None:
    server = serve(folder=library)
    client = Client(server.port)
    before = client.ask("DESCRIBE").body
    assert client.ask("DESCRIBE").body.split(b"m=")[1:] == before.split(b"m=")[1:]
    shutil.copy(library / "junk.mp4", library / "h264.mp4")
    assert client.ask("DESCRIBE").status == 415
    (library / "h264.mp4").unlink()
    assert client.ask("DESCRIBE").status == 404


def test_tracks_sessions_and_methods_that_are_not_there(serve: Serve) -> None:
    server = serve()
    client = Client(server.port)
    (video, *_) = client.controls()
    wanted = "RTP/AVP/TCP;unicast;interleaved=0-1"
    absent = video.rstrip("0123456789") + "77"
    assert client.ask("SETUP", absent, Transport=wanted).status == 404
    assert client.ask("SETUP", video, Transport="RTP/AVP;multicast").status == 461
    assert client.ask("PLAY").status in (454, 455)
    assert client.ask("PLAY", Session="12345678").status == 454
    assert client.ask("FLY").status in (405, 501)
    assert client.ask("OPTIONS", "*").status == 200, "and it still serves"


MALFORMED = {
    b"DESCRIBE rtsp://127.0.0.1/h264.mp4\r\nCSeq: 1\r\n\r\n": 400,
    b"DESCRIBE rtsp://127.0.0.1/h264.mp4 RTSP/1.0\r\n\r\n": 400,
    b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: many\r\n\r\n": 400,
    b"DESCRIBE ht!tp:// RTSP/1.0\r\nCSeq: 1\r\n\r\n": 400,
    b"OPTIONS * RTSP/9.9\r\nCSeq: 1\r\n\r\n": 505,
    b"\x00\x01\x02\x03": 400,
    b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nX-Long: " + b"a" * 70_000 + b"\r\n\r\n": 400,
}


@pytest.mark.parametrize("text", MALFORMED, ids=[repr(text[:20]) for text in MALFORMED])
def test_malformed_requests_get_their_status(serve: Serve, text: bytes) -> None:
    server = serve()
    client = Client(server.port)
    client.say(text)
    assert client.answer().status == MALFORMED[text]
    assert Client(server.port).ask("OPTIONS").status == 200


def test_a_full_server_says_503_and_takes_others_later(serve: Serve) -> None:
    server = serve("--max-sessions=2", "--max-per-address=9")
    first, second = Client(server.port), Client(server.port)
    assert first.ask("OPTIONS").status == second.ask("OPTIONS").status == 200
    third = Client(server.port)
    refused = third.ask("DESCRIBE")
    assert (refused.status, refused.headers["cseq"]) == (503, "1")
    with pytest.raises(ConnectionError):
        third.answer()
    first.close()
    server.wait_for("closed")
    assert Client(server.port).ask("OPTIONS").status == 200
    assert server.wait_for("refused")["why"] == "2 clients are here"


def test_an_address_with_its_share_is_told_503(serve: Serve) -> None:
    server = serve("--max-per-address=1")
    first, second = Client(server.port), Client(server.port)
    assert first.ask("OPTIONS").status == 200
    assert second.ask("OPTIONS").status == 503


def test_ports_run_out_with_a_status(serve: Serve) -> None:
    server = serve("--udp-ports=29970-29971")
    one, two = Client(server.port), Client(server.port)
    one.play(tracks=1)
    (video, *_) = two.controls()
    assert two.ask("SETUP", video, Transport="RTP/AVP;unicast;client_port=40000-40001").status == 503
    assert one.ask("TEARDOWN").status == 200
    one.close()
    server.wait_for("closed")
    two.play(tracks=1)


@pytest.mark.parametrize("stage", ["connected", "asked", "playing"])
def test_a_client_that_vanishes_is_freed(serve: Serve, stage: str) -> None:
    server = serve("--timeout=1")
    before = server.descriptors()
    client = Client(server.port)
    if stage == "asked":
        client.ask("DESCRIBE")
    elif stage == "playing":
        client.play()
    server.wait_for("opened")
    assert server.descriptors() > before
    closed = server.wait_for("closed", within_s=30)
    assert closed["duration_s"] > 0.9
    assert (closed["rtp_packets_sent"] > 0) == (stage == "playing")
    assert server.descriptors() == before
    # The client is still there, and learns of it.
    with pytest.raises(ConnectionError):
        while True:
            client.answer()


def test_who_keeps_alive_stays(serve: Serve) -> None:
    server = serve("--timeout=5")
    client = Client(server.port)
    client.play(tracks=1)
    until = time.monotonic() + 6
    while time.monotonic() < until:
        time.sleep(0.2)
        client.pairs[0].rtcp.sendto(ack(1), ("127.0.0.1", client.pairs[0].server_rtcp))
    assert client.ask("OPTIONS").status == 200
    assert not [line for line in server.said if line["event"] == "closed"]


def flood_of_requests(client: Client) -> None:
    """Requests, of which no answer is read."""
    client.socket.setblocking(False)
    text = b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n" * 500
    try:
        while True:
            client.socket.send(text)
    except BlockingIOError:
        pass


def flood_of_rtcp(client: Client) -> None:
    """Acknowledgements of anything, and noise."""
    to = ("127.0.0.1", client.pairs[0].server_rtcp)
    for sequence in range(2000):
        client.pairs[0].rtcp.sendto(ack(sequence * 31 % 65536), to)
        client.pairs[0].rtcp.sendto(bytes(sequence % 200), to)


@pytest.mark.parametrize("flood", [flood_of_requests, flood_of_rtcp])
def test_a_flood_stops_nobody_else(serve: Serve, flood: Callable[[Client], None]) -> None:
    server = serve()
    flooder, other = Client(server.port), Client(server.port)
    flooder.play(tracks=1)
    other.play(tracks=1)
    began, received = time.monotonic(), 0
    # The other has his video, 25 frames a second, however much longer a busy machine takes over it.
    while (took := time.monotonic() - began) < 2.5 or received < 50:
        assert took < 60, received
        flood(flooder)
        received += other.drain()
    assert other.ask("GET_PARAMETER").status == 200
    assert server.resident_bytes() < 64 << 20


def test_sockets_and_memory_come_back(serve: Serve) -> None:
    """No sequence of comings and goings leaks a descriptor or a port."""
    server = serve("--udp-ports=28900-28919", "--timeout=60")
    before = server.descriptors()
    for round_ in range(30):
        clients = [Client(server.port) for _ in range(4)]
        for number, client in enumerate(clients):
            stage = (round_ + number) % 6
            if stage == 1:
                client.ask("DESCRIBE")
            elif stage == 2:
                client.play(transport="tcp")
            elif stage == 3:
                client.play()
            elif stage == 4:
                client.play(reliable=True)
                client.ask("TEARDOWN")
            elif stage == 5:
                client.play(tracks=1)
                client.say(b"DESCRIBE")
        for client in clients:
            client.close()
        # The next have all of the ports again, which are few.
        server.wait_for("closed", count=4 * (round_ + 1))
    assert server.descriptors() == before
    assert [line for line in server.said if line["event"] == "refused"] == []


@pytest.mark.parametrize("with_", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_bye(serve: Serve, with_: signal.Signals) -> None:
    server = serve()
    client = Client(server.port)
    client.play(tracks=1)
    client.pairs[0].rtcp.settimeout(5)
    server.wait_for("playing")
    assert server.stop(with_) == 0
    seen = []
    while 203 not in seen:  # BYE
        packet = client.pairs[0].rtcp.recv(2048)
        while packet:
            seen.append(packet[1])
            packet = packet[4 + 4 * int.from_bytes(packet[2:4], "big") :]
    assert server.wait_for("stopped")["sessions"] == 1
    assert server.wait_for("closed")["why"] == "server stopped"


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """The server with wrong options."""
    return subprocess.run(
        [engine(), "serve", *options], capture_output=True, text=True, check=False, timeout=20
    )


def test_what_cannot_be_served_is_said_at_once(tmp_path: Path) -> None:
    missing = run("--system=darwin", str(tmp_path / "none"))
    assert missing.returncode == 3 and "none" in missing.stderr and "name a folder" in missing.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        busy = run("--system=darwin", f"--listen=127.0.0.1:{port}", str(tmp_path))
    assert busy.returncode == 4 and "choose another with --listen" in busy.stderr
    wrong = run("--system=darwin", "--set=no_such=1", str(tmp_path))
    assert wrong.returncode == 3 and "choose among" in wrong.stderr and "rtp_timeout" in wrong.stderr
    wrong = run("--system=darwin", "--timeout=0.5", str(tmp_path))
    assert wrong.returncode == 3 and "--timeout: 500 ms; give 1 s or more" in wrong.stderr

"""Other people's clients against our HTTP server, and our player against nginx, in a network of their own."""

from __future__ import annotations

import filecmp
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import RATE, SECONDS, Server
from starved import again_if_starved
from streamgauge.emu.engine import engine
from test_serve_players import DIGESTS, Network, needs, pictures

pytestmark = pytest.mark.emu

FRAMES = RATE * SECONDS
NGINX_PORT = 8081


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.close()


@pytest.fixture(scope="module")
def files(clips: Path) -> Iterator[Path]:
    """Clips with their tables in front, one as ffmpeg leaves it, and a file that is none."""
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-http-"))
    folder.chmod(0o755)
    for name in ("h264.mp4", "plain.mp4", "long.mp4"):
        command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-i", str(clips / name), "-c", "copy"]
        subprocess.run([*command, "-movflags", "+faststart", str(folder / name)], check=True)
    shutil.copy(clips / "h264.mp4", folder / "late.mp4")
    (folder / "sub folder").mkdir()
    shutil.copy(folder / "h264.mp4", folder / "sub folder" / "käse & brot.mp4")
    (folder / "junk.mp4").write_text("hello, hello, hello")
    (folder / "notes.txt").write_text("hello")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server(network: Network, files: Path) -> Iterator[Server]:
    with Server(files, prefix=network.prefix, system="http") as server:
        yield server


def url(server: Server, name: str) -> str:
    """Where a file is."""
    return f"http://127.0.0.1:{server.port}/{name}"


def curl(network: Network, *options: str) -> str:
    """What curl writes to stdout."""
    needs("curl")
    done = network.run("curl", "--silent", "--show-error", "--path-as-is", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_curl_gets_the_file_and_ranges_of_it(
    network: Network, server: Server, files: Path, tmp_path: Path
) -> None:
    got, there = tmp_path / "got", files / "h264.mp4"
    status = ["--output", str(got), "--write-out", "%{http_code}"]
    assert curl(network, *status, url(server, "h264.mp4")) == "200"
    assert filecmp.cmp(got, there, shallow=False)
    for wanted, part in [
        ("100-199", slice(100, 200)),
        ("-50", slice(-50, None)),
        ("1000-", slice(1000, None)),
    ]:
        assert curl(network, *status, "--range", wanted, url(server, "h264.mp4")) == "206"
        assert got.read_bytes() == there.read_bytes()[part]
    assert curl(network, *status, "--range", "99999999-", url(server, "h264.mp4")) == "416"
    got.write_bytes(there.read_bytes()[:5000])
    assert curl(network, *status, "--continue-at", "-", url(server, "h264.mp4")) == "206"
    assert filecmp.cmp(got, there, shallow=False)


def test_paths_stay_in_the_folder(network: Network, server: Server) -> None:
    status = ["--output", "/dev/null", "--write-out", "%{http_code}"]
    for path, expected in {
        "sub%20folder/k%C3%A4se%20%26%20brot.mp4": "200",
        "none.mp4": "404",
        "": "404",
        "sub%20folder/": "404",
        "notes.txt": "404",
        "../h264.mp4": "404",
        "%2e%2e/h264.mp4": "404",
        "/etc/passwd": "404",
    }.items():
        assert curl(network, *status, url(server, path)) == expected, path
    assert curl(network, *status, "--request", "DELETE", url(server, "h264.mp4")) == "405"


def test_a_full_server_says_503_and_connections_come_back(network: Network, files: Path) -> None:
    with Server(files, "--max-sessions=1", prefix=network.prefix, system="http") as server:
        before = server.descriptors()
        slow = [*network.prefix, "curl", "--silent", "--limit-rate", "20k", url(server, "long.mp4")]
        with subprocess.Popen(slow, stdout=subprocess.DEVNULL) as first:
            server.wait_for("playing")
            status = ["--output", "/dev/null", "--write-out", "%{http_code}"]
            assert curl(network, *status, url(server, "h264.mp4")) == "503"
            first.kill()
        closed = server.wait_for("closed")
        assert (closed["session"], closed["responses_sent"]) == (1, 1)
        assert curl(network, *status, url(server, "h264.mp4")) == "200"
        server.wait_for("closed", count=2)
        assert server.descriptors() == before
        assert server.stop() == 0


@pytest.mark.parametrize("name", ["h264.mp4", "late.mp4"])
@again_if_starved
def test_ffmpeg_decodes_every_picture_as_from_the_file(
    network: Network, server: Server, files: Path, name: str
) -> None:
    command = ["ffmpeg", "-nostdin", "-loglevel", "error"]
    expected = pictures(network.run(*command, "-i", files / name, "-map", "0:v", *DIGESTS))
    assert len(expected) == FRAMES
    played = network.run(*command, "-i", url(server, name), "-map", "0:v", *DIGESTS)
    assert pictures(played) == expected


@again_if_starved
def test_gstreamer_shows_every_frame(network: Network, server: Server) -> None:
    needs("gst-launch-1.0")
    source = f"souphttpsrc location={url(server, 'plain.mp4')}"
    pipeline = f"{source} ! qtdemux ! h264parse ! avdec_h264 ! fakesink silent=false"
    done = network.run("gst-launch-1.0", "-v", *pipeline.split())
    if "no element" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert sum("last-message = chain" in line for line in done.stdout.splitlines()) == FRAMES


def play(network: Network, *words: str | Path, status: int = 0) -> dict[str, Any]:
    """The report of our player."""
    done = network.run(engine(), "play", "--json", *words)
    assert done.returncode == status, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@again_if_starved
def test_our_player_shows_and_saves_what_our_server_has(
    network: Network, server: Server, files: Path, tmp_path: Path
) -> None:
    saved, events = tmp_path / "saved.mp4", tmp_path / "events.jsonl"
    report = play(network, f"--save={saved}", f"--events={events}", url(server, "h264.mp4"))
    assert report["outcome"] == "played to the end"
    assert (report["frames_shown"], report["stalls"], report["requests"]) == (FRAMES, 0, 1)
    assert report["bytes_received"] == report["file_bytes"] == (files / "h264.mp4").stat().st_size
    assert filecmp.cmp(saved, files / "h264.mp4", shallow=False)
    names = [json.loads(line)["name"] for line in events.read_text().splitlines()]
    assert (names[0], names[-1], names.count("frame_shown")) == ("http_request", "media_end", FRAMES)


@again_if_starved
def test_our_player_stalls_where_the_file_comes_too_slowly(
    network: Network, files: Path, tmp_path: Path
) -> None:
    with Nginx(network, files, tmp_path, limit_bytes_per_s=25_000):
        report = play(network, f"http://127.0.0.1:{NGINX_PORT}/h264.mp4")
    # 4 s of media that take longer to come, all but nginx's burst of a second, and are asked for once.
    assert report["frames_shown"] == FRAMES
    assert report["stalls"] > 0 and report["stalled_s"] > 0.5
    assert report["duration_s"] > SECONDS + 0.5 and report["requests"] == 1


@again_if_starved
def test_our_player_asks_nginx_for_ranges(network: Network, files: Path, tmp_path: Path) -> None:
    with Nginx(network, files, tmp_path):
        report = play(network, "--set=request=20000", f"http://127.0.0.1:{NGINX_PORT}/plain.mp4")
    assert (report["frames_shown"], report["stalls"]) == (FRAMES, 0)
    assert report["requests"] == -(-report["file_bytes"] // 20_000)


def test_our_player_says_in_one_line_what_it_cannot_play(network: Network, server: Server) -> None:
    for where, status, words in [
        (url(server, "none.mp4"), 3, "404 Not Found"),
        (url(server, "late.mp4"), 3, "+faststart"),
        (url(server, "junk.mp4"), 3, "not an MP4"),
        ("http://127.0.0.1:9/a.mp4", 4, "is a server there?"),
    ]:
        done = network.run(engine(), "play", where)
        assert done.returncode == status and words in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
    secret = network.run(engine(), "play", "https://127.0.0.1/a.mp4")
    assert secret.returncode == 2 and "scheme https" in secret.stderr and "http://HOST" in secret.stderr


class Nginx:
    """nginx over a folder, on a port of the network, at most so fast for each connection."""

    def __init__(self, network: Network, files: Path, at: Path, limit_bytes_per_s: int = 0) -> None:
        needs("nginx")
        limit = f"limit_rate {limit_bytes_per_s};" if limit_bytes_per_s else ""
        conf = at / "nginx.conf"
        conf.write_text(
            f"daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\n"
            "events {}\n"
            f"http {{ access_log off; client_body_temp_path {at}/body; proxy_temp_path {at}/proxy;\n"
            f"fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;\n"
            f"types {{ video/mp4 mp4; }}\n"
            f"server {{ listen 127.0.0.1:{NGINX_PORT}; root {files}; {limit} }} }}\n"
        )
        self.network = network
        self.command = [*network.prefix, "nginx", "-e", f"{at}/error.log", "-c", str(conf)]

    def __enter__(self) -> None:
        self.process = subprocess.Popen(self.command)
        probe = ["curl", "--silent", "--output", "/dev/null", f"http://127.0.0.1:{NGINX_PORT}/"]
        until = time.monotonic() + 20
        while self.network.run(*probe).returncode != 0:
            assert time.monotonic() < until and self.process.poll() is None, "nginx did not start"
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)

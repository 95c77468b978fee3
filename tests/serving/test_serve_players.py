"""Other people's players against our server, and our player against theirs, in a network of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import RATE, SECONDS, Server
from starved import GAVE_UP, again_if_starved
from streamgauge.emu.engine import engine

pytestmark = pytest.mark.emu

FRAMES = RATE * SECONDS
FILES = ["h264.mp4", "mpeg4.mov"]
TRANSPORTS = ["udp", "tcp"]


class Network:
    """A network namespace with loopback alone."""

    def __init__(self) -> None:
        user = ["--user", "--map-root-user"] if os.geteuid() != 0 else []
        line = "ip link set lo up && echo up && exec sleep infinity"
        self._holder = subprocess.Popen(
            ["unshare", *user, "--net", "sh", "-c", line], stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "up\n"
        user = ["--user", "--preserve-credentials"] if user else []
        self.prefix = ("nsenter", f"--target={self._holder.pid}", "--net", *user)

    def run(self, *command: str | Path, timeout_s: float = 90.0) -> subprocess.CompletedProcess[str]:
        """A program in it."""
        return subprocess.run(
            [*self.prefix, *command], capture_output=True, text=True, check=False, timeout=timeout_s
        )

    def close(self) -> None:
        """It goes with its holder."""
        self._holder.kill()
        self._holder.communicate()


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.close()


@pytest.fixture(scope="module")
def server(network: Network, clips: Path) -> Iterator[Server]:
    with Server(clips, prefix=network.prefix) as server:
        yield server


def needs(program: str) -> None:
    """Skips where it is missing."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here (scripts/packages-debian.txt)")


def url(server: Server, name: str) -> str:
    """Where a clip is."""
    return f"rtsp://127.0.0.1:{server.port}/{name}"


def pictures(ffmpeg: subprocess.CompletedProcess[str]) -> list[str]:
    """The digest of every picture that ffmpeg decoded, in order."""
    assert ffmpeg.returncode == 0, ffmpeg.stderr
    return [line.split(",")[-1].strip() for line in ffmpeg.stdout.splitlines() if not line.startswith("#")]


DIGESTS = ["-vsync", "passthrough", "-f", "framemd5", "-"]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", FILES)
@again_if_starved
def test_ffmpeg_decodes_every_picture_as_from_the_file(
    network: Network, server: Server, clips: Path, name: str, transport: str
) -> None:
    command = ["ffmpeg", "-nostdin", "-loglevel", "error"]
    expected = pictures(network.run(*command, "-i", clips / name, "-map", "0:v", *DIGESTS))
    assert len(expected) == FRAMES
    played = network.run(
        *command, "-rtsp_transport", transport, "-i", url(server, name), "-map", "0:v", *DIGESTS
    )
    assert pictures(played) == expected


@pytest.mark.parametrize("transport", TRANSPORTS)
@again_if_starved
def test_ffmpeg_gets_the_sound_too(network: Network, server: Server, clips: Path, transport: str) -> None:
    command = ["ffmpeg", "-nostdin", "-loglevel", "error"]
    expected = pictures(network.run(*command, "-i", clips / "h264.mp4", "-map", "0:a", *DIGESTS))
    played = network.run(
        *command, "-rtsp_transport", transport, "-i", url(server, "h264.mp4"), "-map", "0:a", *DIGESTS
    )
    assert set(pictures(played)) >= set(expected[1:]), "the first block holds the encoder's priming"


def shown_by_gstreamer(network: Network, pipeline: str) -> int:
    """Buffers that a loud fakesink of gst-launch-1.0 -v has shown.

    GStreamer 1.22 is run again, and the end of the session says so, where it failed by itself: one time in
    some fifty it shows nothing, stops halfway or finds no pad linked, while the server has sent every packet.
    """
    for _ in range(GSTREAMER_TRIES):
        try:
            done = network.run("gst-launch-1.0", "-v", *pipeline.split(), timeout_s=30.0)
        except subprocess.TimeoutExpired:
            said = "did not end within 30 s"
        else:
            # It may also close its connection at the end and then fail to say PAUSE on it.
            if done.returncode == 0 or ("Got EOS" in done.stdout and "gst_rtspsrc_pause" in done.stderr):
                return sum("last-message = chain" in line for line in done.stdout.splitlines())
            said = done.stderr + done.stdout[-2000:]
        GAVE_UP.append(f"{pipeline.partition(' ')[0]}: {said.partition(chr(10))[0]}")
    raise AssertionError(f"{GSTREAMER_TRIES} times GStreamer failed, last: {said}")


GSTREAMER_TRIES = 3


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", FILES)
@again_if_starved
def test_gstreamer_shows_every_frame(network: Network, server: Server, name: str, transport: str) -> None:
    needs("gst-launch-1.0")
    depay = {
        "h264.mp4": "application/x-rtp,media=video ! rtph264depay ! avdec_h264",
        "mpeg4.mov": "rtpmp4vdepay ! avdec_mpeg4",
    }
    source = f"rtspsrc location={url(server, name)} protocols={transport} latency=200"
    pipeline = f"{source} ! {depay[name]} ! fakesink silent=false sync=true"
    assert shown_by_gstreamer(network, pipeline) == FRAMES


@pytest.mark.parametrize("name", FILES)
@again_if_starved
def test_gstreamer_finds_out_by_itself_what_a_url_has(network: Network, server: Server, name: str) -> None:
    needs("gst-launch-1.0")
    # What playbin is made of. Its own sinks never end here when there is sound, and these do.
    pipeline = f"uridecodebin uri={url(server, name)} name=all "
    pipeline += "all. ! video/x-raw ! queue ! fakesink silent=false sync=true"
    if name == "h264.mp4":
        pipeline += " all. ! audio/x-raw ! queue ! fakesink sync=true"
    assert shown_by_gstreamer(network, pipeline) == FRAMES


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", FILES)
@again_if_starved
def test_mpv_shows_the_frames(
    network: Network, server: Server, tmp_path: Path, name: str, transport: str
) -> None:
    needs("mpv")
    quiet = ["--no-config", "--no-terminal", "--ao=null", "--framedrop=no", "--untimed"]
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    out = ["--vo=image", "--vo-image-format=jpg", f"--vo-image-outdir={folder}"]
    done = network.run("mpv", *quiet, *out, f"--rtsp-transport={transport}", url(server, name))
    assert done.returncode == 0, done.stderr
    # mpv holds no frame back for its duration at the end of a stream.
    assert FRAMES - 1 <= len(list(folder.glob("*.jpg"))) <= FRAMES


def play(network: Network, *options: str, status: int = 0) -> dict[str, Any]:
    """Our player's report."""
    done = network.run(engine(), "play", "--json", *options)
    assert done.returncode == status, done.stderr + done.stdout
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("player", "transport"), [("quicktime", "udp"), ("vlc", "udp"), ("quicktime", "tcp")]
)
@again_if_starved
def test_our_player_shows_every_frame_of_our_server(
    network: Network, server: Server, name: str, player: str, transport: str
) -> None:
    report = play(network, f"--player={player}", f"--transport={transport}", url(server, name))
    assert report["outcome"] == "played to the end"
    assert report["reliable_udp"] == (player == "quicktime" and transport == "udp")
    assert (report["frames_shown"], report["frames_incomplete"], report["packets_lost"]) == (FRAMES, 0, 0)
    assert report["stalls"] == 0
    assert 0 < report["startup_delay_s"] < 5


@pytest.mark.parametrize("name", ["plain.mp4", *FILES])
@again_if_starved
def test_what_our_player_saves_decodes_to_the_files_pictures(
    network: Network, server: Server, clips: Path, tmp_path: Path, name: str
) -> None:
    saved = tmp_path / ("saved.h264" if name.endswith("mp4") else "saved.m4v")
    play(network, f"--save={saved}", url(server, name))
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-i"]
    decoded = pictures(network.run(*command, saved, *DIGESTS))
    assert decoded == pictures(network.run(*command, clips / name, "-map", "0:v", *DIGESTS))


@again_if_starved
def test_our_player_stops_when_it_is_told_and_still_reports(network: Network, server: Server) -> None:
    before = len([line for line in server.said if line["event"] == "closed"])
    report = play(network, "--duration=3", url(server, "h264.mp4"))
    assert report["outcome"] == "stopped as asked"
    assert 0 < report["frames_shown"] < FRAMES
    server.wait_for("closed", count=before + 1)
    command = [*network.prefix, str(engine()), "play", "--json", url(server, "h264.mp4")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as playing:
        time.sleep(3)
        playing.terminate()
        said, _ = playing.communicate(timeout=10)
    assert json.loads(said)["outcome"] == "interrupted"


@again_if_starved
def test_our_player_says_what_it_could_not_play(network: Network, server: Server, clips: Path) -> None:
    absent = network.run(engine(), "play", url(server, "none.mp4"))
    assert absent.returncode == 3 and "404" in absent.stderr, absent.stderr
    broken = network.run(engine(), "play", url(server, "mjpeg.mov"))
    assert broken.returncode == 3 and "415" in broken.stderr, broken.stderr
    nobody = network.run(engine(), "play", "rtsp://127.0.0.1:9/a.mp4")
    assert nobody.returncode == 4 and "connect" in nobody.stderr, nobody.stderr
    wrong = network.run(engine(), "play", "gopher://127.0.0.1/a.mp4")
    assert wrong.returncode == 2 and "rtsp://HOST" in wrong.stderr
    with Server(clips, prefix=network.prefix) as other:
        command = [*network.prefix, str(engine()), "play", "--json", url(other, "long.mp4")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as playing:
            other.wait_for("playing")
            time.sleep(2)
            other.process.kill()
            said, _ = playing.communicate(timeout=60)
        assert playing.returncode == 1
        assert "ended early" in json.loads(said)["outcome"]


@pytest.mark.parametrize("transport", TRANSPORTS)
@again_if_starved
def test_our_player_shows_what_gstreamers_server_has(
    network: Network, clips: Path, tmp_path: Path, transport: str
) -> None:
    python = Path("/usr/bin/python3")
    if subprocess.run([python, "-c", "import gi"], check=False, capture_output=True).returncode != 0:
        pytest.skip("GStreamer's bindings are not here (scripts/packages-debian.txt)")
    import streamgauge.systems

    program = Path(streamgauge.systems.__file__).parent / "programs" / "gst_rtsp_server.py"
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    environment = {
        "PATH": os.environ["PATH"],
        "STREAMGAUGE_MEDIA": str(clips / "h264.mp4"),
        "STREAMGAUGE_SERVER": "127.0.0.1",
        "STREAMGAUGE_PORT": "8555",
        "STREAMGAUGE_EVENTS": str(folder / "events.jsonl"),
        "STREAMGAUGE_READY": str(folder / "ready"),
    }
    with subprocess.Popen([*network.prefix, python, program], env=environment, stderr=sys.stderr) as theirs:
        try:
            until = time.monotonic() + 20
            while not (folder / "ready").exists() and time.monotonic() < until:
                time.sleep(0.05)
            report = play(network, "--player=vlc", f"--transport={transport}", "rtsp://127.0.0.1:8555/clip")
        finally:
            theirs.kill()
    assert report["reliable_udp"] is False
    assert FRAMES - 2 <= report["frames_shown"] <= FRAMES

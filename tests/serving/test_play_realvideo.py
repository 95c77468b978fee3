"""Our RealVideo player against our server, as two processes on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import FILM_RATE, FILM_SECONDS, Server
from starved import again_if_starved
from streamgauge.emu.engine import engine

FRAMES = FILM_SECONDS * FILM_RATE
TRANSPORTS = ["udp", "tcp"]


@pytest.fixture(scope="module")
def server(films: Path) -> Iterator[Server]:
    with Server(films, system="realvideo") as server:
        yield server


def url(server: Server, name: str = "film.rm") -> str:
    return f"rtsp://127.0.0.1:{server.port}/{name}"


def play(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What `play` says, whatever its status."""
    command = [engine(), "play", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)


def played(*arguments: str | Path) -> dict[str, Any]:
    """The report of a play that went well."""
    done = play("--json", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout))


def pictures(file: Path) -> list[str]:
    """The digest of every picture that ffmpeg decodes, in order."""
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-i", str(file), "-map", "0:v"]
    command += ["-vsync", "passthrough", "-f", "framemd5", "-"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split(",")[-1].strip() for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("transport", TRANSPORTS)
@again_if_starved
def test_a_film_is_played_to_its_end_and_saved_as_it_was(
    server: Server, films: Path, tmp_path: Path, transport: str
) -> None:
    saved = tmp_path / "saved.rm"
    report = played("--transport", transport, "--save", saved, url(server))
    assert report["outcome"] == "played to the end"
    assert report["player"] == "realplayer8" and report["transport"] == transport
    assert report["frames_shown"] == FRAMES
    for none in ("frames_late", "frames_incomplete", "stalls", "packets_lost", "level_changes"):
        assert report[none] == 0, none
    assert report["level_bps"] == 182_000 and report["levels_bps"] == [182_000]
    assert pictures(saved) == pictures(films / "film.rm")


@again_if_starved
def test_it_says_in_words_what_it_saw(server: Server) -> None:
    done = play("--progress", "--duration", "2.5", url(server))
    assert done.returncode in (0, 1)
    assert "over udp" in done.stdout and "levels: 182 kbit/s at the end, of 182; 0 changes" in done.stdout
    assert "packets lost" in done.stderr


@pytest.mark.parametrize("transport", TRANSPORTS)
@again_if_starved
def test_it_rises_to_a_higher_level_where_there_is_room(
    server: Server, tmp_path: Path, transport: str
) -> None:
    events = tmp_path / "events.jsonl"
    # It looks higher sooner than it does by itself: over TCP it believes in 1.5 times what came in 20 s.
    constants = [
        "preference_bps=100000",
        "ceiling_after=0",
        "offer_after=1",
        "tcp_rate_window=2s",
        "test_share=1",
    ]
    report = played(
        *(f"--set={constant}" for constant in constants),
        f"--transport={transport}",
        f"--events={events}",
        "--duration=20",
        url(server, "long.rm"),
    )
    assert report["levels_bps"][-2:] == [72_000, 232_000]
    assert report["level_bps"] == 232_000 and report["level_changes"] >= 1
    assert report["stalls"] == 0 and report["frames_incomplete"] == 0
    said = [json.loads(line) for line in events.read_text().splitlines()]
    levels = [event["value"] for event in said if event["name"] == "level_changed"]
    assert levels[0] == 72_000 and levels[-1] == 232_000


@again_if_starved
def test_who_is_told_to_stop_leaves_the_server_and_reports(films: Path) -> None:
    with Server(films, system="realvideo") as server:
        files = server.descriptors()
        for number, told in enumerate((signal.SIGINT, signal.SIGTERM), start=1):
            command = [str(engine()), "play", "--json", url(server, "long.rm")]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as playing:
                server.wait_for("playing", count=number)
                playing.send_signal(told)
                said, _ = playing.communicate(timeout=10)
            assert json.loads(said)["outcome"] == "interrupted"
            closed = server.wait_for("closed", count=number, within_s=5)
            assert closed["why"] == "client closed the connection"
        assert server.descriptors() == files


@again_if_starved
def test_a_server_that_dies_ends_it_early(films: Path) -> None:
    with Server(films, system="realvideo") as server:
        command = [str(engine()), "play", "--json", url(server, "long.rm")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as playing:
            server.wait_for("playing")
            server.process.kill()
            said, _ = playing.communicate(timeout=60)
        assert playing.returncode == 1
        assert "ended early" in json.loads(said)["outcome"]


def test_what_is_not_there_is_told_with_what_to_do(server: Server) -> None:
    absent = play(url(server, "absent.rm"))
    assert absent.returncode == 3 and "404" in absent.stderr and "name a file" in absent.stderr
    none = play(url(server, "none.rm"))
    assert none.returncode == 3 and "415" in none.stderr
    nobody = play("rtsp://127.0.0.1:9/film.rm")
    assert nobody.returncode == 4 and "connect" in nobody.stderr
    wrong = play("--set", "preference=1", url(server))
    assert wrong.returncode == 3 and "preference_bps" in wrong.stderr


def test_another_server_than_realnetworks_is_told(server: Server, clips: Path) -> None:
    with Server(clips) as other:
        named = play("--player", "realplayer8", url(other, "plain.mp4"))
        assert named.returncode == 3, named
        assert "no RealVideo server" in named.stderr and "--player quicktime" in named.stderr
        absent = play(url(other, "absent.rm"))
        assert absent.returncode == 3 and "404" in absent.stderr and "--player quicktime" in absent.stderr
    with Server(clips, system="http") as web:
        mute = play(url(web, "film.rm"))
        assert mute.returncode == 3 and "cannot be read" in mute.stderr
    by_rtp = play("--player", "vlc", url(server))
    assert by_rtp.returncode == 1 and "--player realplayer8" in by_rtp.stdout, by_rtp

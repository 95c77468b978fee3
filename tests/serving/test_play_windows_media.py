"""Our Windows Media player against our server, as two processes on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import FILM_RATE, FILM_SECONDS, WMV_RATES, Server
from starved import again_if_starved
from streamgauge.emu.engine import engine

FRAMES = FILM_SECONDS * FILM_RATE
TRANSPORTS = ["udp", "tcp"]


@pytest.fixture(scope="module")
def server(wmvs: Path) -> Iterator[Server]:
    with Server(wmvs, system="windows_media") as server:
        yield server


def url(server: Server, name: str = "film.wmv") -> str:
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
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-i", str(file)]
    command += ["-an", "-vsync", "passthrough", "-f", "framemd5", "-"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split(",")[-1].strip() for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("transport", TRANSPORTS)
@again_if_starved
def test_a_film_is_played_to_its_end_and_saved_as_it_was(
    server: Server, wmvs: Path, tmp_path: Path, transport: str
) -> None:
    saved = tmp_path / "saved.wmv"
    report = played("--transport", transport, "--save", saved, url(server))
    assert report["outcome"] == "played to the end"
    assert report["player"] == "wmp9" and report["transport"] == transport
    assert report["frames_shown"] == FRAMES
    for none in ("frames_late", "frames_incomplete", "stalls", "packets_lost", "level_changes"):
        assert report[none] == 0, none
    assert report["levels_bps"] == [report["level_bps"]]
    # Over UDP the link is measured first, and media comes after five seconds.
    assert (report["estimate_bps"] is not None) == (transport == "udp")
    assert (report["duration_s"] > 5.0 + FILM_SECONDS) == (transport == "udp")
    assert pictures(saved) == pictures(wmvs / "film.wmv")


@again_if_starved
def test_it_says_in_words_what_it_saw(server: Server) -> None:
    done = play("--progress", "--duration", "8", url(server))
    assert done.returncode in (0, 1)
    assert "over udp" in done.stdout and "kbit/s at the end, of " in done.stdout
    assert "; 0 changes\nlink: " in done.stdout and "packets lost" in done.stderr


@again_if_starved
def test_it_takes_the_rate_that_fits_and_saves_that(server: Server, wmvs: Path, tmp_path: Path) -> None:
    levels = json.loads(play("--json", "--duration=1", url(server, "levels.wmv")).stdout)["levels_bps"]
    assert len(levels) == len(WMV_RATES) and levels == sorted(levels)
    # So much more than the rate itself does the player want.
    links = [20_000, levels[1] / 0.92, 10_000_000]
    for link, level, rate in zip(links, levels, WMV_RATES, strict=True):
        saved = tmp_path / f"{rate}.wmv"
        told = ["--set=packet_pair=false", f"--set=preference_bps={link:.0f}", "--set=silence=0s"]
        report = played(*told, "--save", saved, url(server, "levels.wmv"))
        assert report["level_bps"] == level and report["levels_bps"] == levels
        assert report["frames_shown"] == FRAMES and report["estimate_bps"] is None
        assert pictures(saved) == pictures(wmvs / "levels-files.wmv" / f"{rate}.wmv")


@again_if_starved
def test_beside_a_helix_server_it_measures_nothing_and_hurries_nothing(server: Server) -> None:
    # Both want to hold 15 s, and so all of the film, which the one has at once and the other as it plays.
    reports = [played("--player", name, "--set=silence=0s", url(server)) for name in ("wmp9", "wmp9-helix")]
    assert [report["frames_shown"] for report in reports] == [FRAMES, FRAMES]
    assert reports[0]["estimate_bps"] > 0 and reports[1]["estimate_bps"] is None
    assert reports[1]["startup_delay_s"] > 2 * reports[0]["startup_delay_s"] > 0


@again_if_starved
def test_who_is_told_to_stop_leaves_the_server_and_reports(wmvs: Path) -> None:
    with Server(wmvs, system="windows_media") as server:
        files = server.descriptors()
        for number, told in enumerate((signal.SIGINT, signal.SIGTERM), start=1):
            command = [str(engine()), "play", "--json", url(server, "long.wmv")]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as playing:
                server.wait_for("playing", count=number)
                playing.send_signal(told)
                said, _ = playing.communicate(timeout=10)
            assert json.loads(said)["outcome"] == "interrupted"
            closed = server.wait_for("closed", count=number, within_s=5)
            assert closed["why"] == "client closed the connection"
        assert server.descriptors() == files


@again_if_starved
def test_a_server_that_dies_ends_it_early(wmvs: Path) -> None:
    with Server(wmvs, system="windows_media") as server:
        command = [str(engine()), "play", "--json", url(server, "long.wmv")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as playing:
            server.wait_for("playing")
            server.process.kill()
            said, _ = playing.communicate(timeout=60)
        assert playing.returncode == 1
        assert "ended early" in json.loads(said)["outcome"]


def test_what_is_not_there_is_told_with_what_to_do(server: Server) -> None:
    absent = play(url(server, "absent.wmv"))
    assert absent.returncode == 3 and "404" in absent.stderr and "name a file" in absent.stderr
    none = play(url(server, "none.wmv"))
    assert none.returncode == 3 and "415" in none.stderr
    nobody = play("rtsp://127.0.0.1:9/film.wmv")
    assert nobody.returncode == 4 and "connect" in nobody.stderr
    wrong = play("--set", "preference=1", url(server))
    assert wrong.returncode == 3 and "preference_bps" in wrong.stderr


def test_another_server_than_microsofts_is_told(server: Server, clips: Path) -> None:
    with Server(clips) as other:
        named = play("--player", "wmp9", url(other, "plain.mp4"))
        assert named.returncode == 3, named
        assert "no Windows Media server" in named.stderr and "--player quicktime" in named.stderr
    with Server(clips, system="http") as web:
        mute = play(url(web, "film.wmv"))
        assert mute.returncode == 3 and "cannot be read" in mute.stderr
    by_rtp = play("--player", "vlc", url(server))
    assert by_rtp.returncode == 1 and "--player wmp9" in by_rtp.stdout, by_rtp

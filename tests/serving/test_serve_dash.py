"""Other people's players against our origin on real sockets, and our player against nginx."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, put_ladder
from programs import mpv, pictures
from starved import again_if_starved
from streamgauge.emu.engine import engine

pytestmark = pytest.mark.emu

FORMS = ("manifest.mpd", "timeline.mpd", "ranges.mpd", "master.m3u8", "ranges.m3u8")
SECONDS = 8


@pytest.fixture(scope="module")
def ladders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ladder, and the same as ffmpeg packaged it."""
    folder = tmp_path_factory.mktemp("ladders")
    put_ladder(folder, "card", SECONDS)
    (folder / "secret").mkdir()
    return folder


@pytest.fixture(scope="module")
def server(ladders: Path) -> Iterator[Server]:
    with Server(ladders, system="dash") as server:
        yield server


def url(server: Server, name: str) -> str:
    return f"http://127.0.0.1:{server.port}/{name}"


def play(url: str, *options: str) -> dict[str, Any]:
    """What our player says of a URL."""
    command = [str(engine()), "play", "--json", *options, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("form", FORMS)
@again_if_starved
def test_our_player_plays_every_form_to_its_end(server: Server, form: str) -> None:
    said = play(url(server, f"card/{form}"))
    assert said["frames_shown"] == 25 * SECONDS, said


@again_if_starved
def test_our_player_plays_what_ffmpeg_packaged(server: Server, ladders: Path) -> None:
    (mpd,) = (ladders / "packaged").glob("*.mpd")
    assert play(url(server, f"packaged/{mpd.name}"))["frames_shown"] == 25 * SECONDS


@pytest.mark.parametrize("form", FORMS)
def test_ffmpeg_decodes_every_picture(server: Server, form: str) -> None:
    command = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-count_frames", "-of", "csv=p=0"]
    command += ["-show_entries", "stream=nb_read_frames", url(server, f"card/{form}")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert {int(line) for line in done.stdout.split()} == {25 * SECONDS}, done.stdout + done.stderr


def test_mpv_plays_it(server: Server) -> None:
    mpv(url(server, "card/manifest.mpd"))


@pytest.mark.parametrize(("player", "form"), [("dashjs", "manifest.mpd"), ("hlsjs", "master.m3u8")])
def test_a_browser_plays_it(server: Server, tmp_path: Path, player: str, form: str) -> None:
    assert pictures(player, url(server, f"card/{form}"), tmp_path) > 20


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("card/nothing.mpd", 404),
        ("card/v9/init.mp4", 404),
        ("card/v0/99.m4s", 404),
        ("../../etc/passwd", 404),
        ("card/..%2f..%2fetc/passwd", 404),
        ("secret/manifest.mpd", 404),
    ],
)
def test_what_is_not_there_is_404(server: Server, path: str, status: int) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url(server, path), timeout=10)
    assert refused.value.code == status


def test_pages_of_other_origins_may_read_it_and_say_what_they_hold(server: Server) -> None:
    asked = urllib.request.Request(url(server, "card/manifest.mpd"), method="OPTIONS")
    asked.add_header("Origin", "http://elsewhere")
    asked.add_header("Access-Control-Request-Method", "GET")
    asked.add_header("Access-Control-Request-Headers", "cmcd-request")
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "cmcd-request" in answer.headers["Access-Control-Allow-Headers"].lower()


def test_a_url_that_is_no_manifest_says_so(server: Server) -> None:
    command = [str(engine()), "play", "--json", url(server, "card/nothing.mpd")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "404" in done.stdout + done.stderr

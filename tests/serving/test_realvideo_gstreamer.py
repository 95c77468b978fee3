"""RealMedia files from our server in GStreamer: every picture and all sound, as from the file.

GStreamer 1.22 (rtspreal, rdtmanager, rdtdepay and rmdemux of gst-plugins-ugly) speaks RDT over TCP alone. Its
rdtdepay counts the packets of all streams as one, and so loses some of a film with sound: there each stream
is judged with the other's packets left out in front of it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import FILM_RATE, FILM_SECONDS, Server
from starved import GAVE_UP, again_if_starved

PYTHON = Path("/usr/bin/python3")
PROGRAM = Path(__file__).with_name("gst_realvideo.py")
ELEMENTS = ("rtspsrc", "rdtdepay", "rmdemux", "avdec_rv20", "avdec_ac3")
NEEDS = "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst; Gst.init(None)"

FRAMES = FILM_SECONDS * FILM_RATE
STREAMS = ["video_0", "audio_0"]
SOUND = 1
#: GStreamer is run again where it failed by itself, and the end of the session says so.
TRIES = 3


@pytest.fixture(scope="module", autouse=True)
def gstreamer_is_here() -> None:
    asked = f"{NEEDS}; assert all(map(Gst.ElementFactory.find, {ELEMENTS}))"
    if subprocess.run([PYTHON, "-c", asked], check=False, capture_output=True).returncode != 0:
        pytest.skip("GStreamer's bindings or its RealMedia are not here (scripts/packages-debian.txt)")


@pytest.fixture(scope="module")
def server(films: Path) -> Iterator[Server]:
    with Server(films, system="realvideo") as server:
        yield server


@pytest.fixture(scope="module")
def silent(films: Path) -> Path:
    """A film without sound, among the films."""
    silent = films / "silent.rm"
    pictures = ["-f", "lavfi", "-i", f"testsrc=size=176x144:rate={FILM_RATE}", "-t", str(FILM_SECONDS)]
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", *pictures, "-c:v", "rv20", "-b:v", "150k"]
    subprocess.run([*command, "-g", str(2 * FILM_RATE), "-y", str(silent)], check=True)
    return silent


def url(server: Server, name: str) -> str:
    return f"rtsp://127.0.0.1:{server.port}/{name}"


def judged(source: str | Path, stream: str, heard: str = "own") -> dict[str, Any]:
    """What came of a stream, by `gst_realvideo.py`."""
    for _ in range(TRIES):
        command = [PYTHON, PROGRAM, str(source), stream, heard]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout)
            return found
        # In front of it are warnings.
        said = done.stderr.strip().rpartition("\n")[2]
        GAVE_UP.append(f"{source}: {said}")
    raise AssertionError(f"{TRIES} times GStreamer failed, last: {said}")


@pytest.mark.parametrize("stream", STREAMS)
@again_if_starved
def test_gstreamer_has_all_of_a_stream_as_from_the_file(films: Path, stream: str) -> None:
    expected = judged(films / "film.rm", stream)
    assert len(expected["coded"]) == len(expected["decoded"]) > 0
    assert stream != "video_0" or len(expected["coded"]) == FRAMES
    with Server(films, system="realvideo") as server:
        found = judged(url(server, "film.rm"), stream)
        assert found["coded"] == expected["coded"]
        assert found["decoded"] == expected["decoded"]
        assert server.wait_for("playing")["transport"] == "tcp"
        # Of both streams, before the other's are left out.
        assert server.wait_for("closed")["rdt_packets_sent"] == len(found["packets"])


@pytest.mark.parametrize("stream", STREAMS)
@again_if_starved
def test_gstreamer_plays_one_stream_that_it_chose(server: Server, films: Path, stream: str) -> None:
    # It subscribes to rules of the other too, which it has not set up, and gives up at any answer but 200.
    expected = judged(films / "film.rm", stream)
    found = judged(url(server, "film.rm"), stream, "chosen")
    assert found["coded"] == expected["coded"]
    assert found["decoded"] == expected["decoded"]
    assert {number for number, _ in found["packets"]} == {STREAMS.index(stream)}


@pytest.mark.parametrize("heard", ["all", "itself"])
@again_if_starved
def test_gstreamer_shows_a_film_without_sound_by_itself(
    server: Server, silent: Path, tmp_path: Path, heard: str
) -> None:
    expected = judged(silent, "video_0")
    assert len(expected["decoded"]) == FRAMES
    found = judged(url(server, silent.name), "video_0", heard)
    assert found["decoded"] == expected["decoded"]


@again_if_starved
def test_gstreamer_has_the_level_of_a_folder_that_300_kbps_allow(server: Server, films: Path) -> None:
    # Its rtspreal has no other bandwidth to match the rules with.
    expected = judged(films / "levels.rm" / "200k.rm", "video_0")
    assert judged(url(server, "levels.rm"), "video_0")["decoded"] == expected["decoded"]


def passed(packets: list[list[int]]) -> list[int]:
    """The streams of those packets that one count of sequence numbers for all streams lets by.

    It takes for old what is less than 100 behind the number that is to follow.
    """
    streams, following = [], None
    for stream, number in packets:
        behind = 0 if following is None else (following - number + 0x8000) % 0x10000 - 0x8000
        if not 0 < behind < 100:
            streams.append(stream)
            following = number + 1
    return streams


@again_if_starved
def test_what_gstreamer_loses_of_two_streams_is_what_one_count_for_both_leaves_out(
    server: Server, films: Path
) -> None:
    everything = judged(films / "film.rm", "audio_0")["coded"]
    found = judged(url(server, "film.rm"), "audio_0", "all")
    assert [stream for stream, _ in found["packets"]].count(SOUND) == len(everything), "all of them came"
    left = passed(found["packets"]).count(SOUND)
    assert left < len(everything)
    # Of a GStreamer that counts each stream's by themselves none is lost.
    assert len(found["coded"]) in (left, len(everything))

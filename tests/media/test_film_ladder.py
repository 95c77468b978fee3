"""`streamgauge ladder` of a film of one's own: as the film is, but for what is said, and that is stated."""

from __future__ import annotations

import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from streamgauge.cli import main
from streamgauge.cli.film_ladder import asked_ladder
from streamgauge.errors import MediaError, ScenarioError
from streamgauge.media import Content, Ladder
from streamgauge.media.ladder import DESCRIPTION
from streamgauge.media.probe import film_facts

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
pytestmark = needs_ffmpeg


def film(file: Path, *more: str, size: str = "128x72", rate: str = "50", sound: str | None = "2") -> Path:
    command = [
        "ffmpeg",
        "-nostdin",
        "-v",
        "error",
        "-y",
        "-f",
        "lavfi",
        "-i",
        f"testsrc2=s={size}:r={rate}:d=3",
    ]
    command += ["-f", "lavfi", "-i", "sine=r=48000:d=3", "-ac", sound] if sound else []
    command += [*more, "-c:v", "libx264", "-preset", "ultrafast", str(file)]
    subprocess.run(command, check=True)
    return file


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    film(folder / "film.mp4")
    film(folder / "silent.mp4", sound=None)
    film(folder / "ntsc.mp4", rate="30000/1001", sound=None)
    film(folder / "odd.mp4", "-vf", "format=yuv444p,crop=127:71", sound=None)
    film(folder / "uneven.mp4", "-vf", "select='not(eq(mod(n,5),1))'", "-fps_mode", "vfr", sound=None)
    copy = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(folder / "film.mp4"), "-c", "copy"]
    subprocess.run([*copy, "-metadata:s:v:0", "rotate=90", str(folder / "turned.mp4")], check=True)
    subprocess.run([*copy, str(folder / "film.mkv")], check=True)
    subprocess.run([*copy, "-vn", str(folder / "sound.mp4")], check=True)
    return folder


def asked(file: Path, rates: str = "100k,300k", **more: str) -> tuple[Ladder, list[str]]:
    given = dict.fromkeys(("sizes", "duration", "audio", "segment", "frame_rate"), None)
    return asked_ladder(str(file), rates, **{**given, "segment": "1 s", **more})


def test_a_film_keeps_its_size_frame_rate_channels_and_length(films: Path, tmp_path: Path) -> None:
    arguments = ["ladder", str(films / "film.mp4"), "--rates", "100k,300k", "--audio", "64kbit/s"]
    out = tmp_path / "out"
    assert main([*arguments, "--segment", "1s", "--out", str(out)]) == 0
    content = Content.load(out / DESCRIPTION)
    assert [one.size for one in content.video.encodings] == [(128, 72)] * 2
    assert {one.frames.interval_ns for one in content.video.encodings} == {20_000_000}
    assert content.duration_ns == 3_000_000_000 and len(content.video.encodings[0].frames) == 150
    sound = film_facts_of_sound(out / "audio.mp4")
    assert sound["channels"] == 2


def film_facts_of_sound(file: Path) -> dict[str, int]:
    command = ["ffprobe", "-v", "error", "-of", "json", "-show_entries", "stream=channels", str(file)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return dict(found["streams"][0])


def test_what_is_not_as_in_the_film_is_stated(films: Path) -> None:
    _, said = asked(films / "film.mp4", audio="64 kbit/s")
    assert said == ["film.mp4: 128x72, 50 frames/s, 3 s, stereo", "changed: nothing but the rates"]
    ladder, said = asked(films / "film.mp4", "100k@64x36,300k@96x54", duration="2 s", frame_rate="25")
    assert ladder.sizes == ((64, 36), (96, 54)) and ladder.clip(300_000).picture == (96, 54)
    assert said[1] == (
        "changed: sizes 100k 64x36, 300k 96x54; 25 frames/s; the first 2 s alone; "
        "no sound (--audio 128kbit/s would encode it)"
    )
    same, _ = asked(films / "film.mp4", sizes="64x36,96x54", duration="2 s", frame_rate="25")
    assert same == ladder
    _, said = asked(films / "silent.mp4", duration="7 s")
    assert said == ["silent.mp4: 128x72, 50 frames/s, 3 s, no sound", "changed: repeated until 7 s"]


def test_odd_films(films: Path) -> None:
    ladder, said = asked(films / "odd.mp4")
    assert ladder.sizes == ((126, 70),) * 2 and "sizes 100k 126x70, 300k 126x70" in said[1]
    ladder, said = asked(films / "uneven.mp4")
    assert ladder.frame_rate == 40 and "unevenly spaced frames, 40 a second on the mean" in said[0]
    assert "40 frames/s" in said[1]
    ladder, said = asked(films / "turned.mp4")
    assert ladder.sizes == ((72, 128),) * 2, "as players show it, which is as ffmpeg encodes it"
    ladder, said = asked(films / "ntsc.mp4")
    assert ladder.frame_rate == Fraction(30000, 1001)
    assert said[2] == "segments of 30 frames, 1.001 s: no whole number of frames lasts 1 s"
    assert film_facts(films / "film.mkv").duration_s == pytest.approx(3, abs=0.1)


def test_an_odd_frame_rate_is_encoded_in_segments_of_whole_frames(films: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["ladder", str(films / "ntsc.mp4"), "--rates", "100k,300k", "--segment", "1s"]
    assert main([*arguments, "--out", str(out), "--json"]) == 0
    content = Content.load(out / DESCRIPTION)
    frames = content.video.encodings[0].frames
    assert frames.interval_ns == 33_366_667 and len(frames) == 90
    assert content.boundaries_ns().tolist() == [0, 30 * 33_366_667, 60 * 33_366_667]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sizes": "64x36"}, "--sizes: 1 size for 2 rates (give one for each rate, the lowest first)"),
        ({"sizes": "64x36,65x36"}, "--sizes: '65x36' is no size of pictures (write even numbers such as"),
        ({"sizes": "64x36,8x8"}, "--sizes: '8x8' is no size"),
        ({"rates": "100k@64x36,300k"}, "--rates: 1 of 2 rates have a size (give all one, or none)"),
        (
            {"rates": "100k@64x36,300k@96x54", "sizes": "64x36,96x54"},
            "--sizes: sizes stand in --rates already",
        ),
        ({"frame_rate": "0"}, "--frame-rate: '0' is no frame rate (write 1 to 240, or a fraction such as"),
        ({"frame_rate": "30/0"}, "--frame-rate: '30/0' is no frame rate"),
        ({"frame_rate": "1000"}, "--frame-rate: '1000' is no frame rate"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, str], says: str, films: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        asked(films / "film.mp4", given.pop("rates", "100k,300k"), **given)
    assert says in str(caught.value)


def test_films_that_cannot_be_encoded(films: Path) -> None:
    with pytest.raises(ScenarioError, match="has no sound to encode"):
        asked(films / "silent.mp4", audio="64 kbit/s")
    with pytest.raises(MediaError, match="it has no pictures; name a file of video"):
        asked(films / "sound.mp4")
    with pytest.raises(MediaError, match="no such video file; correct its path, or use content that ships"):
        asked(films / "none.mp4")


def test_content_that_ships_is_as_it_was() -> None:
    ladder, said = asked(Path("carphone"))
    assert (ladder.sizes, ladder.frame_rate, ladder.channels, ladder.duration_s) == (None, 25, 1, 10.0)
    assert said == []

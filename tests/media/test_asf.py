"""Windows Media files of several rates: what is in them, as ffmpeg reads them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from streamgauge.errors import MediaError
from streamgauge.media import Ladder
from streamgauge.media.asf import MOST_RATES, asf_of_files, asf_of_ladder

pytestmark = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

RATES = (28_000, 43_000, 109_000, 282_000)
SECONDS = 4


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMGAUGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    return Ladder(source="carphone", rates_bps=RATES, duration_s=SECONDS, audio_bps=24_000)


def probed(file: Path, *entries: str) -> dict[str, list[dict[str, object]]]:
    command = ["ffprobe", "-v", "error", "-of", "json", *entries, str(file)]
    return dict(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def test_each_rate_is_a_stream_and_key_frames_align(ladder: Ladder, tmp_path: Path) -> None:
    file = tmp_path / "film.wmv"
    file.write_bytes(asf_of_ladder(ladder, jobs=2))
    found = probed(file, "-show_entries", "stream=index,codec_name:packet=stream_index,size,flags,pts")
    assert [one["codec_name"] for one in found["streams"]] == ["wmav2", *["wmv2"] * len(RATES)]
    keys = []
    for place, rate in enumerate((24_000, *RATES)):
        packets = [packet for packet in found["packets"] if packet["stream_index"] == place]
        bits = 8 * sum(int(str(packet["size"])) for packet in packets)
        assert bits / SECONDS == pytest.approx(rate, rel=0.15)
        if place:
            assert len(packets) == 25 * SECONDS
            keys.append([packet["pts"] for packet in packets if str(packet["flags"]).startswith("K")])
    # At the beginning, and after 2 s.
    assert all(one == keys[0] for one in keys) and len(keys[0]) == 2


def test_the_same_again_is_the_same_file(ladder: Ladder) -> None:
    assert asf_of_ladder(ladder) == asf_of_ladder(ladder, jobs=1)


def encode(file: Path, *options: str) -> Path:
    inputs = ["-f", "lavfi", "-i", "testsrc2=size=176x144:rate=10", "-f", "lavfi", "-i", "sine"]
    coded = ["-t", "2", "-c:v", "wmv2", "-c:a", "wmav2", "-b:a", "32k", *options]
    subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", *inputs, *coded, str(file)], check=True)
    return file


def test_files_of_ones_own_are_taken_as_they_are(tmp_path: Path) -> None:
    low, high = encode(tmp_path / "low.wmv", "-b:v", "50k"), encode(tmp_path / "high.asf", "-b:v", "300k")
    mute = encode(tmp_path / "mute.wmv", "-an")
    file = tmp_path / "film.wmv"
    file.write_bytes(asf_of_files([low, high, mute]))
    sizes = probed(file, "-show_entries", "packet=stream_index,size")["packets"]
    of = [[one["size"] for one in sizes if one["stream_index"] == place] for place in range(4)]
    sound, *pictures = of
    for taken, source in zip(pictures, (low, high, mute), strict=True):
        own = probed(source, "-select_streams", "v", "-show_entries", "packet=size")["packets"]
        assert taken == [one["size"] for one in own]
    own = probed(high, "-select_streams", "a", "-show_entries", "packet=size")["packets"]
    assert sound == [one["size"] for one in own], "of the last that has some"


def test_what_cannot_be_made_is_told_with_what_to_do(tmp_path: Path) -> None:
    quiet = Ladder(source="carphone", rates_bps=RATES, duration_s=1, audio_bps=16_000)
    with pytest.raises(MediaError, match=r"no rate of 16000 bit/s\. Ask for 24 kbit/s of sound or more"):
        asf_of_ladder(quiet)
    film = encode(tmp_path / "film.wmv")
    with pytest.raises(MediaError, match=r"none\.wmv: no such media file"):
        asf_of_files([film, tmp_path / "none.wmv"])
    text = tmp_path / "text.wmv"
    text.write_text("a letter")
    with pytest.raises(MediaError, match=r"text\.wmv: .*no Advanced Systems Format file.*-c:v wmv2"):
        asf_of_files([film, text])
    sound = encode(tmp_path / "sound.asf", "-vn")
    with pytest.raises(MediaError, match=r"sound\.asf: there is no video in it"):
        asf_of_files([film, sound])
    with pytest.raises(MediaError, match=f"{MOST_RATES + 1} rates of pictures.*{MOST_RATES} at most"):
        asf_of_files([film] * (MOST_RATES + 1))
    cut = tmp_path / "cut.wmv"
    cut.write_bytes(film.read_bytes()[:-2_000])
    with pytest.raises(MediaError, match=r"cut\.wmv: .*"):
        asf_of_files([film, cut])

"""Presentations: real ladders cut by ffmpeg's packager, kept, and what cannot be cut."""

from __future__ import annotations

import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from streamgauge.errors import CannotRunError, MediaError
from streamgauge.media import Ladder, prepare_ladder, prepare_own_ladder, prepare_presentation
from streamgauge.media.package import DATED_S, MANIFEST, PLAYLIST, Presentation, write_presentation

pytestmark = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

# Of two shapes: 176x144 and 640x360.
RATES = (100_000, 250_000, 800_000)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(cache))


@pytest.fixture
def ladder(own_cache: None) -> Path:
    """Of 5 s with sound, its last segment shorter than the others."""
    return prepare_ladder(Ladder(source="testsrc2", rates_bps=RATES, duration_s=5, audio_bps=48_000))


def durations(file: Path) -> list[Fraction]:
    """How long the segments of an HLS playlist play."""
    return [Fraction(found) for found in re.findall(r"#EXTINF:([\d.]+)", file.read_text())]


def test_both_manifests_name_segments_that_are_there(ladder: Path) -> None:
    folder = prepare_presentation(ladder)
    told = Presentation.load(folder)
    assert (told.index, told.segment_s, told.duration_s) == ("number", 2.0, 5.0)
    assert [one.name for one in told.representations] == ["100k", "250k", "800k", "audio"]
    assert [one.bit_rate_bps for one in told.representations] == [*RATES, 48_000]
    assert [one.segments for one in told.representations] == [3, 3, 3, 3]
    manifest = (folder / MANIFEST).read_text()
    bandwidths = [int(found) for found in re.findall(r' bandwidth="(\d+)"', manifest)]
    assert bandwidths[:3] == sorted(bandwidths[:3]) == [one.bandwidth_bps for one in told.representations[:3]]
    assert manifest.count("<AdaptationSet ") == 2 and "<SegmentTimeline>" not in manifest
    master = (folder / PLAYLIST).read_text()
    for number in range(4):
        playlist = folder / f"media_{number}.m3u8"
        assert playlist.name in master
        assert sum(durations(playlist)) == pytest.approx(5, abs=0.05)
        named = re.findall(r"^segment-\d+-\d+\.m4s$", playlist.read_text(), re.M)
        assert named == [f"segment-{number}-{one}.m4s" for one in (1, 2, 3)]
        assert (
            all((folder / one).stat().st_size for one in named) and (folder / f"init-{number}.m4s").is_file()
        )
    assert durations(folder / "media_0.m3u8") == [2, 2, 1]


def test_a_timeline_tells_each_segments_time(ladder: Path) -> None:
    folder = prepare_presentation(ladder, index="timeline")
    manifest = (folder / MANIFEST).read_text()
    assert manifest.count("<SegmentTimeline>") == 4 and Presentation.load(folder).index == "timeline"


def test_the_same_again_is_kept_and_has_the_same_bytes(
    ladder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepare_presentation(ladder)
    assert prepare_presentation(ladder) == folder
    # What a browser may keep depends on its age, and so is the same in every trial.
    assert {file.stat().st_mtime for file in folder.iterdir()} == {DATED_S}
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    again = prepare_presentation(ladder)
    assert again.name == folder.name
    assert {file.name: file.read_bytes() for file in again.iterdir()} == before
    assert not list(tmp_path.rglob(".streamgauge-*"))


def test_a_file_has_one_level(ladder: Path) -> None:
    told = Presentation.load(prepare_presentation(ladder / "250k.mp4"))
    (one,) = told.representations
    assert (one.kind, one.segments, told.segment_s) == ("video", 3, 2.0)


def test_segments_of_unequal_length_have_times_and_no_numbers(tmp_path: Path) -> None:
    for name, rate in (("low.mp4", "100k"), ("high.mp4", "300k")):
        made = ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=176x144:rate=25"]
        made += ["-t", "5", "-pix_fmt", "yuv420p", "-b:v", rate, "-force_key_frames", "0,1,3"]
        made += ["-g", "250", "-sc_threshold", "0", "-bf", "0", str(tmp_path / name)]
        subprocess.run(made, check=True)
    ladder = prepare_own_ladder([tmp_path / "low.mp4", tmp_path / "high.mp4"])
    folder = prepare_presentation(ladder)
    assert Presentation.load(folder).index == "timeline"
    assert durations(folder / "media_0.m3u8") == [1, 2, 2]
    with pytest.raises(MediaError, match=r"segments are 1 s to 2 s long. An index by number needs one"):
        prepare_presentation(ladder, index="number")


def test_what_cannot_be_packaged_is_one_sentence(ladder: Path, tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"nosuch: no such folder or file; name a ladder"):
        prepare_presentation(tmp_path / "nosuch")
    with pytest.raises(MediaError, match=r"it has no content\.json, so it is no ladder"):
        prepare_presentation(tmp_path)
    broken = tmp_path / "broken"
    shutil.copytree(ladder, broken)
    (broken / "100k.mp4").unlink()
    with pytest.raises(MediaError, match=r"there is no 100k\.mp4 in it; make the ladder again"):
        prepare_presentation(broken)
    (broken / "100k.mp4").write_bytes(b"no MP4 at all")
    with pytest.raises(MediaError, match="ffmpeg cannot package it"):
        prepare_presentation(broken)
    with pytest.raises(MediaError, match="it cannot be read"):
        Presentation.load(tmp_path)


def test_it_is_written_whole_or_not_at_all(ladder: Path, tmp_path: Path) -> None:
    told = write_presentation(ladder, tmp_path / "served")
    assert Presentation.load(tmp_path / "served") == told
    with pytest.raises(MediaError, match="served is there already, and not empty"):
        write_presentation(ladder, tmp_path / "served")
    (tmp_path / "file").touch()
    with pytest.raises(MediaError, match="cannot write the presentation"):
        write_presentation(ladder, tmp_path / "file" / "below")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "served"]


def test_without_ffmpeg_it_says_what_to_install(
    ladder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunError, match="ffmpeg is missing: install it"):
        prepare_presentation(ladder)

"""Clips: names, frame sizes without ffmpeg, encodes with it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from streamgauge.errors import MediaError
from streamgauge.media import BUILT_IN, Clip, frame_interval_ns, frame_sizes, prepare

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


@pytest.mark.parametrize("source", BUILT_IN)
@pytest.mark.parametrize("rate", [56_000, 242_000, 550_000, 3_000_000])
def test_frame_sizes_have_the_rate_asked_for(source: str, rate: int) -> None:
    clip = Clip(source=source, bit_rate_bps=rate, duration_s=60)
    sizes = frame_sizes(clip)
    seconds = len(sizes) * frame_interval_ns(clip) / 1e9
    assert sum(sizes) * 8 / seconds == pytest.approx(rate, rel=1e-3)
    assert min(sizes) >= 1
    assert sizes == frame_sizes(clip)
    # Key frames stand out, as in any real stream.
    assert max(sizes) > 2 * sorted(sizes)[len(sizes) // 2]


@pytest.mark.parametrize("name", ["foreman-550k", "carphone", "carphone-550", "carphone-5k"])
def test_a_name_that_is_no_clip_says_what_one_looks_like(name: str) -> None:
    with pytest.raises(MediaError, match=r"carphone|10 kbit/s"):
        Clip.named(name, duration_s=10)


def test_a_missing_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"no/such\.mp4.*correct the clip's path"):
        prepare(Clip(source="no/such.mp4", bit_rate_bps=500_000, duration_s=5))


@needs_ffmpeg
def test_a_file_that_is_no_video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"not a video")
    with pytest.raises(MediaError, match=r"broken\.mp4: ffmpeg cannot encode it"):
        prepare(Clip(source=str(broken), bit_rate_bps=500_000, duration_s=5))
    assert not list((tmp_path / "cache/clips").iterdir())


@needs_ffmpeg
def test_an_encode_has_rate_and_length_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    clip = Clip(source="testsrc2", bit_rate_bps=400_000, duration_s=8, audio_bps=48_000)
    file = prepare(clip)
    said = subprocess.run(
        ["ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(said.stdout)
    assert [stream["codec_name"] for stream in found["streams"]] == ["h264", "aac"]
    assert found["streams"][0]["has_b_frames"] == 0
    assert float(found["format"]["duration"]) == pytest.approx(8, abs=0.2)
    assert float(found["format"]["bit_rate"]) == pytest.approx(400_000, rel=0.12)
    before = file.stat().st_mtime_ns
    assert prepare(clip) == file and file.stat().st_mtime_ns == before
    other = prepare(Clip(source="testsrc2", bit_rate_bps=400_000, duration_s=8, audio_bps=48_000, gop_s=1))
    assert other != file

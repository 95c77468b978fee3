"""Clips: names, frame sizes without ffmpeg, encodes with it."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from streamgauge.errors import MediaError
from streamgauge.media import BUILT_IN, ClipEncoding, frame_interval_ns, frame_sizes, key_frames, prepare
from streamgauge.media.encode import packets

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


@pytest.mark.parametrize("source", BUILT_IN)
@pytest.mark.parametrize("rate", [56_000, 242_000, 550_000, 3_000_000])
def test_frame_sizes_have_the_rate_asked_for(source: str, rate: int) -> None:
    clip = ClipEncoding(source=source, bit_rate_bps=rate, duration_s=60)
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
        ClipEncoding.named(name, duration_s=10)


def test_a_missing_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"no/such\.mp4.*Correct the clip's path"):
        prepare(ClipEncoding(source="no/such.mp4", bit_rate_bps=500_000, duration_s=5))


@needs_ffmpeg
def test_a_file_that_is_no_video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"not a video")
    with pytest.raises(MediaError, match=r"broken\.mp4: ffmpeg cannot encode it"):
        prepare(ClipEncoding(source=str(broken), bit_rate_bps=500_000, duration_s=5))
    assert not list((tmp_path / "cache/clips").iterdir())


@needs_ffmpeg
def test_an_encode_has_rate_and_length_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    clip = ClipEncoding(source="testsrc2", bit_rate_bps=400_000, duration_s=8, audio_bps=48_000)
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
    other = prepare(
        ClipEncoding(source="testsrc2", bit_rate_bps=400_000, duration_s=8, audio_bps=48_000, gop_s=1)
    )
    assert other != file


@pytest.mark.parametrize("source", BUILT_IN)
@pytest.mark.parametrize("codec", ["h264", "mpeg4"])
@pytest.mark.parametrize("rate", [242_000, 400_000])
def test_a_variable_rate_is_held_on_average_and_key_frames_stand_out(
    source: str, codec: str, rate: int
) -> None:
    clip = ClipEncoding(
        source=source,
        bit_rate_bps=rate,
        duration_s=200,
        rate_control="variable",
        codec=codec,  # type: ignore[arg-type]
    )
    sizes, keys = frame_sizes(clip), key_frames(clip)
    seconds = len(sizes) * frame_interval_ns(clip) / 1e9
    assert sum(sizes) * 8 / seconds == pytest.approx(rate, rel=0.01)
    assert keys[0] == 0 and keys == sorted(set(keys)) and keys[-1] < len(sizes)
    assert max(b - a for a, b in itertools.pairwise(keys)) <= 50
    mean_of_keys = sum(sizes[key] for key in keys) / len(keys)
    assert mean_of_keys > 2 * sum(sizes) / len(sizes)


def test_key_frames_of_a_constant_rate_begin_each_group() -> None:
    clip = ClipEncoding(source="carphone", bit_rate_bps=550_000, duration_s=60)
    sizes = frame_sizes(clip)
    assert key_frames(clip) == [0, 50, 100, 150, 200]
    assert min(sizes[key] for key in key_frames(clip)) > sorted(sizes)[len(sizes) // 2]


@pytest.mark.parametrize(
    "asked", [{"codec": "mpeg4"}, {"rate_control": "variable", "audio_bps": 32_000, "codec": "h264"}]
)
def test_what_no_encoder_is_asked_for_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(MediaError, match="variable"):
        ClipEncoding(source="carphone", bit_rate_bps=242_000, duration_s=10, **asked)  # type: ignore[arg-type]


@needs_ffmpeg
@pytest.mark.parametrize("codec", ["h264", "mpeg4"])
def test_a_variable_rate_clip_is_its_pass_repeated(
    codec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    clip = ClipEncoding(
        source="testsrc2",
        bit_rate_bps=242_000,
        duration_s=41,
        size=(176, 144),
        rate_control="variable",
        codec=codec,  # type: ignore[arg-type]
    )
    frames = packets(prepare(clip))
    assert len(frames) == 41 * 25
    assert frames[:500] == frames[500:1000]
    assert sum(frame.size for frame in frames[:500]) * 8 / 20 == pytest.approx(242_000, rel=0.01)
    found = subprocess.run(
        [
            "ffprobe",
            "-v",
            "error",
            "-show_entries",
            "stream=codec_name",
            "-of",
            "csv=p=0",
            str(prepare(clip)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == codec

"""Ladders: real encodes whose key frames align, kept, given up, and packaged by somebody else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.errors import MediaError
from streamgauge.media import Content, Ladder, content_of_file, ladder_of_files, prepare_ladder
from streamgauge.media.ladder import DESCRIPTION, RATE_WITHIN, rate_named, short_name

S = 10**9
RATES = (235_000, 560_000, 1_050_000)

pytestmark = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ladder of 5 s with sound, its last segment shorter than the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMGAUGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return prepare_ladder(
            Ladder(source="testsrc2", rates_bps=RATES, duration_s=5, audio_bps=64_000), jobs=2
        )


def ffmpeg(*arguments: str, folder: Path) -> None:
    subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", *arguments], cwd=folder, check=True)


def test_every_encoding_has_its_rate_its_key_frames_and_its_length(made: Path) -> None:
    content = Content.load(made / DESCRIPTION)
    video, audio = content.tracks
    assert [one.name for one in video.encodings] == ["235k", "560k", "1050k"]
    for one, rate in zip(video.encodings, RATES, strict=True):
        assert one.frames.key_times_ns.tolist() == [0, 2 * S, 4 * S]
        assert one.bit_rate_bps == rate
        assert one.frames.bit_rate_bps == pytest.approx(rate, rel=RATE_WITHIN)
        assert len(one.frames) == 125 and one.frames.interval_ns == S // 25
        starts = [segment.start_ns for segment in content.segments(one)]
        assert starts == [0, 2 * S, 4 * S]
    (sound,) = audio.encodings
    assert (sound.codec, sound.bit_rate_bps) == ("aac", 64_000)
    assert sound.frames.bit_rate_bps == pytest.approx(64_000, rel=0.1)
    assert len(content.segments(sound)) == 3
    assert sorted(file.name for file in made.iterdir()) == sorted(
        [DESCRIPTION, *(f"{one.file}" for one in content.encodings)]
    )


def test_the_description_is_of_the_files(made: Path) -> None:
    content = Content.load(made / DESCRIPTION)
    for one in content.encodings:
        read = content_of_file(made / str(one.file)).encodings[0]
        assert read.frames == one.frames
        assert one.frames.sizes_bytes.sum() < (made / str(one.file)).stat().st_size


def test_the_same_again_is_kept_and_another_rate_shares_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    ladder = Ladder(source="testsrc2", rates_bps=RATES[:2], duration_s=4)
    told: list[int] = []
    folder = prepare_ladder(ladder, tell=lambda done, of, now: told.append(done))
    assert told[0] == 0 and told[-1] == 2 and told == sorted(told)
    encoded = {file: file.stat().st_mtime_ns for file in (tmp_path / "clips").iterdir()}
    assert prepare_ladder(ladder) == folder
    other = prepare_ladder(Ladder(source="testsrc2", rates_bps=(235_000, 800_000), duration_s=4))
    assert other != folder
    now = {file: file.stat().st_mtime_ns for file in (tmp_path / "clips").iterdir()}
    assert encoded.items() <= now.items() and len(now) == 3


def test_a_packager_cuts_it_at_the_same_times(made: Path, tmp_path: Path) -> None:
    """ffmpeg's DASH muxer, which copies what it is given."""
    inputs = [part for rate in ("235k", "560k", "1050k") for part in ("-i", str(made / f"{rate}.mp4"))]
    maps = [part for number in range(3) for part in ("-map", str(number))]
    ffmpeg(*inputs, *maps, "-c", "copy", "-f", "dash", "-seg_duration", "2", "out.mpd", folder=tmp_path)
    count = {number: len(list(tmp_path.glob(f"chunk-stream{number}-*.m4s"))) for number in range(3)}
    assert count == {0: 3, 1: 3, 2: 3}


def test_files_of_a_ladder_are_taken_as_they_are(made: Path) -> None:
    files = [made / "1050k.mp4", made / "235k.mp4"]
    content = ladder_of_files(files)
    assert [one.name for one in content.video.encodings] == [str(files[1]), str(files[0])]
    assert content.boundaries_ns().tolist() == [0, 2 * S, 4 * S]
    assert ladder_of_files(files, segment_s=4).boundaries_ns().tolist() == [0, 4 * S]


def test_files_of_different_lengths_are_a_ladder_of_the_shorter(made: Path, tmp_path: Path) -> None:
    source, every = "testsrc2=size=320x240:rate=25:duration=9", ["-g", "50", "-sc_threshold", "0"]
    ffmpeg("-f", "lavfi", "-i", source, *every, "-keyint_min", "50", "longer.mp4", folder=tmp_path)
    content = ladder_of_files([made / "235k.mp4", tmp_path / "longer.mp4"])
    assert content.duration_ns == 5 * S
    assert content.boundaries_ns().tolist() == [0, 2 * S, 4 * S]


@pytest.mark.parametrize(
    ("more", "at", "has"),
    [
        # Another interval of key frames; one of the other's is missing; key frames at cuts.
        (["-g", "30", "-keyint_min", "30"], "1.200", "odd.mp4"),
        (["-g", "100", "-keyint_min", "100", "-sc_threshold", "0"], "2.000", "235k.mp4"),
        (["-force_key_frames", "0,1.48,2", "-g", "50"], "1.480", "odd.mp4"),
    ],
)
def test_files_that_do_not_align_are_told(
    more: list[str], at: str, has: str, made: Path, tmp_path: Path
) -> None:
    source = "testsrc2=size=320x240:rate=25:duration=5"
    ffmpeg("-f", "lavfi", "-i", source, *more, "odd.mp4", folder=tmp_path)
    files = [made / "235k.mp4", tmp_path / "odd.mp4"]
    with pytest.raises(MediaError, match=rf"do not align\. .*{has} has one at {at} s") as caught:
        ladder_of_files(files)
    assert all(str(file) in str(caught.value) for file in files)


def test_frames_that_are_shown_in_another_order_are_read(tmp_path: Path) -> None:
    """B frames, and a first time that is not 0."""
    source = "testsrc2=size=320x240:rate=30:duration=4"
    ffmpeg("-f", "lavfi", "-i", source, "-bf", "2", "-g", "30", "-ss", "1", "b.mkv", folder=tmp_path)
    (one,) = content_of_file(tmp_path / "b.mkv").encodings
    assert np.any(np.diff(one.frames.times_ns) < 0)
    assert sorted(one.frames.times_ns.tolist())[0] == 0 and one.frames.keys[0]
    # Matroska counts in milliseconds.
    assert one.frames.key_times_ns == pytest.approx([0, S, 2 * S], abs=1_000_000)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"rates_bps": ()}, "it has no rates; give two or more"),
        ({"rates_bps": (235_000,)}, "it has 1 rate; give two or more"),
        ({"rates_bps": (560_000, 235_000)}, "235k stands after 560k; write the rates from the lowest up"),
        ({"rates_bps": (235_000, 235_000)}, "235k stands after 235k"),
        ({"rates_bps": (5_000, 235_000)}, "at least 10 kbit/s"),
        ({"segment_s": 0.33}, "0.33 s are no whole number of frames at 25 a second"),
        ({"segment_s": 0.0}, "no whole number of frames"),
        ({"duration_s": 0.0}, "must be above zero"),
    ],
)
def test_what_is_no_ladder_is_refused(asked: dict[str, object], says: str) -> None:
    given = {"source": "testsrc2", "rates_bps": RATES, "duration_s": 5.0}
    with pytest.raises(MediaError, match=says):
        Ladder(**(given | asked))  # type: ignore[arg-type]


def test_content_that_cannot_be_had_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    with pytest.raises(MediaError, match=r"broken\.mp4: ffmpeg cannot encode it"):
        prepare_ladder(Ladder(source=str(broken), rates_bps=RATES, duration_s=5))
    assert not list((tmp_path / "cache/clips").iterdir())
    assert not (tmp_path / "cache/ladders").exists()


def test_ctrl_c_ends_the_encoders_and_leaves_nothing(tmp_path: Path) -> None:
    """The signal goes to the program alone, as from a job's scheduler: its encoders are its own affair."""
    command = [sys.executable, "-m", "streamgauge", "ladder", "testsrc2", "--rates", "235k,560k"]
    environment = {**os.environ, "STREAMGAUGE_CACHE": str(tmp_path / "cache")}
    program = subprocess.Popen(
        [*command, "--duration", "3600s", "--out", "out"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while not list((tmp_path / "cache").glob("clips/encoding-*/clip.mp4")):
            assert program.poll() is None, program.communicate()
            time.sleep(0.02)
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=60)
    finally:
        program.kill()
    assert program.returncode == 130
    assert list((tmp_path / "cache/clips").iterdir()) == [] and not (tmp_path / "out").exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(program.pid, 0)


@given(st.integers(1, 10**9))
def test_a_rate_is_read_as_its_encoding_is_called(rate_bps: int) -> None:
    assert rate_named(short_name(rate_bps)) == rate_bps


@pytest.mark.parametrize("text", ["235", "235kbit", "k", "", "-3k", "1.00001k"])
def test_what_is_no_short_rate(text: str) -> None:
    assert rate_named(text) is None

"""``files:`` as encoders, phones and cameras write them: played by systems of ours, or refused when read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from streamgauge.cli import main
from streamgauge.errors import ScenarioError
from streamgauge.media import content_of_file, own_ladder
from streamgauge.record import legend
from streamgauge.scenario import Scenario, from_text, lower

pytestmark = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
TEXT = """\
id: test/own-films
title: Films of one's own
path: {down: {rate: 2 Mbit/s, queue: droptail 100 ms, delay: 10 ms}, up: {delay: 10 ms}}
flows:
  video:
    role: subject
    system: SYSTEM
    clip: {files: [FILES]}
until: {time: 8 s, media_end: video}
repetitions: {sim: 1}
"""
X264 = ["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-keyint_min", "25", "-sc_threshold", "0"]


def encode(
    file: Path, rate: str, *more: str, fps: str = "25", audio: bool = False, codec: list[str] = X264
) -> None:
    command = [
        "ffmpeg",
        "-nostdin",
        "-v",
        "error",
        "-y",
        "-f",
        "lavfi",
        "-i",
        f"testsrc2=s=160x120:r={fps}:d=4",
    ]
    command += ["-f", "lavfi", "-i", "sine=r=48000:d=4", "-c:a", "aac", "-b:a", "32k"] if audio else []
    subprocess.run([*command, *codec, "-pix_fmt", "yuv420p", "-b:v", rate, *more, str(file)], check=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    for name, rate in (("low", "60k"), ("high", "300k")):
        encode(folder / f"{name}.mp4", rate, audio=name == "low")
        encode(folder / f"{name}.mkv", rate, fps="30000/1001")
        encode(folder / f"{name}.ts", rate, "-bf", "0", audio=True)
        uneven = ["-vf", "select='not(eq(mod(n,5),1))'", "-fps_mode", "vfr"]
        encode(folder / f"{name}-uneven.mp4", rate, *uneven)
        encode(folder / f"{name}-opus.mkv", rate, audio=True)
    encode(folder / "hevc1.mp4", "60k", codec=["-c:v", "libx265", "-x265-params", "log-level=none:keyint=25"])
    encode(
        folder / "hevc2.mp4", "300k", codec=["-c:v", "libx265", "-x265-params", "log-level=none:keyint=25"]
    )
    for name in ("low-opus.mkv", "high-opus.mkv"):
        one = ["-i", str(folder / name), "-c:v", "copy", "-c:a", "libopus", str(folder / f"re{name}")]
        subprocess.run(["ffmpeg", "-nostdin", "-v", "error", *one], check=True)
    alone = ["-i", str(folder / "low.mp4"), "-vn", "-c", "copy", str(folder / "audio.mp4")]
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", *alone], check=True)
    return folder


def text_of(files: str, system: str = "dash") -> str:
    return TEXT.replace("SYSTEM", system).replace("FILES", files)


def scenario(folder: Path, files: str, system: str = "dash") -> Scenario:
    (one,) = from_text(text_of(files, system), file="my.yaml", folder=folder)
    return one


def test_b_frames_are_part_of_content_and_of_plans(made: Path) -> None:
    content = own_ladder([made / "low.mp4", made / "high.mp4"])
    frames = content.video.encodings[0].frames
    order = frames.display_order
    assert order is not None and sorted(order.tolist()) == list(range(100)), "x264 has them by default"
    assert np.array_equal(frames.times_ns, order * 40_000_000) and frames.interval_ns == 40_000_000
    plan = lower(scenario(made, "low.mp4, high.mp4"), "sim", 1)
    clip = plan["flows"][0]["app"]["dash"]["ladder"]["video"][0]["clip"]
    assert clip["display_order"] == order.tolist() and clip["frame_interval"] == 40_000_000
    assert legend(plan)["flow"]
    # Content without them has the plan that it always had.
    plan = lower(scenario(made, "low.ts, high.ts"), "sim", 1)
    clip = plan["flows"][0]["app"]["dash"]["ladder"]["video"][0]["clip"]
    assert set(clip) == {"name", "duration", "frame_interval", "frame_bytes", "key_frames"}


@pytest.mark.parametrize(
    "files",
    [
        "low.mp4, high.mp4",
        "low.mkv, high.mkv",
        "low.ts, high.ts",
        "low.mp4, high.mp4, audio.mp4",
        "high.mp4, audio.mp4",
    ],
)
def test_what_encoders_write_is_shown_and_run(files: str, made: Path, tmp_path: Path) -> None:
    file = made / f"{abs(hash(files))}.yaml"
    file.write_text(text_of(files))
    assert main(["show", str(file)]) == 0
    out = tmp_path / "out"
    assert main(["run", str(file), "--mode", "sim", "--out", str(out)]) == 0
    # A campaign's plan names the content, which has the times of B-frames.
    assert main(["verify", str(out)]) == 0


def test_an_odd_frame_rate_is_a_fixed_one(made: Path) -> None:
    frames = content_of_file(made / "low.mkv").encodings[0].frames
    # Matroska counts in ms: 0, 33, 67, 100 ...
    interval = frames.interval_ns
    assert interval is not None and interval == pytest.approx(1e9 * 1001 / 30000, rel=1e-3)
    assert len(frames) in (119, 120)


def test_the_file_of_sound_alone_is_the_ladders_sound(made: Path) -> None:
    content = own_ladder([made / "high.mp4", made / "audio.mp4", made / "low.mp4"])
    video, sound = content.tracks
    assert [one.name for one in video.encodings] == ["low.mp4", "high.mp4"]
    assert [one.file for one in sound.encodings] == ["audio.mp4"]
    assert sound.encodings[0].frames.interval_ns == pytest.approx(1024e9 / 48000, abs=1)


REFUSED = [
    (
        "dash",
        "hevc1.mp4, hevc2.mp4",
        "hevc1.mp4: it is hevc, and dash plays H.264; encode it (`ffmpeg -i FILE",
    ),
    ("nginx-dash", "hevc1.mp4, hevc2.mp4", "hevc1.mp4: it is hevc, and nginx-dash plays H.264"),
    ("dash", "relow-opus.mkv, rehigh-opus.mkv", "it is opus, and dash plays AAC; encode it"),
    (
        "dash",
        "low-uneven.mp4, high-uneven.mp4",
        "its frames are unevenly spaced, and dash plays a fixed frame",
    ),
    ("realvideo", "low.mp4, high.mp4", "low.mp4: it has B-frames, and realvideo plays pictures in display"),
    ("windows_media", "low.mp4, high.mp4", "(ffmpeg's option -bf 0)"),
]


@pytest.mark.parametrize(("system", "files", "says"), REFUSED)
def test_what_a_system_does_not_play_is_refused_when_it_is_read(
    system: str, files: str, says: str, made: Path
) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(made, files, system)
    assert says in str(caught.value) and caught.value.key == "flows.video.clip.files"
    assert str(caught.value).count("\n") == 0


def test_commands_of_ones_own_may_play_anything(made: Path) -> None:
    commands = "{server: ./serve, player: ./play}"
    for files in ("hevc1.mp4, hevc2.mp4", "low-uneven.mp4, high-uneven.mp4"):
        text = text_of(files, commands).replace("repetitions: {sim: 1}", "modes: [emu]")
        (one,) = from_text(text, file="my.yaml", folder=made)
        assert one.modes == ("emu",)

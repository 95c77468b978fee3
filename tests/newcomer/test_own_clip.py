"""A video file of one's own, with sound and without, in each system and in both modes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import Person, the_valid_one
from stranger import Stranger
from streamgauge.media.encode import packets

SECONDS = 3
SYSTEMS = {
    "rtp": "system: rtp",
    "darwin": "system: darwin",
    "rtsp": "system: rtsp",
    "command": "system: {server: streamgauge serve --system darwin --listen "
    "$STREAMGAUGE_SERVER:$STREAMGAUGE_PORT $STREAMGAUGE_MEDIA, "
    "player: ffmpeg -nostdin -loglevel warning -i rtsp://$STREAMGAUGE_SERVER:$STREAMGAUGE_PORT/clip "
    "-f null -}",
}
SIM = {"rtsp": ", sim: {system: rtp}", "command": ", sim: {system: rtp}"}
CLIPS = {
    "silent": "{file: silent.mp4, rate: 100 kbit/s}",
    "sounding": "{file: sounding.mp4, rate: 132 kbit/s, audio: 32 kbit/s}",
}

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


def make_clips(folder: Path) -> None:
    """As a camera or a screen recorder leaves them: B frames, and sound at its own rate."""
    picture = ["-f", "lavfi", "-i", f"testsrc2=size=320x240:rate=30:duration={SECONDS}"]
    sound = ["-f", "lavfi", "-i", f"sine=sample_rate=48000:duration={SECONDS}"]
    for name, inputs in {"silent": picture, "sounding": [*picture, *sound]}.items():
        command = ["ffmpeg", "-nostdin", "-loglevel", "error", *inputs, "-pix_fmt", "yuv420p"]
        subprocess.run([*command, str(folder / f"{name}.mp4")], check=True)
        (folder / f"{name}.mp4").chmod(0o644)


def scenario(clip: str) -> str:
    """Every system with that clip, side by side on a link that has room for all, and so slow that a busy
    machine is not late by its measure."""
    flows = "\n".join(
        f"  {name}: {{role: subject, {system}, clip: {CLIPS[clip]}{SIM.get(name, '')}}}"
        for name, system in SYSTEMS.items()
    )
    return f"""\
id: my/{clip}
title: My own clip
path:
  down: {{rate: 1 Mbit/s, queue: droptail 100 packets, delay: 100 ms}}
  up: {{delay: 100 ms}}
flows:
{flows}
until: {{time: 6 s}}
"""


@pytest.fixture
def folder(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(stranger.folder / "cache"))
    make_clips(stranger.folder)
    yield stranger.folder


@needs_ffmpeg
@pytest.mark.parametrize("clip", CLIPS)
def test_in_sim(clip: str, stranger: Stranger, folder: Path) -> None:
    (folder / "my.yaml").write_text(scenario(clip))
    done = stranger.run("streamgauge run my.yaml --mode sim --repeat 1 --json")
    assert done.status == 0, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    assert trial["valid"]
    rate_bps = 100_000 if clip == "silent" else 132_000
    for name, flow in trial["flows"].items():
        assert flow["received_bytes"] * 8 > 0.9 * 6 * rate_bps, name


@needs_ffmpeg
def test_sim_plays_the_frames_that_are_encoded(stranger: Stranger, folder: Path) -> None:
    (folder / "my.yaml").write_text(scenario("silent"))
    done = stranger.run("streamgauge show my.yaml --plan sim")
    clip = json.loads(done.stdout)["flows"][0]["app"]["rtp"]["clip"]
    (encoded,) = (folder / "cache/clips").glob("*.mp4")
    assert clip["frame_bytes"] == [frame.size for frame in packets(encoded)]
    assert clip["frame_interval"] == 40_000_000 and len(clip["frame_bytes"]) == 6 * 25


@needs_ffmpeg
def test_sound_is_the_files_own(stranger: Stranger, folder: Path) -> None:
    (folder / "my.yaml").write_text(scenario("sounding"))
    assert stranger.run("streamgauge show my.yaml --plan sim").status == 0
    (encoded,) = (folder / "cache/clips").glob("*.mp4")
    louder = _loudness(encoded)
    assert louder == pytest.approx(_loudness(folder / "sounding.mp4"), abs=1.0)


def _loudness(file: Path) -> float:
    """Mean volume, dB."""
    command = [
        "ffmpeg",
        "-nostdin",
        "-hide_banner",
        "-i",
        str(file),
        "-af",
        "volumedetect",
        "-f",
        "null",
        "-",
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    (line,) = [line for line in said.splitlines() if "mean_volume" in line]
    return float(line.split()[-2])


@needs_ffmpeg
def test_a_path_alone_is_answered_by_what_works(stranger: Stranger, folder: Path) -> None:
    """The remedy is followed as it is written."""
    text = scenario("silent").replace(f"clip: {CLIPS['silent']}", "clip: silent.mp4")
    (folder / "my.yaml").write_text(text)
    done = stranger.run("streamgauge show my.yaml")
    says = "'silent.mp4' is a file, and a file needs the bit rate that it is encoded at"
    remedy = "clip: {file: silent.mp4, rate: 550 kbit/s}"
    first = done.stderr.splitlines()[0]
    assert (done.status, first) == (3, f"streamgauge: my.yaml:7: flows.rtp.clip: {says} (write '{remedy}')")
    (folder / "my.yaml").write_text(text.replace("clip: silent.mp4", remedy))
    assert stranger.run("streamgauge run my.yaml --mode sim --repeat 1").status == 0


@needs_ffmpeg
def test_sound_that_is_not_there(stranger: Stranger, folder: Path) -> None:
    text = scenario("sounding").replace("sounding.mp4", "silent.mp4")
    (folder / "my.yaml").write_text(text)
    done = stranger.run("streamgauge run my.yaml --mode sim")
    says = f"{folder}/silent.mp4: it has no sound to encode; leave the clip's 'audio' out."
    assert (done.status, done.stderr) == (3, f"streamgauge: {says}\n")
    (folder / "my.yaml").write_text(text.replace(", audio: 32 kbit/s", ""))
    assert stranger.run("streamgauge run my.yaml --mode sim --repeat 1").status == 0


@needs_ffmpeg
def test_a_machine_without_ffmpeg_is_told_what_is_missing(
    stranger: Stranger, folder: Path, tmp_path: Path
) -> None:
    (folder / "my.yaml").write_text(scenario("silent"))
    done = stranger.run("PATH=$(dirname $(command -v streamgauge)) streamgauge run my.yaml --mode sim")
    says = "ffmpeg is missing: install it (Debian, Ubuntu: `apt-get install ffmpeg`)."
    assert (done.status, done.stderr) == (4, f"streamgauge: {says}\n")


@needs_ffmpeg
@pytest.mark.parametrize("clip", ["sounding"])
def test_in_emu(clip: str, anyone: Person) -> None:
    make_clips(anyone.home)
    trial: dict[str, Any] = the_valid_one(anyone.trials(scenario(clip)))
    for name, flow in trial["flows"].items():
        # How long a system takes to start is its own affair.
        assert flow["received_bytes"] * 8 > 0.6 * 6 * 100_000, name

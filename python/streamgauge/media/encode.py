"""Encodes a clip with ffmpeg and keeps it in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from streamgauge.errors import CannotRunError, MediaError
from streamgauge.media.clip import Clip
from streamgauge.media.sources import cache_folder, source_file


def prepare(clip: Clip) -> Path:
    """The clip as an MP4 file, encoded on first use.

    Kept under the cache folder by a key of the source's bytes, every parameter and ffmpeg's version. Raises
    MediaError if the content is missing or cannot be encoded, CannotRunError if there is no ffmpeg.
    """
    source = _source(clip)
    arguments = encoder_arguments(clip, source)
    key = _key(arguments, source)
    kept = cache_folder() / "clips" / f"{clip.label}-{clip.duration_s:g}s-{key}.mp4"
    if kept.is_file():
        return kept
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="encoding-") as scratch:
            part = Path(scratch) / "clip.mp4"
            _run([*arguments, str(part)], clip)
            part.chmod(0o644)
            part.replace(kept)
    except OSError as error:
        raise MediaError(
            f"{kept}: cannot keep the encoded clip ({error.strerror}); free some space or set "
            "STREAMGAUGE_CACHE to a folder that can be written."
        ) from error
    return kept


def encoder_arguments(clip: Clip, source: Path | None) -> list[str]:
    """ffmpeg's command line without the output file. `source` is None for the test card."""
    width, height = clip.picture
    rate, group = clip.frame_rate, max(1, round(clip.gop_s * clip.frame_rate))
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y"]
    if source is None:
        command += ["-f", "lavfi", "-i", f"testsrc2=size={width}x{height}:rate={rate}"]
    else:
        command += ["-stream_loop", "-1", "-i", str(source)]
    if clip.audio_bps:
        command += ["-f", "lavfi", "-i", "sine=frequency=440:beep_factor=4:sample_rate=44100"]
    command += ["-map", "0:v:0"]
    # A buffer of one second around the asked rate: what a streaming server of fixed rate is fed with.
    bits = str(clip.video_bps)
    command += [
        "-vf", f"scale={width}:{height}:flags=bicubic,fps={rate},format=yuv420p",
        "-c:v", "libx264", "-preset", "veryfast", "-profile:v", "baseline", "-threads", "2",
        "-b:v", bits, "-minrate", bits, "-maxrate", bits, "-bufsize", bits,
        "-g", str(group), "-keyint_min", str(group), "-sc_threshold", "0",
        "-x264-params", "repeat-headers=1",
    ]  # fmt: skip
    if clip.audio_bps:
        command += ["-map", "1:a:0", "-c:a", "aac", "-ac", "1", "-b:a", str(clip.audio_bps)]
    command += ["-t", f"{clip.duration_s:.3f}", "-map_metadata", "-1", "-movflags", "+faststart"]
    return command


def _source(clip: Clip) -> Path | None:
    if clip.source == "testsrc2":
        return None
    if clip.is_built_in:
        return source_file(clip.source)
    file = Path(clip.source).expanduser()
    if not file.is_file():
        raise MediaError(
            f"{file}: no such video file; correct the clip's path or use a built-in such as carphone-550k."
        )
    return file


def _key(arguments: list[str], source: Path | None) -> str:
    content = hashlib.blake2b(digest_size=10)
    if source is not None:
        with source.open("rb") as stream:
            while block := stream.read(1 << 20):
                content.update(block)
    # The path is no part of the identity, the bytes are.
    named = ["SOURCE" if source is not None and part == str(source) else part for part in arguments]
    content.update(json.dumps([named, ffmpeg_version()]).encode())
    return content.hexdigest()


def ffmpeg_version() -> str:
    """The first line of ``ffmpeg -version``; CannotRunError if there is none."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise CannotRunError("ffmpeg is missing: install it (Debian, Ubuntu: `apt-get install ffmpeg`).")
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def _run(command: list[str], clip: Clip) -> None:
    environment = {**os.environ, "AV_LOG_FORCE_NOCOLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MediaError(
            f"{clip.source}: ffmpeg cannot encode it ({why}); see whether `ffmpeg -i {clip.source}` reads it."
        )

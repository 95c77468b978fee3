"""Encodes a clip with ffmpeg and keeps it in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from streamgauge.errors import CannotRunError, MediaError
from streamgauge.media.clip import PASS_S, ClipEncoding
from streamgauge.media.sources import cache_folder, source_file

_AVERAGE_WITHIN = 0.005
"""Largest error of a variable rate's average, as a part of the requested one."""
_TONE = ["-f", "lavfi", "-i", "sine=frequency=440:beep_factor=4:sample_rate=44100"]
"""Sound of built-in content."""


Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]
"""Runs a program to its end and returns its status and its output."""


def run_alone(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs as `subprocess.run`, without colours in the output."""
    environment = {**os.environ, "AV_LOG_FORCE_NOCOLOR": "1"}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=environment
    )


def prepare(clip: ClipEncoding, *, run: Run = run_alone) -> Path:
    """Returns the clip as an MP4 file, encoded on first use.

    Kept under the cache folder by a key of the source's bytes, every parameter and ffmpeg's version. `run`
    runs ffmpeg. Raises MediaError if the content is missing or cannot be encoded, CannotRunError if there is
    no ffmpeg.
    """
    source = source_of(clip)
    if clip.audio_bps and not clip.is_built_in and source is not None and not has_sound(source):
        raise MediaError(f"{source}: it has no sound to encode; leave the clip's 'audio' out.")
    arguments = encoder_arguments(clip, source)

    def write(part: Path) -> None:
        if clip.rate_control == "variable":
            encode_variable(clip, source, part, run)
        else:
            _run([*arguments, str(part)], clip.source, run)

    key = _key(arguments, source)
    return _kept(cache_folder() / "clips" / f"{clip.label}-{clip.duration_s:g}s-{key}.mp4", write)


def prepare_sound(clip: ClipEncoding, *, run: Run = run_alone) -> Path:
    """Returns the sound of `clip` alone, of `audio_bps`, as an MP4 file; kept and failing as `prepare`."""
    source = source_of(clip)
    if not clip.is_built_in and source is not None and not has_sound(source):
        raise MediaError(f"{source}: it has no sound to encode; leave 'audio' out.")
    arguments = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y"]
    arguments += _TONE if clip.is_built_in else ["-stream_loop", "-1", "-i", str(source)]
    arguments += ["-map", "0:a:0", *_aac(clip), "-t", f"{clip.duration_s:.3f}"]
    arguments += ["-map_metadata", "-1", "-movflags", "+faststart"]
    key = _key(arguments, None if clip.is_built_in else source)
    name = f"{clip.label.rpartition('-')[0]}-sound-{clip.audio_bps / 1000:g}k-{clip.duration_s:g}s-{key}.mp4"
    return _kept(
        cache_folder() / "clips" / name, lambda part: _run([*arguments, str(part)], clip.source, run)
    )


def prepare_wmv(clip: ClipEncoding, *, run: Run = run_alone) -> Path:
    """Returns the pictures of `clip` alone, of its whole rate, as a file of Windows Media Video 8.

    Kept and failing as `prepare`, with key frames where that has them.
    """
    source = source_of(clip)
    group, bits = str(max(1, round(clip.gop_s * clip.frame_rate))), str(clip.bit_rate_bps)
    arguments = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", *source_arguments(clip, source)]
    arguments += ["-map", "0:v:0", "-vf", f"{picture_filter(clip)},format=yuv420p"]
    # One thread: how slices are shared out would change the bits.
    arguments += ["-c:v", "wmv2", "-threads", "1", "-b:v", bits, "-maxrate", bits, "-bufsize", bits]
    arguments += ["-g", group, "-sc_threshold", "1000000000", "-flags", "+bitexact"]
    return _kept_wmv(clip.label, arguments, clip, source, run)


def prepare_wma(clip: ClipEncoding, *, run: Run = run_alone) -> Path:
    """Returns the sound of `clip` alone, of `audio_bps`, as a file of Windows Media Audio 2; kept and failing
    as `prepare`."""
    source = source_of(clip)
    if not clip.is_built_in and source is not None and not has_sound(source):
        raise MediaError(f"{source}: it has no sound to encode; leave 'audio' out.")
    arguments = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y"]
    arguments += _TONE if clip.is_built_in else ["-stream_loop", "-1", "-i", str(source)]
    arguments += [
        "-map",
        "0:a:0",
        "-c:a",
        "wmav2",
        "-ac",
        str(min(2, clip.channels)),
        "-ar",
        "44100",
        "-b:a",
        str(clip.audio_bps),
    ]
    name = f"{clip.label.rpartition('-')[0]}-sound-{clip.audio_bps / 1000:g}k"
    return _kept_wmv(name, arguments, clip, None if clip.is_built_in else source, run)


def _kept_wmv(name: str, arguments: list[str], clip: ClipEncoding, source: Path | None, run: Run) -> Path:
    arguments += ["-t", f"{clip.duration_s:.3f}", "-map_metadata", "-1", "-fflags", "+bitexact"]
    kept = cache_folder() / "clips" / f"{name}-{clip.duration_s:g}s-{_key(arguments, source)}.wmv"
    return _kept(kept, lambda part: _run([*arguments, str(part)], clip.source, run))


def _kept(kept: Path, write: Callable[[Path], None]) -> Path:
    """Returns the file `kept`; if it does not exist, `write` fills the file given to it, which is moved into
    place.

    If several write it at once, all use the first: encoders on several threads do not write the same twice,
    and data read of a file must stay true.
    """
    if kept.is_file():
        return kept
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="encoding-") as scratch:
            part = Path(scratch) / f"clip{kept.suffix}"
            write(part)
            part.chmod(0o644)
            _first(part, kept)
    except OSError as error:
        raise MediaError(
            f"{kept}: cannot keep the encoded clip ({error.strerror}). Free some space or set "
            "STREAMGAUGE_CACHE to a writable folder."
        ) from error
    return kept


def _first(part: Path, kept: Path) -> None:
    """Moves a file to where none is yet; where another was first, that stays."""
    try:
        kept.hardlink_to(part)
    except FileExistsError:
        pass
    except OSError:
        part.replace(kept)  # on file systems without links


def encoder_arguments(clip: ClipEncoding, source: Path | None) -> list[str]:
    """ffmpeg's command line without the output file. `source` is None for the test card. At a variable rate
    it is the last pass over `pass_s` of the source."""
    group = max(1, round(clip.gop_s * clip.frame_rate))
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y"]
    command += source_arguments(clip, source)
    if clip.audio_bps and clip.is_built_in:
        command += _TONE
    bits, length_s = str(clip.video_bps), clip.duration_s
    command += ["-map", "0:v:0", "-vf", f"{picture_filter(clip)},format=yuv420p"]
    x264 = ["-c:v", "libx264", "-preset", "veryfast", "-profile:v", "baseline", "-threads", "2"]
    if clip.rate_control == "variable":
        length_s = pass_s(clip)
        # One thread: how MPEG-4's slices are shared out would change the bits.
        command += x264 if clip.codec == "h264" else ["-c:v", "mpeg4", "-bf", "0", "-threads", "1"]
        command += ["-b:v", bits, "-g", str(group)]
    else:
        # A buffer of one second around the requested rate: as in the input of a streaming server of fixed
        # rate.
        command += [*x264, "-b:v", bits, "-minrate", bits, "-maxrate", bits, "-bufsize", bits]
        command += ["-g", str(group), "-keyint_min", str(group), "-sc_threshold", "0"]
    if clip.codec == "h264":
        command += ["-x264-params", "repeat-headers=1"]
    if clip.audio_bps:
        command += ["-map", "1:a:0" if clip.is_built_in else "0:a:0", *_aac(clip)]
    command += ["-t", f"{length_s:.3f}", "-map_metadata", "-1", "-movflags", "+faststart"]
    return command


def _aac(clip: ClipEncoding) -> list[str]:
    return ["-c:a", "aac", "-ac", str(clip.channels), "-b:a", str(clip.audio_bps)]


def source_arguments(clip: ClipEncoding, source: Path | None) -> list[str]:
    """ffmpeg's input: the content without end."""
    if source is None:
        width, height = clip.picture
        return ["-f", "lavfi", "-i", f"testsrc2=size={width}x{height}:rate={clip.frame_rate}"]
    return ["-stream_loop", "-1", "-i", str(source)]


def picture_filter(clip: ClipEncoding) -> str:
    """ffmpeg's filters from the content to the pictures that are encoded."""
    width, height = clip.picture
    return f"scale={width}:{height}:flags=bicubic,fps={clip.frame_rate}"


def pass_s(clip: ClipEncoding) -> float:
    """Returns how much of the source is encoded: of built-in content at a variable rate a pass that is then
    repeated."""
    return PASS_S if clip.rate_control == "variable" and clip.is_built_in else clip.duration_s


def encode_variable(clip: ClipEncoding, source: Path | None, file: Path, run: Run = run_alone) -> None:
    """Writes `clip` at a variable rate to `file`. For built-in content the pass is kept by itself, and
    repeated for clips of any length. Raises MediaError."""
    if not clip.is_built_in or clip.duration_s == PASS_S:
        return _encode_twice(clip, source, file, run)
    once = prepare(replace(clip, duration_s=PASS_S), run=run)
    repeat = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-stream_loop", "-1", "-i", str(once)]
    repeat += ["-c", "copy", "-t", f"{clip.duration_s:.3f}", "-movflags", "+faststart", str(file)]
    _run(repeat, clip.source, run)


def _encode_twice(clip: ClipEncoding, source: Path | None, file: Path, run: Run) -> None:
    """Encodes in two passes, with the requested average."""
    arguments = encoder_arguments(clip, source)
    rate_at = arguments.index("-b:v") + 1
    with tempfile.TemporaryDirectory(dir=file.parent, prefix="passes-") as scratch:
        passes = ["-passlogfile", str(Path(scratch) / "log"), "-pass"]
        _run([*arguments, *passes, "1", "-f", "mp4", os.devnull], clip.source, run)
        asked = clip.video_bps
        for _ in range(6):
            arguments[rate_at] = str(asked)
            _run([*arguments, *passes, "2", str(file)], clip.source, run)
            average = 8 * sum(packet.size for packet in packets(file)) / clip.duration_s
            if abs(average / clip.video_bps - 1) <= _AVERAGE_WITHIN:
                return
            asked = round(asked * clip.video_bps / average)
    raise MediaError(
        f"clip {clip.label}: two passes give {average / 1000:.0f} kbit/s on average. Its "
        f"{clip.picture[0]}x{clip.picture[1]} pictures do not fit the rate; ask for another."
    )


class Packet(NamedTuple):
    """A coded video frame."""

    size: int
    """In bytes."""
    is_key: bool


def packets(file: Path) -> list[Packet]:
    """Returns the coded video frames of `file` in order."""
    command = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=size,flags"]
    done = subprocess.run(
        [*command, "-of", "csv=p=0", str(file)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=True,
    )
    rows = (line.split(",") for line in done.stdout.split())
    return [Packet(int(size), flags.startswith("K")) for size, flags, *_ in rows]


def has_sound(file: Path) -> bool:
    """Returns whether ffprobe finds an audio stream in `file`; the encoder reports an unreadable file."""
    command = [
        "ffprobe",
        "-v",
        "error",
        "-select_streams",
        "a",
        "-show_entries",
        "stream=index",
        "-of",
        "csv=p=0",
    ]
    done = subprocess.run(
        [*command, str(file)], capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    return done.returncode != 0 or bool(done.stdout.strip())


def source_of(clip: ClipEncoding) -> Path | None:
    """Returns the file that `clip` is made from; None for the test card. Raises MediaError if it is
    missing."""
    if clip.source == "testsrc2":
        return None
    if clip.is_built_in:
        return source_file(clip.source)
    file = Path(clip.source).expanduser()
    if not file.is_file():
        raise MediaError(
            f"{file}: no such video file. Correct the clip's path or use a built-in such as carphone-550k."
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
    """Returns the first line of ``ffmpeg -version``; CannotRunError if there is none."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise CannotRunError("ffmpeg is missing: install it (Debian, Ubuntu: `apt-get install ffmpeg`).")
    return _version_of(program)


@cache
def _version_of(program: str) -> str:
    done = subprocess.run(
        [program, "-version"], capture_output=True, encoding="utf-8", errors="replace", check=True
    )
    return done.stdout.splitlines()[0]


def _run(command: list[str], source: str, run: Run) -> None:
    done = run(command)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MediaError(
            f"{source}: ffmpeg cannot encode it ({why}); see whether `ffmpeg -i {source}` reads it."
        )

"""Files and clips read as content."""

from __future__ import annotations

import json
import shutil
import subprocess
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.errors import CannotRunError, MediaError
from streamgauge.media.clip import ClipEncoding
from streamgauge.media.content import Content, Encoding, Frames, Track, TrackKind
from streamgauge.media.frames import frame_interval_ns, frame_sizes, key_frames

__all__ = ["of_clip", "of_file", "streams_in"]

_KINDS: dict[str, TrackKind] = {"video": "video", "audio": "audio", "subtitle": "text"}
_SHORTEST_NS = 1_000_000


def of_clip(clip: ClipEncoding) -> Content:
    """What sim plays of `clip`: one track with one encoding, by the sizes of its frames, sound counted into
    them (`frame_sizes`). Raises MediaError and CannotRunError as that does."""
    return _shipped(clip) if clip.is_built_in else _content(clip)


@lru_cache(maxsize=512)
def _shipped(clip: ClipEncoding) -> Content:
    """A campaign plans each of its trials, and what ships does not change. More are kept than the rates of
    all clips of a playlist."""
    return _content(clip)


def _content(clip: ClipEncoding) -> Content:
    frames = Frames.regular(frame_sizes(clip), frame_interval_ns(clip), key_frames(clip), name=clip.label)
    encoding = Encoding(
        name=clip.label, bit_rate_bps=clip.bit_rate_bps, codec=clip.codec, frames=frames, size=clip.picture
    )
    return Content(
        name=clip.label,
        duration_ns=round(clip.duration_s * 1e9),
        tracks=(Track(kind="video", encodings=(encoding,)),),
    )


def of_file(file: Path, *, name: str | None = None, bit_rate_bps: int | None = None) -> Content:
    """A media file, each of its streams as a track with one encoding called `name`, or as the file is.

    Times are those at which frames are shown, since the stream's first. `bit_rate_bps` is what the first
    video was asked to be; without it, and of other streams, it is what the frames come to. Raises MediaError
    for a file that is missing or cannot be read, CannotRunError if there is no ffprobe.
    """
    if not file.is_file():
        raise MediaError(f"{file}: no such media file; correct its path.")
    found = _probed(file, _ENTRIES)
    by_stream: dict[int, list[dict[str, Any]]] = {}
    for packet in found.get("packets", []):
        by_stream.setdefault(packet["stream_index"], []).append(packet)
    tracks: list[Track] = []
    stem = name or file.stem
    for stream in found.get("streams", []):
        kind = _KINDS.get(stream.get("codec_type", ""))
        packets = by_stream.get(stream["index"])
        # A cover picture is a stream of video too, of one frame.
        if kind is None or not packets or stream.get("disposition", {}).get("attached_pic"):
            continue
        first_video = kind == "video" and not any(track.kind == "video" for track in tracks)
        label = stem if first_video else f"{stem}-{kind}"
        if any(encoding.name == label for track in tracks for encoding in track.encodings):
            label = f"{label}-{stream['index']}"
        frames = _frames(packets, Fraction(stream["time_base"].replace(":", "/")), f"{file}: {kind}")
        asked = bit_rate_bps if first_video and bit_rate_bps is not None else round(frames.bit_rate_bps)
        size = (int(stream["width"]), int(stream["height"])) if kind == "video" else None
        encoding = Encoding(
            name=label,
            bit_rate_bps=asked,
            codec=str(stream.get("codec_name", "unknown")),
            frames=frames,
            size=size,
            file=file.name,
        )
        tracks.append(Track(kind=kind, encodings=(encoding,)))
    if not tracks:
        raise MediaError(f"{file}: there is neither video nor sound in it.")
    longest = max(track.encodings[0].frames.span_ns for track in tracks)
    return Content(name=stem, duration_ns=longest, tracks=tuple(tracks))


def streams_in(file: Path) -> list[str]:
    """What the streams of a media file are (``video``, ``audio``, ``subtitle``, ...), from its head alone.
    Raises as `of_file` does."""
    found = _probed(file, "stream=codec_type:stream_disposition=attached_pic")
    return [
        str(stream.get("codec_type"))
        for stream in found.get("streams", [])
        if not stream.get("disposition", {}).get("attached_pic")
    ]


def _probed(file: Path, entries: str) -> dict[str, Any]:
    if shutil.which("ffprobe") is None:
        raise CannotRunError("ffprobe is missing: install ffmpeg (Debian, Ubuntu: `apt-get install ffmpeg`).")
    command = ["ffprobe", "-v", "error", "-of", "json", "-show_entries", entries, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1].removeprefix(f"{file}: ")
        raise MediaError(f"{file}: ffprobe cannot read it ({why}); name a file of video or sound.")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_ENTRIES = (
    "stream=index,codec_type,codec_name,width,height,time_base:stream_disposition=attached_pic"
    ":packet=stream_index,pts,size,flags,duration"
)


def _frames(packets: list[dict[str, Any]], tick_s: Fraction, name: str) -> Frames:
    """Of the packets of one stream, in the order of the file, which is that of decoding."""
    usable = [packet for packet in packets if "D" not in packet["flags"] and int(packet["size"]) > 0]
    try:
        ticks = [int(packet["pts"]) for packet in usable]
    except KeyError:
        raise MediaError(
            f"{name}: its frames carry no times; put it into a container that has them, such as MP4 "
            "(`ffmpeg -i FILE -c copy FILE.mp4`)."
        ) from None
    if not usable:
        raise MediaError(f"{name}: it has no frame that is shown.")
    first = min(ticks)
    times = np.array([_ns(tick - first, tick_s) for tick in ticks], dtype=np.int64)
    last = int(times.argmax())
    lasts = _ns(int(usable[last].get("duration", 0)), tick_s)
    if not lasts:
        lasts = int(times.max()) // max(1, len(times) - 1)
    sizes = [int(packet["size"]) for packet in usable]
    keys = [packet["flags"].startswith("K") for packet in usable]
    return Frames(sizes, times, keys, int(times.max()) + max(lasts, _SHORTEST_NS), name=name)


def _ns(ticks: int, tick_s: Fraction) -> int:
    return ticks * tick_s.numerator * 1_000_000_000 // tick_s.denominator

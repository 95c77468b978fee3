"""Files and clips read as content."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.errors import CannotRunError, MediaError
from streamgauge.media.clip import BUILT_IN, ClipEncoding
from streamgauge.media.content import (
    ALIGNED_WITHIN_NS,
    Content,
    Encoding,
    Frames,
    Integers,
    Track,
    TrackKind,
)
from streamgauge.media.frames import frame_interval_ns, frame_sizes, key_frames

__all__ = ["FilmFacts", "film_facts", "of_clip", "of_file", "rotation_of", "streams_in"]

_KINDS: dict[str, TrackKind] = {"video": "video", "audio": "audio", "subtitle": "text"}
_SHORTEST_NS = 1_000_000


def of_clip(clip: ClipEncoding) -> Content:
    """Returns the content of `clip` in sim: one track with one encoding, by the sizes of its frames, sound
    counted into them (`frame_sizes`). Raises MediaError and CannotRunError as that does."""
    return _shipped(clip) if clip.is_built_in else _content(clip)


@lru_cache(maxsize=512)
def _shipped(clip: ClipEncoding) -> Content:
    """A campaign plans each of its trials, and shipped clips do not change. The cache holds more than the
    rates of all clips of a playlist."""
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
    """Returns a media file, each of its streams as a track with one encoding called `name`, or as the file
    is.

    Times are those at which frames are shown, since the stream's first. `bit_rate_bps` is the requested rate
    of the first video; without it, and for other streams, it is the sum of the frames. Raises MediaError for
    a file that is missing or cannot be read, CannotRunError if there is no ffprobe.
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


@dataclass(frozen=True, kw_only=True)
class FilmFacts:
    """A film of the user's, from its head."""

    size: tuple[int, int]
    """Width and height as shown: turned where the file asks for it."""
    frame_rate: Fraction
    """On average."""
    is_steady: bool
    """Frames are equally spaced, according to the head."""
    duration_s: float
    channels: int
    """Channels of its first sound; 0 without any."""


def film_facts(file: Path) -> FilmFacts:
    """Returns the values that a ladder of a film inherits from it. Raises MediaError, also for a file without
    pictures, and CannotRunError."""
    if not file.is_file():
        raise MediaError(
            f"{file}: no such video file; correct its path, or use content that ships: {', '.join(BUILT_IN)}."
        )
    entries = "format=duration:stream=codec_type,width,height,r_frame_rate,avg_frame_rate,duration,channels"
    found = _probed(file, f"{entries}:stream_disposition=attached_pic")
    streams = [one for one in found.get("streams", []) if not one.get("disposition", {}).get("attached_pic")]
    pictures = next((one for one in streams if one.get("codec_type") == "video"), None)
    if pictures is None:
        raise MediaError(f"{file}: it has no pictures; name a file of video.")
    sound: dict[str, Any] = next((one for one in streams if one.get("codec_type") == "audio"), {})
    size = int(pictures["width"]), int(pictures["height"])
    if rotation_of(file) % 180 == 90:
        size = size[1], size[0]
    highest, average = (_rate(pictures.get(key)) for key in ("r_frame_rate", "avg_frame_rate"))
    rate = average or highest
    # ffprobe leaves out values that a container lacks.
    lasts = pictures.get("duration") or found.get("format", {}).get("duration")
    if not rate or lasts is None or float(lasts) <= 0:
        raise MediaError(
            f"{file}: it has no {'duration' if rate else 'frame rate'}; put it into MP4 "
            "(`ffmpeg -i FILE -c copy FILE.mp4`)."
        )
    return FilmFacts(
        size=size,
        frame_rate=rate,
        is_steady=abs(highest - rate) <= rate / 100,
        duration_s=float(lasts),
        channels=int(sound.get("channels", 0)),
    )


def _rate(text: str | None) -> Fraction:
    """Returns ``30000/1001``; 0 for ``0/0``, which ffprobe prints for an unknown rate."""
    above, _, below = (text or "0/0").partition("/")
    return Fraction(int(above), int(below)) if below and int(below) else Fraction(0)


def streams_in(file: Path) -> list[str]:
    """Returns the kinds of the streams of a media file (``video``, ``audio``, ``subtitle``, ...), from its
    head alone. Raises as `of_file` does."""
    found = _probed(file, "stream=codec_type:stream_disposition=attached_pic")
    return [
        str(stream.get("codec_type"))
        for stream in found.get("streams", [])
        if not stream.get("disposition", {}).get("attached_pic")
    ]


def rotation_of(file: Path) -> int:
    """Returns the degrees by which a file asks players to turn its pictures, 0 to 359. Raises as `of_file`
    does."""
    found = _probed(file, "stream=codec_type:stream_side_data=rotation:stream_tags=rotate")
    for stream in found.get("streams", []):
        if stream.get("codec_type") == "video":
            told = [side["rotation"] for side in stream.get("side_data_list", []) if "rotation" in side]
            told += [stream["tags"]["rotate"]] if "rotate" in stream.get("tags", {}) else []
            return round(float(told[0])) % 360 if told else 0
    return 0


def _probed(file: Path, entries: str) -> dict[str, Any]:
    if shutil.which("ffprobe") is None:
        raise CannotRunError("ffprobe is missing: install ffmpeg (Debian, Ubuntu: `apt-get install ffmpeg`).")
    command = ["ffprobe", "-v", "error", "-of", "json", "-show_entries", entries, str(file)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
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
    """Returns the frames of the packets of one stream, in the order of the file, which is that of
    decoding."""
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
    span_ns = int(times.max()) + max(lasts, _SHORTEST_NS)
    step_ns = _ns(max(ticks) - first, tick_s) / max(1, len(times) - 1)
    return Frames(sizes, keys=keys, name=name, **_even(times, step_ns, span_ns))


def _even(times_ns: Integers, step_ns: float, span_ns: int) -> dict[str, Any]:
    """Times and span of frames; where a file's clock alone keeps the times from a fixed interval, with that.

    30000/1001 frames a second are no whole number of ns apart, and Matroska rounds to ms.
    """
    as_read = {"times_ns": times_ns, "span_ns": span_ns}
    interval, order = round(step_ns), np.argsort(times_ns, kind="stable")
    places = np.arange(len(times_ns))
    off_ns = np.abs(times_ns[order] - np.round(places * step_ns))
    if not interval or off_ns.max() > ALIGNED_WITHIN_NS or abs(span_ns - len(places) * step_ns) > step_ns:
        return as_read
    even = np.empty_like(times_ns)
    even[order] = places * interval
    return {"times_ns": even, "span_ns": len(places) * interval}


def _ns(ticks: int, tick_s: Fraction) -> int:
    return ticks * tick_s.numerator * 1_000_000_000 // tick_s.denominator

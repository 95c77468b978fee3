"""Content: streamed media, one type for all systems.

Tracks (video, audio, text), the encodings of each, the frames of each encoding. A clip has one encoding of
video, a ladder several. Segments are cut at key frames; those of a ladder's encodings begin at the same
times, or a player could not change between them (ISO/IEC 23009-1: segmentAlignment).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from streamgauge.errors import MediaError
from streamgauge.input_files import UnfitInputError, read_input

__all__ = ["ALIGNED_WITHIN_NS", "SCHEMA", "Content", "Encoding", "Frames", "Segment", "Track", "TrackKind"]

SCHEMA = "streamgauge.content/1"
_LARGEST_BYTES = 256_000_000
ALIGNED_WITHIN_NS = 1_000_000
"""How far apart two key frames may be and still be of one time: a tick of a file's coarsest clock, 1 ms."""

TrackKind = Literal["video", "audio", "text"]
_KINDS: tuple[TrackKind, ...] = ("video", "audio", "text")
Integers = npt.NDArray[np.int64]


class Frames:
    """The coded frames of an encoding, in the order in which they are decoded and sent.

    `sizes_bytes` (n, 1 B or more), `times_ns` (n, when each is shown since the first, which is a key frame at
    0), `keys` (n, which decode by themselves). They last `span_ns`, and are repeated from their start for
    content that is longer. Raises MediaError, of `name`, for unplayable frames.
    """

    __slots__ = ("keys", "sizes_bytes", "span_ns", "times_ns")

    def __init__(
        self,
        sizes_bytes: npt.ArrayLike,
        times_ns: npt.ArrayLike,
        keys: npt.ArrayLike,
        span_ns: int,
        *,
        name: str = "content",
    ) -> None:
        self.sizes_bytes = np.array(sizes_bytes, dtype=np.int64)
        self.times_ns = np.array(times_ns, dtype=np.int64)
        self.keys = np.array(keys, dtype=bool)
        self.span_ns = int(span_ns)
        for array in (self.sizes_bytes, self.times_ns, self.keys):
            array.flags.writeable = False
        why = self._wrong()
        if why is not None:
            raise MediaError(f"{name}: {why}.")

    def _wrong(self) -> str | None:
        count = len(self.sizes_bytes)
        if not count == len(self.times_ns) == len(self.keys):
            return (
                f"{count} sizes, {len(self.times_ns)} times and {len(self.keys)} key flags are of no frames"
            )
        if not count:
            return "there is no frame in it"
        if self.sizes_bytes.min() < 1:
            return f"frame {int(self.sizes_bytes.argmin())} has no byte; every frame has at least one"
        if not self.keys[0] or self.times_ns[0] != 0 or self.times_ns.min() < 0:
            return "it does not begin with a key frame that is shown first; cut it at a key frame"
        if np.any(np.diff(self.key_times_ns) <= 0):
            return "its key frames are not in the order of their times"
        if self.times_ns.max() >= self.span_ns:
            return f"its last frame is shown at {self.times_ns.max() / 1e9:g} s, after its end"
        return None

    @classmethod
    def regular(
        cls, sizes_bytes: npt.ArrayLike, interval_ns: int, key_frames: npt.ArrayLike, *, name: str = "content"
    ) -> Frames:
        """Returns frames at a fixed interval; those numbered `key_frames` (from 0) are key frames."""
        sizes = np.asarray(sizes_bytes, dtype=np.int64)
        keys = np.zeros(len(sizes), dtype=bool)
        numbers = np.asarray(key_frames, dtype=np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(sizes):
            raise MediaError(f"{name}: a key frame has a number that none of its {len(sizes)} frames has.")
        keys[numbers] = True
        return cls(sizes, np.arange(len(sizes)) * interval_ns, keys, len(sizes) * interval_ns, name=name)

    def __len__(self) -> int:
        return len(self.sizes_bytes)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Frames)
            and self.span_ns == other.span_ns
            and np.array_equal(self.sizes_bytes, other.sizes_bytes)
            and np.array_equal(self.times_ns, other.times_ns)
            and np.array_equal(self.keys, other.keys)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def key_times_ns(self) -> Integers:
        """Returns when key frames are shown."""
        times: Integers = self.times_ns[self.keys]
        return times

    @property
    def interval_ns(self) -> int | None:
        """Returns the time between frames as they are shown, where that is the same throughout; `None` where
        it is not."""
        interval = self.span_ns // len(self)
        if interval and np.array_equal(np.sort(self.times_ns), np.arange(len(self)) * interval):
            return interval if interval * len(self) == self.span_ns else None
        return None

    @property
    def display_order(self) -> Integers | None:
        """Returns the place of each in the order in which they are shown, from 0; `None` where that is the
        order in which they are decoded. The two differ where there are B-frames."""
        if np.all(np.diff(self.times_ns) >= 0):
            return None
        places = np.empty(len(self), dtype=np.int64)
        places[np.argsort(self.times_ns, kind="stable")] = np.arange(len(self))
        return places

    def to_plan(self) -> dict[str, Any]:
        """Returns the frames as the plan of a trial has them written in."""
        planned = {
            "frame_interval": self.interval_ns,
            "frame_bytes": self.sizes_bytes.tolist(),
            "key_frames": self.keys.nonzero()[0].tolist(),
        }
        order = self.display_order
        return planned if order is None else planned | {"display_order": order.tolist()}

    @property
    def bit_rate_bps(self) -> float:
        """On average over the span, containers and packets' headers left out."""
        return 8e9 * float(self.sizes_bytes.sum()) / self.span_ns

    def until(self, duration_ns: int) -> Frames:
        """Returns the frames that are shown before `duration_ns`, repeated if they end earlier."""
        if duration_ns < 1:
            raise MediaError(f"content of {duration_ns} ns has nothing to play.")
        passes = -(-duration_ns // self.span_ns)
        starts = np.repeat(np.arange(passes) * self.span_ns, len(self))
        times = starts + np.tile(self.times_ns, passes)
        there = times < duration_ns
        sizes, keys = np.tile(self.sizes_bytes, passes), np.tile(self.keys, passes)
        return Frames(sizes[there], times[there], keys[there], duration_ns)

    def to_json(self) -> dict[str, Any]:
        """Leaves times out where they are regular: `interval_ns` then has the interval."""
        said: dict[str, Any] = {"span_ns": self.span_ns, "frame_bytes": self.sizes_bytes.tolist()}
        said["key_frames"] = np.flatnonzero(self.keys).tolist()
        if (interval := self.interval_ns) is not None and self.display_order is None:
            return said | {"interval_ns": interval}
        return said | {"times_ns": self.times_ns.tolist()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, name: str) -> Frames:
        """Reads `to_json`. Raises MediaError."""
        try:
            sizes, span_ns = data["frame_bytes"], data["span_ns"]
            count = len(sizes)
            times = data["times_ns"] if "times_ns" in data else np.arange(count) * data["interval_ns"]
            keys = np.zeros(count, dtype=bool)
            keys[np.asarray(data["key_frames"], dtype=np.int64)] = True
            return cls(sizes, times, keys, span_ns, name=name)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise MediaError(f"{name}: its frames cannot be read ({_said(error)}).") from None


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A part of an encoding that begins with a key frame; `number` counts from 0."""

    number: int
    start_ns: int
    end_ns: int
    frames: tuple[int, int]
    """The first frame and the one after the last."""
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """A track at one rate. `bit_rate_bps` is the requested rate; `frames` has the actual sizes."""

    name: str
    bit_rate_bps: int
    codec: str
    frames: Frames
    size: tuple[int, int] | None = None
    """Width and height of video, pixels."""
    file: str | None = None
    """Where its bytes are, relative to the description's folder; `None` if only their sizes are known."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """A part of the media that is played together with others, in encodings; a player uses one at a time."""

    kind: TrackKind
    encodings: tuple[Encoding, ...]

    def aligned(self) -> None:
        """Raises MediaError, which names both encodings and the first time that differs, unless the key
        frames of all encodings are at the same times, within `ALIGNED_WITHIN_NS`."""
        first, *others = self.encodings
        for other in others:
            at_ns, has, lacks = _first_difference(first, other)
            if has is not None and lacks is not None:
                raise MediaError(
                    f"{first.name} and {other.name}: their key frames do not align. {has.name} has one at "
                    f"{at_ns / 1e9:.3f} s, {lacks.name} has none there. Encode with one fixed interval "
                    "of key frames and none at scene cuts, as `streamgauge ladder` does."
                )


def _first_difference(one: Encoding, other: Encoding) -> tuple[int, Encoding | None, Encoding | None]:
    """Returns the first time of a key frame in one alone, the one with it, and the one without, in their
    common part."""
    until = min(one.frames.span_ns, other.frames.span_ns)
    mine, theirs = (e.frames.key_times_ns[e.frames.key_times_ns < until] for e in (one, other))
    for a, b in zip(mine.tolist(), theirs.tolist(), strict=False):
        if abs(a - b) > ALIGNED_WITHIN_NS:
            return (a, one, other) if a < b else (b, other, one)
    longer, shorter, count = (one, other, len(theirs)) if len(mine) > len(theirs) else (other, one, len(mine))
    if len(mine) == len(theirs):
        return 0, None, None
    return int(longer.frames.key_times_ns[count]), longer, shorter


@dataclass(frozen=True, kw_only=True)
class Content:
    """Streamed media.

    `segment_ns` is the requested length of segments; they are longer where no key frame is in time. Raises
    MediaError for tracks without encodings, for a name that two encodings have, and for a ladder with
    segments and unaligned key frames.
    """

    name: str
    duration_ns: int
    tracks: tuple[Track, ...]
    segment_ns: int | None = None

    def __post_init__(self) -> None:
        if self.duration_ns < 1 or (self.segment_ns is not None and self.segment_ns < 1):
            raise MediaError(f"{self.name}: its duration and its segments' must be above zero.")
        if not self.tracks or not all(track.encodings for track in self.tracks):
            raise MediaError(f"{self.name}: it needs a track, and each track an encoding.")
        names = [encoding.name for encoding in self.encodings]
        for name in names:
            if names.count(name) > 1:
                raise MediaError(f"{self.name}: two encodings are called {name}; give each rate once.")
        if self.segment_ns is not None:
            for track in self.tracks:
                if track.kind == "video":
                    track.aligned()

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """Returns the encodings of all tracks, in order."""
        return tuple(encoding for track in self.tracks for encoding in track.encodings)

    @property
    def video(self) -> Track:
        """Returns the first track of pictures. Raises MediaError if there is none."""
        for track in self.tracks:
            if track.kind == "video":
                return track
        raise MediaError(f"{self.name}: it has no pictures.")

    def encoding(self, name: str) -> Encoding:
        """Returns the encoding of that name. Raises MediaError."""
        for encoding in self.encodings:
            if encoding.name == name:
                return encoding
        names = ", ".join(encoding.name for encoding in self.encodings)
        raise MediaError(f"{self.name}: there is no encoding '{name}'; it has {names}.")

    def with_files(self, names: Mapping[str, str]) -> Content:
        """Returns the same, its files renamed; those that `names` lacks stay."""
        tracks = tuple(
            replace(
                track,
                encodings=tuple(
                    replace(one, file=None if one.file is None else names.get(one.file, one.file))
                    for one in track.encodings
                ),
            )
            for track in self.tracks
        )
        return replace(self, tracks=tracks)

    def boundaries_ns(self) -> Integers:
        """Returns when segments begin: at 0, and at the first key frame of the video that is `segment_ns` or
        more after the one before. Without `segment_ns` there is one segment."""
        first = next((t for t in self.tracks if t.kind == "video"), self.tracks[0]).encodings[0]
        if self.segment_ns is None:
            return np.zeros(1, dtype=np.int64)
        starts = [0]
        for at in first.frames.until(self.duration_ns).key_times_ns.tolist():
            # A file's clock rounds: a key frame that is a tick early is in time.
            if at > starts[-1] and at >= starts[-1] + self.segment_ns - ALIGNED_WITHIN_NS:
                starts.append(at)
        return np.array(starts, dtype=np.int64)

    def segments(self, encoding: Encoding) -> list[Segment]:
        """Returns those of an encoding. They tile it: every frame is in one, and each begins with a key
        frame, at the boundary or, of a track with its own frames' times such as sound, at the first one from
        there on."""
        frames = encoding.frames.until(self.duration_ns)
        keys = np.flatnonzero(frames.keys)
        wanted = self.boundaries_ns()[1:] - ALIGNED_WITHIN_NS
        place = np.searchsorted(frames.times_ns[keys], wanted)
        cuts = np.unique(keys[place[place < len(keys)]])
        edges = [0, *cuts[cuts > 0].tolist(), len(frames)]
        times = [*(int(frames.times_ns[edge]) for edge in edges[:-1]), self.duration_ns]
        sums = np.concatenate([[0], np.cumsum(frames.sizes_bytes)])
        return [
            Segment(
                number=number,
                start_ns=times[number],
                end_ns=times[number + 1],
                frames=(first, after),
                size_bytes=int(sums[after] - sums[first]),
            )
            for number, (first, after) in enumerate(itertools.pairwise(edges))
        ]

    @cached_property
    def digest(self) -> str:
        """Returns the digest of everything but names and places of files: equal for the same content."""
        data = self.to_json()
        data.pop("name")
        for track in data["tracks"]:
            for encoding in track["encodings"]:
                encoding.pop("file", None)
                encoding.pop("name", None)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """As `save` writes it."""
        data: dict[str, Any] = {"schema": SCHEMA, "name": self.name, "duration_ns": self.duration_ns}
        if self.segment_ns is not None:
            data["segment_ns"] = self.segment_ns
        data["tracks"] = [
            {"kind": track.kind, "encodings": [_encoding_json(encoding) for encoding in track.encodings]}
            for track in self.tracks
        ]
        return data

    def summary(self) -> dict[str, Any]:
        """Returns `to_json` without frames, with their totals."""
        data = self.to_json() | {"digest": self.digest}
        for track, said in zip(self.tracks, data["tracks"], strict=True):
            for encoding, row in zip(track.encodings, said["encodings"], strict=True):
                frames = row.pop("frames")
                row |= {
                    "frames": len(encoding.frames),
                    "key_frames": len(frames["key_frames"]),
                    "mean_bps": round(encoding.frames.bit_rate_bps),
                }
                if self.segment_ns is not None:
                    row["segments"] = len(self.segments(encoding))
        return data

    def save(self, file: Path) -> None:
        """Writes it as JSON."""
        file.write_text(json.dumps(self.to_json(), separators=(",", ":")) + "\n", encoding="utf-8")

    @classmethod
    def from_json(cls, data: Any, *, name: str = "content") -> Content:
        """Reads `to_json`. Raises MediaError, of `name`, for another schema and for invalid values."""
        if not isinstance(data, dict) or "schema" not in data:
            raise MediaError(f"{name}: it is no content; expected a mapping with 'schema: {SCHEMA}'.")
        if data["schema"] != SCHEMA:
            raise MediaError(
                f"{name}: its schema is {data['schema']!r}, and this version reads {SCHEMA}. Write it again "
                "with `streamgauge ladder`, or use the version that wrote it."
            )
        try:
            return cls(
                name=str(data["name"]),
                duration_ns=int(data["duration_ns"]),
                segment_ns=None if data.get("segment_ns") is None else int(data["segment_ns"]),
                tracks=tuple(_track_of(track, name) for track in data["tracks"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise MediaError(f"{name}: it cannot be read ({_said(error)}).") from None

    @classmethod
    def load(cls, file: Path) -> Content:
        """Reads a file of `save`. Raises MediaError with the file's name."""
        try:
            data = json.loads(read_input(file, _LARGEST_BYTES))
        except UnfitInputError as error:
            raise MediaError(f"{file}: it {error}.") from None
        except RecursionError:
            raise MediaError(f"{file}: it is nested too deeply.") from None
        except OSError as error:
            raise MediaError(
                f"{file}: {error.strerror}; name a file that `streamgauge ladder` wrote."
            ) from None
        except ValueError as error:
            raise MediaError(f"{file}: it is not JSON ({error}).") from None
        return cls.from_json(data, name=str(file))


def _encoding_json(encoding: Encoding) -> dict[str, Any]:
    row: dict[str, Any] = {"name": encoding.name, "bit_rate_bps": encoding.bit_rate_bps}
    row["codec"] = encoding.codec
    if encoding.size is not None:
        row["size"] = list(encoding.size)
    if encoding.file is not None:
        row["file"] = encoding.file
    return row | {"frames": encoding.frames.to_json()}


def _track_of(data: Mapping[str, Any], name: str) -> Track:
    if data["kind"] not in _KINDS:
        raise MediaError(f"{name}: a track is of {data['kind']!r}; expected one of {', '.join(_KINDS)}.")
    return Track(
        kind=data["kind"], encodings=tuple(_encoding_of(encoding, name) for encoding in data["encodings"])
    )


def _encoding_of(data: Mapping[str, Any], name: str) -> Encoding:
    size = data.get("size")
    if size is not None:
        width, height = size
        size = (int(width), int(height))
    return Encoding(
        name=str(data["name"]),
        bit_rate_bps=int(data["bit_rate_bps"]),
        codec=str(data["codec"]),
        size=size,
        file=data.get("file"),
        frames=Frames.from_json(data["frames"], name=f"{name}: {data['name']}"),
    )


def _said(error: Exception) -> str:
    return f"there is no {error}" if isinstance(error, KeyError) else str(error)

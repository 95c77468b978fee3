"""Ladders: one content at several rates, with key frames at the same times, and its sound."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Protocol

from streamgauge.errors import MediaError
from streamgauge.media.clip import ClipEncoding
from streamgauge.media.content import Content, Encoding, Track, TrackKind
from streamgauge.media.encode import Run, prepare, prepare_sound
from streamgauge.media.probe import of_file
from streamgauge.media.running import Programs
from streamgauge.media.sources import cache_folder

__all__ = [
    "DESCRIPTION",
    "RATE_WITHIN",
    "Ladder",
    "encoded",
    "ladder_of",
    "ladder_of_files",
    "prepare_ladder",
    "rate_named",
    "short_name",
    "write_folder",
]

DESCRIPTION = "content.json"
"""The name of a ladder's description in its folder."""
RATE_WITHIN = 0.15
"""Largest error of an encoding's mean rate, as a part of the requested one, for content of 4 s or more. The
encoder holds the rate over a second and starts with an empty buffer, so short content is off by most. Rates
out of reach for the pictures are missed by more: the description has the actual ones."""

_SHORT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)([kM])\s*")
_SCALES = {"k": 1_000, "M": 1_000_000}


def rate_named(text: str) -> int | None:
    """Returns the bit/s of ``235k`` or ``1.5M``; `None` for anything else."""
    found = _SHORT.fullmatch(text)
    if found is None:
        return None
    rate = Fraction(found[1]) * _SCALES[found[2]]
    return int(rate) if rate.denominator == 1 else None


def short_name(rate_bps: int) -> str:
    """Returns ``235k``: the name of an encoding of that rate."""
    return f"{rate_bps / 1000:.15g}k"


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Content to be encoded at several rates.

    `rates_bps` are of video alone; sound, if `audio_bps` is above zero, is a track of its own with one
    encoding. A key frame begins each `segment_s`, and there are no others. Pictures are of the `sizes`, one
    for each rate, or without them of the size that a clip of that rate has (`ClipEncoding.picture`). Raises
    MediaError.
    """

    source: str
    rates_bps: tuple[int, ...]
    duration_s: float
    audio_bps: int = 0
    frame_rate: int | Fraction = 25
    segment_s: float = 2.0
    sizes: tuple[tuple[int, int], ...] | None = None
    channels: int = 1

    def __post_init__(self) -> None:
        if len(self.rates_bps) < 2:
            given = "1 rate" if self.rates_bps else "no rates"
            raise MediaError(f"ladder {self.source}: it has {given}; give two or more, such as 235k,560k.")
        for below, rate in zip(self.rates_bps, self.rates_bps[1:], strict=False):
            if rate <= below:
                raise MediaError(
                    f"ladder {self.source}: {short_name(rate)} stands after {short_name(below)}; write the "
                    "rates from the lowest up, each once."
                )
        frames = Fraction(repr(float(self.segment_s))) * self.frame_rate
        # 30000/1001 frames a second have no whole number of them in any round time.
        even = Fraction(self.frame_rate).denominator != 1 or frames.denominator == 1
        if self.segment_s <= 0 or not even:
            raise MediaError(
                f"ladder {self.source}: {self.segment_s:g} s are no whole number of frames at "
                f"{self.frame_rate} a second. Choose another length or frame rate."
            )
        if self.sizes is not None and len(self.sizes) != len(self.rates_bps):
            raise MediaError(
                f"ladder {self.source}: {len(self.rates_bps)} rates have {len(self.sizes)} sizes; give one "
                "for each rate."
            )
        for width, height in self.sizes or ():
            if width < 16 or height < 16 or width % 2 or height % 2:
                raise MediaError(
                    f"ladder {self.source}: pictures of {width}x{height} cannot be encoded; give even "
                    "numbers of at least 16."
                )
        for rate in self.rates_bps:
            self.clip(rate)

    def clip(self, rate_bps: int) -> ClipEncoding:
        """Returns the clip that the encoding of that rate is."""
        return ClipEncoding(
            source=self.source,
            bit_rate_bps=rate_bps,
            duration_s=self.duration_s,
            frame_rate=self.frame_rate,
            gop_s=self.segment_s,
            size=None if self.sizes is None else self.sizes[self.rates_bps.index(rate_bps)],
        )

    @property
    def sound(self) -> ClipEncoding:
        """Returns the clip with the sound of the ladder, which has some."""
        return ClipEncoding(
            source=self.source,
            bit_rate_bps=self.audio_bps + self.rates_bps[0],
            duration_s=self.duration_s,
            audio_bps=self.audio_bps,
            channels=self.channels,
        )

    @property
    def label(self) -> str:
        """Returns a short name for people and for file names."""
        stem = self.clip(self.rates_bps[0]).label.rpartition("-")[0]
        return f"{stem}-{short_name(self.rates_bps[0])}-to-{short_name(self.rates_bps[-1])}"


Tell = Callable[[int, int, tuple[str, ...]], None]
"""Receives the number of finished encodings, the total, and the names of those under way."""


def prepare_ladder(ladder: Ladder, *, jobs: int | None = None, tell: Tell | None = None) -> Path:
    """Returns a folder with the ladder: an MP4 file an encoding (``235k.mp4``), one of sound, and
    ``content.json``.

    Encoded on first use, `jobs` at a time (as many as processors if `None`), and kept under the cache folder
    by the keys of its encodings. The alignment of key frames is read from the encoded files, not assumed from
    the request. `tell` may raise to stop the work: encoders then end, and nothing half done stays. Raises
    MediaError, CannotRunError.
    """
    files = _encode(ladder, jobs, tell)
    content = _content(ladder, files)
    # A file's name contains a digest of its content and settings.
    key = hashlib.blake2b("\x1f".join(file.name for file in files.values()).encode(), digest_size=10)
    folder = cache_folder() / "ladders" / f"{ladder.label}-{ladder.duration_s:g}s-{key.hexdigest()}"
    if not (folder / DESCRIPTION).is_file():
        try:
            write_folder(content, files, folder)
        except MediaError:
            if not (folder / DESCRIPTION).is_file():
                raise  # and else another process was first, with the same
    return folder


def _encode(ladder: Ladder, jobs: int | None, tell: Tell | None) -> dict[str, Path]:
    """Encoded files by the name that each has in a ladder's folder."""
    clips = {f"{short_name(rate)}.mp4": partial(prepare, ladder.clip(rate)) for rate in ladder.rates_bps}
    sound = {_SOUND: partial(prepare_sound, ladder.sound)} if ladder.audio_bps else {}
    files = encoded(sound | clips, jobs, tell)
    return {name: files[name] for name in (*clips, *sound)}


class Encoder(Protocol):
    """Makes a file, by programs that `run` runs."""

    def __call__(self, *, run: Run) -> Path: ...


def encoded(encoders: Mapping[str, Encoder], jobs: int | None, tell: Tell | None) -> dict[str, Path]:
    """Returns the files that `encoders` make, by the encoders' names: `jobs` at a time, as many as processors
    if `None`, the last first. `tell` may raise to stop the work."""
    said = tell or (lambda done, of, now: None)
    files: dict[str, Path] = {}
    with Programs() as programs, ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        pending: dict[Future[Path], str] = {}
        try:
            # The dearest first, so that none of them is alone at the end.
            for name, encoder in reversed(list(encoders.items())):
                pending[pool.submit(encoder, run=programs.run)] = name
            while pending:
                running = tuple(name for task, name in pending.items() if task.running())
                said(len(files), len(encoders), running)
                done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for task in done:
                    files[pending.pop(task)] = task.result()
        except BaseException:
            for task in pending:
                task.cancel()
            programs.stop()
            raise
    said(len(encoders), len(encoders), ())
    return files


_SOUND = "audio.mp4"
_SOUND_WITHIN_NS = 1_000_000_000
"""How much longer or shorter than the pictures a file of sound may be: encoders add some blocks."""


def _content(ladder: Ladder, files: dict[str, Path]) -> Content:
    """Returns the description of the encoded files. Raises MediaError if key frames do not align."""
    video: list[Encoding] = []
    tracks: list[Track] = []
    for rate in ladder.rates_bps:
        name = f"{short_name(rate)}.mp4"
        one = of_file(files[name], name=short_name(rate), bit_rate_bps=rate)
        video.append(replace(one.video.encodings[0], file=name))
    tracks.append(Track(kind="video", encodings=tuple(video)))
    if ladder.audio_bps:
        sound = of_file(files[_SOUND], name="audio").tracks[0].encodings[0]
        tracks.append(
            Track(
                kind="audio",
                encodings=(replace(sound, name="audio", bit_rate_bps=ladder.audio_bps, file=_SOUND),),
            )
        )
    return Content(
        name=ladder.label,
        duration_ns=round(ladder.duration_s * 1e9),
        segment_ns=round(ladder.segment_s * 1e9),
        tracks=tuple(tracks),
    )


def ladder_of_files(files: Sequence[Path], *, segment_s: float | None = None) -> Content:
    """Files that are taken as a ladder as they are: the first video of each is an encoding, in the order of
    their rates. The track of sound is that of the file without pictures, or else the first sound found.

    Segments are `segment_s` long at least, or from key frame to key frame. Raises MediaError for a file that
    cannot be read, if no file has pictures or several have sound alone, and if key frames do not align, with
    both names and the first time.
    """
    read = [of_file(file, name=str(file)).with_files({file.name: str(file)}) for file in files]
    return ladder_of(read, segment_s=segment_s, name=" ".join(map(str, files)))


def ladder_of(read: Sequence[Content], *, segment_s: float | None, name: str) -> Content:
    """Returns the ladder called `name` from the content of each of its files; as `ladder_of_files`."""
    video: list[Encoding] = []
    beside: list[Encoding] = []
    alone: list[Encoding] = []
    for one in read:
        pictures = _first_of("video", one)
        video += pictures
        (beside if pictures else alone).extend(_first_of("audio", one))
    if not video:
        raise MediaError(f"{name}: there are no pictures; name the files that have them, too.")
    if len(alone) > 1:
        names = " and ".join(encoding.name.removesuffix("-audio") for encoding in alone)
        raise MediaError(f"{names}: each is sound alone, and a ladder has one track of sound; name one.")
    video.sort(key=lambda encoding: encoding.bit_rate_bps)
    lasts_ns = min(encoding.frames.span_ns for encoding in video)
    tracks = [Track(kind="video", encodings=tuple(_until(lasts_ns, one) for one in video))]
    sound = alone or beside
    if alone and abs(alone[0].frames.span_ns - lasts_ns) > _SOUND_WITHIN_NS:
        seconds = alone[0].frames.span_ns / 1e9, lasts_ns / 1e9
        raise MediaError(
            f"{alone[0].name.removesuffix('-audio')}: its sound lasts {seconds[0]:.3f} s and the pictures "
            f"{seconds[1]:.3f} s; cut both to one length (ffmpeg's option -t)."
        )
    if sound:
        tracks.append(Track(kind="audio", encodings=(replace(sound[0], name="audio"),)))
    return Content(
        name=name,
        duration_ns=lasts_ns,
        segment_ns=round(segment_s * 1e9) if segment_s is not None else 1,
        tracks=tuple(tracks),
    )


def _first_of(kind: TrackKind, content: Content) -> list[Encoding]:
    """Returns the first track's of that kind; none without one."""
    return [track.encodings[0] for track in content.tracks if track.kind == kind][:1]


def _until(lasts_ns: int, encoding: Encoding) -> Encoding:
    """Without B-frames at the end that are shown after the shortest of all has ended: the rest of a group in
    the order of decoding is no whole one."""
    frames = encoding.frames
    step, more_ns = frames.interval_ns, frames.span_ns - lasts_ns
    # Files that differ by more than a frame are another film's.
    if frames.display_order is None or step is None or not 0 < more_ns <= 1.5 * step:
        return encoding
    whole_ns = -(-lasts_ns // step) * step
    return encoding if whole_ns >= frames.span_ns else replace(encoding, frames=frames.until(whole_ns))


def write_folder(content: Content, files: dict[str, Path], folder: Path) -> None:
    """Copies files, by the names they are to have, and the description of them into a new folder.

    It is there whole or not at all. Raises MediaError if it cannot be written, or is there and is not empty.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.is_dir() and any(folder.iterdir()):
            raise MediaError(f"{folder} is there already, and not empty; name another folder.")
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".streamgauge-") as scratch:
            part = Path(scratch) / "ladder"
            part.mkdir()
            for name, file in files.items():
                shutil.copyfile(file, part / name).chmod(0o644)
            content.save(part / DESCRIPTION)
            part.chmod(0o755)
            part.rename(folder)
    except OSError as error:
        raise MediaError(
            f"{folder}: cannot write the ladder ({error.strerror}); name a folder that you may write to."
        ) from error

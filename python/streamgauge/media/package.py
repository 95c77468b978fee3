"""Presentations: a ladder cut into segments, with the manifests of DASH and of HLS that name them.

ffmpeg's packager cuts it; nothing is encoded again. Both manifests name the same segments, fragmented MP4
(ISO/IEC 23009-1; RFC 8216), of pictures and sound apart, representations from the lowest rate up.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from streamgauge.errors import MediaError
from streamgauge.input_files import UnfitInputError, read_input
from streamgauge.media.content import ALIGNED_WITHIN_NS, Content, Track
from streamgauge.media.encode import ffmpeg_version, run_alone
from streamgauge.media.ladder import DESCRIPTION
from streamgauge.media.probe import of_file
from streamgauge.media.sources import cache_folder

__all__ = [
    "MANIFEST",
    "PLAYLIST",
    "PRESENTATION",
    "SEGMENT_INDEXES",
    "Presentation",
    "Representation",
    "SegmentIndex",
    "prepare_presentation",
    "write_presentation",
]

SegmentIndex = Literal["number", "timeline"]
SEGMENT_INDEXES: tuple[SegmentIndex, ...] = ("number", "timeline")
"""Index of segments in the DASH manifest: by their number, all of one length, or each with its time."""

MANIFEST, PLAYLIST, PRESENTATION = "manifest.mpd", "master.m3u8", "presentation.json"
"""Files of a presentation: of DASH, of HLS, and the description of both."""
SCHEMA = "streamgauge.presentation/1"
_LARGEST_BYTES = 64_000_000
SEGMENT_NS = 2_000_000_000
"""Requested length of segments for a file that is no ladder and has none of its own."""
DATED_S = 1_577_836_800
"""When all files were written, by their own word (2020-01-01 UTC). By that a browser reckons how long it
keeps them (RFC 9111 section 4.2.2): sessions would differ by when their media were packaged."""
_VERSION = 2
"""Raised when the same ladder would be packaged otherwise."""

_SEGMENT = re.compile(r"segment-(\d+)-(\d+)\.m4s")
_BANDWIDTH = re.compile(r'<Representation id="(\d+)"[^>]* bandwidth="(\d+)"')
_DATE = re.compile(r"^#EXT-X-PROGRAM-DATE-TIME:.*\n", re.M)


@dataclass(frozen=True, kw_only=True)
class Representation:
    """An encoding as manifests name it."""

    id: str
    kind: str
    name: str
    #: Requested rate; levels of players are recorded as this.
    bit_rate_bps: int
    #: Rate in the DASH manifest: the mean that the packager measured.
    bandwidth_bps: int
    segments: int


@dataclass(frozen=True, kw_only=True)
class Presentation:
    """Contents of a folder of segments, as in its ``presentation.json``."""

    name: str
    duration_s: float
    #: How long segments play; the last may be shorter, and of a timeline some longer.
    segment_s: float
    index: SegmentIndex
    representations: tuple[Representation, ...]

    def to_json(self) -> dict[str, Any]:
        """As `load` reads it."""
        said = {"schema": SCHEMA, "manifest": MANIFEST, "playlist": PLAYLIST, **vars(self)}
        return said | {"representations": [vars(one) for one in self.representations]}

    @classmethod
    def load(cls, folder: Path) -> Presentation:
        """That of a folder. Raises MediaError."""
        file = folder / PRESENTATION
        try:
            data = json.loads(read_input(file, _LARGEST_BYTES))
            rows = tuple(Representation(**one) for one in data["representations"])
            told = {key: data[key] for key in ("name", "duration_s", "segment_s", "index")}
            return cls(**told, representations=rows)
        except (OSError, UnfitInputError, RecursionError, ValueError, KeyError, TypeError) as error:
            raise MediaError(
                f"{file}: it cannot be read ({error}); name a folder that `streamgauge package` wrote."
            ) from None


def prepare_presentation(ladder: Path, *, index: SegmentIndex | None = None) -> Path:
    """Returns a folder with the presentation of a ladder, made on first use.

    `ladder` is a folder of `streamgauge.media.prepare_ladder` or `streamgauge.media.prepare_own_ladder`, or
    one MP4 file, which has then one representation of its pictures. Segments begin at the content's own;
    without `index` they are indexed by number where all are of one length. Kept under the cache folder by the
    files' bytes, the settings and ffmpeg's version. Raises MediaError, CannotRunError.
    """
    content, files = _read(ladder)
    chosen, segment_ns = _indexed(content, ladder, index)
    key = _key(content, files, chosen, segment_ns)
    kept = cache_folder() / "presentations" / f"{_file_name(content.name)}-{chosen}-{key}"
    if not (kept / PRESENTATION).is_file():
        try:
            _make(content, files, chosen, segment_ns, kept)
        except MediaError:
            if not (kept / PRESENTATION).is_file():
                raise  # and else another process was first, with the same
    return kept


def write_presentation(ladder: Path, out: Path, *, index: SegmentIndex | None = None) -> Presentation:
    """Writes the same into the new folder `out`, as a whole or not at all, and nowhere else; returns its
    contents.

    Fails as `prepare_presentation`, and for a folder that is not empty or cannot be written.
    """
    _refuse_full(out)
    content, files = _read(ladder)
    chosen, segment_ns = _indexed(content, ladder, index)
    ffmpeg_version()  # reports a missing program
    _make(content, files, chosen, segment_ns, out)
    return Presentation.load(out)


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MediaError(f"{folder} is there already, and not empty; name another folder.")


def _unwritable(folder: Path, error: OSError) -> MediaError:
    return MediaError(
        f"{folder}: cannot write the presentation ({error.strerror}); free some space, or name a folder that "
        "you may write to."
    )


def _read(ladder: Path) -> tuple[Content, dict[str, Path]]:
    """Returns the content, and the file of each of its encodings by the encoding's name. Raises
    MediaError."""
    if ladder.is_file():
        content = replace(of_file(ladder), segment_ns=SEGMENT_NS)
        return content, {one.name: ladder for one in content.encodings}
    if not ladder.is_dir():
        raise MediaError(f"{ladder}: no such folder or file; name a ladder that `streamgauge ladder` wrote.")
    if not (ladder / DESCRIPTION).is_file():
        raise MediaError(
            f"{ladder}: it has no {DESCRIPTION}, so it is no ladder. Make one by `streamgauge ladder "
            f"... --out {ladder}`, or name a folder that it wrote."
        )
    content = Content.load(ladder / DESCRIPTION)
    files = {}
    for one in content.encodings:
        if one.file is None or not (ladder / one.file).is_file():
            what = f"file of {one.name}" if one.file is None else one.file
            raise MediaError(f"{ladder}: there is no {what} in it; make the ladder again.")
        files[one.name] = ladder / one.file
    return content, files


def _indexed(content: Content, ladder: Path, index: SegmentIndex | None) -> tuple[SegmentIndex, int]:
    """Returns the index of segments, and their requested length, ns."""
    starts = content.boundaries_ns()
    lengths = np.diff(starts)
    last_ns = content.duration_ns - int(starts[-1])
    shortest = int(lengths.min()) if len(lengths) else content.duration_ns
    regular = not len(lengths) or (
        int(lengths.max()) - shortest <= ALIGNED_WITHIN_NS and last_ns <= shortest + ALIGNED_WITHIN_NS
    )
    if index == "number" and not regular:
        raise MediaError(
            f"{ladder}: its segments are {shortest / 1e9:g} s to {max(int(lengths.max()), last_ns) / 1e9:g} "
            "s long. An index by number needs one length; index them by timeline."
        )
    return index or ("number" if regular else "timeline"), shortest


def _key(content: Content, files: Mapping[str, Path], index: SegmentIndex, segment_ns: int) -> str:
    settings = [_VERSION, ffmpeg_version(), index, segment_ns, content.name]
    settings += [[one.name, one.bit_rate_bps] for one in content.encodings]
    key = hashlib.blake2b(json.dumps(settings).encode(), digest_size=10)
    for file in dict.fromkeys(files.values()):
        with file.open("rb") as source:
            key.update(hashlib.file_digest(source, "blake2b").digest())
    return key.hexdigest()


def _file_name(name: str) -> str:
    """Returns a content's name, short and without characters that file systems reject."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", Path(name).name).strip("-.")[:60] or "content"


def _make(
    content: Content, files: Mapping[str, Path], index: SegmentIndex, segment_ns: int, folder: Path
) -> None:
    """Packages into a new folder, which is there whole or not at all."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".streamgauge-") as scratch:
            part = Path(scratch) / "presentation"
            part.mkdir()
            _cut(content, files, index, segment_ns, part)
            told = _told(content, index, segment_ns, part)
            (part / PRESENTATION).write_text(json.dumps(told.to_json(), indent=1) + "\n", encoding="utf-8")
            for file in part.iterdir():
                file.chmod(0o644)
                os.utime(file, (DATED_S, DATED_S))
            part.chmod(0o755)
            _refuse_full(folder)
            part.rename(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _cut(
    content: Content, files: Mapping[str, Path], index: SegmentIndex, segment_ns: int, part: Path
) -> None:
    """Has ffmpeg write manifests and segments."""
    inputs = list(dict.fromkeys(files.values()))
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y"]
    for file in inputs:
        command += ["-i", str(file)]
    kinds = []
    for track in _tracks(content):
        for one in track.encodings:
            command += ["-map", f"{inputs.index(files[one.name])}:{track.kind[0]}:0"]
        kinds.append(track.kind[0])
    command += ["-c", "copy"]
    top = content.video.encodings[-1]
    if top.size is not None:
        # The pictures of one adaptation set are shown in one shape: that of the highest rate.
        command += ["-aspect", "{}:{}".format(*top.size)]
    sets = " ".join(f"id={number},streams={kind}" for number, kind in enumerate(kinds))
    command += ["-seg_duration", f"{segment_ns / 1e9:.6f}", "-adaptation_sets", sets]
    command += ["-use_template", "1", "-use_timeline", str(int(index == "timeline"))]
    command += ["-init_seg_name", "init-$RepresentationID$.m4s"]
    command += ["-media_seg_name", "segment-$RepresentationID$-$Number$.m4s"]
    command += ["-hls_playlist", "1", "-hls_master_name", PLAYLIST, str(part / MANIFEST)]
    done = run_alone(command)
    if done.returncode != 0 or not (part / MANIFEST).is_file():
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MediaError(
            f"{content.name}: ffmpeg cannot package it ({why}); see whether `ffmpeg -i {inputs[0]}` reads it."
        )
    for playlist in part.glob("*.m3u8"):
        # The time of packaging is none of the content's.
        playlist.write_text(_DATE.sub("", playlist.read_text(encoding="utf-8")), encoding="utf-8")


def _tracks(content: Content) -> list[Track]:
    """Returns pictures, then sound: the packaged tracks."""
    sound = [track for track in content.tracks if track.kind == "audio"]
    return [content.video, *sound[:1]]


def _told(content: Content, index: SegmentIndex, segment_ns: int, part: Path) -> Presentation:
    """Returns the written presentation, compared with the request."""
    bandwidths = dict(_BANDWIDTH.findall((part / MANIFEST).read_text(encoding="utf-8")))
    counts: dict[str, int] = {}
    for file in part.iterdir():
        if found := _SEGMENT.fullmatch(file.name):
            counts[found[1]] = counts.get(found[1], 0) + 1
    named = [(track.kind, one) for track in _tracks(content) for one in track.encodings]
    wanted = len(content.boundaries_ns())
    rows = []
    for number, (kind, one) in enumerate(named):
        id = str(number)
        if id not in bandwidths or (kind == "video" and counts.get(id) != wanted):
            raise MediaError(
                f"{content.name}: ffmpeg cut {one.name} into {counts.get(id, 0)} segments, and the content "
                f"has {wanted}. Compare its key frames with those that `streamgauge ladder` lists."
            )
        rows.append(
            Representation(
                id=id,
                kind=kind,
                name=one.name,
                bit_rate_bps=one.bit_rate_bps,
                bandwidth_bps=int(bandwidths[id]),
                segments=counts.get(id, 0),
            )
        )
    return Presentation(
        name=content.name,
        duration_s=content.duration_ns / 1e9,
        segment_s=segment_ns / 1e9,
        index=index,
        representations=tuple(rows),
    )

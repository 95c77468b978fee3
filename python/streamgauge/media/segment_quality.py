"""The pictures of each segment of a ladder's encodings against the source: a table, reckoned once.

A player shows whole segments: the quality of each gives that of a session. Every encoding is scaled to the
size of the highest one and compared there, as a viewer would see it on one screen.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.errors import MediaError
from streamgauge.media.clip import ClipEncoding
from streamgauge.media.content import ALIGNED_WITHIN_NS, Content, Encoding
from streamgauge.media.encode import (
    ffmpeg_version,
    pass_s,
    picture_filter,
    prepare,
    source_arguments,
    source_of,
)
from streamgauge.media.ladder import DESCRIPTION, Ladder
from streamgauge.media.pictures import PSNR_CAP_DB, run_ffmpeg, stats_rows
from streamgauge.media.probe import of_file
from streamgauge.media.sources import cache_folder

__all__ = ["TABLE", "SegmentPictures", "SegmentTable", "has_vmaf", "of_clip", "of_ladder"]

SCHEMA = "streamgauge.segment_quality/1"
TABLE = "quality.json"
"""The name of the table in a ladder's folder."""


@dataclass(frozen=True, kw_only=True)
class SegmentPictures:
    """A segment's pictures in one encoding: means over its frames, luma."""

    ssim: float
    psnr_db: float
    """A frame that is the same in every sample counts as `pictures.PSNR_CAP_DB`."""
    vmaf: float | None
    """None where ffmpeg has no filter `libvmaf`."""


@dataclass(frozen=True, kw_only=True)
class SegmentTable:
    """For each encoding, by its declared rate, the pictures of its segments in their order."""

    name: str
    reference: str
    """Reference of the comparison: ``source``, or the highest encoding's name where there is no source."""
    encodings: dict[int, tuple[SegmentPictures, ...]]

    def at(self, rate_bps: float, number: int) -> SegmentPictures:
        """Returns segment `number` (from 0) of the encoding with the nearest rate by ratio. Raises
        MediaError."""
        nearest = min(self.encodings, key=lambda one: abs(math.log(one / max(rate_bps, 1.0))))
        segments = self.encodings[nearest]
        if not 0 <= number < len(segments):
            raise MediaError(
                f"{self.name}: segment {number} was shown, and it has {len(segments)}, from 0 on. The trial "
                "played another content; run it again with this version."
            )
        return segments[number]


def of_ladder(folder: Path, ladder: Ladder | None = None) -> SegmentTable:
    """Returns the table of the ladder in `folder` (`prepare_ladder`, `prepare_own_ladder`), kept there.

    `ladder` is its source; without it encodings are compared with the highest one. Raises MediaError, or
    CannotRunError if there is no ffmpeg.
    """
    content = Content.load(folder / DESCRIPTION)
    source = None if ladder is None else ladder.clip(ladder.rates_bps[-1])
    return _of_content(content, folder, folder / TABLE, source)


def of_clip(clip: ClipEncoding, segment_ns: int) -> SegmentTable:
    """Returns the table of a ladder of one encoding, which `clip` is, kept in the cache. Raises as
    `of_ladder`."""
    file = prepare(clip)
    content = replace(of_file(file, name=clip.label, bit_rate_bps=clip.bit_rate_bps), segment_ns=segment_ns)
    kept = cache_folder() / "quality" / f"{file.stem}-{segment_ns}.json"
    return _of_content(content, file.parent, kept, clip)


def _of_content(content: Content, folder: Path, kept: Path, source: ClipEncoding | None) -> SegmentTable:
    """Returns the table of content with files in `folder`, kept in the file `kept`.

    It is reckoned anew if it is of other content, or by another version of ffmpeg. `source` is the clip that
    the highest encoding is. Raises as `of_ladder`.
    """
    key = _key(content, source)
    try:
        data = json.loads(kept.read_text(encoding="utf-8"))
        if data.get("schema") == SCHEMA and data.get("digest") == key:
            return _table_of(data)
    except (OSError, ValueError):
        pass  # not there, or damaged
    found = _reckoned(content, folder, source)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False, encoding="utf-8") as part:
            json.dump({"schema": SCHEMA, "digest": key, **_to_json(found)}, part)
        Path(part.name).chmod(0o644)
        Path(part.name).replace(kept)
    except OSError as error:
        raise MediaError(
            f"{kept}: cannot keep the pictures' quality ({error.strerror}); free some space or set "
            "STREAMGAUGE_CACHE to a folder that can be written."
        ) from error
    return found


def _key(content: Content, source: ClipEncoding | None) -> str:
    """Returns its key in the cache: frames' sizes identify the pictures, as for a content's digest."""
    said = json.dumps(
        [content.digest, None if source is None else source.label, ffmpeg_version(), has_vmaf()]
    )
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def _to_json(table: SegmentTable) -> dict[str, Any]:
    rows = {
        str(rate): {name: [getattr(one, name) for one in segments] for name in ("ssim", "psnr_db", "vmaf")}
        for rate, segments in table.encodings.items()
    }
    return {"name": table.name, "reference": table.reference, "encodings": rows}


def _table_of(data: Any) -> SegmentTable:
    encodings = {
        int(rate): tuple(
            SegmentPictures(ssim=ssim, psnr_db=psnr_db, vmaf=vmaf)
            for ssim, psnr_db, vmaf in zip(row["ssim"], row["psnr_db"], row["vmaf"], strict=True)
        )
        for rate, row in data["encodings"].items()
    }
    return SegmentTable(name=data["name"], reference=data["reference"], encodings=encodings)


def has_vmaf() -> bool:
    """Returns whether this ffmpeg has the filter `libvmaf`."""
    return _has_vmaf(ffmpeg_version())


@cache
def _has_vmaf(_version: str) -> bool:
    done = subprocess.run(
        ["ffmpeg", "-hide_banner", "-filters"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return any("libvmaf" in line.split() for line in done.stdout.splitlines())


def _reckoned(content: Content, folder: Path, source: ClipEncoding | None) -> SegmentTable:
    encodings = sorted(content.video.encodings, key=lambda encoding: encoding.bit_rate_bps)
    highest = encodings[-1]
    if highest.size is None or any(encoding.file is None for encoding in encodings):
        raise MediaError(f"{content.name}: its description names no pictures' sizes or files; make it anew.")
    rate = Fraction(len(highest.frames) * 1_000_000_000, highest.frames.span_ns).limit_denominator(1001)
    frames = min(len(encoding.frames) for encoding in encodings)
    if source is None:
        reference, filters = ["-i", str(folder / str(highest.file))], f"fps={rate}"
    else:
        reference, filters = source_arguments(source, source_of(source)), picture_filter(source)
        once = round(pass_s(source) * source.frame_rate)
        if once < frames:
            filters = f"{filters},trim=end_frame={once},loop=loop=-1:size={once}"
    begins = content.boundaries_ns() - ALIGNED_WITHIN_NS
    found: dict[int, tuple[SegmentPictures, ...]] = {}
    for encoding in encodings:
        rows = _compared(encoding, folder, reference, filters, highest.size, rate, frames)
        at_ns = np.arange(len(rows)) * float(1_000_000_000 / rate)
        place = np.searchsorted(begins, at_ns, side="right") - 1
        found[encoding.bit_rate_bps] = tuple(
            _mean(rows[place == number]) for number in range(int(place.max()) + 1)
        )
    return SegmentTable(
        name=content.name, reference="source" if source is not None else highest.name, encodings=found
    )


def _mean(rows: np.ndarray[Any, Any]) -> SegmentPictures:
    ssim, psnr_db, vmaf = rows.mean(axis=0).tolist()
    return SegmentPictures(ssim=ssim, psnr_db=psnr_db, vmaf=None if math.isnan(vmaf) else vmaf)


def _compared(
    encoding: Encoding,
    folder: Path,
    reference: Sequence[str],
    filters: str,
    size: tuple[int, int],
    rate: Fraction,
    frames: int,
) -> np.ndarray[Any, Any]:
    """SSIM, PSNR and VMAF (NaN without it) of each frame, [frame, 3]."""
    file = folder / str(encoding.file)
    counted = f"settb={rate.denominator}/{rate.numerator},setpts=N,trim=end_frame={frames},format=yuv420p"
    judges = ["ssim=stats_file=ssim", "psnr=stats_file=psnr"]
    if has_vmaf():
        # The judged stream is first.
        judges.append("libvmaf=log_fmt=json:log_path=vmaf")
    graph = [
        f"[0:v]scale={size[0]}:{size[1]}:flags=bicubic,fps={rate},{counted},split={len(judges)}"
        + "".join(f"[seen{place}]" for place in range(len(judges))),
        f"[1:v]{filters},{counted},split={len(judges)}"
        + "".join(f"[source{place}]" for place in range(len(judges))),
        *(f"[seen{place}][source{place}]{judge}[out{place}]" for place, judge in enumerate(judges)),
    ]
    command = ["-i", str(file.absolute()), *reference, "-filter_complex", ";".join(graph)]
    for place in range(len(judges)):
        command += ["-map", f"[out{place}]", "-f", "null", os.devnull]
    with tempfile.TemporaryDirectory(prefix="streamgauge-quality-") as scratch:
        run_ffmpeg(command, file, folder=Path(scratch))
        ssim = [float(row["Y"]) for row in stats_rows(Path(scratch) / "ssim")]
        psnr = [min(float(row["psnr_y"]), PSNR_CAP_DB) for row in stats_rows(Path(scratch) / "psnr")]
        vmaf = [math.nan] * len(ssim)
        if has_vmaf():
            told = json.loads((Path(scratch) / "vmaf").read_text(encoding="utf-8"))
            vmaf = [float(frame["metrics"]["vmaf"]) for frame in told["frames"]]
    # The last frame of a file may be one that its clock rounds away.
    if not frames - 1 <= len(ssim) <= frames or not len(ssim) == len(psnr) == len(vmaf):
        raise MediaError(f"{file}: ffmpeg compared {len(ssim)} of {frames} frames; see `ffmpeg -i {file}`.")
    return np.column_stack([ssim, psnr, vmaf])

"""The pictures of a clip against those that remain when coded frames are lost: SSIM and PSNR by ffmpeg."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from streamgauge.errors import MediaError
from streamgauge.media.clip import ClipEncoding
from streamgauge.media.encode import (
    Packet,
    ffmpeg_version,
    packets,
    pass_s,
    picture_filter,
    prepare,
    source_arguments,
    source_of,
)
from streamgauge.media.sources import cache_folder

__all__ = ["PSNR_CAP_DB", "Pictures", "coded_frames", "compare", "run_ffmpeg", "stats_rows"]

SCHEMA = "streamgauge.pictures/1"

PSNR_CAP_DB = 100.0
"""Value of a frame that is the same in every sample, which has an infinite PSNR."""

_TERMS_A_FILTER = 90
_TERMS_A_RUN = 2700
_LONGEST_S = 600


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Luma of each frame of a clip, in order, as the viewer saw it against the source."""

    ssim: tuple[float, ...]
    """Wang et al. 2004, as ffmpeg's filter `ssim` reckons it; 1 is the same."""
    psnr_db: tuple[float, ...]
    """At most `PSNR_CAP_DB`."""


def compare(
    clip: ClipEncoding, lost: Sequence[int], frames: int, *, size: tuple[int, int] | None = None
) -> Pictures:
    """Returns the first `frames` frames of `clip` without the coded frames `lost` (numbers from 0,
    ascending).

    The rest is decoded by ffmpeg with its concealment. A frame that is lost or cannot be decoded shows the
    last one before it that could; before the first of them the screen is black. They are compared with the
    source at `size` (width, height), to which they are scaled; at the clip's own if None. Kept in the cache
    by the clip's content and the lost frames. Raises MediaError, or CannotRunError if there is no ffmpeg.
    """
    file = prepare(clip)
    shown_at = size or clip.picture
    coded = coded_frames(file)
    if frames > len(coded):
        raise MediaError(
            f"{file}: the clip has {len(coded)} frames, and {frames} were due: the trial played another; "
            "run it again with this version."
        )
    gone = tuple(number for number in lost if number < frames)
    key = _key(file, gone, frames, None if shown_at == clip.picture else shown_at)
    kept = cache_folder() / "quality" / f"{key}.json"
    if kept.is_file():
        data = json.loads(kept.read_text(encoding="utf-8"))
        return Pictures(ssim=tuple(data["ssim"]), psnr_db=tuple(data["psnr_db"]))
    found = _compared(replace(clip, size=shown_at), file, gone, frames)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False, encoding="utf-8") as part:
        json.dump({"schema": SCHEMA, "ssim": found.ssim, "psnr_db": found.psnr_db}, part)
    Path(part.name).replace(kept)
    return found


@cache
def coded_frames(file: Path) -> list[Packet]:
    """Returns the coded frames of a file that `prepare` keeps, read once."""
    return packets(file)


def _key(file: Path, lost: Sequence[int], frames: int, scaled_to: tuple[int, int] | None) -> str:
    # The file's name identifies its content: see `prepare`.
    content = json.dumps(
        [SCHEMA, file.name, list(lost), frames, ffmpeg_version(), *([scaled_to] if scaled_to else [])]
    )
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def _compared(clip: ClipEncoding, file: Path, lost: Sequence[int], frames: int) -> Pictures:
    """As `compare`; `clip` is of the size at which pictures are compared, `file` of its own."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-quality-") as scratch:
        folder = Path(scratch)
        gone = set(lost)
        rows: list[tuple[float, float]] = []
        if any(
            frame.is_key and number not in gone for number, frame in enumerate(coded_frames(file)[:frames])
        ):
            left = folder / "left.nut"
            _without(file, lost, frames, left)
            decoded = ["-threads", "1", "-ec", "guess_mvs+deblock", "-i", str(left)]
            rows = _measured(clip, frames, decoded, folder)
        # Frames due before the first picture have no row.
        black = frames - len(rows)
        if black:
            width, height = clip.picture
            screen = f"color=black:size={width}x{height}:rate={clip.frame_rate},trim=end_frame={black}"
            nothing = ["-f", "lavfi", "-i", screen]
            rows = _measured(clip, black, nothing, folder) + rows
    if len(rows) != frames:
        raise MediaError(f"{file}: ffmpeg compared {len(rows)} of {frames} frames; see `ffmpeg -i {file}`.")
    return Pictures(ssim=tuple(row[0] for row in rows), psnr_db=tuple(row[1] for row in rows))


def _without(file: Path, lost: Sequence[int], frames: int, out: Path) -> None:
    """Copies the first `frames` coded frames of `file` with their times, those `lost` left out."""
    runs: list[list[int]] = []
    for number in lost:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    runs.append([frames, len(coded_frames(file))])
    # ffmpeg reads at most a hundred terms in one expression, and Linux takes at most 128 KiB in one argument.
    gone = 0
    for at in range(0, len(runs), _TERMS_A_RUN):
        part = runs[at : at + _TERMS_A_RUN]
        filters = []
        for begin in range(0, len(part), _TERMS_A_FILTER):
            # A filter counts the frames that the ones before it have left.
            some = part[begin : begin + _TERMS_A_FILTER]
            terms = (f"between(n,{first - gone},{last - gone})" for first, last in some)
            filters.append(f"noise=drop='{'+'.join(terms)}'")
            gone += sum(last + 1 - first for first, last in some)
        copied = out.with_name(f"{out.stem}-{at}{out.suffix}")
        command = ["-copyts", "-i", str(file), "-map", "0:v:0", "-c", "copy"]
        run_ffmpeg([*command, "-bsf:v", ",".join(filters), "-f", "nut", str(copied)], file)
        file = copied
    file.replace(out)


def _measured(
    clip: ClipEncoding, frames: int, seen: Sequence[str], folder: Path
) -> list[tuple[float, float]]:
    """SSIM and PSNR of the first `frames` frames of the source against the input `seen`, a row for each frame
    from the first that `seen` has."""
    rate, once = clip.frame_rate, round(pass_s(clip) * clip.frame_rate)
    # Frames of this size are not scaled.
    scaled = "scale={}:{}:flags=bicubic,".format(*clip.picture)
    ssim, psnr = folder / "ssim", folder / "psnr"
    # The source is the main input: the filters then hold the other's last frame until it has a new one.
    graph = (
        f"[0:v]{picture_filter(clip)},trim=end_frame={once},loop=loop=-1:size={once},setpts=N,"
        f"trim=end_frame={frames},format=yuv420p[source];"
        f"[1:v]{scaled}settb=1/{rate},format=yuv420p,split[one][two];"
        f"[source][one]ssim=stats_file={ssim}[still];[still][two]psnr=stats_file={psnr}"
    )
    command = ["-copyts", *source_arguments(clip, source_of(clip)), *seen]
    run_ffmpeg(
        [*command, "-filter_complex", graph, "-frames:v", str(frames), "-f", "null", os.devnull], clip.source
    )
    if not ssim.is_file():
        return []
    structure = [float(row["Y"]) for row in stats_rows(ssim)]
    noise = [min(float(row["psnr_y"]), PSNR_CAP_DB) for row in stats_rows(psnr)]
    return list(zip(structure, noise, strict=True))


def stats_rows(file: Path) -> list[dict[str, str]]:
    """Returns a `stats_file` of ffmpeg's filters `ssim` and `psnr`: for each frame its values by name."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [dict(part.split(":", 1) for part in line.split() if ":" in part) for line in lines]


def run_ffmpeg(arguments: list[str], what: Path | str, *, folder: Path | None = None) -> None:
    """Runs ffmpeg to its end, in `folder` if given. Raises MediaError, of `what`, if it fails or does not end
    in ten minutes."""
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_LONGEST_S,
            cwd=folder,
        )
    except subprocess.TimeoutExpired as error:
        raise MediaError(f"{what}: ffmpeg did not end within {_LONGEST_S} s; try a shorter trial.") from error
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MediaError(f"{what}: ffmpeg cannot compare its pictures ({why}).")

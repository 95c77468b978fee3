"""``clip``, ``ladder`` and ``package``: content, written to files of the user's."""

from __future__ import annotations

import filecmp
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.markup import escape
from rich.text import Text

from streamgauge.campaign import Progress
from streamgauge.claims.dimension import RATE, TIME, say, say_exactly
from streamgauge.cli.film_ladder import asked_ladder, option_value
from streamgauge.cli.output import heads, say_text, table
from streamgauge.cli.progress import Bar
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.media import (
    ClipEncoding,
    Content,
    asf,
    content_of_file,
    ladder_of_files,
    prepare,
    prepare_ladder,
)
from streamgauge.media.ladder import DESCRIPTION, write_folder
from streamgauge.media.package import MANIFEST, PLAYLIST, SEGMENT_INDEXES, SegmentIndex, write_presentation
from streamgauge.units import Rate, Size, Time

__all__ = ["clip_command", "ladder_command", "package_command"]


def clip_command(name: str, file: Path, duration: str, audio: str, as_json: bool) -> None:
    """Encodes the clip called `name`, writes it to `file` and prints its description (in JSON,
    `Content.summary`).

    Raises ScenarioError for invalid options, MediaError if the content is unavailable, CannotRunError if
    there is no ffmpeg or the file cannot be written.
    """
    if file.suffix.lower() != ".mp4":
        raise ScenarioError(f"a clip is an MP4 file, and '{file}' has another name", hint="end it with .mp4")
    length, sound = option_value(Time, duration, "--duration"), option_value(Rate, audio, "--audio")
    clip = replace(ClipEncoding.named(name, duration_s=length.s), audio_bps=sound.bps)
    encoded = prepare(clip)
    try:
        if file.exists() and not (file.is_file() and filecmp.cmp(file, encoded, shallow=False)):
            raise ScenarioError(f"{file} is there already, with other content", hint="name another file")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".streamgauge-") as scratch:
            # Renamed into place: no server ever serves half of it.
            shutil.copyfile(encoded, Path(scratch) / file.name).replace(file)
    except OSError as error:
        raise CannotRunError(
            f"cannot write {file}: {error.strerror}; name a file in a folder that you may write to."
        ) from error
    content = content_of_file(file, name=clip.label, bit_rate_bps=clip.video_bps)
    if as_json:
        print(json.dumps(content.summary()))
        return
    width, height = content.video.encodings[0].size or clip.picture
    heard = f"{sound} of it sound" if len(content.tracks) > 1 else "without sound"
    size = Size.of(encoded.stat().st_size)
    say_text(
        f"{file}: {clip.source} at {Rate.of(clip.bit_rate_bps)}, {length}, {width}x{height}, {heard}; {size}"
    )


def ladder_command(
    sources: Sequence[str],
    rates: str | None,
    out: Path | None,
    *,
    duration: str | None,
    audio: str | None,
    segment: str | None,
    frame_rate: str | None,
    sizes: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Encodes `sources[0]` at `rates`, or takes the files `sources` as a ladder; prints its description (in
    JSON, `Content.summary`), and with `out` writes it there. For a film of the user's it prints the
    properties that differ from the film's.

    An `out` that ends as a file of Windows Media does is one file of all rates.

    Raises ScenarioError for invalid options, MediaError if the content is unavailable or its key frames do
    not align, CannotRunError if there is no ffmpeg.
    """
    one_file = out if out is not None and out.suffix.lower() in asf.ENDINGS else None
    if rates is None:
        if len(sources) < 2:
            raise ScenarioError(
                "one source is no ladder", hint="give its --rates 235k,560k, or name two files or more"
            )
        encoding: dict[str, object] = {"--duration": duration, "--audio": audio, "--frame-rate": frame_rate}
        encoding |= {"--sizes": sizes, "--jobs": jobs}
        if idle := [option for option, given in encoding.items() if given is not None]:
            raise ScenarioError(
                f"{' and '.join(idle)} {'says' if len(idle) == 1 else 'say'} how to encode, and files "
                "without --rates are taken as they are",
                hint=f"leave {'it' if len(idle) == 1 else 'them'} out, or name one source and its --rates",
            )
        if one_file is not None:
            if segment is not None:
                raise ScenarioError(
                    "--segment places key frames, and files without --rates are not encoded",
                    hint="leave it out",
                )
            return _write_one(asf.asf_of_files([Path(file) for file in sources]), one_file, as_json)
        names = {file: f"{number}-{Path(file).name}" for number, file in enumerate(sources)}
        seconds = None if segment is None else option_value(Time, segment, "--segment").s
        content = ladder_of_files([Path(file) for file in sources], segment_s=seconds)
        said: list[str] = []
        files = {names[file]: Path(file) for file in sources}
        if out is not None:
            write_folder(content.with_files(names), files, out)
    else:
        if len(sources) != 1:
            raise ScenarioError(
                f"{len(sources)} sources cannot be encoded as one ladder",
                hint="name one source, or leave --rates out for files that are a ladder already",
            )
        ladder, said = asked_ladder(
            sources[0],
            rates,
            sizes=sizes,
            duration=duration,
            audio=audio,
            segment=segment,
            frame_rate=frame_rate,
        )
        with Bar("encodings") as bar:
            began = time.monotonic()

            def tell(done: int, of: int, now: tuple[str, ...]) -> None:
                left_s = (time.monotonic() - began) / done * (of - done) if done else None
                bar.update(Progress(done, of, left_s, " ".join(now), now))

            if one_file is not None:
                whole = asf.asf_of_ladder(ladder, jobs=jobs, tell=tell)
            else:
                kept = prepare_ladder(ladder, jobs=jobs, tell=tell)
        if one_file is not None:
            return _write_one(whole, one_file, as_json, said)
        content = Content.load(kept / DESCRIPTION)
        if out is not None:
            write_folder(
                content,
                {encoding.file: kept / encoding.file for encoding in content.encodings if encoding.file},
                out,
            )
    _show(content, out, as_json, said, asked=rates is not None)


def _write_one(whole: bytes, file: Path, as_json: bool, said: Sequence[str] = ()) -> None:
    """Writes a file of several rates, and prints its contents."""
    try:
        if file.exists() and not (file.is_file() and file.read_bytes() == whole):
            raise ScenarioError(f"{file} is there already, with other content", hint="name another file")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".streamgauge-") as scratch:
            part = Path(scratch) / file.name
            part.write_bytes(whole)
            part.replace(file)
    except OSError as error:
        raise CannotRunError(
            f"cannot write {file}: {error.strerror}; name a file in a folder that you may write to."
        ) from error
    content = content_of_file(file)
    if as_json:
        print(json.dumps(content.summary() | {"file": str(file), "source": list(said)}))
        return
    _say_all(said)
    say_text(f"{file}: {say_exactly(content.duration_ns / 1e9, TIME)}, {Size.of(len(whole))}")
    rows: list[list[Text | str]] = [[*heads("stream", "track", "mean", "size", "key frames")]]
    for number, track in enumerate(content.tracks, start=1):
        (encoding,) = track.encodings
        rows.append(
            [
                str(number),
                f"{track.kind}, {encoding.codec}",
                say(encoding.frames.bit_rate_bps, RATE),
                "" if encoding.size is None else "{}x{}".format(*encoding.size),
                str(int(encoding.frames.keys.sum())) if track.kind == "video" else "",
            ]
        )
    table(rows, "llrlr")


def package_command(ladder: Path, out: Path, index: str | None, as_json: bool) -> None:
    """Cuts `ladder`, a folder or a file, into segments in the new folder `out`, and prints its contents (in
    JSON, `Presentation.to_json`).

    Raises ScenarioError for an unknown index, MediaError for an input that is no ladder and for a folder that
    is not empty, CannotRunError if there is no ffmpeg.
    """
    chosen: SegmentIndex | None = next((one for one in SEGMENT_INDEXES if one == index), None)
    if index is not None and chosen is None:
        raise ScenarioError(
            f"'{index}' is no way to index segments", file="--index", hint=" or ".join(SEGMENT_INDEXES)
        )
    told = write_presentation(ladder, out, index=chosen)
    if as_json:
        print(json.dumps(told.to_json() | {"folder": str(out)}))
        return
    say_text(f"{told.name}, {say_exactly(told.duration_s, TIME)}, segments by {told.index}")
    rows: list[list[Text | str]] = [[*heads("id", "encoding", "asked", "in manifests", "segments")]]
    for one in told.representations:
        asked, declared = Rate.of(one.bit_rate_bps), say(one.bandwidth_bps, RATE)
        rows.append([one.id, escape(f"{one.name}, {one.kind}"), str(asked), declared, str(one.segments)])
    table(rows, "llrrr")
    say_text(f"DASH: {out / MANIFEST}; HLS: {out / PLAYLIST}")


def _say_all(lines: Sequence[str]) -> None:
    for line in lines:
        say_text(line)


def _show(content: Content, out: Path | None, as_json: bool, said: Sequence[str], *, asked: bool) -> None:
    if as_json:
        where_is = {} if out is None else {"folder": str(out)}
        print(json.dumps(content.summary() | {"source": list(said)} | where_is))
        return
    _say_all(said)
    say_text(f"{content.name}, {say_exactly(content.duration_ns / 1e9, TIME)}")
    rows: list[list[Text | str]] = [[*heads("encoding", "track", "asked", "mean", "size", "key frames")]]
    for track in content.tracks:
        for encoding in track.encodings:
            rows.append(
                [
                    escape(encoding.name),
                    f"{track.kind}, {encoding.codec}",
                    str(Rate.of(encoding.bit_rate_bps)) if asked else "",
                    say(encoding.frames.bit_rate_bps, RATE),
                    "" if encoding.size is None else "{}x{}".format(*encoding.size),
                    str(int(encoding.frames.keys.sum())) if track.kind == "video" else "",
                ]
            )
    table(rows, "llrrlr")
    segments = len(content.boundaries_ns())
    where = "" if out is None else f"; {out / DESCRIPTION} says where"
    say_text(f"key frames align: {segments} {'segment' if segments == 1 else 'segments'}{where}")

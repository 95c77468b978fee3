"""Files of the user's own that are a ladder already: read, checked, and put in a folder."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from streamgauge.errors import CannotRunError, MediaError, NoSuchMediaError
from streamgauge.media.content import Content, Encoding
from streamgauge.media.ladder import DESCRIPTION, ladder_of, write_folder
from streamgauge.media.probe import of_file, rotation_of, streams_in
from streamgauge.media.sources import cache_folder
from streamgauge.units import Rate

__all__ = ["own_ladder", "prepare_own_ladder", "unreadable"]

Of = TypeVar("Of")


def unreadable(files: Iterable[Path], *, whole: bool = False) -> dict[Path, MediaError]:
    """Returns the unplayable files, each with its fault and a remedy; NoSuchMediaError for missing ones.

    Judged by their heads, or with `whole` by all their frames. Several are read at once, each once as long as
    it does not change. Without ffprobe only missing, empty or unreadable ones are found.
    """
    found: dict[Path, MediaError] = {}
    read = _whole if whole else _head

    def why(file: Path) -> MediaError | None:
        try:
            _as_it_is(file, read)
        except MediaError as error:
            return error
        except CannotRunError:
            return None  # a caller that needs more of it reports the missing program
        return None

    wanted = list(dict.fromkeys(files))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for file, said in zip(wanted, pool.map(why, wanted), strict=True):
            if said is not None:
                found[file] = said
    return found


def _as_it_is(file: Path, read: Callable[[Path, int, int], Of]) -> Of:
    """Returns the result of `read` for a file, as of its last change."""
    try:
        status = file.stat()
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            file.open("rb").close()
    # ValueError for a text that is no path at all
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise NoSuchMediaError(f"{file}: no such media file; correct its path.") from None
    except IsADirectoryError:
        raise MediaError(f"{file}: it is a folder; name a file in it.") from None
    except OSError as error:
        raise MediaError(f"{file}: {error.strerror}; let everybody read it.") from None
    if not stat.S_ISREG(status.st_mode):
        # The opening of a pipe would wait for a program that writes to it.
        raise MediaError(f"{file}: it is a pipe or a device; name a file of video.")
    if not status.st_size:
        raise MediaError(f"{file}: it is empty; copy it anew.")
    return read(file, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _head(file: Path, size: int, mtime_ns: int) -> None:
    """That it is video is remembered in the cache folder: to ask of hundreds takes ffprobe many seconds."""
    name = f"{file.absolute()}\x1f{size}\x1f{mtime_ns}".encode()
    known = cache_folder() / "heads" / hashlib.blake2b(name, digest_size=16).hexdigest()
    with suppress(OSError):  # a folder that may not be searched
        if known.is_file():
            return
    if "video" not in streams_in(file):
        raise MediaError(f"{file}: it has no pictures; name a file of video.")
    with suppress(OSError):
        known.parent.mkdir(parents=True, exist_ok=True)
        known.touch()


@lru_cache(maxsize=64)
def _whole(file: Path, _size: int, _mtime_ns: int) -> Content:
    content = of_file(file, name=file.name)
    if turned := rotation_of(file):
        raise MediaError(
            f"{file}: it asks players to turn its pictures by {turned} degrees, which not all do. Turn them "
            "in the encoding (`ffmpeg -i FILE -c:a copy TURNED.mp4`)."
        )
    return content


@lru_cache(maxsize=64)
def _digest(file: Path, _size: int, _mtime_ns: int) -> bytes:
    """Returns the digest of its bytes."""
    found = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            found.update(block)
    return found.digest()


def own_ladder(files: Sequence[Path], *, segment_s: float | None = None) -> Content:
    """Files that are taken as a ladder as they are, each named as it is called, the lowest rate first.

    They are encodings of one film: of one codec, as long as each other to a frame, all of them wide or all
    upright, each of a rate of its own, with key frames at the same times. One more may be its sound alone.
    Sound and segments are as of `ladder_of_files`. Raises MediaError that names the files which differ, and
    CannotRunError.
    """
    content = ladder_of(
        [_as_it_is(file, _whole) for file in files],
        segment_s=segment_s,
        name=" ".join(file.name for file in files),
    )
    first, *others = content.video.encodings
    for below, other in zip(content.video.encodings, others, strict=False):
        if below.bit_rate_bps == other.bit_rate_bps:
            raise MediaError(
                f"{below.name} and {other.name}: both have {Rate.of(other.bit_rate_bps)} on average; give "
                "one file for each rate."
            )
    for other in others:
        if (why := _another_film(first, other)) is not None:
            raise MediaError(f"{first.name} and {other.name}: {why}")
    return content


def _another_film(one: Encoding, other: Encoding) -> str | None:
    """Returns why no player could change from the one to the other, and a remedy."""
    if one.codec != other.codec:
        return f"one is {one.codec}, the other {other.codec}; encode all with one codec."
    spans_ns = one.frames.span_ns, other.frames.span_ns
    frame_ns = max(span / len(each.frames) for span, each in zip(spans_ns, (one, other), strict=True))
    if abs(spans_ns[0] - spans_ns[1]) > 1.5 * frame_ns:
        lasting = " and ".join(f"{span / 1e9:.3f} s" for span in spans_ns)
        return f"they last {lasting}; cut them to one length (ffmpeg's option -t), of one film."
    if one.size is not None and other.size is not None:
        shapes = [width >= height for width, height in (one.size, other.size)]
        if shapes[0] != shapes[1]:
            sizes = " and ".join("{}x{}".format(*size) for size in (one.size, other.size))
            return f"their pictures are {sizes}, wide and upright; scale all of them from one film."
    return None


def prepare_own_ladder(files: Sequence[Path], *, segment_s: float | None = None) -> Path:
    """Returns a folder with copies of the files, by their own names, and ``content.json``.

    Kept under the cache folder by the files' bytes. Raises MediaError as `own_ladder` does, and if it cannot
    be written.
    """
    content = own_ladder(files, segment_s=segment_s)
    key = hashlib.blake2b(digest_size=10)
    for file in files:
        key.update(file.name.encode() + b"\x1f" + _as_it_is(file, _digest))
    key.update(f"{segment_s}".encode())
    folder = cache_folder() / "ladders" / f"{files[0].stem}-and-{len(files) - 1}-more-{key.hexdigest()}"
    if not (folder / DESCRIPTION).is_file():
        try:
            write_folder(content, {file.name: file for file in files}, folder)
        except MediaError:
            if not (folder / DESCRIPTION).is_file():
                raise  # and else another process was first, with the same
    return folder

"""``clip``: what ships as content, written to a file of the user's."""

from __future__ import annotations

import filecmp
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.media import Clip, prepare
from streamgauge.units import Quantity, Rate, Size, Time, UnitError

__all__ = ["clip_command"]

Of = TypeVar("Of", bound=Quantity)


def clip_command(name: str, file: Path, duration: str, audio: str) -> None:
    """Encodes the clip called `name` and writes it to `file`.

    Raises ScenarioError for what makes no sense, MediaError if the content cannot be had, CannotRunError if
    there is no ffmpeg or the file cannot be written.
    """
    if file.suffix.lower() != ".mp4":
        raise ScenarioError(f"a clip is an MP4 file, and '{file}' has another name", hint="end it with .mp4")
    length, sound = _said(Time, duration, "--duration"), _said(Rate, audio, "--audio")
    clip = replace(Clip.named(name, duration_s=length.s), audio_bps=sound.bps)
    encoded = prepare(clip)
    try:
        if file.exists() and not (file.is_file() and filecmp.cmp(file, encoded, shallow=False)):
            raise ScenarioError(f"{file} is there already, with other content", hint="name another file")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".streamgauge-") as scratch:
            # Renamed into place, so that nobody serves half of it.
            shutil.copyfile(encoded, Path(scratch) / file.name).replace(file)
    except OSError as error:
        raise CannotRunError(
            f"cannot write {file}: {error.strerror}; name a file in a folder that you may write to."
        ) from error
    width, height = clip.picture
    heard = f"{sound} of it sound" if sound.bps else "without sound"
    size = Size.of(encoded.stat().st_size)
    print(
        f"{file}: {clip.source} at {Rate.of(clip.bit_rate_bps)}, {length}, {width}x{height}, {heard}; {size}"
    )


def _said(kind: type[Of], text: str, option: str) -> Of:
    try:
        return kind(text)
    except UnitError as error:
        raise ScenarioError(str(error), file=option) from None

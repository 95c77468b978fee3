"""The media files that a scenario names: there, readable, and a ladder where they are to be one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.errors import CannotRunError, MediaError, NoSuchMediaError
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.shape import Shape
from streamgauge.scenario.values import Problem

if TYPE_CHECKING:
    from streamgauge.media import Content

__all__ = ["anchor_clip", "media_problems", "own_ladder_of", "segment_s"]

_RELATIVE = "paths are relative to the scenario's file"


def anchor_clip(clip: Any, folder: Path) -> None:
    """Makes the paths of a clip as a file has it, which are relative to `folder`, absolute."""
    if not isinstance(clip, dict):
        return
    if isinstance(clip.get("file"), str):
        clip["file"] = str(folder / Path(clip["file"]).expanduser())
    if isinstance(clip.get("files"), list):
        clip["files"] = [
            str(folder / Path(file).expanduser()) if isinstance(file, str) else file for file in clip["files"]
        ]


def _clips(scenario: Shape) -> Iterator[tuple[tuple[str | int, ...], Clip]]:
    """Each clip that is no mere name, and its key."""
    for name, flow in scenario.flows.items():
        for where, place in ((("clip",), flow), (("sim", "clip"), flow.sim), (("emu", "clip"), flow.emu)):
            clip = None if place is None else place.clip
            if isinstance(clip, Clip):
                yield ("flows", name, *where), clip
    if scenario.population is not None:
        for key, played in scenario.population.keyed_clips():
            if isinstance(played, Clip):
                yield key, played


def media_problems(scenario: Shape) -> Iterator[Problem]:
    """Everything wrong with a scenario's media files, each at its key.

    Files that are encoded are read by their heads, those of a ladder whole, since their key frames are to
    align.
    """
    from streamgauge.media import unreadable

    clips = list(_clips(scenario))
    named: list[tuple[tuple[str | int, ...], Path, bool]] = [
        ((*where, "file"), Path(clip.file), False) for where, clip in clips if clip.file is not None
    ]
    for where, clip in clips:
        named += [((*where, "files", nth), Path(file), True) for nth, file in enumerate(clip.files or ())]
    found: dict[Path, MediaError] = {}
    for whole in (False, True):
        found |= unreadable([file for _, file, of_ladder in named if of_ladder is whole], whole=whole)
    for where, file, _ in named:
        error = found.get(file)
        if isinstance(error, NoSuchMediaError):
            yield Problem(where, f"there is no media file {file}", _RELATIVE)
        elif error is not None:
            yield Problem(where, str(error).rstrip("."))
    if not found:
        yield from _ladders(clips)


def _ladders(clips: list[tuple[tuple[str | int, ...], Clip]]) -> Iterator[Problem]:
    for where, clip in clips:
        if clip.files is not None:
            try:
                own_ladder_of(clip)
            except CannotRunError:
                return
            except MediaError as error:
                yield Problem((*where, "files"), str(error).rstrip("."))


def own_ladder_of(clip: Clip) -> Content:
    """The content of a clip of files. Raises MediaError, CannotRunError."""
    from streamgauge.media import own_ladder

    assert clip.files is not None
    return own_ladder([Path(file) for file in clip.files], segment_s=segment_s(clip))


def segment_s(clip: Clip) -> float | None:
    """How long a clip's segments are at least, s, if it says so."""
    return None if clip.segment is None else clip.segment.s

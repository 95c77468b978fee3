"""The media files that a scenario names: there, readable, and a ladder where they are to be one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamgauge.claims.dimension import plain
from streamgauge.errors import CannotRunError, MediaError, NoSuchMediaError
from streamgauge.scenario.flow import Clip, Flow
from streamgauge.scenario.shape import Shape
from streamgauge.scenario.values import PATHS, Problem
from streamgauge.systems.machines import MACHINES
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from streamgauge.media import Content

__all__ = ["anchor_clip", "in_segments", "media_problems", "own_ladder_of", "segment_s"]

_CODECS: Final = {
    "video": ("H.264", "h264", "-c:v libx264 -c:a copy"),
    "audio": ("AAC", "aac", "-c:v copy -c:a aac"),
}
"""Codecs that known systems play, by the kind of a track: in words, as ffprobe names it, and a way to get
it."""


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
    """Yields each clip that is no mere name, and its key."""
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
            yield Problem(where, f"there is no media file {file}", PATHS)
        elif error is not None:
            yield Problem(where, str(error).rstrip("."))
    if not found:
        yield from _ladders(scenario, clips)


def _ladders(scenario: Shape, clips: list[tuple[tuple[str | int, ...], Clip]]) -> Iterator[Problem]:
    for where, clip in clips:
        if clip.files is not None:
            try:
                content = own_ladder_of(clip)
                for flow, mode in _players(scenario, where, clip):
                    _playable(content, clip, flow, mode)
            except CannotRunError:
                return
            except MediaError as error:
                yield Problem((*where, "files"), str(error).rstrip("."))


def _players(scenario: Shape, where: tuple[str | int, ...], clip: Clip) -> Iterator[tuple[Flow, Mode]]:
    """Yields the flows that play the clip at `where`, as each is in the mode in which it does."""
    for name, flow in scenario.flows.items():
        for mode in scenario.modes:
            played = flow.in_mode(mode)
            drawn = scenario.population is not None and scenario.population.is_for(name)
            if played.clip == clip or (where[0] == "population" and drawn and played.clip is not None):
                yield played, mode


def _playable(content: Content, clip: Clip, flow: Flow, mode: Mode) -> None:
    """Raises MediaError for codecs that the system of `flow` does not play; a user's commands may play
    anything."""
    entry = flow.registered
    if entry is None:
        return
    for track in content.tracks:
        plays, codec, how = _CODECS.get(track.kind, ("", "", ""))
        for one in track.encodings:
            if codec and one.codec != codec:
                raise MediaError(
                    f"{one.file or one.name}: it is {one.codec}, and {entry.name} plays {plays}; encode it "
                    f"(`ffmpeg -i FILE {how} FILE.mp4`)."
                )
    machine = MACHINES.get(entry.name) if mode in entry.ours else None
    if machine is None or machine.content != "ladder":
        return
    for one in content.encodings:
        if one.frames.interval_ns is None:
            raise MediaError(
                f"{one.file or one.name}: its frames are unevenly spaced, and {entry.name} plays a fixed "
                "frame rate. Encode all files at one (`ffmpeg -i FILE -vf fps=25 FILE.mp4`)."
            )
        if not machine.b_frames and one.frames.display_order is not None:
            raise MediaError(
                f"{one.file or one.name}: it has B-frames, and {entry.name} plays pictures in display "
                "order. Encode it without them (ffmpeg's option -bf 0)."
            )
    in_segments(content, clip)


def own_ladder_of(clip: Clip) -> Content:
    """Returns the content of a clip of files. Raises MediaError, CannotRunError."""
    from streamgauge.media import own_ladder

    assert clip.files is not None
    return own_ladder([Path(file) for file in clip.files], segment_s=segment_s(clip))


def segment_s(clip: Clip) -> float | None:
    """Returns the least length of a clip's segments, s, if it has one."""
    return None if clip.segment is None else clip.segment.s


def in_segments(content: Content, clip: Clip) -> Content:
    """Returns the content of a clip of files in segments of one length. Raises MediaError where neither the
    clip nor its key frames define one."""
    if clip.segment is not None:
        return replace(content, segment_ns=clip.segment.ns)
    keys = content.video.encodings[0].frames.key_times_ns.tolist()
    apart = {round((later - sooner) / 1e6) for sooner, later in pairwise(keys)}
    if len(apart) > 1:
        raise MediaError(
            f"{content.name}: its key frames are {plain(min(apart) / 1000)} to {plain(max(apart) / 1000)} s "
            "apart. Give the length of segments, such as 'segment: 4 s'."
        )
    return replace(content, segment_ns=apart.pop() * 1_000_000 if apart else content.duration_ns)

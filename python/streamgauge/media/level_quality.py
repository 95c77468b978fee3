"""Picture quality where a player changes encodings frame by frame: the picture on the screen when each was
due.

A server that changes encodings at key frames reports with `level_sent` the encoding of the pictures that it
sends from a place in the media on, and the player with `frame_shown` the media time of its picture: together
they give the encoding in which each frame was seen. All encodings are scaled to the size of the highest one
and compared there, as a viewer would see them on one screen. docs/quality.md describes the limits of this.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import polars as pl

from streamgauge.errors import MediaError
from streamgauge.media.clip import ClipEncoding
from streamgauge.media.encode import prepare
from streamgauge.media.pictures import Pictures, coded_frames, compare
from streamgauge.media.quality import (
    PlayedRecord,
    Quality,
    frames_due,
    planned_flow,
    rate_shown,
    said_by,
    summary,
)
from streamgauge.media.store import with_frames

__all__ = ["Sent", "of_level_trial", "of_levels", "pictured"]


@dataclass(frozen=True, kw_only=True)
class Sent:
    """From this frame on the pictures were sent in that encoding; of the ladder, the lowest rate being 0."""

    frame: int
    encoding: int


def pictured(
    keys: Sequence[Sequence[bool]], sent: Sequence[Sent], shown: Sequence[int], due: int
) -> list[int | None]:
    """Returns for each frame due the encoding of the picture on the screen; None before the first.

    A frame was sent in its encoding in `sent` (ascending). After a change nothing of the new encoding can be
    seen before a key frame of it, by `keys` [encoding][frame], is shown.
    """
    there = set(shown)
    on_screen: list[int | None] = []
    now: int | None = None
    before: int | None = None
    for number in range(due):
        encoding = _sent_in(sent, number)
        if encoding != before:
            decodes, before = False, encoding
        if number in there and encoding is not None:
            decodes = decodes or keys[encoding][number]
            now = encoding if decodes else now
        on_screen.append(now)
    return on_screen


def of_levels(
    ladder: Sequence[ClipEncoding], sent: Sequence[Sent], shown: Sequence[int], due: int, *, name: str
) -> Quality:
    """Returns the quality of the first `due` frames of a ladder (its encodings, the lowest first) called
    `name`, if they were sent as in `sent` and those numbered `shown` were shown.

    Raises MediaError if an encoding cannot be had or compared, CannotRunError if there is no ffmpeg.
    """
    highest = ladder[-1]
    total = round(highest.duration_s * highest.frame_rate)
    if not 0 < due <= total:
        raise MediaError(f"ladder {name}: {due} frames were due of {total}, so there is no picture to judge.")
    keys = [[frame.is_key for frame in coded_frames(prepare(clip))] for clip in ladder]
    for clip, of_clip in zip(ladder, keys, strict=True):
        if len(of_clip) < due:
            raise MediaError(f"clip {clip.label}: it has {len(of_clip)} frames, and {due} were due.")
    on_screen = pictured(keys, sent, shown, due)
    there = set(shown)
    rows: list[tuple[float, float]] = [(0.0, 0.0)] * due
    for encoding in sorted(set(on_screen), key=lambda one: -1 if one is None else one):
        wanted = [number for number in range(due) if on_screen[number] == encoding]
        until = wanted[-1] + 1
        if encoding is None:
            found = compare(highest, list(range(until)), until)
        else:
            mine = {number for number in wanted if number in there and _sent_in(sent, number) == encoding}
            found = _pictures(ladder[encoding], keys[encoding], mine, wanted, total, highest.picture)
        for number in wanted:
            rows[number] = (found.ssim[number], found.psnr_db[number])
    whole = compare(highest, [], min(total, len(keys[-1])))
    seen = Pictures(ssim=tuple(row[0] for row in rows), psnr_db=tuple(row[1] for row in rows))
    judged = summary(
        name, highest.frame_rate, seen, Pictures(ssim=whole.ssim[:due], psnr_db=whole.psnr_db[:due])
    )
    rates = tuple(0 if one is None else ladder[one].video_bps for one in on_screen)
    return replace(judged, frames_shown=sum(number < due for number in there), rates_bps=rates)


def _sent_in(sent: Sequence[Sent], number: int) -> int | None:
    place = bisect_right(sent, number, key=lambda one: one.frame) - 1
    return sent[place].encoding if place >= 0 else None


def _pictures(
    clip: ClipEncoding,
    keys: Sequence[bool],
    mine: set[int],
    wanted: Sequence[int],
    total: int,
    size: tuple[int, int],
) -> Pictures:
    """Returns the pictures of an encoding in which the frames `mine` were shown, right at least where
    `wanted`."""
    # A frame with all its references is as if nothing had been lost, which is computed once for all trials.
    is_whole: set[int] = set()
    for number in sorted(mine):
        if keys[number] or number - 1 in is_whole:
            is_whole.add(number)
    if is_whole.issuperset(wanted):
        return compare(clip, [], min(total, len(keys)), size=size)
    until = wanted[-1] + 1
    return compare(clip, [number for number in range(until) if number not in mine], until, size=size)


_AT = re.compile(r"at (\d+\.\d{3}) s of the media")
_SENT = re.compile(r"(?:key frames of )?encoding (\d+) from (\d+\.\d{3}) s of the media")


def of_level_trial(
    record: PlayedRecord,
    flow: str,
    ladder: Sequence[ClipEncoding],
    *,
    name: str,
    rates_alone: bool = False,
) -> Quality:
    """Returns the quality of the pictures of `flow`, which played `ladder` (its encodings, the lowest first).

    For a server with `rates_alone` the rate at which it sent is known, and not the place in the media
    (`systems.system.is_rate_only`). For a player that gave up all frames of the clip were due, and for
    one that never showed a picture as many as had time to be shown. Raises MediaError if the flow plays none,
    is a third-party system, or did not report its pictures; RecordError if the events were not kept.
    """
    index, planned = planned_flow(record.trial, flow)
    played = next(iter(with_frames(planned["app"], record.directory).values()))["ladder"]["video"]
    rates = [int(level["bit_rate_bps"]) for level in played]
    if rates != [clip.video_bps for clip in ladder]:
        raise MediaError(f"flow {flow}: its plan plays other rates than its scenario; run the trial again.")
    spec = played[-1]["clip"]
    per_s = ladder[-1].frame_rate
    if round(1e9 / spec["frame_interval"]) != per_s:
        raise MediaError(
            f"flow {flow}: its frames were {1e9 / spec['frame_interval']:g} a second, the clip has {per_s}. "
            "Run the trial with that frame rate."
        )
    said = said_by(record, index, flow)
    audio = next(iter(planned["app"].values())).get("ladder", {}).get("audio") or {}
    with_sound = [rate + int(audio.get("bit_rate_bps", 0)) for rate in rates]
    sent = _sent_at_a_rate(said, flow, with_sound) if rates_alone else _sent(said, flow, per_s, len(ladder))
    numbers = _numbers(said, flow, per_s)
    due = _due(record, said, numbers, spec)
    for clip, level in zip(ladder, played, strict=True):
        _check_keys(clip, level["clip"], due)
    found = of_levels(ladder, sent, numbers, due, name=name)
    rate = rate_shown(record, said, due * int(spec["frame_interval"])) if numbers else 0.0
    return replace(found, frame_rate=rate)


def _due(record: PlayedRecord, said: pl.DataFrame, numbers: Sequence[int], spec: Mapping[str, Any]) -> int:
    """Returns the number of frames of a clip (`spec`, as in the plan) that fell due, if those `numbers` were
    shown."""
    interval_ns, ends = int(spec["frame_interval"]), round(float(record.trial["duration_s"]) * 1e9)
    total = -(-int(spec["duration"]) // interval_ns)
    if not said.filter((pl.col("name") == "media_end") & (pl.col("time") < ends)).is_empty():
        # A viewer of a player that gave up sees nothing of the rest.
        return total
    if numbers:
        return frames_due(record, said, numbers, spec)
    began = int(said.filter(pl.col("name") == "level_sent")["time"][0])
    return max(1, min(total, (ends - began) // interval_ns))


def _numbers(said: pl.DataFrame, flow: str, per_s: int | Fraction) -> list[int]:
    """Returns the frames that were shown, in their order."""
    found = [_AT.search(reason or "") for reason in said.filter(pl.col("name") == "frame_shown")["reason"]]
    numbers = [round(float(one[1]) * per_s) for one in found if one is not None]
    if len(numbers) < len(found):
        raise MediaError(
            f"flow {flow}: its player did not report the shown frames, as in earlier versions. Run "
            "the trial again."
        )
    return numbers


def _sent_at_a_rate(said: pl.DataFrame, flow: str, rates_bps: Sequence[int]) -> list[Sent]:
    """A server that reports the rate alone, with the sound, and that once, sent all of the media in that
    encoding."""
    told = said.filter(pl.col("name") == "level_sent")["value"].to_list()
    if len(told) != 1 or int(told[0]) not in rates_bps:
        raise MediaError(
            f"flow {flow}: its server changed encodings without reporting the position in the media. Name "
            "another flow, or run a trial that has one encoding."
        )
    return [Sent(frame=0, encoding=rates_bps.index(int(told[0])))]


def _sent(said: pl.DataFrame, flow: str, per_s: int | Fraction, encodings: int) -> list[Sent]:
    reasons = said.filter(pl.col("name") == "level_sent")["reason"]
    found = [one for one in (_SENT.search(reason or "") for reason in reasons) if one is not None]
    sent = [Sent(frame=round(float(one[2]) * per_s), encoding=int(one[1])) for one in found]
    if not sent:
        raise MediaError(
            f"flow {flow}: its server did not report the sent encodings, as in earlier versions. Run "
            "the trial again."
        )
    if any(one.encoding >= encodings for one in sent) or any(
        after.frame < before.frame for before, after in pairwise(sent)
    ):
        raise MediaError(
            f"flow {flow}: its server reported an encoding outside this ladder, or went back in the "
            "media. Its pictures are unknown."
        )
    return sent


def _check_keys(clip: ClipEncoding, spec: Mapping[str, Any], due: int) -> None:
    """A key frame in the plan must be one in the file, or nothing could be decoded from it on."""
    coded = coded_frames(prepare(clip))
    every = len(spec["frame_bytes"])
    keys = set(spec["key_frames"]) or {0}
    wrong = [n for n in range(min(due, len(coded))) if n % every in keys and not coded[n].is_key]
    if wrong:
        raise MediaError(
            f"clip {clip.label}: frame {wrong[0]} was a key frame in the trial, not in the file. Run "
            "the trial again with this version."
        )

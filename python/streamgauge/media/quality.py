"""Picture quality of a trial: the pictures that its player showed in time, against the source.

In a ladder each segment that was shown counts with the quality of its encoding (see `segment_quality`). In a
clip a frame counts as arrived if its player reported `frame_shown` for it; all others are left out of the
bitstream (see `pictures.compare` for the pictures in their stead). docs/quality.md describes the limits of
this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from streamgauge import _native
from streamgauge.errors import MediaError
from streamgauge.media.clip import ClipEncoding
from streamgauge.media.pictures import Pictures, compare
from streamgauge.media.segment_quality import SegmentPictures, SegmentTable
from streamgauge.media.store import with_frames

__all__ = [
    "PlayedRecord",
    "Quality",
    "SegmentsQuality",
    "ShownSegment",
    "flows_with_levels",
    "flows_with_pictures",
    "flows_with_segments",
    "of_frames",
    "of_segments",
    "of_trial",
]

_EVENTS = {
    told["name"]: {event["name"] for event in told["events"]} for told in json.loads(_native.systems())
}
_MACHINES = [name for name, events in _EVENTS.items() if "frame_shown" in events]
"""Machines of ours with players that report the frames that they showed."""
_OF_LEVELS = [name for name in _MACHINES if "level_sent" in _EVENTS[name]]
"""Those of them with servers that report the place in the media from which they sent an encoding of a
ladder."""


class PlayedRecord(Protocol):
    """Interface of a record here: `streamgauge.record.Record` has it."""

    @property
    def directory(self) -> Path: ...
    @property
    def trial(self) -> dict[str, Any]: ...
    @property
    def events(self) -> pl.DataFrame: ...


@dataclass(frozen=True, kw_only=True)
class Quality:
    """One flow's pictures in one trial. Luma; means over the frames that were due."""

    clip: str
    """Or its ladder, with `clip_ssim` and `clip_psnr_db` of the highest encoding."""
    frames_due: int
    frames_shown: int
    frame_rate: float | None
    """Frames shown a second, from the first picture to the media's end, stalls and all; None if not asked."""
    ssim: float
    psnr_db: float
    worst_second_ssim: float
    """The least mean over the frames of a second."""
    worst_second_at_s: float
    """Where that second begins, in media time."""
    clip_ssim: float
    """SSIM of the same frames with nothing lost: the cost of the encoding alone."""
    clip_psnr_db: float
    pictures: Pictures = field(repr=False)
    """Frame by frame."""
    rates_bps: tuple[int, ...] | None = field(default=None, repr=False)
    """In a ladder the rate of the encoding of each picture, 0 before the first."""

    @property
    def share_shown(self) -> float:
        return self.frames_shown / self.frames_due


def of_frames(
    clip: ClipEncoding, shown: Sequence[int], due: int, *, frame_rate: float | None = None
) -> Quality:
    """Returns the quality of the first `due` frames of `clip` if of those the frames numbered `shown` were
    shown.

    Raises MediaError if the clip cannot be had or compared, CannotRunError if there is no ffmpeg.
    """
    if due < 1:
        raise MediaError(f"clip {clip.label}: no frame was due, so there is no picture to judge.")
    there = {number for number in shown if 0 <= number < due}
    seen = compare(clip, [number for number in range(due) if number not in there], due)
    found = summary(clip.label, clip.frame_rate, seen, compare(clip, [], due))
    return replace(found, frames_shown=len(there), frame_rate=frame_rate)


def summary(name: str, per_s: int | Fraction, seen: Pictures, whole: Pictures) -> Quality:
    """Returns the summary of all pictures, `per_s` a second, as they were seen, and as they are with nothing
    lost."""
    ssim = np.array(seen.ssim)
    second = min(round(per_s), len(ssim))
    means = np.convolve(ssim, np.full(second, 1 / second), mode="valid")
    worst = int(means.argmin())
    return Quality(
        clip=name,
        frames_due=len(ssim),
        frames_shown=len(ssim),
        frame_rate=None,
        ssim=float(ssim.mean()),
        psnr_db=float(np.mean(seen.psnr_db)),
        worst_second_ssim=float(means[worst]),
        worst_second_at_s=float(worst / per_s),
        clip_ssim=float(np.mean(whole.ssim)),
        clip_psnr_db=float(np.mean(whole.psnr_db)),
        pictures=seen,
    )


@dataclass(frozen=True, kw_only=True)
class ShownSegment:
    """A segment that a player showed, from 0, and the bit rate of its encoding."""

    number: int
    rate_bps: float


@dataclass(frozen=True, kw_only=True)
class SegmentsQuality:
    """One flow's segments in one trial. Luma; means over the segments shown, those that were skipped and time
    stalled left out."""

    ladder: str
    reference: str
    """Reference of the comparison: ``source``, or the highest encoding's name."""
    segments_shown: int
    ssim: float
    psnr_db: float
    vmaf: float | None
    worst_segment_ssim: float
    worst_segment: int
    highest_ssim: float
    """SSIM of the same segments in the highest encoding: the most that a trial can reach."""
    highest_psnr_db: float
    shown: tuple[ShownSegment, ...] = field(repr=False)
    pictures: tuple[SegmentPictures, ...] = field(repr=False)
    """Quality of each of them."""


def flows_with_pictures(trial: Mapping[str, Any]) -> list[str]:
    """Returns the flows of a trial (`trial.json`) with pictures that can be judged frame by frame: clips
    played by our machines."""
    return [
        flow["name"]
        for flow in trial["plan"]["flows"]
        if _machine(flow) in _MACHINES and not _plays_ladder(flow)
    ]


def flows_with_levels(trial: Mapping[str, Any]) -> list[str]:
    """Returns the flows of a trial (`trial.json`) that play a ladder, or a clip as one, with pictures that
    can be judged frame by frame, each in the encoding that it was sent in."""
    return [
        flow["name"]
        for flow in trial["plan"]["flows"]
        if _machine(flow) in _OF_LEVELS and _plays_ladder(flow)
    ]


def flows_with_segments(record: PlayedRecord) -> list[str]:
    """Returns the flows of a trial with a player, ours or not, that reports the segments that it showed."""
    if not any(_plays_ladder(flow) or flow["app"] == "external" for flow in record.trial["plan"]["flows"]):
        return []
    told = record.events.filter(pl.col("name") == "segment_shown")["flow"].cast(pl.String).unique().to_list()
    return [
        flow["name"]
        for index, flow in enumerate(record.trial["plan"]["flows"])
        if flow["name"] in told or str(index) in told
    ]


def of_segments(record: PlayedRecord, flow: str, table: SegmentTable) -> SegmentsQuality:
    """Returns the quality of the segments that `flow` showed of the ladder in `table`.

    Raises MediaError if it reported none, or one without a number or beyond the ladder's.
    """
    index = next(
        (place for place, one in enumerate(record.trial["plan"]["flows"]) if one["name"] == flow), None
    )
    if index is None:
        raise _no_such_flow(record.trial, flow)
    rows = said_by(record, index, flow).filter(pl.col("name") == "segment_shown")
    if rows.is_empty():
        raise MediaError(
            f"flow {flow}: its player reported no shown segment, so there is no picture to judge."
        )
    shown = []
    for rate, reason in rows.select("value", "reason").iter_rows():
        numbered = _SEGMENT.search(reason or "")
        if numbered is None or rate is None:
            raise MediaError(
                f"flow {flow}: its player reported `segment_shown` without the segment's rate or number. See "
                "docs/player-events.md."
            )
        shown.append(ShownSegment(number=int(numbered[1]), rate_bps=float(rate)))
    pictures = [table.at(one.rate_bps, one.number) for one in shown]
    best = [table.at(max(table.encodings), one.number) for one in shown]
    ssim, vmaf = [one.ssim for one in pictures], [one.vmaf for one in pictures if one.vmaf is not None]
    worst = int(np.argmin(ssim))
    return SegmentsQuality(
        ladder=table.name,
        reference=table.reference,
        segments_shown=len(shown),
        ssim=float(np.mean(ssim)),
        psnr_db=float(np.mean([one.psnr_db for one in pictures])),
        vmaf=float(np.mean(vmaf)) if len(vmaf) == len(shown) else None,
        worst_segment_ssim=ssim[worst],
        worst_segment=shown[worst].number,
        highest_ssim=float(np.mean([one.ssim for one in best])),
        highest_psnr_db=float(np.mean([one.psnr_db for one in best])),
        shown=tuple(shown),
        pictures=tuple(pictures),
    )


_SEGMENT = re.compile(r"\bsegment (\d+)\b")


def of_trial(record: PlayedRecord, flow: str, clip: ClipEncoding | None) -> Quality:
    """Returns the quality of the pictures of `flow`, which played `clip` (as in
    `scenario.recorded.recorded_clip`).

    Raises MediaError if the flow plays no clip, is a third-party system, or reported no frames; RecordError
    if the events were not kept.
    """
    index, planned = planned_flow(record.trial, flow)
    if clip is None:
        raise MediaError(f"flow {flow}: it plays no clip; name a flow that does.")
    spec = next(iter(with_frames(planned["app"], record.directory).values()))["clip"]
    if round(1e9 / spec["frame_interval"]) != clip.frame_rate:
        raise MediaError(
            f"flow {flow}: its frames were {1e9 / spec['frame_interval']:g} a second, the clip has "
            f"{clip.frame_rate}. Run the trial with that frame rate."
        )
    said = said_by(record, index, flow)
    shown = said.filter(pl.col("name") == "frame_shown")
    if shown.is_empty():
        raise MediaError(
            f"flow {flow}: its player showed no frame in this trial, so there is no picture to judge. "
            "See its frame_late and frame_incomplete events."
        )
    numbers = [int(value) for value in shown["value"]]
    due = frames_due(record, said, numbers, spec)
    return of_frames(
        clip, numbers, due, frame_rate=rate_shown(record, said, due * int(spec["frame_interval"]))
    )


def said_by(record: PlayedRecord, index: int, flow: str) -> pl.DataFrame:
    """Returns the events by time of the flow with that index and name in the plan."""
    # Older records number flows, newer ones name them.
    mine = pl.col("flow").cast(pl.String).is_in([flow, str(index)])
    return record.events.filter(mine).sort("time", maintain_order=True)


def frames_due(
    record: PlayedRecord, said: pl.DataFrame, numbers: Sequence[int], spec: Mapping[str, Any]
) -> int:
    """Returns the number of frames of a clip (`spec`, as in the plan) that fell due, if those `numbers` were
    shown: those up to the last that was, and from there by the clock to the end, unless the player waited
    then."""
    last_at, last = int(said.filter(pl.col("name") == "frame_shown")["time"][-1]), numbers[-1]
    due = last + 1
    if said.filter((pl.col("name") == "stall") & (pl.col("time") > last_at)).is_empty():
        due += max(0, _end_ns(record, said) - last_at) // int(spec["frame_interval"])
    total = -(-int(spec["duration"]) // int(spec["frame_interval"]))
    return max(min(total, due), *(number + 1 for number in numbers))


def rate_shown(record: PlayedRecord, said: pl.DataFrame, due_ns: int) -> float:
    """Returns frames shown a second, from the first to the media's end or the trial's; for at least the
    playing time of the frames due."""
    times = said.filter(pl.col("name") == "frame_shown")["time"]
    return len(times) * 1e9 / max(_end_ns(record, said) - int(times[0]), due_ns)


def _end_ns(record: PlayedRecord, said: pl.DataFrame) -> int:
    """Returns when the media ended, or the trial if that was sooner."""
    end = int(record.trial["plan"]["duration"])
    over = said.filter(pl.col("name") == "media_end")
    return end if over.is_empty() else min(end, int(over["time"][0]))


def _plays_ladder(planned: Mapping[str, Any]) -> bool:
    app = planned["app"]
    return not isinstance(app, str) and "ladder" in next(iter(app.values()))


def _machine(planned: Mapping[str, Any]) -> str:
    app = planned["app"]
    return app if isinstance(app, str) else str(next(iter(app)))


def planned_flow(trial: Mapping[str, Any], flow: str) -> tuple[int, Mapping[str, Any]]:
    """Index and plan of the flow of that name. Raises MediaError if no player of ours shows frames of it."""
    for index, planned in enumerate(trial["plan"]["flows"]):
        if planned["name"] == flow:
            machine = _machine(planned)
            if machine == "external":
                raise MediaError(
                    f"flow {flow}: a third-party player does not report the frames that it showed. "
                    f"Pictures can be judged only for the systems {' and '.join(_MACHINES)}."
                )
            if machine not in _MACHINES:
                raise MediaError(f"flow {flow}: {machine} plays no clip; name a flow that does.")
            return index, planned
    raise _no_such_flow(trial, flow)


def _no_such_flow(trial: Mapping[str, Any], flow: str) -> MediaError:
    names = ", ".join(planned["name"] for planned in trial["plan"]["flows"])
    return MediaError(f"flow {flow}: there is none of that name in the trial; it has {names}.")

"""Picture quality of a trial: what its player showed in time, against the source.

A frame of the record's clip counts as arrived if its player said `frame_shown` of it; all others are left out
of the bitstream. See `pictures.compare` for what is shown in their stead, and docs/quality.md for what this
does and does not tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from streamgauge import _native
from streamgauge.errors import MediaError
from streamgauge.media.clip import ClipEncoding
from streamgauge.media.pictures import Pictures, compare
from streamgauge.media.store import with_frames

__all__ = ["PlayedRecord", "Quality", "flows_with_pictures", "of_frames", "of_trial"]

_MACHINES = [
    told["name"]
    for told in json.loads(_native.systems())
    if "frame_shown" in [event["name"] for event in told["events"]]
]
"""Machines of ours whose players say which frames they showed."""


class PlayedRecord(Protocol):
    """What is needed of a record: `streamgauge.record.Record` has it."""

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
    frames_due: int
    frames_shown: int
    ssim: float
    psnr_db: float
    worst_second_ssim: float
    """The least mean over the frames of a second."""
    worst_second_at_s: float
    """Where that second begins, in media time."""
    clip_ssim: float
    """Of the same frames with nothing lost: what the encoding alone costs."""
    clip_psnr_db: float
    pictures: Pictures = field(repr=False)
    """Frame by frame."""


def of_frames(clip: ClipEncoding, shown: Sequence[int], due: int) -> Quality:
    """The quality of the first `due` frames of `clip` if of those the frames numbered `shown` were shown.

    Raises MediaError if the clip cannot be had or compared, CannotRunError if there is no ffmpeg.
    """
    if due < 1:
        raise MediaError(f"clip {clip.label}: no frame was due, so there is no picture to judge.")
    there = {number for number in shown if 0 <= number < due}
    seen = compare(clip, [number for number in range(due) if number not in there], due)
    whole = compare(clip, [], due)
    ssim = np.array(seen.ssim)
    second = min(clip.frame_rate, due)
    means = np.convolve(ssim, np.full(second, 1 / second), mode="valid")
    worst = int(means.argmin())
    return Quality(
        clip=clip.label,
        frames_due=due,
        frames_shown=len(there),
        ssim=float(ssim.mean()),
        psnr_db=float(np.mean(seen.psnr_db)),
        worst_second_ssim=float(means[worst]),
        worst_second_at_s=worst / clip.frame_rate,
        clip_ssim=float(np.mean(whole.ssim)),
        clip_psnr_db=float(np.mean(whole.psnr_db)),
        pictures=seen,
    )


def flows_with_pictures(trial: Mapping[str, Any]) -> list[str]:
    """The flows of a trial (`trial.json`) whose pictures can be judged: clips played by our machines."""
    return [flow["name"] for flow in trial["plan"]["flows"] if _machine(flow) in _MACHINES]


def of_trial(record: PlayedRecord, flow: str, clip: ClipEncoding | None) -> Quality:
    """The quality of the pictures of `flow`, which played `clip` (`scenario.recorded.recorded_clip` knows
    it).

    Raises MediaError if the flow plays no clip, is somebody else's system, or said nothing of frames;
    RecordError if the events were not kept.
    """
    index, planned = _planned(record.trial, flow)
    if clip is None:
        raise MediaError(f"flow {flow}: it plays no clip; name a flow that does.")
    spec = next(iter(with_frames(planned["app"], record.directory).values()))["clip"]
    if round(1e9 / spec["frame_interval"]) != clip.frame_rate:
        raise MediaError(
            f"flow {flow}: its frames were {1e9 / spec['frame_interval']:g} a second, the clip has "
            f"{clip.frame_rate}; run the trial with that frame rate."
        )
    total = -(-spec["duration"] // spec["frame_interval"])
    said = _said(record.events, index, flow)
    shown = said.filter(pl.col("name") == "frame_shown")
    if shown.is_empty():
        raise MediaError(
            f"flow {flow}: its player showed no frame in this trial, so there is no picture to judge; "
            "see its frame_late and frame_incomplete events."
        )
    numbers = [int(value) for value in shown["value"]]
    end = int(record.trial["plan"]["duration"])
    due = min(total, _due(said, shown, spec["frame_interval"], end))
    return of_frames(clip, numbers, max(due, *(number + 1 for number in numbers)))


def _due(said: pl.DataFrame, shown: pl.DataFrame, interval_ns: int, end_ns: int) -> int:
    """How many frames fell due: those up to the last that was shown, and from there by the clock to the end,
    unless the player waited then."""
    last_at, last = int(shown["time"][-1]), int(shown["value"][-1])
    stalls = said.filter((pl.col("name") == "stall") & (pl.col("time") > last_at))
    if not stalls.is_empty():
        return last + 1
    over = said.filter(pl.col("name") == "media_end")
    until = end_ns if over.is_empty() else min(end_ns, int(over["time"][0]))
    return last + 1 + max(0, until - last_at) // interval_ns


def _said(events: pl.DataFrame, index: int, flow: str) -> pl.DataFrame:
    # Older records number flows, newer ones name them.
    mine = pl.col("flow").cast(pl.String).is_in([flow, str(index)])
    return events.filter(mine).sort("time", maintain_order=True)


def _machine(planned: Mapping[str, Any]) -> str:
    app = planned["app"]
    return app if isinstance(app, str) else str(next(iter(app)))


def _planned(trial: Mapping[str, Any], flow: str) -> tuple[int, Mapping[str, Any]]:
    for index, planned in enumerate(trial["plan"]["flows"]):
        if planned["name"] == flow:
            machine = _machine(planned)
            if machine == "external":
                raise MediaError(
                    f"flow {flow}: another's player does not say which frames it showed; its pictures can be "
                    f"judged only where our machines play (systems {' and '.join(_MACHINES)})."
                )
            if machine not in _MACHINES:
                raise MediaError(f"flow {flow}: {machine} plays no clip; name a flow that does.")
            return index, planned
    names = ", ".join(planned["name"] for planned in trial["plan"]["flows"])
    raise MediaError(f"flow {flow}: there is none of that name in the trial; it has {names}.")

"""``quality``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.text import Text

from streamgauge.campaign import Progress
from streamgauge.claims.dimension import PERCENT, show, show_in
from streamgauge.cli.folders import WHERE, check_folder
from streamgauge.cli.output import heads, say, table
from streamgauge.cli.progress import Bar
from streamgauge.errors import MediaError, ScenarioError
from streamgauge.media import ClipEncoding, prepare_ladder, prepare_own_ladder
from streamgauge.media.level_quality import of_level_trial
from streamgauge.media.pictures import PSNR_CAP_DB
from streamgauge.media.quality import (
    Quality,
    SegmentsQuality,
    flows_with_levels,
    flows_with_pictures,
    flows_with_segments,
    of_segments,
    of_trial,
    planned_flow,
)
from streamgauge.media.segment_quality import SegmentTable, of_clip, of_ladder
from streamgauge.metrics import p1203
from streamgauge.metrics.interval import Interval, interval
from streamgauge.record import Record
from streamgauge.report.model import trial_folders
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.media_files import segment_s
from streamgauge.scenario.recorded import members_of, recorded_clip, recorded_ladder
from streamgauge.scenario.settings import named, tidy
from streamgauge.systems.system import is_rate_only

__all__ = ["quality_command"]

_COLUMNS = ("ssim", "psnr_db", "worst_second_ssim", "clip_ssim", "clip_psnr_db")
_COMPARED = ("frame_rate", "ssim", "psnr_db", "worst_second_ssim")
_OF_SEGMENTS = ("ssim", "psnr_db", "vmaf", "worst_segment_ssim", "highest_ssim", "highest_psnr_db")
_DECIMALS = {
    "frame_rate": 1,
    "psnr_db": 1,
    "clip_psnr_db": 1,
    "highest_psnr_db": 1,
    "vmaf": 1,
    "mos": 2,
    "segments_shown": 1,
}


@dataclass(frozen=True)
class _Judged:
    """A flow of a trial."""

    record: Record
    flow: str
    quality: Quality | SegmentsQuality
    mos: float | None = None
    """By P.1203, if it was asked for."""


def quality_command(directory: Path, flow: str | None, as_json: bool, with_mos: bool = False) -> int:
    """A row for each scenario, mode and flow; with --json each trial's, frame by frame or segment by segment.

    Changes by --set have entries of their own; those by --mutants and --robust are left out, as in reports.
    Raises MediaError at the first flow with pictures that cannot be judged, RecordError at the first damaged
    record, and CannotRunError if P.1203 is requested and not installed.
    """
    check_folder(directory)
    if with_mos:
        p1203.require()
    jobs = _jobs(directory, flow)
    found: list[_Judged] = []
    began = time.monotonic()
    with Bar() as bar:
        for done, (record, name, by_segment) in enumerate(jobs):
            spent = time.monotonic() - began
            left = spent / done * (len(jobs) - done) if done else None
            words = f"{_name(record)} {record.trial['mode']} seed {record.trial['seed']}"
            bar.update(Progress(done, len(jobs), left, words))
            try:
                found.append(_judged(record, name, by_segment, with_mos))
            except MediaError as error:
                raise MediaError(f"{record.directory}: {error}") from error
    if as_json:
        rows = [_row(one) for one in found]
        data = {"schema": "streamgauge.quality/1", "psnr_cap_db": PSNR_CAP_DB, "trials": rows}
        json.dump(data, sys.stdout)
        print()
    else:
        _print(found)
    return 0


def _judged(record: Record, flow: str, by_segment: bool, with_mos: bool) -> _Judged:
    if not by_segment and flow in flows_with_levels(record.trial):
        name, ladder = _levels(record, flow)
        _, planned = planned_flow(record.trial, flow)
        alone = is_rate_only(next(iter(planned["app"])))
        quality = of_level_trial(record, flow, ladder, name=name, rates_alone=alone)
        return _Judged(record, flow, quality)
    if not by_segment:
        return _Judged(record, flow, of_trial(record, flow, recorded_clip(record.trial, flow)))
    found = _Judged(record, flow, of_segments(record, flow, _table(record, flow)))
    return replace(found, mos=p1203.mean_opinion(p1203.session_of(record, flow))) if with_mos else found


def _table(record: Record, flow: str) -> SegmentTable:
    """Returns the table of the ladder that a flow played; for a clip of one rate, of that."""
    ladder = recorded_ladder(record.trial, flow)
    if isinstance(ladder, Clip):
        files = [Path(file) for file in ladder.files or ()]
        return of_ladder(prepare_own_ladder(files, segment_s=segment_s(ladder)))
    if ladder is not None:
        return of_ladder(prepare_ladder(ladder), ladder)
    clip = recorded_clip(record.trial, flow)
    if clip is None:
        raise MediaError(f"flow {flow}: it plays no clip; name a flow that does.")
    return of_clip(replace(clip, bit_rate_bps=clip.video_bps, audio_bps=0), round(clip.gop_s * 1e9))


def _levels(record: Record, flow: str) -> tuple[str, list[ClipEncoding]]:
    """Returns the ladder that a flow played frame by frame: its name and its encodings, the lowest first."""
    ladder = recorded_ladder(record.trial, flow)
    if isinstance(ladder, Clip):
        raise MediaError(
            f"flow {flow}: its ladder is of your own files, which have no source to compare frames "
            "with. Give a source and the rates of its ladder."
        )
    if ladder is not None:
        return ladder.label, [ladder.clip(rate) for rate in ladder.rates_bps]
    clip = recorded_clip(record.trial, flow)
    if clip is None:
        raise MediaError(f"flow {flow}: it plays no clip; name a flow that does.")
    return clip.label, [replace(clip, bit_rate_bps=clip.video_bps, audio_bps=0)]


def _jobs(directory: Path, flow: str | None) -> list[tuple[Record, str, bool]]:
    """Returns each record with each flow to judge, and whether by its segments. ScenarioError if there is
    none."""
    records = [Record.open(folder) for folder in trial_folders(directory)]
    if not records:
        raise ScenarioError("no record is here", file=directory, hint=WHERE)
    if flow is not None:
        having = [
            record for record in records if any(one["name"] == flow for one in record.trial["plan"]["flows"])
        ]
        return [(record, flow, flow in flows_with_segments(record)) for record in having or records[:1]]
    jobs = [(record, name, by_segment) for record in records for name, by_segment in _flows(record)]
    if not jobs:
        raise ScenarioError(
            "no flow here has a player that reports the frames it showed",
            file=directory,
            hint="name a folder with records of rtp, darwin, realvideo, or of players that report "
            "`segment_shown`",
        )
    return jobs


def _flows(record: Record) -> Iterator[tuple[str, bool]]:
    for flow in (*flows_with_pictures(record.trial), *flows_with_levels(record.trial)):
        yield flow, False
    for flow in flows_with_segments(record):
        yield flow, True


def _name(record: Record) -> str:
    return named(record.trial["plan"]["scenario"], tidy(record.trial.get("set") or ()))


def _valid(record: Record) -> bool:
    return bool((record.trial.get("validity") or {}).get("valid", True))


def _row(one: _Judged) -> dict[str, Any]:
    record, quality = one.record, one.quality
    row = {
        "directory": str(record.directory),
        "scenario": record.trial["plan"]["scenario"],
        "set": list(record.trial.get("set") or ()),
        "mode": record.trial["mode"],
        "seed": record.trial["seed"],
        "valid": _valid(record),
        "flow": one.flow,
    }
    if isinstance(quality, Quality):
        return row | {
            "clip": quality.clip,
            "frames_due": quality.frames_due,
            "frames_shown": quality.frames_shown,
            "frame_rate": quality.frame_rate,
            "worst_second_at_s": quality.worst_second_at_s,
            **{column: getattr(quality, column) for column in _COLUMNS},
            "series": {
                "ssim": quality.pictures.ssim,
                "psnr_db": quality.pictures.psnr_db,
                **({} if quality.rates_bps is None else {"rate_bps": quality.rates_bps}),
            },
        }
    series = {
        name: [getattr(each, name) for each in quality.pictures] for name in ("ssim", "psnr_db", "vmaf")
    }
    return row | {
        "ladder": quality.ladder,
        "reference": quality.reference,
        "segments_shown": quality.segments_shown,
        "worst_segment": quality.worst_segment,
        **{column: getattr(quality, column) for column in _OF_SEGMENTS},
        "mos": one.mos,
        "series": {
            "segment": [each.number for each in quality.shown],
            "rate_bps": [each.rate_bps for each in quality.shown],
            **series,
        },
    }


def _print(found: Sequence[_Judged]) -> None:
    valid = [one for one in found if _valid(one.record)]
    groups: dict[tuple[str, str], list[_Judged]] = {}
    for one in valid:
        groups.setdefault((_name(one.record), one.record.trial["mode"]), []).append(one)
    for (scenario, mode), trials in groups.items():
        by_frame = _by_flow(trials, Quality)
        by_segment = _by_flow(trials, SegmentsQuality)
        if by_frame:
            _print_frames(scenario, mode, by_frame)
        if by_segment:
            _print_segments(scenario, mode, by_segment)
    kinds = {type(one.quality) for one in valid}
    if Quality in kinds:
        say("Luma, means over the frames due, ± half the 95 % interval. Worst second by SSIM.")
    if SegmentsQuality in kinds:
        say("Luma, means over the segments shown, ± half the 95 % interval. Stalls are excluded.")
    if invalid := len(found) - len(valid):
        say(f"[yellow]{invalid} of {len(found)} are of invalid trials[/yellow] and left out.")


def _by_flow(trials: Sequence[_Judged], kind: type[Quality | SegmentsQuality]) -> dict[str, list[_Judged]]:
    flows: dict[str, list[_Judged]] = {}
    for one in trials:
        if isinstance(one.quality, kind):
            flows.setdefault(one.flow, []).append(one)
    return flows


def _head(scenario: str, mode: str, flows: dict[str, list[_Judged]], what: str) -> None:
    n = max(len(trials) for trials in flows.values())
    say(f"[bold]{escape(scenario)}[/bold] {mode}, n = {n}, {escape(what)}")


def _print_frames(scenario: str, mode: str, flows: dict[str, list[_Judged]]) -> None:
    clips = {
        (getattr(one.quality, "clip", ""), _member(one, 0)) for trials in flows.values() for one in trials
    }
    _head(scenario, mode, flows, clips.pop()[0] if len(clips) == 1 else f"{len(clips)} clips")
    rows: list[list[Text | str]] = [
        [*heads("flow", "frames/s", "frames shown", "SSIM", "PSNR", "worst second", "clip's own")]
    ]
    for flow, trials in flows.items():
        shown = _over([(one, _value(one, "share_shown")) for one in trials])
        share = str(show(shown.mean, shown.half_width, PERCENT, signed=False))
        rate, ssim, psnr, worst, own_ssim, own_psnr = (
            _mean(trials, column) for column in ("frame_rate", *_COLUMNS)
        )
        rows.append([escape(flow), rate, share, ssim, f"{psnr} dB", worst, f"{own_ssim}, {own_psnr} dB"])
    if len(flows) == 2:
        one, other = flows.values()
        rate, ssim, psnr, worst = (_difference(one, other, column) for column in _COMPARED)
        names = " − ".join(map(escape, flows))
        rows.append([names, rate, "", ssim, f"{psnr} dB" if psnr else "", worst, ""])
    table(rows, "lrrrrrr", indent=2)


def _print_segments(scenario: str, mode: str, flows: dict[str, list[_Judged]]) -> None:
    everything = [one for trials in flows.values() for one in trials]
    first = everything[0].quality
    assert isinstance(first, SegmentsQuality)
    against = "" if first.reference == "source" else f" against {first.reference}"
    _head(scenario, mode, flows, first.ladder + against)
    has_vmaf = all(getattr(one.quality, "vmaf", None) is not None for one in everything)
    has_mos = all(one.mos is not None for one in everything)
    columns = ["flow", "segments shown", "SSIM", "PSNR", *(["VMAF"] if has_vmaf else [])]
    columns += ["worst segment", "at the highest", *(["P.1203"] if has_mos else [])]
    rows: list[list[Text | str]] = [[*heads(*columns)]]
    for flow, trials in flows.items():
        shown, ssim, psnr, worst, top_ssim, top_psnr = (
            _mean(trials, column) for column in ("segments_shown", *_OF_SEGMENTS) if column != "vmaf"
        )
        row: list[Text | str] = [escape(flow), shown, ssim, f"{psnr} dB"]
        row += [_mean(trials, "vmaf")] if has_vmaf else []
        row += [worst, f"{top_ssim}, {top_psnr} dB"]
        rows.append(row + ([_mean(trials, "mos")] if has_mos else []))
    table(rows, "l" + "r" * (len(columns) - 1), indent=2)


def _mean(trials: Sequence[_Judged], column: str) -> str:
    return _shown(_over([(one, _value(one, column)) for one in trials]), column)


def _difference(trials: Sequence[_Judged], others: Sequence[_Judged], column: str) -> str:
    """Returns one flow's values less another's in the same trials; nothing where no trial has both."""
    beside = {one.record.directory: _value(one, column) for one in others}
    both = [(one, beside.get(one.record.directory)) for one in trials]
    pairs = [(one, _value(one, column) - value) for one, value in both if value is not None]
    return _shown(_over(pairs), column) if pairs else ""


def _value(one: _Judged, column: str) -> float:
    return float(getattr(one if column == "mos" else one.quality, column))


def _over(values: Sequence[tuple[_Judged, float]]) -> Interval:
    """In a population the trials of one member count as one: the choice of members is the uncertainty."""
    of_member: dict[int, list[float]] = {}
    for place, (one, value) in enumerate(values):
        of_member.setdefault(_member(one, place), []).append(value)
    return interval([sum(each) / len(each) for each in of_member.values()])


def _member(one: _Judged, otherwise: int) -> int:
    """Returns which member of its population a trial played, from 0; `otherwise` without one."""
    members = members_of(one.record.trial.get("scenario") or {})
    return (one.record.trial["seed"] - 1) % members if members else otherwise


def _shown(found: Interval, column: str) -> str:
    return str(show_in(found.mean, found.half_width, _DECIMALS.get(column, 3)))

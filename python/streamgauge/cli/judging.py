"""``quality``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
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
from streamgauge.media.pictures import PSNR_CAP_DB
from streamgauge.media.quality import Quality, flows_with_pictures, of_trial
from streamgauge.metrics.interval import interval
from streamgauge.record import Record
from streamgauge.report.model import trial_folders
from streamgauge.scenario.recorded import recorded_clip
from streamgauge.scenario.settings import named, tidy

__all__ = ["quality_command"]

_COLUMNS = ("ssim", "psnr_db", "worst_second_ssim", "clip_ssim", "clip_psnr_db")
_DECIMALS = {"psnr_db": 1, "clip_psnr_db": 1}


def quality_command(directory: Path, flow: str | None, as_json: bool) -> int:
    """A row for each scenario, mode and flow; with --json each trial's, frame by frame.

    What --set changed stands by itself; what --mutants and --robust did is left out, as in reports. Raises
    MediaError at the first flow whose pictures cannot be judged, RecordError at the first damaged record.
    """
    check_folder(directory)
    jobs = _jobs(directory, flow)
    found: list[tuple[Record, str, Quality]] = []
    began = time.monotonic()
    with Bar() as bar:
        for done, (record, name) in enumerate(jobs):
            spent = time.monotonic() - began
            left = spent / done * (len(jobs) - done) if done else None
            words = f"{_name(record)} {record.trial['mode']} seed {record.trial['seed']}"
            bar.update(Progress(done, len(jobs), left, words))
            try:
                clip = recorded_clip(record.trial, name)
                found.append((record, name, of_trial(record, name, clip)))
            except MediaError as error:
                raise MediaError(f"{record.directory}: {error}") from error
    if as_json:
        rows = [_row(record, name, quality) for record, name, quality in found]
        data = {"schema": "streamgauge.quality/1", "psnr_cap_db": PSNR_CAP_DB, "trials": rows}
        json.dump(data, sys.stdout)
        print()
    else:
        _print(found)
    return 0


def _jobs(directory: Path, flow: str | None) -> list[tuple[Record, str]]:
    """Each record with each flow to judge. ScenarioError if there is none."""
    records = [Record.open(folder) for folder in trial_folders(directory)]
    if not records:
        raise ScenarioError("no record is here", file=directory, hint=WHERE)
    if flow is not None:
        having = [
            record for record in records if any(one["name"] == flow for one in record.trial["plan"]["flows"])
        ]
        return [(record, flow) for record in having or records[:1]]
    jobs = [(record, name) for record in records for name in flows_with_pictures(record.trial)]
    if not jobs:
        raise ScenarioError(
            "no flow here plays a clip by a player of ours",
            file=directory,
            hint="pictures are judged of systems rtp and darwin; name a folder with records of them",
        )
    return jobs


def _name(record: Record) -> str:
    return named(record.trial["plan"]["scenario"], tidy(record.trial.get("set") or ()))


def _valid(record: Record) -> bool:
    return bool((record.trial.get("validity") or {}).get("valid", True))


def _row(record: Record, flow: str, quality: Quality) -> dict[str, Any]:
    return {
        "directory": str(record.directory),
        "scenario": record.trial["plan"]["scenario"],
        "set": list(record.trial.get("set") or ()),
        "mode": record.trial["mode"],
        "seed": record.trial["seed"],
        "valid": _valid(record),
        "flow": flow,
        "clip": quality.clip,
        "frames_due": quality.frames_due,
        "frames_shown": quality.frames_shown,
        "worst_second_at_s": quality.worst_second_at_s,
        **{column: getattr(quality, column) for column in _COLUMNS},
        "series": {"ssim": quality.pictures.ssim, "psnr_db": quality.pictures.psnr_db},
    }


def _print(found: Sequence[tuple[Record, str, Quality]]) -> None:
    groups: dict[tuple[str, str], dict[str, list[Quality]]] = {}
    invalid = 0
    for record, flow, quality in found:
        if not _valid(record):
            invalid += 1
            continue
        group = groups.setdefault((_name(record), record.trial["mode"]), {})
        group.setdefault(flow, []).append(quality)
    for (scenario, mode), flows in groups.items():
        n = max(len(trials) for trials in flows.values())
        clip = next(iter(flows.values()))[0].clip
        say(f"[bold]{escape(scenario)}[/bold] {mode}, n = {n}, {escape(clip)}")
        rows: list[list[Text | str]] = [
            [*heads("flow", "frames shown", "SSIM", "PSNR", "worst second", "clip's own")]
        ]
        for flow, trials in flows.items():
            shown = interval([trial.frames_shown / trial.frames_due for trial in trials])
            share = str(show(shown.mean, shown.half_width, PERCENT, signed=False))
            ssim, psnr, worst, own_ssim, own_psnr = (_mean(trials, column) for column in _COLUMNS)
            rows.append([escape(flow), share, ssim, f"{psnr} dB", worst, f"{own_ssim}, {own_psnr} dB"])
        table(rows, "lrrrrr", indent=2)
    say("Luma, means over the frames that were due, ± half the 95 % interval; worst second by SSIM.")
    if invalid:
        say(f"[yellow]{invalid} of {len(found)} are of invalid trials[/yellow] and left out.")


def _mean(trials: Sequence[Quality], column: str) -> str:
    found = interval([getattr(trial, column) for trial in trials])
    return str(show_in(found.mean, found.half_width, _DECIMALS.get(column, 3)))

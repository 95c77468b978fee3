"""``sweep``: runs every point, and writes their table and figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamgauge.campaign import EmuSettings
from streamgauge.campaign.trial import disk_errors
from streamgauge.claims.dimension import DIGITS_SHOW, number, pick_unit, show_in
from streamgauge.claims.names import METRICS
from streamgauge.cli.progress import Bar
from streamgauge.cli.running import RunRequest, interrupted
from streamgauge.cli.status import STATUS
from streamgauge.errors import ScenarioError
from streamgauge.report import save
from streamgauge.report.chart import check_suffix
from streamgauge.scenario.over import parse_overs
from streamgauge.scenario.settings import short_addresses
from streamgauge.sweeps import SweepPoint, SweepResult, SweepRow, points_of, run_points
from streamgauge.sweeps.figure import figures, write_files

__all__ = ["SweepRequest", "sweep_command"]

_PIPED = 1_000
_MOST_PRINTED = 60
"""Rows of the table in a terminal; the files have all."""


@dataclass(frozen=True, kw_only=True)
class SweepRequest(RunRequest):
    """Request on the command line."""

    over: Sequence[str]
    metrics: Sequence[str]
    csv: Path | None
    parquet: Path | None
    figure: Path | None


def sweep_command(request: SweepRequest) -> int:
    """Runs, writes, prints, and returns the exit status."""
    axes = parse_overs(request.over, request.settings)
    if request.figure is not None:
        try:
            check_suffix(request.figure)
        except ValueError as error:
            raise ScenarioError(str(error), file=f"--figure {request.figure}") from None
    with Bar(of="points checked") as bar:
        points = points_of(
            request.names,
            axes,
            settings=request.settings,
            mode=request.mode,
            way=request.way,
            seed=request.first_seed,
            told=lambda done, total: bar.count(done, total) if done else None,
        )
    with Bar() as bar:
        result = run_points(
            points,
            axes,
            request.out,
            metrics=request.metrics,
            first_seed=request.first_seed,
            repeat=request.repetitions,
            keep=request.keep,
            emu=EmuSettings(
                way=request.way,
                jobs=request.jobs,
                replace=request.replacements,
                brought=request.brought,
            ),
            verify=request.verify,
            progress=bar.update,
        )
    files = _write(request, result) if result.outcomes else []
    if request.as_json:
        json.dump(result.to_json() | {"files": list(map(str, files))}, sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        _print(result, files)
    if result.interrupted:
        kept = sum(outcome.counts for outcome in result.outcomes)
        return interrupted(f"{kept} of {result.planned} trials are kept in {request.out}")
    return STATUS["inconclusive" if result.mostly_invalid() else "pass"]


def _write(request: SweepRequest, result: SweepResult) -> list[Path]:
    """Writes table and figures, in the campaign's folder and the requested places. After Ctrl-C, no figures
    of a part are drawn."""
    whole = not result.interrupted
    with disk_errors(request.out):
        files = write_files(result, drawn=whole)
    if request.csv is not None:
        with disk_errors(request.csv):
            result.frame().write_csv(request.csv)
        files.append(request.csv)
    if request.parquet is not None:
        with disk_errors(request.parquet):
            result.frame().write_parquet(request.parquet)
        files.append(request.parquet)
    if request.figure is not None and whole and (drawn := figures(result)):
        with disk_errors(request.figure):
            files.append(save(drawn[0], request.figure))
    return files


def _print(result: SweepResult, files: Sequence[Path]) -> None:
    """The table of the subject flows, where each metric is least and most, and where the rest is."""
    # Into a pipe a row stays a line, for any reader.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED)
    short = _short_names(result)
    if result.shown:
        _print_tables(console, result, short)
        for text in _extremes(result, short):
            console.print(escape(text))
    if result.never:
        console.print(f"0 at every point: {', '.join(str(one.leaf) for one in result.never)}", markup=False)
    for left in result.left_out:
        at = ", ".join(
            f"{name} {value}" for name, value in zip(short, result.labels_at(left.at).values(), strict=True)
        )
        console.print(f"[yellow]left out[/yellow]: {escape(at)}: {escape(left.why)}")
    for point, invalid, total in result.mostly_invalid():
        mine = (one for one in result.outcomes if one.job.scenario is point.scenario)
        why = "; ".join(dict.fromkeys(reason for one in mine for reason in one.why))
        count = f"[yellow]{invalid} of {total} trials are invalid[/yellow]"
        console.print(f"{count} at {escape(_where(result, point, short))}: {escape(why)}")
    for one in result.set_aside:
        console.print(one.words(), markup=False)
    total = len(result.outcomes)
    if not total:  # interrupted before anything was kept
        return
    reused = sum(outcome.reused for outcome in result.outcomes)
    again = f" ({reused} there already)" if reused else ""
    points = f"{len(result.points)} point{'' if len(result.points) == 1 else 's'}"
    done = f"{total} trial{'' if total == 1 else 's'} at {points}{again} in {result.wall_s:.1f} s"
    console.print(f"{done}; 'streamgauge report {result.out}' shows each point", markup=False)
    by_stem: dict[Path, list[str]] = {}
    for file in files:
        by_stem.setdefault(file.with_suffix(""), []).append(file.suffix)
    for stem, suffixes in by_stem.items():
        console.print(f"  {stem}{' '.join(suffixes)}", markup=False, soft_wrap=True)


def _short_names(result: SweepResult) -> list[str]:
    """Returns the axes by the shortest unique ends of their addresses: ``down.rate``, ``queue``."""
    return list(short_addresses(axis.address for axis in result.axes).values())


def _print_tables(console: Console, result: SweepResult, short: Sequence[str]) -> None:
    """Prints a row for each flow at each point, a column for each metric, in as many tables as the width
    requires."""
    told = [row for row in result.under_test if row.measured not in result.never]
    entries = list(dict.fromkeys((row.point, _subject(row)) for row in told))
    shown, rest = entries[:_MOST_PRINTED], len(entries) - _MOST_PRINTED
    subjects = list(dict.fromkeys(subject for _, subject in entries))
    console.print(escape(_head(result, subjects, short)))
    several = len(result.scenarios) > 1
    heads = [*(["scenario"] if several else []), *short, *(["of"] if len(subjects) > 1 else []), "valid"]
    counted = {row.point: f"{row.valid}/{row.valid + row.invalid}" for row in told}
    begins = [
        [
            *([point.scenario.id] if several else []),
            *(axis.labels[place] for axis, place in zip(result.axes, point.at, strict=True)),
            *([subject] if len(subjects) > 1 else []),
            counted[point],
        ]
        for point, subject in shown
    ]
    rows = {(row.point, _subject(row), row.measured.metric): row for row in told}
    metrics = list(dict.fromkeys(row.measured.metric for row in result.shown))
    columns: list[tuple[str, list[str]]] = []
    for metric in metrics:
        scale, unit = _unit(result, metric)
        head = f"{metric}\n{unit or ' '}"
        columns.append((head, [_said(rows.get((*entry, metric)), scale) for entry in shown]))
    left = sum(_widest(head, [begin[at] for begin in begins]) + 2 for at, head in enumerate(heads))
    while columns:
        taken, used = 1, left + _widest(*columns[0]) + 2
        while taken < len(columns) and used + _widest(*columns[taken]) <= console.width:
            used += _widest(*columns[taken]) + 2
            taken += 1
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for head in heads:
            table.add_column(escape(head), no_wrap=True)
        for head, _ in columns[:taken]:
            table.add_column(escape(head), justify="right", no_wrap=True)
        for at, begin in enumerate(begins):
            table.add_row(*map(escape, [*begin, *(cells[at] for _, cells in columns[:taken])]))
        console.print(table)
        columns = columns[taken:]
    if rest > 0:
        console.print(f"{rest} more rows are in the table's file")


def _head(result: SweepResult, subjects: Sequence[str], short: Sequence[str]) -> str:
    """Returns the table's heading: ``hessler/ftp-medium in sim, flow ftp; queue is path.down.queue``."""
    modes = " and ".join(dict.fromkeys(point.mode for point in result.points))
    whose = f", {subjects[0]}" if len(subjects) == 1 and subjects[0] else ""
    told = [f"{name} is {axis.address}" for name, axis in zip(short, result.axes, strict=True)]
    settings = result.points[0].settings[: -len(result.axes)]
    besides = f"; set: {', '.join(settings)}" if settings else ""
    return f"{', '.join(result.scenarios)} in {modes}{whose}; {', '.join(told)}{besides}"


def _widest(head: str, cells: Sequence[str]) -> int:
    return max(map(len, [*head.splitlines(), *cells]))


def _unit(result: SweepResult, metric: str) -> tuple[float, str]:
    """Returns the unit of a metric's column: canonical units in one, and its name."""
    mine = [row for row in result.shown if row.measured.metric == metric]
    most = max(abs(row.interval.mean) for row in mine if row.interval is not None)
    return pick_unit(most, METRICS[metric].dimension)


def _subject(row: SweepRow) -> str:
    return row.measured.flow or row.measured.stage or ""


def _said(row: SweepRow | None, scale: float) -> str:
    """Returns ``546 ± 6``, in the column's unit; with fewer trials than are valid, with their number."""
    if row is None:
        return ""
    if row.interval is None:
        return "not known"
    found = row.interval
    mean, half = found.mean / scale, (found.half_width or 0.0) / scale
    shows = half > DIGITS_SHOW * abs(mean)
    shown = show_in(mean, half, 9, signed=METRICS[row.measured.metric].signed)
    said = " ".join(filter(None, (shown.mean, shown.interval))) if shows else number(mean)
    return said if found.n == row.valid else f"{said} (n = {found.n})"


def _extremes(result: SweepResult, short: Sequence[str]) -> list[str]:
    """Returns for each metric of each flow where it is least and where most."""
    found: dict[tuple[str, str], list[SweepRow]] = {}
    for row in result.shown:
        found.setdefault((row.measured.metric, _subject(row)), []).append(row)
    said = []
    for (metric, subject), rows in found.items():
        ordered = sorted(rows, key=lambda row: row.interval.mean if row.interval else 0.0)
        if ordered[0] is ordered[-1]:
            continue
        scale, unit = _unit(result, metric)
        ends = [
            f"{_said(row, scale)} {unit}".rstrip() + f" ({_where(result, row.point, short)})"
            for row in (ordered[0], ordered[-1])
        ]
        of = f", {subject}" if subject else ""
        said.append(f"{METRICS[metric].title}{of}: {ends[0]} to {ends[1]}")
    return said


def _where(result: SweepResult, point: SweepPoint, short: Sequence[str]) -> str:
    names = zip(short, result.axes, point.at, strict=True)
    at = [f"{name} {axis.labels[place]}" for name, axis, place in names]
    return ", ".join([*([point.scenario.id] if len(result.scenarios) > 1 else []), *at])

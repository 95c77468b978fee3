"""``latency-table``: the trials, the table, the files."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from streamgauge.campaign.trial import disk_errors
from streamgauge.claims.dimension import plain
from streamgauge.cli.output import say, table
from streamgauge.cli.progress import Bar
from streamgauge.cli.running import interrupted
from streamgauge.cli.status import STATUS
from streamgauge.latency_table import LatencyQuestion, LatencyTable, run_table
from streamgauge.latency_table.figure import interval_said, said
from streamgauge.latency_table.page import check_file, write_report

__all__ = ["LatencyRequest", "latency_command"]


@dataclass(frozen=True, kw_only=True)
class LatencyRequest(LatencyQuestion):
    """Request on the command line."""

    report: Path | None
    as_json: bool


def latency_command(request: LatencyRequest) -> int:
    """Runs, writes, prints, and returns the exit status."""
    if request.report is not None:
        check_file(request.report)
    with Bar() as bar:
        found = run_table(request, bar.update)
    if request.report is not None and not found.interrupted:
        with disk_errors(request.report):
            write_report(found, request.report)
    if request.as_json:
        json.dump(found.to_json(), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        _print(found, request.report)
    if found.interrupted:
        return interrupted(f"finished trials are kept in {request.out}")
    return STATUS["inconclusive" if found.invalid else "pass"]


def _print(found: LatencyTable, report: Path | None) -> None:
    burst = f", in bursts of {found.burst} on average" if found.burst else ""
    say(
        f"[b]Least latency of {escape(found.system)} that shows {plain(100 * found.share)} % of pictures[/b]"
        f"{escape(burst)}, by loss and round trip"
    )
    rows = [["loss", *found.rtts]]
    for loss in found.losses:
        cells = {cell.rtt: cell for cell in found.row(loss)}
        rows.append([loss, *(said(cells[rtt]) if rtt in cells else "" for rtt in found.rtts)])
        ends = [interval_said(cells[rtt]) if rtt in cells else "" for rtt in found.rtts]
        if any(ends):
            rows.append(["", *(f"[dim]{end}[/dim]" if end else "" for end in ends)])
    table(rows, "l" + "r" * len(found.rtts))
    seeds = max((cell.seeds for cell in found.cells), default=0)
    say(f"{seeds} x {found.seconds:.0f} s of each in sim; below: 95 % intervals by seeds")
    if report is not None and not found.interrupted:
        say(f"written: {escape(str(report))}")

"""``latency-table``: the trials, the tables, the files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from streamgauge.campaign.trial import disk_errors
from streamgauge.claims.dimension import plain
from streamgauge.cli.output import say, table
from streamgauge.cli.progress import Bar
from streamgauge.cli.running import interrupted
from streamgauge.cli.status import STATUS
from streamgauge.errors import ScenarioError
from streamgauge.latency_table import LatencyQuestion, LatencyTable, able, run_table
from streamgauge.latency_table.figure import interval_said, said, theory_said
from streamgauge.latency_table.page import check_file, write_report

__all__ = ["LatencyRequest", "latency_command"]


@dataclass(frozen=True, kw_only=True)
class LatencyRequest:
    """Request on the command line: the questions of `LatencyQuestion`, for each system."""

    systems: Sequence[str]
    losses: Sequence[str]
    rtts: Sequence[str]
    burst: str | None
    share: str
    repeat: int
    first_seed: int
    settings: Sequence[str]
    out: Path
    report: Path | None
    as_json: bool

    def questions(self) -> list[LatencyQuestion]:
        """Returns one for each system; several have folders of their own.

        Raises:
            ScenarioError: for a system that is not able, before anything starts.
        """
        systems = list(dict.fromkeys(self.systems))
        for system in systems:
            if system not in able():
                raise ScenarioError(
                    f"'{system}' does not report how long each picture waits; expected one of "
                    f"{', '.join(able())}"
                )
        return [
            LatencyQuestion(
                system=system,
                losses=self.losses,
                rtts=self.rtts,
                burst=self.burst,
                share=self.share,
                repeat=self.repeat,
                first_seed=self.first_seed,
                settings=self.settings,
                out=self.out if len(systems) == 1 else self.out / system,
            )
            for system in systems
        ]


def latency_command(request: LatencyRequest) -> int:
    """Runs, writes, prints, and returns the exit status."""
    questions = request.questions()
    if request.report is not None:
        check_file(request.report, len(questions))
    found: list[LatencyTable] = []
    for question in questions:
        with Bar() as bar:
            found.append(run_table(question, bar.update))
        if found[-1].interrupted:
            break
    stopped = found[-1].interrupted
    if request.report is not None and not stopped:
        with disk_errors(request.report):
            write_report(found, request.report)
    if request.as_json:
        whole = [one.to_json() for one in found]
        tables = (
            whole[0] if len(questions) == 1 else {"schema": "streamgauge.latency-tables/1", "tables": whole}
        )
        json.dump(tables, sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        _print(found, None if stopped else request.report)
    if stopped:
        return interrupted(f"finished trials are kept in {request.out}")
    return STATUS["inconclusive" if any(one.invalid for one in found) else "pass"]


def _print(found: Sequence[LatencyTable], report: Path | None) -> None:
    first = found[0]
    burst = f", in bursts of {first.burst} on average" if first.burst else ""
    names = " and ".join(one.system for one in found)
    say(
        f"[b]Least latency of {escape(names)} that shows {plain(100 * first.share)} % of pictures[/b]"
        f"{escape(burst)}, by loss and round trip"
    )
    rows = [["loss", "system", *first.rtts]]
    has_theory = False
    for loss in first.losses:
        for one in found:
            cells = {cell.rtt: cell for cell in one.row(loss)}
            rows.append([loss, one.system, *(said(cells[rtt]) if rtt in cells else "" for rtt in first.rtts)])
            ends = [interval_said(cells[rtt]) if rtt in cells else "" for rtt in first.rtts]
            if any(ends):
                rows.append(["", "", *(f"[dim]{end}[/dim]" if end else "" for end in ends)])
        cells = {cell.rtt: cell for cell in first.row(loss)}
        theory = [theory_said(cells[rtt]) if rtt in cells else "" for rtt in first.rtts]
        if any(theory):
            has_theory = True
            rows.append([loss, "plain ARQ", *theory])
    table(rows, "ll" + "r" * len(first.rtts))
    seeds = max((cell.seeds for one in found for cell in one.cells), default=0)
    say(f"{seeds} x {first.seconds:.0f} s of each in sim; below: 95 % intervals by seeds")
    if has_theory:
        say("plain ARQ: theory, a round of request and repetition each round trip")
    if report is not None:
        say(f"written: {escape(str(report))}")

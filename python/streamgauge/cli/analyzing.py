"""``analyze``: prints the figures of captures."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from streamgauge.captures.analysis import AnalysisRequest, analyse
from streamgauge.captures.bursts import loss_runs
from streamgauge.captures.checking import judge_record, read_checks
from streamgauge.captures.scenario import scenario_text, trace_text
from streamgauge.claims.dimension import plain
from streamgauge.cli.output import heads, say_text, table
from streamgauge.cli.running import status_of
from streamgauge.cli.tables import print_check
from streamgauge.documents.files import check_place, write_whole
from streamgauge.errors import ScenarioError
from streamgauge.report import build

__all__ = ["AnalysisFiles", "analyze_command"]

MOST_ROWS: Final = 20
"""Flows in the table; ``--json`` has all."""


@dataclass(frozen=True)
class AnalysisFiles:
    """Files that an analysis writes, and the checks that it reads."""

    scenario: Path | None = None
    trace: Path | None = None
    out: Path | None = None
    report: Path | None = None
    checks: Path | None = None


def analyze_command(request: AnalysisRequest, as_json: bool, files: AnalysisFiles) -> int:
    """Prints the analysis, writes the files that are asked for, and returns the exit status: that of the
    checks, if there are any. Raises StreamGaugeError for bad input."""
    scenario, trace, out, report = files.scenario, files.trace, files.out, files.report
    if len(request.files) > 2:
        raise ScenarioError(f"{len(request.files)} captures were given", hint="name one or two")
    for file, option in ((scenario, "--scenario"), (trace, "--trace"), (report, "--report")):
        if file is not None:
            check_place(file, option)
    if files.checks is not None:
        request = replace(request, checks=read_checks(files.checks))
    judged = []
    with contextlib.ExitStack() as cleaning:
        place = out
        # Pages and checks are of records, and bursts of losses show packet by packet.
        is_needed = report is not None or bool(request.checks)
        if place is None and (is_needed or (scenario is not None and len(request.files) == 2)):
            place = Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix="streamgauge-")))
        document = analyse(request, place)
        if scenario is not None and "record" in document:
            for way, runs in loss_runs(Path(document["record"])).items():
                document["path"][way]["loss_runs"] = runs
        if request.checks:
            judged = judge_record(Path(document["record"]))
            document["checks"] = [check.to_json() for check in judged]
        if report is not None:
            build(Path(document["record"]), report)
        if out is None:
            document.pop("record", None)
    if scenario is not None:
        write_whole(scenario, scenario_text(document))
    if trace is not None:
        write_whole(trace, trace_text(document))
    if as_json:
        json.dump(document, sys.stdout, indent=2)
        print()
        return status_of([check.verdict for check in judged], None)
    for sentence in document["answer"]:
        say_text(sentence)
    if document["flows"]:
        print()
        _table(document)
    for check in judged:
        print_check(check)
    for path in (document.get("record"), report):
        if path is not None:
            print(path)
    return status_of([check.verdict for check in judged], None)


def _table(document: Mapping[str, Any]) -> None:
    flows = document["flows"]
    titles = heads(
        "flow", "packets", "lost", "sent again", "jitter ms", "round trip ms", "delay ms", "missed"
    )
    rows: list[list[str | Text]] = [
        [
            Text(flow["flow"]),
            str(flow["packets"]),
            _number(flow["lost"]),
            _number(flow["retransmitted"]),
            _ms(flow["jitter_s"]),
            _ms(flow["rtt_p50_s"]),
            _ms(flow["delay_p50_s"]),
            _number(flow["missed"]),
        ]
        for flow in flows[:MOST_ROWS]
    ]
    table([[*titles], *rows], "lrrrrrrr")
    if len(flows) > MOST_ROWS:
        say_text(f"{len(flows) - MOST_ROWS} more flows: --json has all, --flow TEXT chooses.")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else plain(seconds * 1e3, 3)

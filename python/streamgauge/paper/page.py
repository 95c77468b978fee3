"""A paper's page: one HTML file that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.campaign import score, standings
from streamgauge.checks import CheckResult
from streamgauge.claims.names import METRICS
from streamgauge.documents import write_whole
from streamgauge.metrics import Interval
from streamgauge.paper.claims import claims_of
from streamgauge.paper.comparison import ComparedCheck, counted, published_words, short, verdict
from streamgauge.paper.published import Paper, PaperTable, SharesTable
from streamgauge.paper.reading import Reading
from streamgauge.paper.shares import shares_of
from streamgauge.paper.tables import Line, lines_of, ours, theirs
from streamgauge.report.agreement import Agreement, agreement, pair
from streamgauge.report.certificate import MARKS
from streamgauge.report.chart import DrawnFigure
from streamgauge.report.checking import counted as checking_words
from streamgauge.report.checking import counts
from streamgauge.report.page import render_page
from streamgauge.scenario.words import as_written

__all__ = ["write_page"]


def write_page(
    paper: Paper,
    readings: Sequence[Reading],
    compared: Sequence[ComparedCheck],
    drawn: Mapping[str, Sequence[DrawnFigure]],
    out: Path,
) -> Path:
    """Writes the page; `drawn` are the figures by preset. The file appears whole or not at all."""
    presets = [reading.preset for reading in readings]
    several = len(readings) > 1
    told = verdict(compared, presets) if several else _held(readings[0])
    head, _, rest = told.partition(": ")
    page = render_page(
        "streamgauge.paper",
        "paper.html.j2",
        paper=paper,
        head=f"{head.rstrip('.')}.",
        rest=rest,
        readings=[_reading(paper, reading, drawn.get(reading.preset, ())) for reading in readings],
        presets=presets,
        columns=presets if several else _columns(readings[0]),
        checks=_compared(compared, presets) if several else _alone(readings[0]),
        counted=counted(compared, presets) if several else "",
        agreements=[found for reading in readings if (found := _agreement(paper, reading)) is not None],
        assumed=_assumed(readings[0]),
    )
    return write_whole(out, page)


def _held(reading: Reading) -> str:
    """How many claims hold, where there is one preset."""
    found = counts(reading.entries)
    all_ = found["pass"] + found["fail"] + found["inconclusive"]
    differ = f", of which {found['differ']} differ from the printed number" if found["differ"] else ""
    return (
        f"{found['pass']} of {all_} claims hold{differ}: {found['fail']} do not, {found['inconclusive']} are "
        "not decided."
    )


def _reading(paper: Paper, reading: Reading, drawn: Sequence[DrawnFigure]) -> dict[str, Any]:
    return {
        "preset": reading.preset,
        "slug": f"preset-{reading.preset}" if reading.preset else "results",
        "meaning": reading.meaning,
        "counted": checking_words(counts(reading.entries)),
        "tables": [
            _shares(table, paper, reading, mode)
            if isinstance(table, SharesTable)
            else {
                "kind": "means",
                "title": table.title,
                "caption": table.caption,
                "mode": mode,
                "columns": [column.title for column in table.columns],
                "lines": [_line(table, line) for line in lines_of(table, reading, mode)],
            }
            for table in paper.tables
            for mode in reading.modes
        ],
        "figures": drawn,
        "removed": None if reading.mutants is None else _removed(reading),
        "standings": None
        if reading.alternatives is None
        else [
            {"check": one.check, "scenario": one.scenario, "mode": one.mode, "robust": not one.hangs_on,
             "verdict": one.verdict, "mark": MARKS[one.verdict], "words": one.words()}
            for one in standings(reading.alternatives)
        ],
    }  # fmt: skip


def _agreement(paper: Paper, reading: Reading) -> Agreement | None:
    """Every printed number beside ours, the worst first."""
    pairs = [
        pair(
            line.scenario.rpartition("/")[2],
            "",
            column.title.partition(",")[0] + (f" of {line.label}" if column.metric != "jain" else ""),
            line.ours[column.metric],
            Interval(line.published[column.metric], None, 1, False),
            METRICS[column.metric].dimension,
            METRICS[column.metric].signed,
            column.metric,
        )
        for table in paper.means
        for mode in reading.modes
        for line in lines_of(table, reading, mode)
        for column in table.columns
        if column.metric in line.published and line.ours.get(column.metric) is not None
    ]
    title = "Ours and the paper’s" + (f", preset {reading.preset}" if reading.preset else "")
    return agreement(title, "ours", "published", pairs)


def _shares(table: SharesTable, paper: Paper, reading: Reading, mode: str) -> dict[str, Any]:
    """A table of shares."""
    return {
        "kind": "shares",
        "title": table.title,
        "caption": table.caption,
        "mode": mode,
        "rows_of": table.rows_of,
        "columns": [column.title for column in table.columns],
        "lines": [
            {
                "label": line.row.label,
                "n": line.n,
                "cells": [
                    (printed, str(ours), ours.interval)
                    for printed, ours in zip(line.row.printed, line.ours, strict=True)
                ],
            }
            for line in shares_of(table, paper, reading, mode)
        ],
    }


def _line(table: PaperTable, line: Line) -> dict[str, Any]:
    return {
        "experiment": line.experiment,
        "label": line.label,
        "n": line.n,
        "cells": [(theirs(line, column), *ours(line, column)) for column in table.columns],
    }


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        "verdict": check.verdict,
        "mark": MARKS[check.verdict],
        "measured": short(check),
        "why": check.why,
        "note": check.note or "",
        "differs": check.differs or "",
    }


def _row(check: CheckResult, cells: Mapping[str, CheckResult], better: str) -> dict[str, Any]:
    """A check's row: what it claims, and its verdict under each preset."""
    return {
        "id": check.id,
        "scenario": check.scenario,
        "mode": check.mode,
        "title": check.title or "",
        "that": check.that,
        "published": published_words(check),
        "origin": check.origin,
        "strict": check.strict,
        "cells": {preset: _check(one) for preset, one in cells.items()},
        "better": better,
    }


def _compared(compared: Sequence[ComparedCheck], presets: Sequence[str]) -> list[dict[str, Any]]:
    return [_row(one.check, {name: one.by_preset[name] for name in presets}, one.better) for one in compared]


def _columns(reading: Reading) -> list[str]:
    """What a lone reading's verdicts stand under."""
    return reading.modes if len(reading.modes) > 1 else ["ours"]


def _alone(reading: Reading) -> list[dict[str, Any]]:
    """A row a claim, its verdict in each mode."""
    rows = []
    for claim in claims_of(reading):
        if len(reading.modes) > 1:
            rows.append(_row(claim.check, claim.by_mode, "") | {"mode": ""})
        else:
            rows.append(_row(claim.check, {"ours": claim.check}, ""))
    return rows


def _removed(reading: Reading) -> dict[str, Any]:
    """Whether checks notice that the mechanism which they are about is gone."""
    mutants = reading.mutants or ()
    share = score(mutants)
    predicted = [one for one in mutants if one.origin == "predicted"]
    return {
        "score": "–" if share is None else f"{100 * share:.0f} %",
        "noticed": sum(one.killed for one in predicted),
        "all": len(predicted),
        "lines": [
            {
                "check": one.check,
                "scenario": one.scenario,
                "mode": one.mode,
                "change": one.change(),
                "noticed": one.killed,
                "held": one.held,
                "verdict": one.verdict,
                "why": one.why,
            }
            for one in mutants
        ],
    }


def _assumed(reading: Reading) -> list[dict[str, str]]:
    """Each assumption once, with what was chosen not repeated: the scenarios hold that."""
    found: dict[str, dict[str, str]] = {}
    for entry in reading.entries:
        for address, assumed in (entry.scenario.get("assumed") or {}).items():
            values = ", ".join(map(as_written, assumed.get("try", [])))
            found.setdefault(address, {"address": address, "else": values, "why": assumed.get("why") or ""})
    return list(found.values())

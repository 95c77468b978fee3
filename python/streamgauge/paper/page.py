"""A paper's page: one HTML file that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamgauge.campaign import score, standings
from streamgauge.checks import CheckResult
from streamgauge.claims.names import METRICS
from streamgauge.documents import write_whole
from streamgauge.metrics import Interval
from streamgauge.paper.claims import claims_of
from streamgauge.paper.comparison import (
    ComparedCheck,
    check_rows,
    columns_of,
    counted,
    published_words,
    short,
    verdict,
)
from streamgauge.paper.published import Paper, PaperTable, SharesTable
from streamgauge.paper.reading import Reading
from streamgauge.paper.shares import shares_of
from streamgauge.paper.tables import lines_of, ours, theirs
from streamgauge.report.agreement import Agreement, agreement, pair
from streamgauge.report.certificate import MARKS
from streamgauge.report.chart import DrawnFigure
from streamgauge.report.checking import counted as checking_words
from streamgauge.report.checking import counts
from streamgauge.report.model import Entry, listed
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
    told = verdict(compared, readings) if several else _held(readings[0])
    head, _, rest = told.partition(": ")
    page = render_page(
        "streamgauge.paper",
        "paper.html.j2",
        paper=paper,
        head=f"{head.rstrip('.')}.",
        rest=rest,
        readings=[_reading(paper, reading, drawn.get(reading.preset, ())) for reading in readings],
        presets=presets,
        columns=[*columns_of(readings).values()] if several else _columns(readings[0]),
        checks=_compared(compared, readings) if several else _alone(readings[0]),
        counted=counted(compared, presets) if several else "",
        agreements=[found for reading in readings if (found := _agreement(paper, reading)) is not None],
        assumed=_assumed(readings[0]),
    )
    return write_whole(out, page)


def _held(reading: Reading) -> str:
    """How many claims hold, where there is one preset."""
    heads: list[str] = []
    rests: list[str] = []
    several = len(reading.modes) > 1
    for mode, found in _counts_by_mode(reading).items():
        all_ = found["pass"] + found["fail"] + found["inconclusive"]
        where = f" in {reading.words(mode)}" if several else ""
        differ = f", of which {found['differ']} differ from the printed number" if found["differ"] else ""
        hold = f"{found['pass']} of {all_}" + ("" if heads else " claims hold")
        heads.append(f"{hold}{where}" if several else f"{hold}{differ}")
        undecided = f"{found['fail']} do not, {found['inconclusive']} are not decided"
        more = f" ({found['differ']} differ from the printed number)" if found["differ"] else ""
        rests.append(f"in {reading.words(mode)} {undecided}{more}" if several else undecided)
    return f"{listed(heads)}: {'; '.join(rests)}."


def _counts_by_mode(reading: Reading) -> dict[str, dict[str, int]]:
    """How many verdicts there are of each kind."""

    def only(entry: Entry, mode: str) -> Entry:
        return replace(entry, checks=tuple(check for check in entry.checks if check.mode == mode))

    return {mode: counts([only(entry, mode) for entry in reading.entries]) for mode in reading.modes}


def _reading(paper: Paper, reading: Reading, drawn: Sequence[DrawnFigure]) -> dict[str, Any]:
    return {
        "preset": reading.preset,
        "slug": f"preset-{reading.preset}" if reading.preset else "results",
        "meaning": reading.meaning,
        "counted": "; ".join(
            (f"{reading.words(mode)}: " if len(reading.modes) > 1 else "") + checking_words(found)
            for mode, found in _counts_by_mode(reading).items()
        ),
        "tables": [
            _shares(table, paper, reading) if isinstance(table, SharesTable) else _means(table, reading)
            for table in paper.tables
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
            line.scenario.rpartition("/")[2] + (f", {reading.words(mode)}" if len(reading.modes) > 1 else ""),
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


def _means(table: PaperTable, reading: Reading) -> dict[str, Any]:
    """A table of means: of each line what is printed, and beside it the mean and half its interval of each
    mode."""
    lines = []
    for of_modes in zip(*(lines_of(table, reading, mode) for mode in reading.modes), strict=True):
        first = of_modes[0]
        cells = [
            (theirs(first, column), [ours(line, column) for line in of_modes]) for column in table.columns
        ]
        counts = _counts(reading, [line.n for line in of_modes])
        lines.append({"experiment": first.experiment, "label": first.label, "counts": counts, "cells": cells})
    return _table("means", table, reading) | {"lines": lines}


def _shares(table: SharesTable, paper: Paper, reading: Reading) -> dict[str, Any]:
    """A table of shares, likewise with how many trials and their share's interval."""
    lines = []
    for of_modes in zip(*(shares_of(table, paper, reading, mode) for mode in reading.modes), strict=True):
        row = of_modes[0].row
        cells = [
            (printed, [(str(line.ours[place]), line.ours[place].interval) for line in of_modes])
            for place, printed in enumerate(row.printed)
        ]
        counts = _counts(reading, [line.n for line in of_modes])
        lines.append({"label": row.label, "counts": counts, "cells": cells})
    return _table("shares", table, reading) | {"rows_of": table.rows_of, "lines": lines}


def _table(kind: str, table: PaperTable | SharesTable, reading: Reading) -> dict[str, Any]:
    return {
        "kind": kind,
        "title": table.title,
        "caption": table.caption,
        "mode": listed([reading.words(mode) for mode in reading.modes]),
        "ours": reading.modes if len(reading.modes) > 1 else ["ours"],
        "columns": [column.title for column in table.columns],
    }


def _counts(reading: Reading, counts: Sequence[int]) -> str:
    """Of how many trials a line is: ``n = 3``, ``n = 10 sim, 3 virtual``."""
    if len(set(counts)) == 1:
        return f"n = {counts[0]}"
    return "n = " + ", ".join(f"{n} {mode}" for n, mode in zip(counts, reading.modes, strict=True))


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


def _compared(compared: Sequence[ComparedCheck], readings: Sequence[Reading]) -> list[dict[str, Any]]:
    """A row a claim, its verdict under each preset and in each mode."""
    named = columns_of(readings)
    lone = len({mode for _, mode in named}) == 1
    return [
        _row(
            row.check,
            {name: row.cells[place] for place, name in named.items() if place in row.cells},
            row.better,
        )
        | ({} if lone else {"mode": ""})
        for row in check_rows(compared, readings)
    ]


def _columns(reading: Reading) -> list[str]:
    """What a lone reading's verdicts stand under."""
    return [*map(reading.words, reading.modes)] if len(reading.modes) > 1 else ["ours"]


def _alone(reading: Reading) -> list[dict[str, Any]]:
    """A row a claim, its verdict in each mode."""
    rows = []
    for claim in claims_of(reading):
        if len(reading.modes) > 1:
            cells = {reading.words(mode): one for mode, one in claim.by_mode.items()}
            rows.append(_row(claim.check, cells, "") | {"mode": ""})
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

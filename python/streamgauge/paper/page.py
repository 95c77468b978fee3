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
from streamgauge.paper.by_reading import PaperByReading, measured_by
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
from streamgauge.paper.opening import opening
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

_CLAIM_MARKS = {"differs": MARKS["fail"], "differs in size": "≠", "inconclusive": MARKS["inconclusive"],
                "pass": MARKS["pass"]}  # fmt: skip
_CLAIM_KINDS = {
    "differs": "fail",
    "differs in size": "in-size",
    "inconclusive": "inconclusive",
    "pass": "pass",
}
_ORDER = ("fail", "in size", "inconclusive", "pass")


def write_page(
    paper: Paper,
    readings: Sequence[Reading],
    compared: Sequence[ComparedCheck],
    drawn: Mapping[str, Sequence[DrawnFigure]],
    out: Path,
    claims: PaperByReading | None = None,
) -> Path:
    """Writes the page; `drawn` are the figures by reading. The file appears whole or not at all."""
    names = [reading.name for reading in readings]
    several = len(readings) > 1
    opens = opening(claims, readings)
    told = verdict(compared, readings) if several else _held(readings[0])
    head, _, rest = told.partition(": ")
    if opens is not None:
        # Claims are counted first; checks below.
        head, rest = opens.sentences[0], " ".join(opens.sentences[1:])
    page = render_page(
        "streamgauge.paper",
        "paper.html.j2",
        paper=paper,
        head=f"{head.rstrip('.')}.",
        rest=rest,
        opens=opens,
        numbered=[] if claims is None else _numbered(claims),
        readings=[_reading(paper, reading, drawn.get(reading.name, ())) for reading in readings],
        names=names,
        columns=[*columns_of(readings).values()] if several else _columns(readings[0]),
        checks=_differing_first(_compared(compared, readings) if several else _alone(readings[0])),
        counted=counted(compared, names) if several else "",
        agreements=[found for reading in readings if (found := _agreement(paper, reading)) is not None],
        assumed=_assumed(readings[0]),
    )
    return write_whole(out, page)


def _numbered(claims: PaperByReading) -> list[dict[str, Any]]:
    """Returns a row a numbered claim: its verdict under each reading, those that are not as published
    first."""
    rows = []
    for place, claim in enumerate(claims.chosen.claims):
        of_each = {name: outcome.claims[place] for name, outcome in claims.outcomes.items()}
        rows.append(
            {
                "id": claim.id,
                "words": claim.words,
                "published": "" if claim.shown is None else published_words(claim.shown),
                "cells": {
                    name: {"verdict": one.verdict, "mark": _CLAIM_MARKS[one.verdict],
                           "kind": _CLAIM_KINDS[one.verdict],
                           "measured": measured_by(one, claim.shown)}
                    for name, one in of_each.items()
                },
                "held_out": claims.held_out.get(claim.id, ""),
                "counts": f"{claim.counts()['pass']} of {len(claim.checks)}",
                "order": [*_CLAIM_MARKS].index(claim.verdict),
            }
        )  # fmt: skip
    return sorted(rows, key=lambda row: row["order"])


def _differing_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns failed, undecided and differently sized rows before those as published; each in the given
    order."""

    def order(row: dict[str, Any]) -> int:
        cells = [*row["cells"].values()]
        last = cells[-1] if cells else {"verdict": "pass", "in_size": False}
        return _ORDER.index("in size" if last["in_size"] else last["verdict"])

    return sorted(rows, key=order)


def _held(reading: Reading) -> str:
    """Returns how many claims hold, where there is one reading."""
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
    """Returns how many verdicts there are of each kind."""

    def only(entry: Entry, mode: str) -> Entry:
        return replace(entry, checks=tuple(check for check in entry.checks if check.mode == mode))

    return {mode: counts([only(entry, mode) for entry in reading.entries]) for mode in reading.modes}


def _reading(paper: Paper, reading: Reading, drawn: Sequence[DrawnFigure]) -> dict[str, Any]:
    return {
        "name": reading.name,
        "slug": f"reading-{reading.name}" if reading.name else "results",
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
    """Returns every printed number beside ours, the worst first."""
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
    title = "Ours and the paper’s" + (f", reading {reading.name}" if reading.name else "")
    return agreement(title, "ours", "published", pairs)


def _means(table: PaperTable, reading: Reading) -> dict[str, Any]:
    """Returns a table of means: for each line the printed value, and beside it the mean and half its interval
    of each mode."""
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
    """Returns a table of shares, likewise with how many trials and their share's interval."""
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
    """Returns the number of trials of a line: ``n = 3``, ``n = 10 sim, 3 virtual``."""
    if len(set(counts)) == 1:
        return f"n = {counts[0]}"
    return "n = " + ", ".join(f"{n} {mode}" for n, mode in zip(counts, reading.modes, strict=True))


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        "verdict": check.verdict,
        "mark": MARKS[check.verdict],
        "in_size": check.differs_in_size,
        "measured": short(check),
        "why": check.why,
        "note": check.note or "",
        "differs": check.differs or "",
    }


def _row(check: CheckResult, cells: Mapping[str, CheckResult], better: str) -> dict[str, Any]:
    """Returns a check's row: its claim, and its verdict under each reading."""
    return {
        "id": check.id,
        "scenario": check.scenario,
        "mode": check.mode,
        "title": check.title or "",
        "that": check.that,
        "published": published_words(check),
        "origin": check.origin,
        "strict": check.strict,
        "cells": {name: _check(one) for name, one in cells.items()},
        "better": better,
    }


def _compared(compared: Sequence[ComparedCheck], readings: Sequence[Reading]) -> list[dict[str, Any]]:
    """Returns a row a claim, its verdict under each reading and in each mode."""
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
    """Returns the headings of a lone reading's verdicts."""
    return [*map(reading.words, reading.modes)] if len(reading.modes) > 1 else ["ours"]


def _alone(reading: Reading) -> list[dict[str, Any]]:
    """Returns a row a claim, its verdict in each mode."""
    rows = []
    for claim in claims_of(reading):
        if len(reading.modes) > 1:
            cells = {reading.words(mode): one for mode, one in claim.by_mode.items()}
            rows.append(_row(claim.check, cells, "") | {"mode": ""})
        else:
            rows.append(_row(claim.check, {"ours": claim.check}, ""))
    return rows


def _removed(reading: Reading) -> dict[str, Any]:
    """Returns whether checks notice that the mechanism which they are about is gone."""
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
    """Returns each assumption once, without the chosen value: the scenarios hold that."""
    found: dict[str, dict[str, str]] = {}
    for entry in reading.entries:
        for address, assumed in (entry.scenario.get("assumed") or {}).items():
            values = ", ".join(map(as_written, assumed.get("try", [])))
            found.setdefault(address, {"address": address, "else": values, "why": assumed.get("why") or ""})
    return list(found.values())

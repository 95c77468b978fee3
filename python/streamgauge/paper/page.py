"""A paper's page: one HTML file that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.campaign import score, standings
from streamgauge.checks import CheckResult
from streamgauge.documents import write_whole
from streamgauge.paper.comparison import ComparedCheck, counted, published_words, short
from streamgauge.paper.published import Paper
from streamgauge.paper.reading import Reading
from streamgauge.paper.tables import COLUMNS, lines_of, ours, theirs
from streamgauge.report.certificate import MARKS
from streamgauge.report.chart import DrawnFigure
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
    page = render_page(
        "streamgauge.paper",
        "paper.html.j2",
        paper=paper,
        readings=[_reading(paper, reading, drawn.get(reading.preset, ())) for reading in readings],
        presets=presets,
        compared=[_compared(one, presets) for one in compared] if len(readings) > 1 else [],
        counted=counted(compared, presets) if len(readings) > 1 else "",
        columns=list(COLUMNS.values()),
    )
    return write_whole(out, page)


def _reading(paper: Paper, reading: Reading, drawn: Sequence[DrawnFigure]) -> dict[str, Any]:
    return {
        "preset": reading.preset,
        "meaning": reading.meaning,
        "tables": [
            {
                "title": table.title,
                "caption": table.caption,
                "mode": mode,
                "lines": [_line(line) for line in lines_of(table, reading, mode)],
            }
            for table in paper.tables
            for mode in reading.modes
        ],
        "figures": drawn,
        "checks": [_check(check) for check in reading.checks],
        "mutants": None if reading.mutants is None else _mutants(reading),
        "standings": None
        if reading.alternatives is None
        else [
            {"check": one.check, "scenario": one.scenario, "mode": one.mode, "robust": not one.hangs_on,
             "verdict": one.verdict, "mark": MARKS[one.verdict], "words": one.words()}
            for one in standings(reading.alternatives)
        ],
        "assumed": _assumed(reading),
    }  # fmt: skip


def _line(line: Any) -> dict[str, Any]:
    return {
        "experiment": line.experiment,
        "label": line.label,
        "n": line.n,
        "cells": [(theirs(line, metric), *ours(line, metric)) for metric in COLUMNS],
    }


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        "id": check.id,
        "scenario": check.scenario,
        "mode": check.mode,
        "title": check.title or "",
        "that": check.that,
        "verdict": check.verdict,
        "mark": MARKS[check.verdict],
        "published": published_words(check),
        "measured": short(check),
        "why": check.why,
        "origin": check.origin,
        "strict": check.strict,
        "note": check.note or "",
        "differs": check.differs or "",
    }


def _compared(one: ComparedCheck, presets: Sequence[str]) -> dict[str, Any]:
    told = _check(one.check)
    told["cells"] = [_check(one.by_preset[name]) for name in presets]
    told["better"] = one.better
    return told


def _mutants(reading: Reading) -> dict[str, Any]:
    mutants = reading.mutants or ()
    share = score(mutants)
    counted_ = [one for one in mutants if one.origin == "predicted"]
    return {
        "score": "–" if share is None else f"{100 * share:.0f} %",
        "killed": sum(one.killed for one in counted_),
        "all": len(counted_),
        "lines": [
            {
                "check": one.check,
                "scenario": one.scenario,
                "mode": one.mode,
                "change": one.change(),
                "killed": one.killed,
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

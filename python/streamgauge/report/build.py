"""The report: one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from streamgauge.checks import CheckResult
from streamgauge.checks.evaluate import match_published
from streamgauge.claims.dimension import show
from streamgauge.documents import write_whole
from streamgauge.metrics import METRICS
from streamgauge.metrics.frame import DOWN
from streamgauge.report import certificate, figures, words
from streamgauge.report.answer import PLUS_MINUS, Answer, Asked, by_question, own_basis
from streamgauge.report.drawing import path_drawing
from streamgauge.report.families import Cell, tables
from streamgauge.report.model import NOT_KNOWN, Entry, Group, LoadedTrial, gather, load, say_half
from streamgauge.report.model import left_out as find_left_out
from streamgauge.report.page import render_page
from streamgauge.report.saving import save_all
from streamgauge.report.validity import verdicts
from streamgauge.scenario.words import as_written

FLOW_COLUMNS = {
    "throughput": "sent",
    "receiver_rate": "received",
    "goodput": "goodput",
    "loss": "lost",
    "packet_size": "mean packet",
    "queue_delay": "time in bottleneck",
    "rtt": "round-trip time",
}
"""Columns of the table of flows."""
OF_TRANSFERS = {"completion_time": "completion time"}
"""Those that only flows of short transfers have."""


def build(
    source: Path | Iterable[LoadedTrial],
    out: Path,
    *,
    checks: Sequence[CheckResult] | None = None,
    left_out: Mapping[Path, int] | None = None,
) -> Path:
    """Writes the report of a folder of trials, or of trials in memory, as one HTML file.

    Args:
        source: a folder with trials anywhere below it, or the trials.
        out: the file to write; it appears whole or not at all.
        checks: verdicts, if the caller has them; otherwise all checks are judged anew.
        left_out: folders that the page names as not in it, with how many trials each holds; found if `source`
            is a folder.

    Raises:
        RecordError: if there is no trial.
    """
    if isinstance(source, Path):
        left_out, source = find_left_out(source), load(source)
    return write_page(gather(source, checks), out, left_out=left_out)


def write_page(entries: Sequence[Entry], out: Path, *, left_out: Mapping[Path, int] | None = None) -> Path:
    """`build` of scenarios that were gathered already."""
    return write_whole(out, render(entries, left_out or {}))


def write_figures(
    source: Path | Iterable[LoadedTrial], folder: Path, *, formats: Sequence[str] = ("svg",)
) -> list[Path]:
    """Writes every figure of the report as a file of each format: ``svg``, ``png`` or ``pdf``.

    Raises:
        RecordError: if there is no trial.
        ValueError: for another format.
    """
    entries = gather(load(source) if isinstance(source, Path) else source)
    drawn = [figure for entry in entries for figure in figures.for_entry(entry)]
    drawn += [table.figure for table in tables(entries)]
    folder.mkdir(parents=True, exist_ok=True)
    return save_all(drawn, folder, formats)


def render(entries: Sequence[Entry], left_out: Mapping[Path, int] | None = None) -> str:
    """The page as text."""
    asked = by_question(entries)
    answers = {one.scenario: one for question in asked for one in question.answers}
    return render_page(
        "streamgauge.report",
        "report.html.j2",
        questions=[_question(one, entries) for one in asked],
        left_out={str(folder): count for folder, count in (left_out or {}).items()},
        contents=[(entry.slug, entry.id) for entry in entries],
        # One after the other, as each has its figures' points.
        sections=(_section(entry, answers[entry.id]) for entry in entries),
        plus_minus=PLUS_MINUS,
        checks=_check_rows(entries),
        modes=sorted({check.mode for entry in entries for check in entry.checks}, reverse=True),
        counts=_counts(entries),
        tables=tables(entries),
        instrument=certificate.for_report(entries),
        provenance=_provenance(entries),
        trials=sum(len(group.trials) for entry in entries for group in entry.groups),
        invalid=sum(len(group.trials) - len(group.valid) for entry in entries for group in entry.groups),
    )


def _question(asked: Asked, entries: Sequence[Entry]) -> dict[str, Any]:
    """A question with the answers of the scenarios that ask it."""
    slugs = {entry.id: entry.slug for entry in entries}
    common = asked.basis
    return {
        "question": asked.question,
        "summary": asked.summary,
        "answers": [
            {
                "slug": slugs[one.scenario],
                "text": " ".join(one.sentences),
                "basis": "" if common else own_basis(one),
            }
            for one in asked.answers
        ],
        "basis": common,
        "why_simulated": asked.why_simulated,
    }


def _columns(entry: Entry) -> dict[str, str]:
    """Metrics of the table of flows, with their headings."""
    has = any(group.numbers.has_transfers(name) for group in entry.groups for name in group.numbers.infos)
    return FLOW_COLUMNS | (OF_TRANSFERS if has else {})


def _section(entry: Entry, found: Answer) -> dict[str, Any]:
    source = entry.source
    cited = ""
    if source:
        section = f", section {source['section']}" if source.get("section") else ""
        shows = f" ({', '.join(source['shows'])})" if source.get("shows") else ""
        cited = f"{source.get('paper', '')}{section}{shows}"
    return {
        "id": entry.id,
        "slug": entry.slug,
        "title": entry.scenario.get("title") or entry.id,
        "cited": cited,
        "path": words.path_words(entry.plan),
        "drawing": Markup(path_drawing(entry)),
        "measured": words.measure_words(entry),
        "drawn": words.drawn_words(entry),
        "assumed": _assumed(entry),
        "sentences": found.sentences,
        "basis": own_basis(found),
        "in_words": words.flows_words(entry),
        "flows": _flows(entry),
        "columns": list(_columns(entry).values()),
        "agreement": _agreement(entry),
        "checks": [_check(check, entry) for check in entry.checks],
        "figures": figures.for_entry(entry),
        "instrument": certificate.for_groups(entry.groups),
        "validity": [verdicts(group) for group in entry.groups],
    }


def _assumed(entry: Entry) -> list[str]:
    found = []
    for address, assumed in (entry.scenario.get("assumed") or {}).items():
        values = assumed.get("try", []) if isinstance(assumed, Mapping) else assumed
        why = f": {assumed['why']}" if isinstance(assumed, Mapping) and assumed.get("why") else ""
        found.append(f"{address} (else {', '.join(map(as_written, values))}){why}")
    return found


def _cell(group: Group, metric: str, name: str) -> Cell:
    found = group.over(metric, name)
    if found is None:
        return Cell("–" if metric in OF_TRANSFERS and not group.numbers.has_transfers(name) else NOT_KNOWN)
    named = METRICS[metric]
    shown = show(found.mean, found.half_width, named.dimension, signed=named.signed)
    if found.no_variation:
        interval = "no variation"
    else:
        interval = f"{shown.interval} {shown.unit}" if shown.half else ""
    return Cell(f"{shown.mean} {shown.unit}".rstrip(), interval.rstrip())


def _flows(entry: Entry) -> list[dict[str, Any]]:
    rows, columns = [], _columns(entry)
    names = dict.fromkeys(name for group in entry.groups for name in group.numbers.infos)
    for name in names:
        for group in entry.groups:
            info = group.numbers.infos.get(name)
            if info is None:
                continue
            rows.append(
                {
                    "name": name,
                    "role": info.role + (",\u00a0up" if info.direction != DOWN else ""),
                    "mode": group.mode,
                    "n": len(group.valid),
                    "cells": [_cell(group, metric, name) for metric in columns],
                }
            )
    return rows


def _agreement(entry: Entry) -> list[str]:
    """Simulation beside emulation in words, for each subject."""
    sim, emu = entry.group("sim"), entry.group("emu")
    if sim is None or emu is None:
        return []
    said = []
    for name in entry.names("subject"):
        a, b = sim.over("receiver_rate", name), emu.over("receiver_rate", name)
        p, q = sim.over("loss", name), emu.over("loss", name)
        if a is None or b is None or not b.mean:
            continue
        share = 100 * (a.mean / b.mean - 1)
        compared = "as much as"
        if abs(share) >= 0.05:
            compared = f"{abs(share):.1f} % {'more' if share > 0 else 'less'} than"
        text = f"{name}: simulation receives {compared} emulation"
        if p is not None and q is not None:
            text += f" and loses {100 * p.mean:.2f} % where emulation loses {100 * q.mean:.2f} %"
        if sim.numbers.infos[name].ours != emu.numbers.infos[name].ours:
            text += "; in simulation our own model stands in for the real system"
        said.append(text + ".")
    return said


def _check_rows(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """A row a check, with its verdicts in every mode beside one another."""
    rows: list[dict[str, Any]] = []
    for entry in entries:
        by_id: dict[str, dict[str, Any]] = {}
        for check in entry.checks:
            told = _check(check, entry)
            by_id.setdefault(check.id, {**told, "by_mode": {}})["by_mode"][check.mode] = told
        rows += by_id.values()
    return rows


def _check(check: CheckResult, entry: Entry) -> dict[str, Any]:
    matched = match_published(check.values, check.published)
    beside = [
        {
            "name": "" if key == "value" else key,
            "published": str(text),
            "ours": matched[key].words() if key in matched and not check.changed else "",
        }
        for key, text in check.published.items()
    ]
    return {
        "id": check.id,
        "scenario": entry.id,
        "slug": entry.slug,
        "mode": check.mode,
        "verdict": check.verdict,
        "mark": certificate.MARKS[check.verdict],
        "title": check.title or "",
        "that": check.that,
        "why": check.why,
        "published": beside,
        "measured": "–"
        if check.measured is None
        else say_half(check.measured.interval, check.measured.dimension, signed=check.measured.signed),
        "rests_on": "" if check.measured is None else check.measured.interval.words(),
        "n": check.n,
        "invalid": check.invalid,
        "origin": check.origin,
        "strict": check.strict,
        "note": check.note or "",
        "differs": check.differs or "",
    }


def _counts(entries: Sequence[Entry]) -> dict[str, int]:
    found = {"pass": 0, "fail": 0, "inconclusive": 0, "differ": 0}
    for entry in entries:
        for check in entry.checks:
            found[check.verdict] += 1
            found["differ"] += check.verdict == "pass" and bool(check.differs)
    return found


def _provenance(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Every fact of the trials' provenance with the values it takes; times are summed up."""
    facts: dict[str, dict[str, int]] = {}

    def add(prefix: str, data: Mapping[str, Any]) -> None:
        for key, value in data.items():
            # The certificate has a place of its own.
            if key in ("schema", "certificate"):
                continue
            name = f"{prefix}{key}"
            if isinstance(value, Mapping):
                add(f"{name}.", value)
            else:
                text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
                counted = facts.setdefault(name, {})
                counted[text] = counted.get(text, 0) + 1

    for entry in entries:
        for group in entry.groups:
            for trial in group.trials:
                add("", trial.provenance)
                model = trial.header.get("model_version")
                if model is not None:
                    add("", {"model_version": model})
                add("", {"version": trial.header.get("systems") or {}})
    rows = []
    for name, values in facts.items():
        if len(values) <= 3:
            rows.append((name, "; ".join(values)))
        else:
            rows.append((name, f"{min(values)} to {max(values)} ({len(values)} values)"))
    return rows

"""The report: one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.checks import CheckResult
from streamgauge.compare import Comparison
from streamgauge.documents import write_whole
from streamgauge.report import agreement, certificate, checking, figures, validity
from streamgauge.report.answer import PLUS_MINUS, by_question
from streamgauge.report.comparing import comparisons, tells_all
from streamgauge.report.families import tables
from streamgauge.report.first import AnsweredQuestion, blocks
from streamgauge.report.model import Entry, LoadedTrial, gather, load
from streamgauge.report.model import left_out as find_left_out
from streamgauge.report.page import render_page
from streamgauge.report.provenance import provenance
from streamgauge.report.saving import save_all
from streamgauge.report.sections import section
from streamgauge.report.side_by_side import side_by_side

__all__ = ["build", "render", "write_figures", "write_page"]


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


def write_page(
    entries: Sequence[Entry],
    out: Path,
    *,
    left_out: Mapping[Path, int] | None = None,
    compared: Comparison | None = None,
) -> Path:
    """Runs `build` on scenarios that were gathered already; `compared` is the comparison that was asked
    for."""
    return write_whole(out, render(entries, left_out or {}, compared))


def write_figures(
    source: Path | Iterable[LoadedTrial], folder: Path, *, formats: Sequence[str] = ("svg",)
) -> list[Path]:
    """Writes every figure of the report as a file of each format: ``svg``, ``png`` or ``pdf``.

    Raises:
        RecordError: if there is no trial.
        ValueError: for another format.
    """
    entries = gather(load(source) if isinstance(source, Path) else source)
    beside = side_by_side(comparisons(entries), entries)
    drawn = [*beside.over_time, *beside.differences, *beside.distributions]
    drawn += [figure for entry in entries for figure in figures.for_entry(entry)]
    drawn += [table.figure for table in tables(entries)]
    folder.mkdir(parents=True, exist_ok=True)
    return save_all(drawn, folder, formats)


def render(
    entries: Sequence[Entry],
    left_out: Mapping[Path, int] | None = None,
    asked: Comparison | None = None,
) -> str:
    """Returns the page as text. `asked` is the comparison that its trials ran for: the page has the same
    subjects by the same names, in the same order and against the same baseline."""
    answers = {one.scenario: one for question in by_question(entries) for one in question.answers}
    compared = [asked] if asked is not None and tells_all(asked, entries) else comparisons(entries)
    first = blocks(entries, compared)
    beside = side_by_side(compared, entries)
    at_top = _told_at_top(first, answers)
    groups = [group for entry in entries for group in entry.groups]
    before: dict[str, Entry] = {}
    return render_page(
        "streamgauge.report",
        "report.html.j2",
        blocks=first,
        beside=[
            (title, drawn)
            for title, drawn in (
                ("Over time", beside.over_time),
                ("Difference", beside.differences),
                ("Distribution", beside.distributions),
            )
            if drawn
        ],
        agreements=[
            found
            for found in (agreement.of_modes(entries), agreement.of_published(entries))
            if found is not None
        ],
        left_out={str(folder): count for folder, count in (left_out or {}).items()},
        contents=[
            {
                "slug": entry.slug,
                "id": entry.id,
                "label": entry.label,
                "title": entry.title,
                "bad": _is_bad(entry),
            }
            for entry in entries
        ],
        # One after the other, as each has its figures' points.
        sections=(
            section(entry, answers[entry.id], told=entry.id in at_top, before=before) for entry in entries
        ),
        plus_minus=PLUS_MINUS,
        checks=checking.check_rows(entries),
        modes=sorted({check.mode for entry in entries for check in entry.checks}, reverse=True),
        counted=checking.counted(checking.counts(entries)),
        tables=tables(entries),
        validity=validity.overview(entries),
        instrument=certificate.for_report(entries),
        provenance=provenance(entries),
        trials=sum(len(group.trials) for group in groups),
        invalid=sum(len(group.trials) - len(group.valid) for group in groups),
    )


def _told_at_top(first: Sequence[AnsweredQuestion], answers: Mapping[str, Any]) -> set[str]:
    """Returns scenarios with a question's verdict as their whole answer."""
    verdicts = {block.verdict for block in first}
    return {scenario for scenario, one in answers.items() if " ".join(one.sentences) in verdicts}


def _is_bad(entry: Entry) -> bool:
    """Returns whether anything of it failed or is invalid."""
    failed = any(check.verdict == "fail" for check in entry.checks)
    return failed or any(not group.valid for group in entry.groups)

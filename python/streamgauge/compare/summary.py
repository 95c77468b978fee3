"""A comparison as Markdown for the summary of a job.

GitHub and GitLab strip ``data:`` addresses and scripts, which keeps pictures out of the text itself, and the
charts of Mermaid, which both draw, have no intervals. Drawings are therefore text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.compare.comparison import ComparedRow, Comparison
from streamgauge.compare.plot import difference_plot
from streamgauge.compare.verdict import verdict_of
from streamgauge.compare.words import say_difference, say_value, verdict_words
from streamgauge.documents import Summary, plain, table

__all__ = ["summary_of", "write_summary"]

_MARK = {"pass": "✅", "fail": "❌", "inconclusive": "❔"}
_ROW_MARK = {"better": "✅ ", "equal": "✅ ", "worse": "❌ ", "undecided": "❔ "}
_MOST_ROWS = 200
"""Rows of a scenario and mode; worse ones first."""
_ORDER = ("worse", "better", "undecided", "equal")


def write_summary(found: Comparison, file: Path, *, title: str = "") -> None:
    """Writes the summary: as a whole, or after the present text of the job's own summary
    (``$GITHUB_STEP_SUMMARY``).

    Raises:
        OSError: if it cannot be written.
    """
    summary_of(found, title=title).write(file)


def summary_of(found: Comparison, *, title: str = "") -> Summary:
    """Returns the verdict and the answer, the notes on the trials, and for each scenario and mode a table and
    a picture."""
    verdict = verdict_of(found)
    others = [one for one in found.subjects if one != found.baseline]
    heading = title or (f"{', '.join(others)} against {found.baseline}" if others else found.baseline)
    summary = Summary(f"### {_MARK[verdict.verdict]} {plain(heading)}", f"**{plain(verdict.why)}**")
    if found.answer:
        first, *rest = found.answer
        summary.add(plain(first))
        summary.add("\n".join(f"- {plain(one)}" for one in rest))
    summary.add("\n".join(f"> {plain(note)}" for note in found.notes))
    for scenario in found.scenarios:
        for mode in dict.fromkeys(row.mode for row in found.rows if row.scenario == scenario):
            _add_block(summary, found, scenario, mode)
    return summary


def _add_block(summary: Summary, found: Comparison, scenario: str, mode: str) -> None:
    rows = [
        row for row in found.rows if (row.scenario, row.mode) == (scenario, mode) and row.verdict is not None
    ]
    told = sorted(rows, key=lambda row: _ORDER.index(row.verdict or "equal"))[:_MOST_ROWS]
    summary.add(f"#### {plain(scenario)}, {plain(mode)}")
    if not rows:
        alone = [row for row in found.rows if (row.scenario, row.mode) == (scenario, mode)]
        values = [[plain(row.about.short), plain(say_value(row)), _valid(row)] for row in alone[:_MOST_ROWS]]
        summary.add(table(["", plain(found.baseline), "valid"], values))
        return
    several = len({row.subject for row in rows}) > 1
    head = ["", *(["subject"] if several else []), plain(found.baseline)]
    head += [] if several else [plain(row.subject) for row in rows[:1]]
    head += ["value"] if several else []
    head += ["difference", "valid", "verdict"]
    summary.add(table(head, [_cells(row, found, several) for row in told]))
    if len(told) < len(rows):
        summary.add(f"{len(rows) - len(told)} further rows are left out.")
    if why := dict.fromkeys(row.why for row in rows if row.verdict == "undecided" and row.why):
        summary.add(f"Undecided: {plain('; '.join(list(why)[:5]))}.")
    drawn = [row for row in told if row.verdict != "equal"] + [row for row in told if row.verdict == "equal"]
    lines = difference_plot(drawn[:40])
    if lines:
        summary.add("\n".join(["```text", *lines, "```"]))
        summary.add("*Differences with their 95 % intervals; shaded is what counts as practically equal.*")


def _cells(row: ComparedRow, found: Comparison, several: bool) -> Sequence[str]:
    base = found.row(found.baseline, row.scenario, row.mode, row.metric)
    theirs = "not known" if base is None else plain(say_value(base))
    verdict = row.verdict or "equal"
    words = verdict_words(row) if verdict == "equal" else verdict
    return [
        plain(row.about.short),
        *([plain(row.subject)] if several else []),
        theirs,
        plain(say_value(row)),
        plain(say_difference(row)) or "not known",
        _valid(row),
        f"{_ROW_MARK[verdict]}{plain(words)}",
    ]


def _valid(row: ComparedRow) -> str:
    return f"{row.n} of {row.n + row.invalid}" if row.invalid else f"{row.n}"

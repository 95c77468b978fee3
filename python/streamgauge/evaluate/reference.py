"""One table of several controls, as Markdown: a row for each row of the suite, a column for each control."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from streamgauge import __version__
from streamgauge.evaluate.evaluation import Evaluation
from streamgauge.evaluate.judging import EvaluatedRow, bound_words

__all__ = ["reference_text"]

_SIGNS: Final = {"pass": "", "fail": "**fail** ", "equal": "= ", "undecided": "? ", "words": ""}


def reference_text(found: Sequence[Evaluation]) -> str:
    """Returns the page: how it was made, how to read it, counts, the table. All are of one suite and one
    size."""
    plan = found[0].plan
    names = [one.plan.shown for one in found]
    quick = " --quick" if plan.quick else ""
    command = (
        f"streamgauge evaluate cc {' '.join(names)} --suite {plan.suite}{quick} --docs docs/evaluated.md"
    )
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    lines = [
        "# Known congestion controls, evaluated",
        "",
        f"Made on {when} by StreamGauge {__version__}, commit {_commit()}, in {plan.mode}, "
        f"n = {found[0].seeds}:",
        "",
        "```",
        command,
        "```",
        "",
        "Each cell is a mean over the seeds. `=` equals the reference in its place, `?` is undecided,",
        "**fail** lies beyond the bound; all others pass. "
        f"The reference is {plan.reference}; the cross traffic runs {', '.join(plan.against)}.",
        "[evaluate.md](evaluate.md) explains rows and bounds. Nothing here is a judgement by the IETF.",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for verdict in ("pass", "equal", "fail", "undecided"):
        lines.append(f"| rows: {verdict} | {' | '.join(str(one.counts[verdict]) for one in found)} |")
    lines += [
        "",
        f"| criterion | condition | bound | {' | '.join(names)} |",
        f"|---|---|---|{'---|' * len(names)}",
    ]
    by_control = [{_key(row): row for row in one.rows} for one in found]
    for row in (row for row in found[0].rows if row.verdict != "words"):
        asked = row.question
        cells = [_cell(mine.get(_key(row))) for mine in by_control]
        about = f"{asked.criterion} | {asked.condition} | {bound_words(asked.bound, asked.unit)}"
        lines.append(f"| {about} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _key(row: EvaluatedRow) -> tuple[str, str]:
    return row.question.criterion, row.question.condition


def _cell(row: EvaluatedRow | None) -> str:
    if row is None or row.value is None:
        return "not known"
    unit = "" if row.question.unit == "1" else f" {row.question.unit}"
    return f"{_SIGNS[row.verdict]}{row.value:.3g}{unit}"


def _commit() -> str:
    """Returns the checkout's, or ``unknown`` where there is none."""
    folder = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--short=10", "HEAD"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()

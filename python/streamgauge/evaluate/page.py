"""The page of an evaluation: one HTML file that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgauge.documents import write_whole
from streamgauge.evaluate.answer import value_words
from streamgauge.evaluate.evaluation import Evaluation
from streamgauge.evaluate.judging import EvaluatedRow, bound_words
from streamgauge.evaluate.network import hypercube
from streamgauge.report.page import render_page

__all__ = ["write_page"]


def write_page(found: Evaluation, out: Path) -> Path:
    """Writes the page; it appears whole or not at all."""
    plan = found.plan
    page = render_page(
        "streamgauge.evaluate",
        "evaluate.html.j2",
        title=f"{plan.shown} by {plan.suite}",
        control=plan.shown,
        sentences=found.answer,
        counts=found.counts,
        groups=_groups(found.rows),
        facts=f"{found.ran.trials} trials, n = {found.seeds}, {plan.mode}, against {', '.join(plan.against)}",
        faults=list(dict.fromkeys(fault.words for fault in found.ran.faults.values())),
        conditions=[] if plan.quick else [one.words() for one in hypercube()],
        method=_method(found),
    )
    return write_whole(out, page)


def _groups(rows: Sequence[EvaluatedRow]) -> list[dict[str, Any]]:
    """Rows by their source, in the order in which sources come first."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        asked = row.question
        found.setdefault(asked.source, []).append(
            {
                "criterion": asked.criterion,
                "condition": asked.condition,
                "value": "" if row.value is None else value_words(row),
                "bound": bound_words(asked.bound, asked.unit),
                "verdict": row.verdict,
                "why": row.why or asked.note,
            }
        )
    return [{"source": source, "rows": mine} for source, mine in found.items()]


def _method(found: Evaluation) -> str:
    plan, looks = found.plan, found.looks
    looked = f" The 5 % are divided by {looks} looks." if looks > 1 else ""
    return (
        f"Each value is a mean over {found.seeds} seeds with its 95 % interval: below six Student's t, "
        "otherwise a studentised bootstrap. A bound is held or missed where the value differs from it at "
        "5 %, corrected for all rows by Holm's method. A comparison passes where it is "
        "no worse by more than its margin. It is equal where two one-sided tests "
        f"refute a difference beyond the margin.{looked} Bounds marked as ours are no part of the document. "
        f"A value that no seed changes decides by itself. Command: streamgauge evaluate cc {plan.shown} "
        f"--suite {plan.suite}."
    )

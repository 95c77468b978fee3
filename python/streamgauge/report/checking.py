"""The checks as a table's rows, each once with its verdict in every mode, and the marks that they leave at
the numbers they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.checks import CheckResult
from streamgauge.checks.published import match_published
from streamgauge.claims.expression import parse
from streamgauge.claims.syntax import Reference
from streamgauge.report.certificate import MARKS
from streamgauge.report.model import Entry, entry_labels, say_half

__all__ = ["Mark", "anchor", "check_rows", "counted", "counts", "marks", "of_section"]

DIFFERS = "≠"
"""Marks a pass with another number than the published one."""


@dataclass(frozen=True)
class Mark:
    """Mark of a number that failed a check."""

    sign: str
    kind: str
    href: str
    said: str


def anchor(entry: Entry, check: CheckResult) -> str:
    """Returns where a check's row is."""
    return f"check-{entry.slug}-{check.id}".replace(" ", "-")


def check_rows(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Returns a row a check of a scenario, with its verdicts in every mode beside one another."""
    rows: list[dict[str, Any]] = []
    short = entry_labels(entries)
    for entry in entries:
        by_id: dict[str, dict[str, Any]] = {}
        for check in entry.checks:
            told = _told(check, entry) | {"where_in_short": short[entry.id]}
            by_id.setdefault(check.id, {**told, "by_mode": {}})["by_mode"][check.mode] = told
        rows += by_id.values()
    return rows


def _told(check: CheckResult, entry: Entry) -> dict[str, Any]:
    matched = match_published(check.values, check.published)
    beside = [
        {
            "name": "" if key == "value" else key,
            "published": str(text),
            # Without repeating the reason.
            "ours": matched[key].words()
            if key in matched and not check.changed and matched[key].words() not in check.why
            else "",
        }
        for key, text in check.published.items()
    ]
    return {
        "anchor": anchor(entry, check),
        "id": check.id,
        "scenario": entry.id,
        "where": entry.title,
        "slug": entry.slug,
        "mode": check.mode,
        "verdict": check.verdict,
        "mark": MARKS[check.verdict],
        "in_size": check.differs_in_size,
        "title": check.title or "",
        "that": check.that,
        "why": check.why,
        "published": beside,
        "measured": "–"
        if check.measured is None
        else say_half(check.measured.interval, check.measured.dimension, signed=check.measured.signed),
        "n": check.n,
        "invalid": check.invalid,
        "trials": check.trials,
        "origin": check.origin,
        "strict": check.strict,
        "note": check.note or "",
        "differs": check.differs or "",
    }


def counts(entries: Sequence[Entry]) -> dict[str, int]:
    """Returns how many verdicts there are of each kind, and how many passes differ from the published
    numbers."""
    found = {"pass": 0, "fail": 0, "inconclusive": 0, "differ": 0}
    for entry in entries:
        for check in entry.checks:
            found[check.verdict] += 1
            found["differ"] += check.differs_in_size
    return found


def counted(found: dict[str, int]) -> str:
    """Returns ``17 pass (of them 3 differ from the published numbers), 0 fail, 1 inconclusive``."""
    differ = found["differ"]
    said = f"{found['pass']} pass"
    if differ:
        said += f" (of them {differ} differ{'s' if differ == 1 else ''} from the published numbers)"
    return f"{said}, {found['fail']} fail, {found['inconclusive']} inconclusive"


def of_section(entry: Entry) -> list[dict[str, Any]]:
    """Returns a scenario's checks in short: id, title, where the rest is, and the verdict in each mode."""
    return [
        {
            "id": row["id"],
            "title": row["title"],
            "anchor": row["anchor"],
            "modes": [
                {
                    "mode": mode,
                    "verdict": told["verdict"],
                    "mark": told["mark"],
                    "differs": told["in_size"],
                }
                for mode, told in row["by_mode"].items()
            ],
        }
        for row in check_rows([entry])
    ]


def marks(entry: Entry) -> dict[tuple[str, str, str], list[Mark]]:
    """By mode, metric and flow: the checks of that number that do not hold, or hold and differ from the
    paper."""
    found: dict[tuple[str, str, str], list[Mark]] = {}
    for check in entry.checks:
        differs = check.differs_in_size
        if check.verdict == "pass" and not differs:
            continue
        said = check.differs if differs else f"{check.title or check.id}: {check.why}"
        mark = Mark(
            DIFFERS if differs else MARKS[check.verdict],
            "differs" if differs else check.verdict,
            anchor(entry, check),
            f"{check.id}: {said}",
        )
        names = {
            (node.metric, node.subject)
            for node in parse(check.that).root.walk()
            if isinstance(node, Reference) and not node.scenario
        }
        for metric, flow in sorted(names):
            found.setdefault((check.mode, metric, flow), []).append(mark)
    return found

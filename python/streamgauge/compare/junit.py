"""A comparison as JUnit XML: red exactly where the exit status is."""

from __future__ import annotations

from pathlib import Path

from streamgauge.compare.comparison import ComparedRow, Comparison
from streamgauge.compare.verdict import verdict_of
from streamgauge.compare.words import say_difference, say_share, say_value, verdict_words
from streamgauge.documents import JunitCase, JunitOutcome, JunitSuite, junit_xml, write_whole

__all__ = ["suites_of", "write_junit"]

_OUTCOME: dict[str, JunitOutcome] = {
    "better": "passed",
    "equal": "passed",
    "worse": "failure",
    "undecided": "skipped",
}


def write_junit(found: Comparison, file: Path) -> None:
    """Writes it, whole or not at all.

    Raises:
        OSError: if it cannot be written.
    """
    write_whole(file, junit_xml(suites_of(found), name="streamgauge compare"))


def suites_of(found: Comparison) -> list[JunitSuite]:
    """Returns a suite for each scenario and mode, in it a case for each subject but the baseline and metric:
    a failure if it is worse, skipped if undecided, passed if better or practically equal. Before them the
    comparison itself: an error if it is inconclusive, as in exit status 2."""
    suites = [_whole(found)]
    for scenario in found.scenarios:
        for mode in dict.fromkeys(row.mode for row in found.rows if row.scenario == scenario):
            rows = [row for row in found.rows if (row.scenario, row.mode) == (scenario, mode)]
            suites.append(
                JunitSuite(
                    name=f"{scenario} {mode}",
                    cases=[_case(row, found) for row in rows if row.verdict is not None],
                    properties={"baseline": found.baseline, **_values(rows)},
                )
            )
    return suites


def _whole(found: Comparison) -> JunitSuite:
    verdict = verdict_of(found)
    others = [one for one in found.subjects if one != found.baseline]
    # A worse row fails in its own case, and is counted once.
    outcome: JunitOutcome = "passed" if others else "skipped"
    if verdict.verdict == "inconclusive":
        outcome = "error"
    return JunitSuite(
        name="comparison",
        cases=[
            JunitCase(
                name=f"{', '.join(others)} against {found.baseline}" if others else found.baseline,
                outcome=outcome,
                message="" if outcome == "passed" else " ".join([verdict.why, *found.not_comparable[:5]]),
                type="inconclusive",
                out=[verdict.why, *found.answer],
            )
        ],
        properties={"baseline": found.baseline, "verdict": verdict.verdict},
        out=[*found.notes, *(one for one in found.not_comparable if one not in found.answer)],
    )


def _case(row: ComparedRow, found: Comparison) -> JunitCase:
    base = found.row(found.baseline, row.scenario, row.mode, row.metric)
    assert row.verdict is not None
    theirs = "not known" if base is None else say_value(base)
    difference = say_difference(row)
    beside = f"{row.about.title}: {say_value(row)} instead of {theirs}"

    lines = [f"{row.subject}: {say_value(row)}, n = {row.n}", f"{found.baseline}: {theirs}"]
    if base is not None:
        lines[-1] += f", n = {base.n}"
    if difference:
        how = f"paired by seed, {row.pairs} pairs" if row.paired else "not paired"
        chance = "" if row.probability is None else f", {say_share(row.probability)}"
        lines.append(f"difference: {difference} ({how}{chance})")
    if row.invalid:
        lines.append(f"{row.n} of {row.n + row.invalid} repetitions valid")
    lines.append(verdict_words(row))
    return JunitCase(
        name=f"{row.subject}: {row.about.title}",
        outcome=_OUTCOME[row.verdict],
        message=f"{row.subject} against {found.baseline}: {verdict_words(row)}. {beside}.",
        type=row.verdict,
        out=lines,
    )


def _values(rows: list[ComparedRow]) -> dict[str, str]:
    """Returns each value with its interval, by subject and metric, as other programs read numbers."""
    told = {}
    for row in rows:
        data = row.to_json()
        if data["value"] is None:
            continue
        key = f"{row.subject}.{row.metric}"
        told[key] = f"{data['value']!r} {data['unit']}"
        if data["interval"] is not None and None not in data["interval"]:
            low, high = data["interval"]
            told[f"{key}.interval"] = f"{low!r} {high!r} {data['unit']}"
        told[f"{row.subject}.valid"] = str(row.n)
        told[f"{row.subject}.invalid"] = str(row.invalid)
    return told

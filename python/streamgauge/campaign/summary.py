"""The result of a run as Markdown for the summary of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from streamgauge.campaign.invalid import say_tried
from streamgauge.campaign.junit import groups_of, say_unjudged
from streamgauge.campaign.mutants import MutantResult, score
from streamgauge.campaign.run import CampaignResult, Verdict
from streamgauge.checks import CheckResult
from streamgauge.documents import PlottedInterval, Summary, interval_plot, plain, table

__all__ = ["run_summary", "write_run_summary"]

_MARK = {"pass": "✅", "fail": "❌", "inconclusive": "❔"}
_UNJUDGED = "⚪"
_ORDER: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")
_MOST_ROWS = 200
_MOST_LINES = 40
_LONG = 2000
"""An answer of more characters, such as a whole paper's, is folded away at the end."""


def write_run_summary(
    result: CampaignResult,
    file: Path,
    verdict: Verdict,
    *,
    answer: str = "",
    mutants: Sequence[MutantResult] | None = None,
    stopped: bool = False,
) -> None:
    """Writes the summary: as a whole, or after the present text of the job's own summary
    (``$GITHUB_STEP_SUMMARY``).

    Args:
        result: of the run.
        file: the place.
        verdict: as in the exit status.
        answer: the result in words.
        mutants: of its checks, if they ran.
        stopped: whether it was interrupted.

    Raises:
        OSError: if it cannot be written.
    """
    run_summary(result, verdict, answer=answer, mutants=mutants, stopped=stopped).write(file)


def run_summary(
    result: CampaignResult,
    verdict: Verdict,
    *,
    answer: str = "",
    mutants: Sequence[MutantResult] | None = None,
    stopped: bool = False,
) -> Summary:
    """Returns the verdict, the answer, the outcome of the trials, a table of the checks and their distances
    from a change of verdict."""
    names = [f"{scenario} ({mode})" for scenario, mode in groups_of(result) if scenario in result.wanted]
    heading = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    mark = _MARK[verdict] if result.checks or verdict != "pass" else _UNJUDGED
    summary = Summary(f"### {mark} {plain(heading) or 'no trial'}", f"**{plain(_said(result))}**")
    if stopped or result.interrupted:
        summary.add(f"Interrupted: {len(result.outcomes)} of {result.planned} trials are there.")
    if bare := say_unjudged(result):
        summary.add(f"> {plain(bare)}")
    if len(answer) <= _LONG:
        _add_answer(summary, answer)
    told = [
        f"{scenario} ({mode}): {line}."
        for (scenario, mode), outcomes in groups_of(result).items()
        for line in say_tried(outcomes)
    ]
    summary.add("\n".join(f"> {plain(line)}" for line in told[:_MOST_LINES]))
    checks = sorted(result.checks, key=lambda check: _ORDER.index(check.verdict))
    if checks:
        several = len({(check.scenario, check.mode) for check in checks}) > 1
        head = ["check", *(["scenario"] if several else []), "verdict", "valid", "why"]
        summary.add(table(head, [_cells(check, several) for check in checks[:_MOST_ROWS]]))
        if len(checks) > _MOST_ROWS:
            summary.add(f"{len(checks) - _MOST_ROWS} further checks are left out.")
        if lines := margin_plot(checks[:_MOST_LINES]):
            summary.add("\n".join(["```text", *lines, "```"]))
            summary.add("*How far each check is from its bound, in tenths of it, with 95 % intervals.*")
    if mutants:
        share = score(mutants)
        missed = [one for one in mutants if not one.killed]
        said = "" if share is None else f"Mutation score {100 * share:.0f} %."
        told = [plain(f"Not noticed by {one.check}: {one.change()}.") for one in missed]
        summary.add(" ".join([said, *told]))
    if len(answer) > _LONG:
        summary.add("<details><summary>What happened</summary>")
        _add_answer(summary, answer)
        summary.add("</details>")
    return summary


def _add_answer(summary: Summary, answer: str) -> None:
    for paragraph in answer.split("\n\n"):
        summary.add("\n".join(map(_line, paragraph.splitlines())))


def _line(line: str) -> str:
    """Returns a line of an answer, with its lists indented."""
    text = line.strip()
    return f"- {plain(text.removeprefix('- '))}" if text.startswith("- ") else plain(text)


def _said(result: CampaignResult) -> str:
    """Returns the number of checks by verdict, or that nothing is judged; and the scenarios with too many
    invalid trials."""
    lost = "".join(
        f" {invalid} of {count} trials of {scenario} ({mode}) are invalid."
        for scenario, mode, invalid, count in result.mostly_invalid()
    )
    if not result.checks:
        return f"Nothing is judged.{lost}"
    counts = Counter(check.verdict for check in result.checks)
    counted = [f"{verdict} {counts[verdict]}" for verdict in _ORDER if counts[verdict]]
    return f"Checks: {', '.join(counted)}.{lost}"


def _cells(check: CheckResult, several: bool) -> list[str]:
    valid = f"{check.n} of {check.trials}" if check.n < check.trials else f"{check.n}"
    if check.replaced:
        valid += f", {check.replaced} replaced"
    return [
        plain(f"{check.id}: {check.title}" if check.title else check.id),
        *([plain(f"{check.scenario} ({check.mode})")] if several else []),
        f"{_MARK[check.verdict]} {check.verdict}",
        valid,
        plain(check.why),
    ]


def margin_plot(checks: Sequence[CheckResult]) -> list[str]:
    """Returns a line for each comparison that has a margin and a bound other than zero: the margin with its
    interval in tenths of the bound, holding to the right."""
    lines = []
    for check in checks:
        for place, one in enumerate(check.comparisons, 1):
            if one.margin is None or one.bound is None or not one.bound.interval.mean:
                continue
            unit = abs(one.bound.interval.mean) / 10
            margin = one.margin.interval
            half = margin.half_width or 0.0
            name = check.id if len(check.comparisons) == 1 else f"{check.id} ({place})"
            ends = ((margin.mean - half) / unit, margin.mean / unit, (margin.mean + half) / unit)
            lines.append(PlottedInterval(name, *ends))
    return interval_plot(lines, left="fails", right="holds")

"""Results of a run as JUnit XML: red exactly where the exit status is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.campaign.invalid import say_tried
from streamgauge.campaign.mutants import MutantResult
from streamgauge.campaign.run import CampaignResult
from streamgauge.campaign.trial import Outcome
from streamgauge.checks import CheckResult
from streamgauge.documents import JunitCase, JunitOutcome, JunitSuite, junit_xml, write_whole

__all__ = ["groups_of", "run_suites", "say_unjudged", "unjudged", "write_run_junit"]

_REMEDY = "add checks: to the scenario, or use compare"
_OUTCOME: dict[str, JunitOutcome] = {"pass": "passed", "fail": "failure", "inconclusive": "error"}


def write_run_junit(
    result: CampaignResult,
    file: Path,
    mutants: Sequence[MutantResult] | None = None,
    *,
    stopped: bool = False,
) -> None:
    """Writes it, whole or not at all.

    Args:
        result: of the run.
        file: the place.
        mutants: of its checks, if they ran.
        stopped: whether it was interrupted.

    Raises:
        OSError: if it cannot be written.
    """
    suites = run_suites(result, mutants, stopped=stopped)
    write_whole(file, junit_xml(suites, name="streamgauge run", seconds=result.wall_s))


def run_suites(
    result: CampaignResult, mutants: Sequence[MutantResult] | None = None, *, stopped: bool = False
) -> list[JunitSuite]:
    """Returns a suite for each scenario and mode. Its first case is its trials: an error if more than a third
    is invalid. Then a case a check: a failure if it fails, an error if it is inconclusive, for a run that is
    undecided lets nothing pass. A requested scenario without a check has a skipped case with that reason. A
    check that its mutant does not break fails in a suite of mutants."""
    suites = []
    if stopped or result.interrupted or not result.outcomes:
        why = "interrupted" if stopped or result.interrupted else "no trial ran"
        said = f"{why}: {len(result.outcomes)} of {result.planned} trials are there"
        case = JunitCase(name="all trials ran", outcome="error", message=said, type="inconclusive")
        suites.append(JunitSuite(name="run", cases=[case]))
    bare = unjudged(result)
    for (scenario, mode), outcomes in groups_of(result).items():
        checks = [check for check in result.checks if (check.scenario, check.mode) == (scenario, mode)]
        cases = [_trials(result, scenario, mode, outcomes), *map(_check, checks)]
        if scenario in bare:
            said = f"no checks: it gates nothing; {_REMEDY}"
            cases.append(JunitCase(name="checks", outcome="skipped", message=said))
        suites.append(
            JunitSuite(
                name=f"{scenario} {mode}",
                cases=cases,
                properties={
                    "trials": str(sum(one.counts for one in outcomes)),
                    "valid": str(sum(one.valid for one in outcomes)),
                },
                out=say_tried(outcomes),
            )
        )
    # A check without a trial of its own, all of which were lost, is judged all the same.
    lost = [check for check in result.checks if (check.scenario, check.mode) not in groups_of(result)]
    if lost:
        suites.append(JunitSuite(name="checks without trials", cases=[*map(_check, lost)]))
    if mutants:
        suites.append(JunitSuite(name="mutants", cases=[*map(_mutant, mutants)]))
    return suites


def groups_of(result: CampaignResult) -> dict[tuple[str, str], list[Outcome]]:
    """Returns a run's trials by scenario and mode."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in result.outcomes:
        groups.setdefault((outcome.job.scenario.id, outcome.job.mode), []).append(outcome)
    return groups


def unjudged(result: CampaignResult) -> list[str]:
    """Scenarios that were asked for and have no check, by id."""
    return [one.id for one in result.scenarios if one.id in result.wanted and not one.checks]


def say_unjudged(result: CampaignResult) -> str:
    """That a run, or some of its scenarios, gates nothing; empty if each has a check."""
    bare = unjudged(result)
    if len(bare) == len(result.wanted):
        return f"no checks: this run gates nothing; {_REMEDY}"
    which = ", ".join(bare[:5]) + (f" and {len(bare) - 5} more" if len(bare) > 5 else "")
    gates = "it gates" if len(bare) == 1 else "they gate"
    return f"no checks in {which}: {gates} nothing; {_REMEDY}" if bare else ""


def _trials(result: CampaignResult, scenario: str, mode: str, outcomes: Sequence[Outcome]) -> JunitCase:
    invalid, count = next(
        ((bad, of) for id_, in_, bad, of in result.mostly_invalid() if (id_, in_) == (scenario, mode)), (0, 0)
    )
    if not invalid:
        return JunitCase(name="trials")
    reasons = "; ".join(dict.fromkeys(reason for one in outcomes if not one.valid for reason in one.why))
    said = f"{invalid} of {count} trials are invalid: {reasons}"
    return JunitCase(name="trials", outcome="error", message=said, type="invalid")


def _check(check: CheckResult) -> JunitCase:
    strict = ", strict" if check.strict else ""
    valid = f"{check.n} of {check.trials} trials valid"
    replaced = f", {check.replaced} replaced by further seeds" if check.replaced else ""
    return JunitCase(
        name=f"{check.id}: {check.title or check.that}",
        outcome=_OUTCOME[check.verdict],
        message="" if check.verdict == "pass" else check.why,
        type=check.verdict,
        out=[
            check.that,
            f"{check.verdict} ({check.origin}{strict}): {check.why}",
            *([check.differs] if check.differs else []),
            f"{valid}{replaced}",
        ],
    )


def _mutant(one: MutantResult) -> JunitCase:
    outcome: JunitOutcome = "passed"
    if not one.killed:
        outcome = "failure" if one.verdict == "pass" else "error"
    said = f"{one.check} does not fail with {one.change()}: {one.why}"
    return JunitCase(
        name=f"{one.scenario} {one.mode} {one.check} fails with {one.change()}",
        outcome=outcome,
        message="" if one.killed else said,
        type=one.verdict,
        out=[one.why],
    )

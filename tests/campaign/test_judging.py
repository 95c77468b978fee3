"""Verdicts while trials still run are those of the end."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from streamgauge.campaign import run
from streamgauge.campaign.judging import Judging, measured
from streamgauge.checks import evaluate_all
from streamgauge.scenario import Scenario

Make = Callable[..., Scenario]


@pytest.mark.parametrize("seed", range(4))
def test_in_whatever_order_trials_end_verdicts_are_those_of_the_end(
    seed: int, make: Make, tmp_path: Path
) -> None:
    one = make("id=test/one")
    # No more than itself, so that it hangs on what has become of the other.
    other = make("id=test/other", "checks.fills.that=goodput.ftp <= goodput.ftp of hessler/ftp-no")
    modes = {one.id: ["sim"], other.id: ["sim"]}
    result = run([one, other], modes, tmp_path, repeat=3)  # type: ignore[arg-type]
    jobs, scenarios = [outcome.job for outcome in result.outcomes], [one, other]
    judging = Judging(scenarios, jobs, ())
    judged: list[str] = []
    judge = judging._judge

    def noted(which, outcomes):  # type: ignore[no-untyped-def]
        judged.extend(scenario.id for scenario in which)
        return judge(which, outcomes)

    judging._judge = noted  # type: ignore[method-assign]
    ended: list[str] = []
    for outcome in random.Random(seed).sample(result.outcomes, len(result.outcomes)):
        judging.finished(outcome)
        ended.append(outcome.job.scenario.id)
        assert (one.id in judged) == (ended.count(one.id) == 3)
        assert (other.id in judged) == (ended.count(other.id) == ended.count("hessler/ftp-no") == 3)
    found = judging.checks(result.outcomes)
    assert sorted(judged) == [one.id, other.id], "each once"
    at_the_end = evaluate_all(scenarios, measured(result.outcomes))
    assert found == at_the_end and [check.to_json() for check in found] == [
        check.to_json() for check in result.checks
    ]


def test_what_was_not_told_of_is_judged_at_the_end(make: Make, tmp_path: Path) -> None:
    scenario = make()
    result = run([scenario], {scenario.id: ["sim"]}, tmp_path, repeat=3)
    judging = Judging([scenario], [outcome.job for outcome in result.outcomes], ())
    for outcome in result.outcomes[:2]:
        judging.finished(outcome)
    assert judging.checks(result.outcomes) == list(result.checks)
    assert judging.checks(result.outcomes[:2])[0].n == 2

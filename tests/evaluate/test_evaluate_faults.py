"""Controls that are broken: each is told, with what to do, and the trials of others go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamgauge.evaluate.judging import judge
from streamgauge.evaluate.network import CENTRE
from streamgauge.evaluate.question import CriterionQuestion, ValueEnds
from streamgauge.evaluate.running import run_trials, trials_of
from streamgauge.evaluate.trials import ControlBed

BROKEN = Path(__file__).with_name("broken.py")
NETWORK = replace(CENTRE, rate_bps=5e6, seconds=8.0)


def questions(control: str) -> list[CriterionQuestion]:
    """One of the control, one of CUBIC."""
    bed = ControlBed(f"{BROKEN}:{control}")
    return [
        CriterionQuestion(
            "own", "s", "x", ValueEnds(low=0), (bed.trial(NETWORK, bed.mine()),), lambda reads: 1.0
        ),
        CriterionQuestion(
            "other", "s", "x", ValueEnds(low=0), (bed.trial(NETWORK, bed.place("cubic")),), lambda reads: 1.0
        ),
    ]


@pytest.mark.parametrize(
    ("control", "what", "remedy"),
    [
        ("NotANumber", "its window is NaN", "guard the division"),
        ("Negative", "its window is -1", "one segment or more"),
        ("Endless", "its window is inf", "bound the window"),
        ("Throws", "KeyError: 'srtt'", "mend the exception"),
    ],
)
def test_a_broken_control_is_told_with_a_remedy(control: str, what: str, remedy: str, tmp_path: Path) -> None:
    asked = questions(control)
    ran = run_trials(trials_of(asked), "sim", tmp_path, seeds=2)
    own, other = judge(asked, ran, 2)
    assert own.verdict == "fail" and what in own.why and remedy in own.why
    assert other.verdict == "pass"


def test_one_that_sends_without_end_ends_by_its_losses(tmp_path: Path) -> None:
    """It breaks nothing: the collapse rows of a suite find it out, within a trial's bound of memory."""
    asked = questions("SendsWithoutEnd")
    ran = run_trials(trials_of(asked), "sim", tmp_path, seeds=1)
    (trial, _) = trials_of(asked)
    key = trial.scenario.id, 1
    assert key in ran.faults or ran.readings[key]("loss.mine1") > 20


@pytest.mark.long
def test_a_control_that_hangs_is_given_up_after_three_trials(tmp_path: Path) -> None:
    asked = questions("Hangs")
    ran = run_trials(trials_of(asked), "sim", tmp_path, seeds=8)
    own, other = judge(asked, ran, 8)
    assert own.verdict == "fail" and "did not return within 10 s" in own.why
    assert other.verdict == "pass"
    assert sum("not begun" in fault.what for fault in ran.faults.values()) >= 3

"""Suites: what they ask, and that each question can run."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamgauge.evaluate import SUITES
from streamgauge.evaluate.judging import judge
from streamgauge.evaluate.question import AuthorWords
from streamgauge.evaluate.running import run_trials, trials_of
from streamgauge.evaluate.suites import questions_of
from streamgauge.evaluate.trials import ControlBed
from streamgauge.scenario import lower

AGAINST = ("cubic", "reno", "bbr")


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("control", ["reno", "prague", "nada"])
def test_every_trial_of_a_suite_can_be_planned(suite: str, control: str) -> None:
    if control == "nada" and suite != "rfc8867":
        pytest.skip("is no congestion control of TCP")
    questions = questions_of(suite, ControlBed(control), AGAINST, quick=True)
    assert len(questions) > 1 or (suite, control) in (
        ("rfc8867", "reno"),
        ("rfc8867", "prague"),
        ("l4s", "reno"),
    )
    for question in questions:
        assert isinstance(question.bound, AuthorWords) or (question.trials and question.value)
        for trial in question.trials:
            lower(trial.scenario, "sim", 1)


def test_the_design_is_as_stated() -> None:
    """A hypercube of 60 conditions or more beside each rival, and each criterion of RFC 9743."""
    questions = questions_of("bcp133", ControlBed("reno"), AGAINST, quick=False)
    spread = [one for one in questions if one.criterion == "No starvation of cubic"]
    assert len(spread[0].trials) >= 60
    sections = {one.source.removeprefix("RFC 9743 section ") for one in questions}
    assert sections >= {
        "5.1.1",
        "5.1.2",
        "5.1.3",
        "5.1.4",
        "5.1.5",
        "5.2.1",
        "5.2.2",
        "5.2.3",
        "5.3.1",
        "5.3.2",
    }
    assert sections >= {"6.1", "6.2", "6.3", "6.4"}
    assert sum(one.source.startswith('RFC 9743, "') for one in questions) >= 15


def test_every_question_of_a_quick_suite_measures_something(tmp_path: Path) -> None:
    """By one seed, which decides nothing; no row may lack its value."""
    questions = [
        one
        for one in questions_of("bbr", ControlBed("bbr3"), (), quick=True)
        if "bbr/sub-packet" in one.condition or "bbr/probe-rtt;" in one.condition
    ]
    assert len(questions) == 4
    ran = run_trials(trials_of(questions), "sim", tmp_path, seeds=2)
    assert [row.verdict for row in judge(questions, ran, 2)].count("fail") == 0
    assert all(row.values for row in judge(questions, ran, 2))


def test_a_control_that_counts_no_marks_is_told_so() -> None:
    (question,) = questions_of("l4s", ControlBed("cubic"), (), quick=True)
    assert "counts no marks" in question.condition

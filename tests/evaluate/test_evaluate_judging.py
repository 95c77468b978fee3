"""Verdicts of rows, by values that are made up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from streamgauge.evaluate.faults import fault_of
from streamgauge.evaluate.judging import EvaluatedRow, judge
from streamgauge.evaluate.network import CENTRE
from streamgauge.evaluate.question import (
    AuthorWords,
    Bound,
    CriterionQuestion,
    SameAs,
    SeedReadings,
    ValueEnds,
)
from streamgauge.evaluate.running import TrialsRan
from streamgauge.evaluate.trials import ControlBed

BED = ControlBed("reno")
TRIAL = BED.trial(CENTRE, BED.mine())


def rows(
    bounds: Sequence[Bound], columns: Sequence[Sequence[float]], *, looks: int = 1
) -> list[EvaluatedRow]:
    """A row for each bound, whose values over the seeds are a column."""
    questions = [
        CriterionQuestion("c", "s", "x", bound, (TRIAL,), lambda reads, n=n: reads[0](str(n)))  # type: ignore[misc]
        for n, bound in enumerate(bounds)
    ]
    ran = TrialsRan()
    for seed, values in enumerate(zip(*columns, strict=True), 1):
        ran.readings[TRIAL.scenario.id, seed] = SeedReadings(
            {str(n): value for n, value in enumerate(values)}
        )
    return judge(questions, ran, len(columns[0]), looks=looks)


@pytest.mark.parametrize(
    ("bound", "values", "verdict"),
    [
        (ValueEnds(high=10), [1.0, 1.1, 0.9, 1.05, 1.0], "pass"),
        (ValueEnds(high=10), [20.0, 21, 20.5, 20.2, 20.1], "fail"),
        (ValueEnds(high=10), [9.0, 12, 8, 13, 10], "undecided"),
        (ValueEnds(low=25, high=400), [100.0, 101, 99, 100.5, 100.2], "pass"),
        (ValueEnds(low=25, high=400), [5.0, 5.1, 5.2, 5.05, 4.9], "fail"),
        (ValueEnds(low=95), [95.0] * 5, "pass"),
        (ValueEnds(low=95), [94.0] * 5, "fail"),
        (SameAs(5, "less"), [0.0] * 5, "equal"),
        (SameAs(5, "less"), [0.1, -0.2, 0.15, 0.05, -0.1], "equal"),
        (SameAs(5, "less"), [-50.0, -51, -52, -49, -50], "pass"),
        (SameAs(5, "less"), [50.0, 51, 52, 49, 50], "fail"),
        (SameAs(5, "more"), [50.0, 51, 52, 49, 50], "pass"),
        (SameAs(5, "more"), [50.0, -51, 52, -49, 5], "undecided"),
        (AuthorWords("write"), [1.0] * 5, "words"),
        (ValueEnds(low=1), [float("nan")] * 5, "undecided"),
    ],
)
def test_verdict(bound: Bound, values: list[float], verdict: str) -> None:
    (row,) = rows([bound], [values])
    assert row.verdict == verdict
    assert (row.verdict != "undecided") or row.why


def test_rows_are_corrected_for_their_number_and_looks() -> None:
    """What is decided alone is not among a hundred, or after a hundred looks."""
    values = [1.0, 2.0, 3.0, 1.5, 2.5]
    bound = ValueEnds(low=0.0)
    assert rows([bound], [values])[0].verdict == "pass"
    many = rows([bound] * 100, [values] * 100)
    assert {row.verdict for row in many} == {"undecided"}
    assert rows([bound], [values], looks=100)[0].verdict == "undecided"


def test_a_fault_of_the_control_fails_its_rows_and_no_other() -> None:
    """A reference trial that is missing leaves a row undecided instead."""
    reference = BED.trial(CENTRE, BED.place("cubic"))
    questions = [
        CriterionQuestion("broken", "s", "x", ValueEnds(low=0), (TRIAL,), lambda reads: 1.0),
        CriterionQuestion("other", "s", "x", ValueEnds(low=0), (reference,), lambda reads: 1.0),
        CriterionQuestion(
            "absent", "s", "x", ValueEnds(low=0), (reference, BED.trial(CENTRE, BED.mine(2))), lambda _: 1.0
        ),
    ]
    ran = TrialsRan()
    ran.faults[TRIAL.scenario.id, 1] = fault_of("f.py:X: at 1 s, ack: ValueError: its window is nan B")
    ran.readings[reference.scenario.id, 1] = SeedReadings({})
    found = judge(questions, ran, 1)
    assert [row.verdict for row in found] == ["fail", "undecided", "undecided"]
    assert "NaN" in found[0].why


def test_an_invalid_trial_is_told_in_its_row() -> None:
    question = CriterionQuestion("c", "s", "x", ValueEnds(low=0), (TRIAL,), lambda reads: 1.0)
    ran = TrialsRan()
    ran.invalid[TRIAL.scenario.id, 1] = "packets departed late"
    (row,) = judge([question], ran, 1)
    assert row.verdict == "undecided" and "packets departed late" in row.why

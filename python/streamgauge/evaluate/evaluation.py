"""An evaluation as a whole: its trials, looks, rows and result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from streamgauge.campaign import Progress
from streamgauge.evaluate.answer import sentences
from streamgauge.evaluate.judging import EvaluatedRow, counted, judge
from streamgauge.evaluate.network import CENTRE
from streamgauge.evaluate.question import CriterionQuestion
from streamgauge.evaluate.running import TrialsRan, estimated_s, run_trials, trials_of
from streamgauge.evaluate.rust_crate import CrateControl
from streamgauge.evaluate.suites import questions_of
from streamgauge.evaluate.trials import ControlBed
from streamgauge.scenario import lower
from streamgauge.systems.parameter import function_of
from streamgauge.systems.registry import Mode

__all__ = ["AGAINST", "Evaluation", "EvaluationPlan", "evaluate"]

AGAINST: Final = ("cubic", "reno", "bbr")
"""The cross traffic where none is named."""
MOST_SEEDS: Final = 40
"""Most seeds of an evaluation that runs until it is decided."""


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
    """Request for an evaluation."""

    control: str
    """As a scenario names it."""
    shown: str
    """As the user does."""
    suite: str = "bcp133"
    against: Sequence[str] = AGAINST
    reference: str = "cubic"
    """Reference of comparisons."""
    mode: Mode = "sim"
    quick: bool = False
    seeds: int = 5
    until_decided: bool = False
    crate: CrateControl | None = None
    """Simulates with a control of its own, under the name `control`."""

    def questions(self) -> list[CriterionQuestion]:
        """Returns those of the suite."""
        return questions_of(
            self.suite, ControlBed(self.control, self.mode, self.reference), self.against, quick=self.quick
        )

    def looks(self) -> list[int]:
        """After how many seeds the rows are looked at."""
        counts = [self.seeds]
        while self.until_decided and 2 * counts[-1] <= MOST_SEEDS:
            counts.append(2 * counts[-1])
        return counts


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Findings of an evaluation."""

    plan: EvaluationPlan
    rows: tuple[EvaluatedRow, ...]
    seeds: int
    ran: TrialsRan = field(repr=False)
    wall_s: float
    looks: int = 1

    @property
    def counts(self) -> Mapping[str, int]:
        """Returns how many rows have each verdict."""
        return counted(self.rows)

    @property
    def verdict(self) -> Literal["pass", "fail", "inconclusive"]:
        """It fails if a row fails, is inconclusive if no row is decided, and passes otherwise."""
        counts = self.counts
        if counts["fail"]:
            return "fail"
        return "pass" if not self.ran.interrupted and counts["pass"] + counts["equal"] else "inconclusive"

    @property
    def answer(self) -> list[str]:
        """Sentences."""
        return sentences(self.plan.shown, self.plan.suite, self.plan.mode, self.rows, self.ran, self.seeds)

    def to_json(self) -> dict[str, Any]:
        """Returns ``streamgauge.evaluation/1``."""
        return {
            "schema": "streamgauge.evaluation/1",
            "controller": self.plan.shown,
            "suite": self.plan.suite,
            "rows": [row.to_json() for row in self.rows],
            "answer": self.answer,
            "mode": self.plan.mode,
            "against": list(self.plan.against),
            "reference": self.plan.reference,
            "quick": self.plan.quick,
            "seeds": self.seeds,
            "looks": self.looks,
            "trials": self.ran.trials,
            "faults": list(dict.fromkeys(fault.words for fault in self.ran.faults.values())),
            "wall_s": self.wall_s,
        }


def evaluate(
    plan: EvaluationPlan,
    out: Path,
    *,
    foretold: Callable[[int, float], None] = lambda trials, seconds: None,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Runs a suite and judges it; existing trials in `out` are not run again.

    Args:
        plan: the request.
        out: folder of the trials' records.
        foretold: called beforehand with the number of trials, and an estimate of their seconds.
        progress: called after each trial.

    Raises:
        StreamGaugeError: if trials of emu cannot run; in sim a trial that breaks is a row that fails.
    """
    began = time.monotonic()
    questions = plan.questions()
    trials = trials_of(questions)
    looks = plan.looks()
    foretold(len(trials) * looks[0], estimated_s(trials, plan.mode, looks[0], _slower(plan)))
    for seeds in looks:
        ran = run_trials(trials, plan.mode, out, seeds=seeds, crate=plan.crate, progress=progress)
        rows = judge(questions, ran, seeds, looks=len(looks))
        if ran.interrupted or not any(row.verdict == "undecided" for row in rows):
            break
    return Evaluation(
        plan=plan,
        rows=tuple(rows),
        seeds=seeds,
        ran=ran,
        wall_s=time.monotonic() - began,
        looks=len(looks),
    )


def _slower(plan: EvaluationPlan) -> float:
    """Returns how much longer a row takes with a function of Python than with CUBIC, by a trial of 4 s of
    each."""
    if plan.mode != "sim" or function_of(plan.control) is None:
        return 1.0
    bed = ControlBed(plan.control)
    network = replace(CENTRE, rate_bps=10e6, seconds=4.0)
    took = []
    for flows in (bed.place("cubic"), bed.mine()):
        from streamgauge import _native
        from streamgauge.record.write import JsonText

        trial = lower(bed.trial(network, flows).scenario, "sim", 1)
        began = time.monotonic()
        try:
            _native.simulate_in_memory(JsonText.of(trial))
        except Exception:  # the suite finds the same, and reports it
            return 1.0
        took.append(time.monotonic() - began)
    return max(1.0, took[1] / max(took[0], 1e-3))

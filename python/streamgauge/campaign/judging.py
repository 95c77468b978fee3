"""Verdicts while trials still run: of each scenario as soon as all is there that its checks read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from streamgauge.campaign.plan import Job
from streamgauge.campaign.trial import Outcome
from streamgauge.checks import CheckResult, InvalidTrial, TrialReadings, evaluate_all, leaves_of
from streamgauge.scenario import Scenario

if TYPE_CHECKING:
    from streamgauge.metrics import TrialMetrics

__all__ = ["Judging", "measured"]


class Judging:
    """Judges the simulated trials of a campaign: of thousands that takes a second or two, in which at the end
    all processors but one would stand idle."""

    def __init__(self, scenarios: Sequence[Scenario], jobs: Sequence[Job], settings: Sequence[str]) -> None:
        """Args: scenarios: the scenarios with the checks. jobs: every trial of the campaign. settings: the
        settings of the scenarios.
        """
        self._scenarios, self._settings = scenarios, settings
        self._places = {job: place for place, job in enumerate(jobs)}
        self._left = Counter(job.scenario.id for job in jobs)
        self._reads = {one.id: {one.id, *leaves_of([one])} for one in scenarios}
        self._there: dict[str, list[Outcome]] = {}
        self._checks: dict[str, list[CheckResult]] = {}

    def finished(self, outcome: Outcome) -> None:
        """Adds a finished trial. In emu any trial may be replaced yet, and all checks that read it wait."""
        if outcome.job.mode != "sim":
            return
        name = outcome.job.scenario.id
        self._there.setdefault(name, []).append(outcome)
        self._left[name] -= 1
        if self._left[name]:
            return
        for scenario in self._scenarios:
            reads = self._reads[scenario.id]
            if name in reads and not any(self._left[one] for one in reads):
                found = [outcome for one in reads for outcome in self._there.get(one, ())]
                found.sort(key=lambda outcome: self._places[outcome.job])
                self._checks[scenario.id] = self._judge([scenario], found)

    def checks(self, outcomes: Sequence[Outcome]) -> list[CheckResult]:
        """Returns every verdict, in the scenarios' order, of all that became of the campaign."""
        rest = [one for one in self._scenarios if one.id not in self._checks]
        late = self._judge(rest, outcomes)
        return [
            check
            for one in self._scenarios
            for check in self._checks.get(one.id) or (found for found in late if found.scenario == one.id)
        ]

    def _judge(self, scenarios: Sequence[Scenario], outcomes: Iterable[Outcome]) -> list[CheckResult]:
        return evaluate_all(scenarios, measured(outcomes), settings=self._settings) if scenarios else []


def measured(outcomes: Iterable[Outcome]) -> list[TrialReadings | InvalidTrial]:
    """Returns the trials as checks read them; one that left nothing to measure counts as invalid."""
    found: list[TrialReadings | InvalidTrial] = []
    for outcome in outcomes:
        job = outcome.job
        if outcome.digest is not None and outcome.counts:
            found.append(
                TrialReadings(
                    scenario=job.scenario.id,
                    mode=job.mode,
                    seed=job.seed,
                    valid=outcome.valid,
                    why=outcome.why,
                    numbers=outcome.readings,
                    metrics=partial(_metrics, outcome),
                )
            )
        elif outcome.counts or outcome.replaced_by is not None:
            found.append(InvalidTrial(job.scenario.id, job.mode, job.seed, outcome.why, outcome.replaced_by))
    return found


def _metrics(outcome: Outcome) -> TrialMetrics | None:
    return outcome.metrics

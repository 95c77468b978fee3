"""Mutants: a check's scenario with the mechanism removed (`breaks`). A check that holds under its mutant
proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from streamgauge.campaign.earlier import set_aside
from streamgauge.campaign.folder import writing
from streamgauge.campaign.judging import measured
from streamgauge.campaign.plan import jobs_for
from streamgauge.campaign.run import CampaignResult, Progress, run_jobs
from streamgauge.campaign.trial import EmuSettings, Outcome, disk_errors
from streamgauge.checks import evaluate, leaves_of
from streamgauge.claims.syntax import Term
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, override
from streamgauge.scenario.lower import Keep
from streamgauge.scenario.mutation import MutantKind, kind_of, mutants_of
from streamgauge.scenario.words import as_written
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from streamgauge.campaign.cluster import Cluster

__all__ = ["MutantResult", "by_kind", "run_mutants", "score"]

_KINDS: tuple[MutantKind, ...] = ("mechanism", "stimulus")


@dataclass(frozen=True)
class MutantResult:
    """How a check did under its mutant in one mode."""

    check: str
    scenario: str
    mode: Mode
    breaks: dict[str, Any]
    verdict: str
    why: str
    kind: MutantKind = "stimulus"
    """Whether a subject's own parameter, rule or system is changed, or path, cross traffic and
    content alone."""
    origin: str = "predicted"
    """Kind of the check: only predicted ones count in the `score`."""
    held: bool = True
    """Whether the check passed without the mutant; one that failed anyway notices nothing."""

    @property
    def killed(self) -> bool:
        """The check noticed: it failed."""
        return self.verdict == "fail"

    def change(self) -> str:
        """Returns its change, in a person's notation."""
        return ", ".join(f"{address} = {as_written(value)}" for address, value in self.breaks.items())

    def to_json(self) -> dict[str, Any]:
        """Returns its place in the output of ``reproduce --mutants``."""
        return {
            "id": self.check,
            "scenario": self.scenario,
            "mode": self.mode,
            "breaks": self.breaks,
            "kind": self.kind,
            "verdict": self.verdict,
            "killed": self.killed,
            "origin": self.origin,
            "held": self.held,
            "why": self.why,
        }


def mutant(scenario: Scenario, check: str, key: Literal["breaks", "without"] = "breaks") -> Scenario:
    """Returns the scenario under which ``check`` must fail; `key` names which of its mutants."""
    breaks = mutants_of(scenario.checks[check])[key]
    word = check if key == "breaks" else f"{check}_{key}"
    try:
        return override(scenario, breaks, id=_mutant_id(scenario.id, word), drop_checks=True)
    except ValidationError as error:
        said = "; ".join(str(detail["msg"]) for detail in error.errors(include_url=False))
        where = f"{scenario.id}: checks.{check}.{key}"
        raise ScenarioError(f"the mutant cannot run: {said}", key=where) from None


def _mutant_id(scenario: str, check: str) -> str:
    word = "".join(c if c.isalnum() else "_" for c in check.lower())
    return f"{scenario}-mutant_{word}"


def run_mutants(
    result: CampaignResult,
    *,
    first_seed: int = 1,
    repeat: int | None = None,
    keep: Keep = "packets",
    emu: EmuSettings | None = None,
    verify: bool = False,
    cluster: Cluster | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[list[MutantResult], list[Outcome]]:
    """Runs the mutant of every check that was judged, as many times, and judges the check on it.

    Values of other scenarios in the check are from their own runs. Trials are in ``OUT/variations/mutants``.

    Raises KeyboardInterrupt if Ctrl-C cut the trials short: verdicts on a part of them would be meaningless.
    Finished trials are kept.
    """
    by_id = {scenario.id: scenario for scenario in result.scenarios}
    out = result.out / "variations" / "mutants"
    planned = []
    leaves: dict[str, dict[str, Term]] = {}
    for check in result.checks:
        scenario = by_id[check.scenario]
        for key, changes in mutants_of(scenario.checks[check.id]).items():
            changed = mutant(scenario, check.id, key)
            alone = {check.id: scenario.checks[check.id]}
            only = scenario.model_copy(update={"id": changed.id, "checks": alone})
            leaves[changed.id] = leaves_of([only]).get(changed.id, {})
            mode: Mode = "sim" if check.mode == "sim" else "emu"
            count = repeat if repeat is not None else getattr(scenario.repetitions, mode)
            jobs = jobs_for(changed, mode, out, first_seed=first_seed, repeat=count)
            planned.append((check, changed, changes, mode, jobs))
    every = [job for *_, of_one in planned for job in of_one]
    with writing(out, every) as index:
        with disk_errors(out):
            set_aside(every, index)
        outcomes, interrupted = run_jobs(
            every,
            keep=keep,
            emu=emu or EmuSettings(),
            leaves=leaves,
            index=index,
            verify=verify,
            cluster=cluster,
            progress=progress,
        )
    if interrupted:
        raise KeyboardInterrupt
    trials = measured([*result.outcomes, *outcomes])
    found = []
    for check, changed, changes, mode, _ in planned:
        model = by_id[check.scenario].checks[check.id]
        data = model.model_dump(mode="json", by_alias=True, exclude_none=True)
        population = changed.population
        members = None if population is None else population.count
        judged = evaluate(check.id, data, changed.id, mode, trials, members=members)
        found.append(
            MutantResult(
                check=check.id,
                scenario=check.scenario,
                mode=mode,
                breaks=changes,
                kind=kind_of(by_id[check.scenario], changes),
                verdict=judged.verdict,
                why=judged.why,
                origin=check.origin,
                held=check.verdict == "pass",
            )
        )
    return found, outcomes


def by_kind(mutants: Sequence[MutantResult]) -> dict[MutantKind, tuple[int, int]]:
    """Returns for predicted checks, by kind: killed mutants, and their number."""
    counted = [one for one in mutants if one.origin == "predicted"]
    found: dict[MutantKind, tuple[int, int]] = {}
    for kind in _KINDS:
        mine = [one for one in counted if one.kind == kind]
        found[kind] = (sum(one.killed for one in mine), len(mine))
    return found


def score(mutants: Sequence[MutantResult]) -> float | None:
    """Killed mutants of predicted checks out of all such, in [0, 1]; ``None`` if there are none.

    A check with a statement that was an input of the model (``input``, ``fitted``) is no evidence, mutant or
    not.
    """
    counted = [one for one in mutants if one.origin == "predicted"]
    return sum(one.killed for one in counted) / len(counted) if counted else None

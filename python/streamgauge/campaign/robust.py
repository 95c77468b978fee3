"""Robustness: do the verdicts hold under other values where a source is silent (`assumed`)?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.campaign.earlier import set_aside
from streamgauge.campaign.folder import writing
from streamgauge.campaign.judging import measured
from streamgauge.campaign.plan import Job, jobs_for
from streamgauge.campaign.run import CampaignResult, Progress, run_jobs
from streamgauge.campaign.trial import EmuSettings, Outcome, disk_errors
from streamgauge.checks import evaluate_all, leaves_of
from streamgauge.scenario import Scenario, override
from streamgauge.scenario.lower import Keep
from streamgauge.scenario.words import as_written

if TYPE_CHECKING:
    from streamgauge.campaign.cluster import Cluster

__all__ = ["Alternative", "Standing", "run_alternatives", "standings"]


@dataclass(frozen=True)
class Alternative:
    """One check's verdict under one alternative of an assumption."""

    address: str
    value: str
    scenario: str
    mode: str
    check: str
    verdict: str
    assumed_verdict: str
    why: str

    @property
    def turned(self) -> bool:
        """Returns whether the verdict hangs on the assumption."""
        return self.verdict != self.assumed_verdict

    def to_json(self) -> dict[str, Any]:
        """Returns its place in the output of ``reproduce --robust``."""
        return {
            "address": self.address,
            "value": self.value,
            "scenario": self.scenario,
            "mode": self.mode,
            "id": self.check,
            "verdict": self.verdict,
            "assumed_verdict": self.assumed_verdict,
            "turned": self.turned,
            "why": self.why,
        }


@dataclass(frozen=True)
class Standing:
    """Whether one check's verdict holds under every alternative assumption."""

    scenario: str
    mode: str
    check: str
    verdict: str
    """As assumed."""
    tried: int
    hangs_on: tuple[Alternative, ...]
    """The alternatives that turn it."""

    def words(self) -> str:
        """Returns ``robust, 9 alternatives``, or the assumptions that decide it."""
        if not self.hangs_on:
            return f"robust, {self.tried} alternative{'' if self.tried == 1 else 's'}"
        turned = "; ".join(f"{one.address} = {one.value}: {one.verdict}" for one in self.hangs_on)
        return f"hangs on {turned}"

    def to_json(self) -> dict[str, Any]:
        """Returns its place in the output of ``reproduce --robust``."""
        return {
            "scenario": self.scenario,
            "mode": self.mode,
            "id": self.check,
            "verdict": self.verdict,
            "robust": not self.hangs_on,
            "tried": self.tried,
            "hangs_on": [
                {"address": one.address, "value": one.value, "verdict": one.verdict} for one in self.hangs_on
            ],
        }


def standings(alternatives: Sequence[Alternative]) -> list[Standing]:
    """Returns each check with the alternatives that turn its verdict."""
    groups: dict[tuple[str, str, str], list[Alternative]] = {}
    for one in alternatives:
        groups.setdefault((one.scenario, one.mode, one.check), []).append(one)
    return [
        Standing(*key, mine[0].assumed_verdict, len(mine), tuple(one for one in mine if one.turned))
        for key, mine in groups.items()
    ]


def _variations(result: CampaignResult) -> dict[tuple[str, str], list[Scenario]]:
    """Returns for each alternative (address, value as written), the scenarios that it changes, as changed.

    An assumption is about the experiment, so it changes every scenario that makes it, also those that a check
    only compares with.
    """
    found: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in map(_without_mutants, result.scenarios):
        for address, assumed in scenario.assumed.items():
            for value in assumed.values:
                changed = override(scenario, {address: value})
                if changed != scenario:
                    found.setdefault((address, as_written(value)), []).append(changed)
    return found


def _without_mutants(scenario: Scenario) -> Scenario:
    """Returns the scenario with its checks alone: a mutant may set a part of a value that an alternative
    replaces as a whole."""
    checks = {
        name: check.model_copy(update={"breaks": {}, "without": {}})
        for name, check in scenario.checks.items()
    }
    return scenario.model_copy(update={"checks": checks})


class _Assumed:
    """Results of trials under the given assumptions, by their scenario."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._by_id: dict[str, list[Outcome]] = {}
        for outcome in outcomes:
            self._by_id.setdefault(outcome.job.scenario.id, []).append(outcome)

    def of(self, scenarios: Iterable[str]) -> Iterator[Outcome]:
        """Yields those of some scenarios."""
        for scenario in sorted(scenarios):
            yield from self._by_id.get(scenario, ())


def _folder(out: Path, address: str, value: str) -> Path:
    name = hashlib.blake2b(f"{address}={value}".encode(), digest_size=4).hexdigest()
    return out / "variations" / f"assumed-{name}"


def run_alternatives(
    result: CampaignResult,
    *,
    first_seed: int = 1,
    repeat: int | None = None,
    keep: Keep = "packets",
    emu: EmuSettings | None = None,
    verify: bool = False,
    cluster: Cluster | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[Alternative]:
    """Runs every alternative of every assumption, one at a time, and judges all checks again.

    Trials go to ``OUT/variations``. Raises KeyboardInterrupt if Ctrl-C cut them short, as `run_mutants` does.
    """
    modes = dict.fromkeys((outcome.job.scenario.id, outcome.job.mode) for outcome in result.outcomes)
    groups: list[tuple[str, str, list[Scenario], list[Job]]] = []
    for (address, value), changed in _variations(result).items():
        jobs = [
            job
            for scenario in changed
            for name, mode in modes
            if name == scenario.id
            for job in jobs_for(
                scenario, mode, _folder(result.out, address, value), first_seed=first_seed, repeat=repeat
            )
        ]
        groups.append((address, value, changed, jobs))
    everything = [job for *_, jobs in groups for job in jobs]
    out = result.out / "variations"
    with writing(out, everything) as index:
        with disk_errors(out):
            set_aside(everything, index)
        outcomes, interrupted = run_jobs(
            everything,
            keep=keep,
            emu=emu or EmuSettings(),
            leaves=leaves_of(scenario for scenario in result.scenarios if scenario.id in result.wanted),
            index=index,
            verify=verify,
            cluster=cluster,
            progress=progress,
        )
    if interrupted:
        raise KeyboardInterrupt
    by_place: dict[Path, list[Outcome]] = {}
    for outcome in outcomes:
        by_place.setdefault(outcome.job.directory.parent, []).append(outcome)
    assumed = _Assumed(result.outcomes)
    before = {(check.scenario, check.mode, check.id): check.verdict for check in result.checks}
    found = []
    for address, value, changed, jobs in groups:
        places = dict.fromkeys(job.directory.parent for job in jobs)
        mine = [outcome for place in places for outcome in by_place.get(place, ())]
        judged = [scenario for scenario in changed if scenario.id in result.wanted]
        read = {other for scenario in judged for other in leaves_of([scenario])}
        others = assumed.of(read - {scenario.id for scenario in changed})
        for check in evaluate_all(judged, measured([*mine, *others])):
            found.append(
                Alternative(
                    address=address,
                    value=value,
                    scenario=check.scenario,
                    mode=check.mode,
                    check=check.id,
                    verdict=check.verdict,
                    assumed_verdict=before[check.scenario, check.mode, check.id],
                    why=check.why,
                )
            )
    return found

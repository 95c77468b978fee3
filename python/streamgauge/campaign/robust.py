"""Robustness: do the verdicts hold if what a source does not say was otherwise (`assumed`)?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.campaign.plan import Job, jobs_for
from streamgauge.campaign.run import CampaignResult, Progress, measured, run_jobs
from streamgauge.campaign.trial import EmuSettings
from streamgauge.checks import evaluate_all
from streamgauge.scenario import Scenario, override
from streamgauge.scenario.lower import Keep

__all__ = ["Alternative", "run_alternatives"]


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
        """Whether the verdict hangs on the assumption."""
        return self.verdict != self.assumed_verdict

    def to_json(self) -> dict[str, Any]:
        """Its place in the output of ``reproduce --robust``."""
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


def _variations(result: CampaignResult) -> dict[tuple[str, str], list[Scenario]]:
    """For each alternative (address, value), the scenarios that it changes, as changed.

    An assumption is about the experiment, so it changes every scenario that makes it, also those that a check
    only compares with.
    """
    found: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in result.scenarios:
        for address, assumed in scenario.assumed.items():
            for value in assumed.values:
                changed = override(scenario, {address: value})
                if changed != scenario:
                    found.setdefault((address, str(value)), []).append(changed)
    return found


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
    progress: Callable[[Progress], None] | None = None,
) -> list[Alternative]:
    """Runs every alternative of every assumption, one at a time, and judges all checks again.

    Trials go to ``OUT/variations``.
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
    outcomes, _ = run_jobs(
        [job for *_, jobs in groups for job in jobs], keep=keep, emu=emu or EmuSettings(), progress=progress
    )
    before = {(check.scenario, check.mode, check.id): check.verdict for check in result.checks}
    found = []
    for address, value, changed, jobs in groups:
        mine = [outcome for outcome in outcomes if outcome.job in jobs]
        ids = {scenario.id for scenario in changed}
        others = [outcome for outcome in result.outcomes if outcome.job.scenario.id not in ids]
        judged = [scenario for scenario in changed if scenario.id in result.wanted]
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

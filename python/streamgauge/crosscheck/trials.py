"""The trials of a crosscheck: ordinary trials of the campaign layer, reused if they are there."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from streamgauge.campaign import EmuSettings, Job, Outcome, Progress, jobs_for, run_jobs
from streamgauge.crosscheck.compared import ComparedCase, CrosscheckMatter, Found
from streamgauge.crosscheck.taken import Taken, read
from streamgauge.record.schema import PROVENANCE
from streamgauge.systems.registry import Mode

__all__ = ["REFERENCE_SEED", "Bench", "CaseRuns"]

REFERENCE_SEED: Final = 1001
"""First seed where sim replaces emu: another seed is another run."""
FAST: Final = "/100m-"
"""Part of the ids of scenarios with real trials that need the machine for themselves."""
REPLACE: Final = 1
"""Number of further seeds that may replace an invalid real trial, before a case is left with fewer."""


@dataclass(frozen=True)
class CaseRuns:
    """Results of a case in one mode."""

    taken: tuple[Taken, ...]
    """Values of valid trials, by seed."""
    invalid: tuple[tuple[int, str], ...] = ()
    """Seeds of invalid trials, and why."""
    provenance: tuple[Mapping[str, Any], ...] = ()
    """For each valid trial, as in its record; for trials of earlier runs, for each run."""

    def values(self, metric: str) -> list[float | None]:
        """Returns a quantity's value in each valid trial."""
        return [taken["quantities"].get(metric) for taken in self.taken]

    @property
    def metrics(self) -> list[str]:
        """Returns the quantities, in the order in which they were taken."""
        return list(dict.fromkeys(name for taken in self.taken for name in taken["quantities"]))

    @property
    def quantities(self) -> list[Found]:
        """Returns every valid trial's."""
        return [taken["quantities"] for taken in self.taken]


@dataclass
class Bench:
    """Runs trials for a crosscheck, and remembers whether Ctrl-C cut them short."""

    matter: CrosscheckMatter
    out: Path
    emu: EmuSettings
    progress: Callable[[Progress], None] | None = None
    reference: Mode = "emu"
    real: Mapping[str, CaseRuns] = field(default_factory=dict)
    """Cases with existing trials of the reference, by id."""
    interrupted: bool = False

    def run(self, wanted: Sequence[ComparedCase]) -> dict[str, tuple[CaseRuns, CaseRuns]]:
        """Returns every case in sim and in the reference; of that, invalid trials are replaced by further
        seeds.

        Returns:
            By the case's id, its results in sim and in the reference.
        """
        jobs = {
            case.id: (
                self._jobs(case, "sim", case.sim),
                [] if case.id in self.real else self._reference(case, case.emu),
            )
            for case in wanted
        }
        left = self._go(job for pair in jobs.values() for some in pair for job in some)
        return {
            name: (_runs(sim, left), self.real[name] if name in self.real else _runs(emu, left))
            for name, (sim, emu) in jobs.items()
        }

    def simulate(self, label: str, wanted: Iterable[ComparedCase]) -> dict[str, CaseRuns]:
        """Cases in sim alone, in a folder of their own: variants keep their scenario's id."""
        jobs = {case.id: self._jobs(case, "sim", case.sim, folder=f"variants/{label}") for case in wanted}
        left = self._go(job for some in jobs.values() for job in some)
        return {name: _runs(some, left) for name, some in jobs.items()}

    def _reference(self, case: ComparedCase, count: int) -> list[Job]:
        first = 1 if self.reference == "emu" else REFERENCE_SEED
        return self._jobs(case, self.reference, count, first=first)

    def _jobs(
        self, case: ComparedCase, mode: Mode, count: int, *, first: int = 1, folder: str = ""
    ) -> list[Job]:
        jobs = jobs_for(case.scenario, mode, self.out / folder, first_seed=first, repeat=count)
        build, extra = _build() if mode == "sim" else "", self.matter.keeper(case)
        return [replace(job, key=_key(job.key, build), extra=extra) for job in jobs]

    def _go(self, jobs: Iterable[Job]) -> dict[Path, list[Outcome]]:
        """Returns the outcome of each repetition, by the place of its own trial."""
        todo = list(jobs)
        found: dict[Path, list[Outcome]] = {}
        shared = replace(self.emu, replace=REPLACE)
        for heavy, emu in ((False, shared), (True, replace(shared, jobs=1))):
            some = [job for job in todo if self._is_heavy(job) == heavy]
            if some and not self.interrupted:
                outcomes, self.interrupted = run_jobs(some, keep="events", emu=emu, progress=self.progress)
                for one in outcomes:
                    own = one.job.seed if one.job.replaces is None else one.job.replaces
                    found.setdefault(one.job.directory.with_name(f"seed={own}"), []).append(one)
        return found

    def _is_heavy(self, job: Job) -> bool:
        """Returns whether it has to run alone. Virtual machines disturb no other trial's time."""
        from streamgauge.emu.options import Virtual

        return FAST in job.scenario.id and Virtual.of(self.emu.way) is None


def _runs(jobs: Iterable[Job], outcomes: Mapping[Path, Sequence[Outcome]]) -> CaseRuns:
    taken: list[Taken] = []
    invalid: list[tuple[int, str]] = []
    provenance: list[Mapping[str, Any]] = []
    for outcome in (one for job in jobs for one in outcomes.get(job.directory, ())):
        if outcome.valid:
            taken.append(read(outcome.job.directory))
            file = outcome.job.directory / PROVENANCE
            provenance.append(json.loads(file.read_text(encoding="utf-8")))
        else:
            invalid.append((outcome.job.seed, "; ".join(outcome.why)))
    return CaseRuns(tuple(taken), tuple(invalid), tuple(provenance))


def _key(key: str, build: str) -> str:
    """A simulator that was built anew may be another one, and its trials cost nothing."""
    return hashlib.blake2b(f"{key} {build}".encode(), digest_size=16).hexdigest() if build else key


@functools.cache
def _build() -> str:
    from streamgauge import _native

    status = Path(str(_native.__file__)).stat()
    return f"{status.st_size} {status.st_mtime_ns}"

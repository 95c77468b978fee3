"""Points of a search: settings of all unknowns, run by the campaign's pool; only their readings are kept.

A point gives each unknown the index of one of its values. A trial is decided by the scenario under the point
and the seed, so points that differ where a scenario does not look share its trials. ``OUT/readings.jsonl``
has a line a trial and grows as trials finish: the same search finds its trials there and continues.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamgauge.campaign import EmuSettings, Outcome, Progress, jobs_for, run_jobs, trial_directory
from streamgauge.campaign.folder import writing
from streamgauge.campaign.plan import Job
from streamgauge.campaign.trial import disk_errors
from streamgauge.checks import Leaves, Number, TrialReadings, leaves_of
from streamgauge.checks.readings import READING
from streamgauge.infer.unknowns import Unknowns
from streamgauge.metrics.result import measured_by
from streamgauge.scenario import Scenario

if TYPE_CHECKING:
    from streamgauge.campaign.cluster import Cluster

__all__ = ["FILE", "Point", "PointRunner", "Readings"]

Point = tuple[int, ...]
Readings = dict[str, list[TrialReadings]]
FILE: Final = "readings.jsonl"
_TRIALS: Final = "trials"


@dataclass
class _Kept:
    """The readings of trials by their keys, in memory and in a file that only grows."""

    file: Path
    rows: dict[str, dict[str, Number]] = field(default_factory=dict)

    def load(self) -> None:
        """Reads the existing file; a line that a crash cut short is left out."""
        if not self.file.exists():
            return
        with self.file.open(encoding="utf-8") as lines:
            for line in lines:
                try:
                    key, readings = json.loads(line)
                except ValueError:
                    continue
                self.rows.setdefault(key, {}).update(readings)

    def add(self, found: Iterable[tuple[str, Mapping[str, Number]]]) -> None:
        """Appends trials; each is on disk as a whole line."""
        with disk_errors(self.file), self.file.open("a", encoding="utf-8") as file:
            for key, readings in found:
                self.rows.setdefault(key, {}).update(readings)
                file.write(json.dumps([key, dict(readings)], separators=(",", ":")) + "\n")


class PointRunner:
    """Runs points of one paper and reads the values for its checks.

    Args:
        scenarios: as in the reading `sources`; those with checks and those that these read.
        judged: the ids of those with checks.
        unknowns: of the paper.
        out: folder of readings, and of trials while they run.
        most_trials: most repetitions of a scenario with a population.
        cluster: its workers run the trials instead of this machine.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        judged: Iterable[str],
        unknowns: Unknowns,
        out: Path,
        *,
        most_trials: int | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.scenarios = list(scenarios)
        self.unknowns = unknowns
        self.out = out
        self.cluster = cluster
        self.ran = 0
        self.reused = 0
        self._most = most_trials
        wanted = set(judged)
        self._leaves = leaves_of(one for one in self.scenarios if one.id in wanted)
        self._read = [one for one in self.scenarios if one.id in self._leaves]
        self._kept = _Kept(out / FILE)
        with disk_errors(out):
            out.mkdir(parents=True, exist_ok=True)
        self._kept.load()
        self._made: dict[tuple[str, tuple[tuple[str, int], ...]], Scenario | None] = {}

    def scenario_at(self, scenario: Scenario, point: Point) -> Scenario | None:
        """Returns the scenario under a point, ``None`` if it is impossible; made once for all points that
        agree in its parts."""
        key = (scenario.id, self._departures(scenario.id, point))
        if key not in self._made:
            self._made[key] = self.unknowns.applied(scenario, point)
        return self._made[key]

    def _departures(self, scenario: str, point: Point) -> tuple[tuple[str, int], ...]:
        of = zip(self.unknowns.each, point, strict=True)
        return tuple((one.name, index) for one, index in of if index and one.is_for(scenario))

    def run(
        self,
        points: Sequence[Point],
        seeds: Sequence[int],
        progress: Callable[[Progress], None] | None = None,
    ) -> list[Readings | None]:
        """Returns the readings of each point over the seeds, by scenario; ``None`` where its values
        contradict one another.

        A scenario with a population is run with as many seeds more as it has members, `most_trials` at most.
        Raises KeyboardInterrupt after keeping finished results, and StreamGaugeError.
        """
        plans: list[list[Job] | None] = []
        jobs: dict[str, Job] = {}
        for point in points:
            plan: list[Job] | None = []
            for scenario in self._read:
                made = self.scenario_at(scenario, point)
                if made is None:
                    plan = None
                    break
                assert plan is not None
                plan += self._jobs(made, seeds)
            plans.append(plan)
            for job in plan or ():
                if self._missing(job):
                    jobs.setdefault(job.key, job)
        self._run(list(jobs.values()), progress)
        return [None if plan is None else self._readings(plan) for plan in plans]

    def _jobs(self, scenario: Scenario, seeds: Sequence[int]) -> list[Job]:
        count = 1
        if scenario.population is not None:
            count = min(scenario.repetitions.sim, self._most or scenario.repetitions.sim)
        return list(_jobs_of(_Same(scenario), self.out / _TRIALS, tuple(seeds), count))

    def _missing(self, job: Job) -> bool:
        known = self._kept.rows.get(job.key)
        return known is None or not known.keys() >= self._leaves[job.scenario.id].keys()

    def _run(self, jobs: list[Job], progress: Callable[[Progress], None] | None) -> None:
        self.reused += 0
        if not jobs:
            return
        leaves: Mapping[str, Leaves] = self._leaves
        with writing(self.out / _TRIALS, jobs):
            outcomes, interrupted = run_jobs(
                jobs,
                keep="metrics",
                emu=EmuSettings(),
                leaves=leaves,
                cluster=self.cluster,
                progress=progress,
            )
            self._kept.add((one.job.key, self._numbers(one)) for one in outcomes)
            for folder in {one.job.directory.parent.parent for one in outcomes}:
                shutil.rmtree(folder, ignore_errors=True)
        self.ran += len(outcomes)
        if interrupted:
            raise KeyboardInterrupt

    def _numbers(self, outcome: Outcome) -> dict[str, Number]:
        """Returns the readings of a trial; for an invalid one the reason, in the place of each number."""
        if outcome.valid:
            return dict(outcome.readings)
        why = "; ".join(outcome.why) or "invalid"
        return dict.fromkeys(self._leaves[outcome.job.scenario.id], f"invalid: {why}")

    def _readings(self, jobs: Sequence[Job]) -> Readings:
        found: Readings = {}
        for job in jobs:
            numbers = self._kept.rows[job.key]
            found.setdefault(job.scenario.id, []).append(
                TrialReadings(
                    scenario=job.scenario.id,
                    mode="sim",
                    seed=job.seed,
                    valid=True,
                    why=(),
                    numbers=numbers,
                    metrics=lambda: None,
                )
            )
        return found


class _Same:
    """A scenario as a key of a cache: the same object, whatever is in it."""

    __slots__ = ("scenario",)

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    def __hash__(self) -> int:
        return id(self.scenario)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.scenario is self.scenario


@functools.lru_cache(maxsize=65536)
def _jobs_of(same: _Same, out: Path, seeds: tuple[int, ...], count: int) -> tuple[Job, ...]:
    """Returns the trials of a scenario: of a population `count` for each seed, each another member."""
    scenario = same.scenario
    measure = scenario.measure.model_dump_json(by_alias=True)
    wanted = [(seed - 1) * count + 1 + more for seed in seeds for more in range(count)]
    made = []
    for seed in wanted:
        (job,) = jobs_for(scenario, "sim", out, first_seed=seed, repeat=1)
        # Metrics are measured as `measure` has it, which decides nothing of the trial itself.
        digest = hashlib.blake2b(f"{job.key} {measure} {measured_by()} {READING}".encode(), digest_size=16)
        key = digest.hexdigest()
        folder = f"{scenario.id} {key[:8]}"
        made.append(
            Job(
                scenario=scenario,
                mode="sim",
                seed=seed,
                directory=trial_directory(out, folder, "sim", seed),
                key=key,
                words=job.words,
            )
        )
    return tuple(made)

"""One trial as work for a process that shares nothing with the campaign but the folder: its input, and its
result."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from streamgauge.campaign.plan import Extra, Job
from streamgauge.campaign.trial import EmuSettings, Outcome, run_job
from streamgauge.checks import Leaves, Number
from streamgauge.errors import StreamGaugeError
from streamgauge.scenario import Scenario
from streamgauge.scenario.lower import Keep
from streamgauge.systems.registry import Mode

__all__ = ["Row", "Task", "perform", "tasks_of"]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A trial to run."""

    shared: bytes
    """Common data of all trials of a scenario, pickled once: the scenario, the leaves to read of each, and
    the extras of its record."""
    mode: Mode
    seed: int
    directory: str
    key: str
    settings: tuple[str, ...]
    set_with: tuple[str, ...]
    replaces: int | None
    keep: Keep

    def job(self) -> Job:
        """Returns the trial as a campaign plans it."""
        scenario, _, extra = _unpacked(self.shared)
        return Job(
            scenario=scenario,
            mode=self.mode,
            seed=self.seed,
            directory=Path(self.directory),
            key=self.key,
            extra=extra,
            settings=self.settings,
            set_with=self.set_with,
            replaces=self.replaces,
        )

    @property
    def leaves(self) -> Leaves:
        """Returns the metrics to read of it."""
        return _unpacked(self.shared)[1]


@dataclass(frozen=True, kw_only=True)
class Row:
    """Outcome of a trial: all that a campaign keeps in memory of it."""

    valid: bool
    why: tuple[str, ...]
    digest: str | None
    wall_s: float
    readings: Mapping[str, Number] = field(default_factory=dict)

    @classmethod
    def of(cls, outcome: Outcome) -> Row:
        """Returns the row of an outcome. The campaign has the job itself."""
        return cls(
            valid=outcome.valid,
            why=outcome.why,
            digest=outcome.digest,
            wall_s=outcome.wall_s,
            readings=outcome.readings,
        )

    def outcome(self, job: Job) -> Outcome:
        """Returns the outcome of the campaign's `job`."""
        return Outcome(
            job=job,
            valid=self.valid,
            why=self.why,
            digest=self.digest,
            wall_s=self.wall_s,
            # The same text for all trials of a scenario, not one each.
            readings={sys.intern(text): number for text, number in self.readings.items()},
        )


@lru_cache(maxsize=256)
def _unpacked(shared: bytes) -> tuple[Scenario, Leaves, Extra | None]:
    found: tuple[Scenario, Leaves, Extra | None] = pickle.loads(shared)
    return found


def tasks_of(keep: Keep, leaves: Mapping[str, Leaves]) -> Callable[[Job], Task]:
    """Makes tasks of jobs; `leaves` are those to be read, by the scenario's id."""
    packed: dict[tuple[int, int], tuple[Scenario, Extra | None, bytes]] = {}

    def task(job: Job) -> Task:
        # By identity: jobs of a scenario have the very same one, which lives as long as it is kept here.
        place = (id(job.scenario), id(job.extra))
        if place not in packed:
            shared = (job.scenario, dict(leaves.get(job.scenario.id, {})), job.extra)
            packed[place] = (job.scenario, job.extra, pickle.dumps(shared))
        return Task(
            shared=packed[place][2],
            mode=job.mode,
            seed=job.seed,
            directory=str(job.directory),
            key=job.key,
            settings=job.settings,
            set_with=job.set_with,
            replaces=job.replaces,
            keep=keep,
        )

    return task


def perform(
    task: Task,
    *,
    emu: EmuSettings | None = None,
    say: Callable[[str], None] = lambda _: None,
    wanted: Callable[[], bool] = lambda: True,
) -> Row:
    """Runs the trial and leaves its record in its place. The arguments are `run_job`'s. Raises
    StreamGaugeError."""
    outcome = run_job(
        task.job(), keep=task.keep, emu=emu or EmuSettings(), say=say, leaves=task.leaves, wanted=wanted
    )
    return Row.of(outcome)


def as_sent(error: BaseException) -> BaseException:
    """Returns an error that another process can receive: itself, or one with the same text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return (
            StreamGaugeError(str(error)) if isinstance(error, StreamGaugeError) else RuntimeError(repr(error))
        )
    return error

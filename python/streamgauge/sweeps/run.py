"""Running a sweep: the trials of all its points as one campaign."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.campaign import EmuSettings, Job, Outcome, Progress, check_trials, jobs_for, run_jobs
from streamgauge.campaign.earlier import SetAside, set_aside
from streamgauge.campaign.folder import writing
from streamgauge.campaign.trial import disk_errors
from streamgauge.claims.names import METRICS
from streamgauge.metrics.interval import interval
from streamgauge.scenario.lower import Keep
from streamgauge.scenario.over import Axis
from streamgauge.scenario.settings import set_folder
from streamgauge.sweeps.measures import MetricOf, leaves_at, measured_of
from streamgauge.sweeps.points import ImpossiblePoint, SweepPoint, SweepPoints
from streamgauge.sweeps.table import SweepRow, frame_of, rows_json

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FOLDER", "SweepResult", "run_points"]

FOLDER = "sweep"
"""Where tables and figures of sweeps lie in a campaign's folder."""
_LONGEST = 100
"""Length of a file's name, without its suffix."""


@dataclass(frozen=True)
class SweepResult:
    """Findings of a sweep; the records are on disk."""

    axes: tuple[Axis, ...]
    points: tuple[SweepPoint, ...]
    rows: tuple[SweepRow, ...]
    """Each point's metrics: those that were asked for, or those that matter of the usual."""
    outcomes: tuple[Outcome, ...]
    out: Path
    planned: int
    wall_s: float
    all_asked: bool = False
    """Whether its metrics were asked for by name."""
    interrupted: bool = False
    set_aside: tuple[SetAside, ...] = ()
    left_out: tuple[ImpossiblePoint, ...] = ()
    """Combinations that no trial can have."""

    @property
    def scenarios(self) -> list[str]:
        """Their ids."""
        return list(dict.fromkeys(point.scenario.id for point in self.points))

    @property
    def metrics(self) -> list[str]:
        """Returns the metrics of the rows, in the order asked."""
        return list(dict.fromkeys(row.measured.metric for row in self.rows))

    @cached_property
    def under_test(self) -> list[SweepRow]:
        """Returns the rows of the subject flows and of those asked for by name, of stages and of whole
        trials."""
        return [row for row in self.rows if _under_test(row.point, row.measured)]

    @cached_property
    def shown(self) -> list[SweepRow]:
        """Returns the subject flows that have a value, for tables and figures; without default metrics that
        are 0 at every point (`never`)."""
        never = set(self.never)
        return [row for row in self.under_test if row.interval is not None and row.measured not in never]

    @cached_property
    def never(self) -> list[MetricOf]:
        """Returns the usual metrics of the subject flows that are 0 at every point: no stall, no frame
        lost."""
        if self.all_asked:
            return []
        most: dict[MetricOf, float] = {}
        for row in self.under_test:
            mean = math.inf if row.interval is None else abs(row.interval.mean)
            most[row.measured] = max(most.get(row.measured, 0.0), mean)
        return [measured for measured, value in most.items() if not value]

    @property
    def name(self) -> str:
        """Returns the name of its files: ``hessler-ftp-medium-over-path.down.queue-path.down.rate``."""
        said = "-".join([*self.scenarios, "over", *(axis.address for axis in self.axes)])
        safe = re.sub(r"[^A-Za-z0-9._]+", "-", said).strip("-")
        if len(safe) <= _LONGEST:
            return safe
        digest = hashlib.blake2b(said.encode(), digest_size=4).hexdigest()
        return f"{safe[: _LONGEST - len(digest) - 1]}-{digest}"

    def mostly_invalid(self) -> list[tuple[SweepPoint, int, int]]:
        """Returns points with more than a third of their repetitions invalid, with that number and the
        total."""
        counted: dict[int, list[bool]] = {}
        for outcome in self.outcomes:
            if outcome.counts:
                counted.setdefault(id(outcome.job.scenario), []).append(outcome.valid)
        found = []
        for point in self.points:
            valid = counted.get(id(point.scenario), [])
            invalid = valid.count(False)
            if 3 * invalid > len(valid):
                found.append((point, invalid, len(valid)))
        return found

    def labels_at(self, at: Sequence[int]) -> dict[str, str]:
        """Returns the values of a combination, by address."""
        return {axis.address: axis.labels[place] for axis, place in zip(self.axes, at, strict=True)}

    def frame(self) -> pl.DataFrame:
        """Returns the rows as a tidy frame; see `frame_of`."""
        return frame_of(self.rows, self.axes)

    def to_json(self) -> dict[str, Any]:
        """Returns ``streamgauge.sweep/1``."""
        axes = []
        for axis in self.axes:
            scale = axis.scale()
            numbers = {"unit": scale.unit, "numbers": list(scale.numbers)} if scale is not None else {}
            axes.append({"address": axis.address, "values": list(axis.values), **numbers})
        return {
            "schema": "streamgauge.sweep/1",
            "scenarios": self.scenarios,
            "axes": axes,
            "metrics": [{"name": name, "title": METRICS[name].title} for name in self.metrics],
            "rows": rows_json(self.rows, self.axes),
            "left_out": [{"point": self.labels_at(one.at), "why": one.why} for one in self.left_out],
            "trials": len(self.outcomes),
            "planned": self.planned,
            "interrupted": self.interrupted,
            "set_aside": [one.to_json() for one in self.set_aside],
            "wall_s": self.wall_s,
        }


def run_points(
    points: Sequence[SweepPoint],
    axes: Sequence[Axis],
    out: Path,
    *,
    metrics: Sequence[str] = (),
    first_seed: int = 1,
    repeat: int | None = None,
    keep: Keep = "metrics",
    emu: EmuSettings | None = None,
    verify: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> SweepResult:
    """Runs the trials of all points, of each its first repetition before any second one, and measures them.

    A point's records are in the folder of a run with its settings, and existing ones are not run again. The
    arguments are those of `streamgauge.campaign.run`. Raises ScenarioError for an unknown metric,
    StreamGaugeError if a trial cannot run; Ctrl-C ends it early and sets ``interrupted``.
    """
    began = time.monotonic()
    measured = measured_of(points, metrics)
    check_trials(
        repeat if repeat is not None else getattr(point.scenario.repetitions, point.mode) for point in points
    )
    by_point = {point: _jobs(point, out, first_seed, repeat) for point in points}
    rounds = max(map(len, by_point.values()), default=0)
    jobs = [mine[n] for n in range(rounds) for mine in by_point.values() if n < len(mine)]
    with writing(out, jobs) as index:
        with disk_errors(out):
            moved = set_aside(jobs, index)
        outcomes, interrupted = run_jobs(
            jobs,
            keep=keep,
            emu=emu or EmuSettings(),
            leaves=leaves_at(points, measured),
            index=index,
            verify=verify,
            progress=progress,
        )
    places = {mine[0].directory.parent: point for point, mine in by_point.items()}
    found: dict[SweepPoint, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(places[outcome.job.directory.parent], []).append(outcome)
    return SweepResult(
        axes=tuple(axes),
        points=tuple(points),
        rows=tuple(_rows(points, measured, found, all_asked=bool(metrics))),
        outcomes=tuple(outcomes),
        out=out,
        planned=len(jobs),
        all_asked=bool(metrics),
        wall_s=time.monotonic() - began,
        interrupted=interrupted,
        set_aside=tuple(moved),
        left_out=points.left_out if isinstance(points, SweepPoints) else (),
    )


def _jobs(point: SweepPoint, out: Path, first_seed: int, repeat: int | None) -> list[Job]:
    return jobs_for(
        point.scenario,
        point.mode,
        out / set_folder(point.settings),
        first_seed=first_seed,
        repeat=repeat,
        settings=point.settings,
    )


def _under_test(point: SweepPoint, measured: MetricOf) -> bool:
    flow = point.scenario.flows.get(measured.flow or "")
    return measured.flow is None or measured.named or (flow is not None and flow.role == "subject")


def _rows(
    points: Sequence[SweepPoint],
    measured: Sequence[MetricOf],
    found: Mapping[SweepPoint, Sequence[Outcome]],
    *,
    all_asked: bool,
) -> Iterable[SweepRow]:
    """Returns a row for each metric of each flow at each point with a finished trial. Unless all were asked
    for, those are left out that no subject flow has, and those of flows that never have them."""
    made = []
    for point in points:
        outcomes = found.get(point, ())
        counted = [outcome for outcome in outcomes if outcome.counts]
        valid = [outcome for outcome in counted if outcome.valid]
        for one in measured if counted else ():
            if one.flow is not None and one.flow not in point.scenario.flows:
                continue
            text = str(one.leaf)
            values = [
                value for outcome in valid if isinstance(value := outcome.readings.get(text), float | int)
            ]
            made.append(
                SweepRow(
                    point=point,
                    measured=one,
                    interval=interval(values) if values else None,
                    valid=len(valid),
                    invalid=len(counted) - len(valid),
                    directory=counted[0].job.directory.parent,
                )
            )
    if all_asked:
        return made
    known = {row.measured for row in made if row.interval is not None}
    wanted = {
        row.measured.metric for row in made if row.measured in known and _under_test(row.point, row.measured)
    }
    return [row for row in made if row.measured in known and row.measured.metric in wanted]

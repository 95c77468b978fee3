"""The best system in each kind of scenario, and over all of them: the statistics of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.compare import COMPARED, ComparedMetric, ComparedRow, SubjectTrials, compare
from streamgauge.compare.judging import with_harm
from streamgauge.matrix.cells import Matrix, ScenarioKind
from streamgauge.matrix.emulated import HOST
from streamgauge.matrix.running import MatrixTrials, begun
from streamgauge.processors import processors
from streamgauge.systems.adapters import has_camera

__all__ = ["CALL_MEASURES", "MEASURES", "OVERALL", "JudgedKind", "JudgedMatrix", "judged", "measures_of"]

MEASURES = (
    "shown_rate", "frozen_share", "startup_delay", "live_latency",
    "harm", "neighbour_share", "neighbour_delay", "jain",
)  # fmt: skip
"""By which systems are ranked: the viewer's, then the neighbours'."""
CALL_MEASURES = (
    "goodput", "frozen_share", "frames_lost", "live_latency", "path_delay_p95", "loss", "harm", "jain",
)  # fmt: skip
"""Metrics that rank systems with media made as they are sent, where no clip's rate is known."""
OVERALL = "overall"
"""The name of the kind that is all kinds but the undisturbed one, each weighing the same."""


@dataclass(frozen=True, kw_only=True)
class JudgedKind:
    """A kind of scenario, or all of them, in one mode."""

    kind: ScenarioKind
    mode: str
    machine: str
    """Where it was emulated, ``host`` or ``virtual``; empty of simulation, and of several."""
    rows: tuple[ComparedRow, ...]
    """One a system and measure that is known of any; a subject is a system's name."""
    n: int
    """The most valid trials that a system has."""
    invalid: int
    """Repetitions without a valid trial."""

    def row(self, system: str, measure: str) -> ComparedRow | None:
        """Returns the row of these; None if nothing is known."""
        found = self._by_key.get((system, measure))
        return found if found is not None and found.value is not None else None

    @property
    def _by_key(self) -> Mapping[tuple[str, str], ComparedRow]:
        return {(row.subject, row.metric): row for row in self.rows}

    @property
    def measures(self) -> list[ComparedMetric]:
        """Returns those that any system has here."""
        known = dict.fromkeys(row.metric for row in self.rows if row.value is not None)
        return [COMPARED[name] for name in known]

    def first(self, measure: str) -> list[str]:
        """Returns the systems that none beats beyond doubt; all of them if none is beaten."""
        return [row.subject for row in self._known(measure) if not row.beaten_by]

    def tells_apart(self, measure: str) -> bool:
        """Returns whether any system is beaten."""
        return any((row.rank or 1) > 1 for row in self._known(measure))

    def ordered(self, measure: str) -> list[ComparedRow]:
        """Returns the rows of a measure by value, the best first."""
        sign = -1.0 if COMPARED[measure].better == "more" else 1.0
        return sorted(self._known(measure), key=lambda row: sign * (row.value or 0.0))

    def _known(self, measure: str) -> list[ComparedRow]:
        return [row for row in self.rows if row.metric == measure and row.value is not None]

    def dominated(self, one: str, other: str, measures: Sequence[str]) -> bool:
        """Returns whether `one` is beaten beyond doubt by `other` in each of these measures."""
        rows = [self.row(one, measure) for measure in measures]
        return all(row is not None and other in row.beaten_by for row in rows)


@dataclass(frozen=True, kw_only=True)
class JudgedMatrix:
    """All data of the page and the JSON."""

    matrix: Matrix
    kinds: tuple[JudgedKind, ...]
    """In the file's order, those of a kind's several modes in a row."""
    overall: tuple[JudgedKind, ...]
    """Over all kinds but the undisturbed one, one a mode in which any kind has more than one trial."""
    trials: int
    notes: tuple[str, ...]

    def of(self, kind: str, mode: str) -> JudgedKind | None:
        """Returns a kind in a mode; None if it has no trials."""
        found = (one for one in (*self.kinds, *self.overall) if (one.kind.name, one.mode) == (kind, mode))
        return next(found, None)

    @property
    def modes(self) -> list[str]:
        """Returns those with trials, simulation first."""
        return sorted({one.mode for one in self.kinds}, key=lambda mode: mode != "sim")

    @property
    def main(self) -> str:
        """Returns the mode that answers: the one that has the most kinds."""
        return max(self.modes, key=lambda mode: sum(one.mode == mode for one in self.kinds), default="sim")

    def label(self, system: str) -> str:
        """Returns the name of a system."""
        return next((one.label for one in self.matrix.systems if one.name == system), system)

    def disturbed(self, mode: str) -> list[JudgedKind]:
        """Returns the kinds that `overall` is over."""
        undisturbed = undisturbed_of(self.matrix)
        return [one for one in self.kinds if one.mode == mode and one.kind.name not in undisturbed]


def undisturbed_of(matrix: Matrix) -> set[str]:
    """Returns the kinds in which nothing happens: no flow is beside the system, and its path is that of a
    kind with one."""
    cells: dict[str, Any] = {}
    for cell in matrix.cells:
        cells.setdefault(cell.kind, cell.scenario)
    crowded = {_path_of(scenario) for scenario in cells.values() if len(scenario.flows) > 1}
    return {
        kind for kind, scenario in cells.items() if len(scenario.flows) == 1 and _path_of(scenario) in crowded
    }


def _path_of(scenario: Any) -> str:
    return str(scenario.normalised()["path"])


def measures_of(matrix: Matrix) -> tuple[str, ...]:
    """By which its systems are ranked: those of calls where no subject flow plays a clip."""
    tested = [
        flow
        for cell in matrix.cells
        for flow in cell.scenario.flows.values()
        if flow.role == "subject" and flow.system is not None
    ]
    is_made = [flow.clip is None or has_camera({"system": flow.system}) for flow in tested]
    return CALL_MEASURES if tested and all(is_made) else MEASURES


def judged(ran: MatrixTrials) -> JudgedMatrix:
    """Ranks the systems in every kind and over all of them."""
    measures = measures_of(ran.matrix)
    asked: list[tuple[ScenarioKind, str, list[SubjectTrials], str]] = []
    totals = dict[str, dict[str, list[SubjectTrials]]]()
    undisturbed = undisturbed_of(ran.matrix)
    for kind in ran.matrix.kinds:
        for mode in ("sim", "emu"):
            mine = [begun(case) for case in with_harm(ran.by_kind[kind.name]) if case.mode == mode]
            mine = [case for case in mine if case.trials]
            if not mine:
                continue
            machine = ran.machines.get(kind.name, HOST) if mode == "emu" else ""
            asked.append((kind, mode, mine, machine))
            if kind.name not in undisturbed:
                totals.setdefault(mode, {})[kind.name] = mine
    # Resampling takes most of the time, and no interpreter.
    with ThreadPoolExecutor(processors()) as pool:
        kinds = list(pool.map(lambda one: _judged(measures, *one), asked))
    overall = []
    for mode, by_kind in totals.items():
        machines = {one.machine for one in kinds if one.mode == mode and one.kind.name in by_kind}
        machine = machines.pop() if len(machines) == 1 else ""
        overall.append(_overall(mode, by_kind, ran.matrix, machine, measures))
    return JudgedMatrix(
        matrix=ran.matrix,
        kinds=tuple(kinds),
        overall=tuple(one for one in overall if one is not None),
        trials=ran.count,
        notes=tuple(_notes(ran)),
    )


def _judged(
    measures: Sequence[str], kind: ScenarioKind, mode: str, cases: Sequence[SubjectTrials], machine: str
) -> JudgedKind:
    found = compare(cases, metrics=measures)
    order = {name: place for place, name in enumerate(measures)}
    rows = sorted(found.rows, key=lambda row: order[row.metric])
    return JudgedKind(
        kind=kind,
        mode=mode,
        machine=machine,
        # They are ranked, without a baseline.
        rows=tuple(
            replace(row, scenario=kind.name, verdict=None, difference=None, difference_interval=None, why="")
            for row in rows
        ),
        n=max(len(case.trials) for case in cases),
        invalid=sum(case.invalid for case in cases),
    )


def _overall(
    mode: str,
    by_kind: Mapping[str, Sequence[SubjectTrials]],
    matrix: Matrix,
    machine: str,
    measures: Sequence[str],
) -> JudgedKind | None:
    """Returns all kinds as one: for each system and seed the mean over the kinds of each measure, where every
    system that has it at all has it in the same kinds."""
    if len(by_kind) < 2:
        return None
    cases = []
    for system in matrix.systems:
        mine = [case for found in by_kind.values() for case in found if case.subject == system.name]
        if len(mine) < len(by_kind):
            continue
        trials: dict[int, dict[str, float]] = {}
        for seed in set.intersection(*(set(case.trials) for case in mine)):
            read = {}
            for name in measures:
                kinds = _known_in(name, by_kind)
                values = [case.trials[seed].get(name, math.nan) for case in mine if case.of in kinds]
                if values and all(map(math.isfinite, values)):
                    read[name] = math.fsum(values) / len(values)
            trials[seed] = read
        if trials:
            cases.append(replace(mine[0], trials=trials, of=OVERALL, id=OVERALL, invalid=0, note=""))
    if not cases:
        return None
    kind = ScenarioKind(
        name=OVERALL,
        label=f"all {len(by_kind)} kinds with congestion",
        question=matrix.question,
        group=OVERALL,
    )
    return _judged(measures, kind, mode, cases, machine)


def _known_in(measure: str, by_kind: Mapping[str, Sequence[SubjectTrials]]) -> set[str]:
    """Returns the kinds in which a measure is known at all."""
    return {
        kind
        for kind, cases in by_kind.items()
        for case in cases
        if any(measure in read for read in case.trials.values())
    }


def _notes(ran: MatrixTrials) -> Iterable[str]:
    for kind in ran.matrix.kinds:
        for case in ran.by_kind[kind.name]:
            if case.note and case.subject:
                yield f"{case.subject} in {kind.name} ({case.mode}): {case.note}."

"""Runs the matrix, the neighbours alone beside it, and reads existing trials of other modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamgauge.campaign import EmuSettings, Progress
from streamgauge.compare import SubjectTrials
from streamgauge.compare.running import CollectedTrials, Trials, collect
from streamgauge.compare.shown import asked_s
from streamgauge.compare.subjects import AskedScenario, ComparedSubject
from streamgauge.matrix.cells import Matrix
from streamgauge.matrix.emulated import emulated_of, lying, with_quarter
from streamgauge.scenario.lower import Keep
from streamgauge.systems.registry import Mode

__all__ = ["EmulatedBeside", "MatrixTrials", "begun", "run_matrix"]


@dataclass(frozen=True, kw_only=True)
class EmulatedBeside:
    """A quarter of the kinds, emulated beside simulated ones."""

    out: Path
    """Where its records go: the campaign's folder, or a machine's below it."""
    repeat: int
    """Trials of each cell."""


@dataclass(frozen=True, kw_only=True)
class MatrixTrials:
    """The trials of a matrix: of each kind of scenario those of each system, by mode, and its neighbours'."""

    matrix: Matrix
    by_kind: Mapping[str, Sequence[SubjectTrials]]
    """By a kind's name: cases called by their systems' names, and the neighbours alone, called ``""``."""
    interrupted: bool = False
    """Whether Ctrl-C arrived before all had run."""
    tried: int = 0
    """How many trials there were, the neighbours' alone and invalid ones among them."""
    machines: Mapping[str, str] = field(default_factory=dict)
    """On which machine a kind was emulated, by its name: ``host``, ``virtual``."""

    @property
    def count(self) -> int:
        """Returns how many valid trials of cells there are."""
        return sum(len(case.trials) for mine in self.by_kind.values() for case in mine if case.subject)


def run_matrix(
    matrix: Matrix,
    out: Path,
    *,
    modes: Sequence[Mode] = ("sim",),
    first_seed: int = 1,
    repeat: int | None = None,
    keep: Keep = "metrics",
    emu: EmuSettings | None = None,
    beside: EmulatedBeside | None = None,
    verify: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> MatrixTrials:
    """Runs every cell that can run, and loads the emulated trials of cells that lie in `out`.

    Existing trials are not run again. A cell that cannot run in a mode is left out of it.

    Args:
        matrix: its kinds, systems and cells.
        out: the campaign's folder.
        modes: those of every cell.
        first_seed: the first repetition's.
        repeat: repetitions of each cell; the scenario's own number if None.
        keep: how much of each record is stored.
        emu: how emu runs, here and in `beside`.
        beside: further emulated cells; only without ``emu`` among `modes`.
        verify: read existing records in full.
        progress: called after each trial.

    Raises:
        ScenarioError: if none of the kinds is one that `beside` emulates.
        StreamGaugeError: if a trial cannot run.
    """
    matrix, quarter = (matrix, None) if beside is None else with_quarter(matrix)
    how = Trials(out=out, modes={}, first_seed=first_seed, keep=keep, emu=emu or EmuSettings(), verify=verify)
    collected = [_collect(matrix, modes, how, repeat, progress)]
    if beside is not None and quarter is not None and not collected[0].interrupted:
        apart = replace(how, out=beside.out)
        collected.append(_collect(quarter, ("emu",), apart, beside.repeat, progress))
    found, machines = ([], {}) if "emu" in modes else lying(matrix, out)
    if "emu" in modes:
        machines = {kind.name: emulated_of(out) for kind in matrix.kinds}
    if beside is not None and quarter is not None:
        mine = {kind.name for kind in quarter.kinds}
        kind_of = {cell.scenario.id: cell.kind for cell in matrix.cells}
        found = [case for case in found if kind_of[case.id.removesuffix("-alone")] not in mine]
        machines |= dict.fromkeys(mine, emulated_of(beside.out))
    trials = [case for one in collected for case in one.trials]
    return MatrixTrials(
        matrix=matrix,
        by_kind=_by_kind(matrix, [*trials, *found]),
        interrupted=any(one.interrupted for one in collected),
        tried=sum(len(one.outcomes) for one in collected),
        machines=machines,
    )


def _collect(
    matrix: Matrix,
    modes: Sequence[Mode],
    how: Trials,
    repeat: int | None,
    progress: Callable[[Progress], None] | None,
) -> CollectedTrials:
    """Runs every cell in those of the modes that it can run in."""
    subjects = []
    runs: dict[str, list[Mode]] = {}
    for system in matrix.systems:
        asked = []
        for cell in matrix.cells:
            mine = [mode for mode in modes if mode not in cell.refused]
            if cell.system == system.name and mine:
                runs[cell.scenario.id] = mine
                asked.append(AskedScenario(scenario=cell.scenario, base=cell.scenario))
        subjects.append(ComparedSubject(label=system.name, operand=system.name, asked=tuple(asked)))
    asked_for = [one for one in subjects if one.asked]
    return collect(asked_for, replace(how, modes=runs), repeat=repeat, progress=progress)


def _by_kind(matrix: Matrix, trials: Sequence[SubjectTrials]) -> dict[str, list[SubjectTrials]]:
    kind_of = {cell.scenario.id: cell.kind for cell in matrix.cells}
    by_kind: dict[str, list[SubjectTrials]] = {kind.name: [] for kind in matrix.kinds}
    for case in trials:
        kind = kind_of.get(case.id.removesuffix("-alone"))
        if kind is not None:
            by_kind[kind].append(replace(case, of=kind, base=_conditions(kind)))
    return by_kind


def _conditions(kind: str) -> dict[str, Any]:
    """Systems of one kind share that: the comparison is of how each plays the film, in some kinds beside its
    own kind."""
    return {"path": {"kind": kind}}


def begun(case: SubjectTrials) -> SubjectTrials:
    """Returns the case with values for a viewer without a picture, who waited all the time: start-up and
    latency are as long as the picture was requested, and nothing moved."""
    name = next((name for name, flow in case.scenario["flows"].items() if flow.get("role") == "subject"), "")
    trials = {}
    for seed, read in case.trials.items():
        if read.get("frames_shown") == 0:
            asked = asked_s(lambda metric: 0.0, case.scenario, name)
            read = {**read, "startup_delay": asked, "live_latency": asked, "frozen_share": 1.0}
        trials[seed] = read
    return replace(case, trials=trials)

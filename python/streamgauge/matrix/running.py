"""Runs the matrix, the neighbours alone beside it, and reads what lies there of other modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamgauge.campaign import EmuSettings, Progress, sweep
from streamgauge.campaign.layout import scenario_of
from streamgauge.campaign.loaded import load_trials
from streamgauge.compare import SubjectTrials
from streamgauge.compare.running import CollectedTrials, Trials, collect
from streamgauge.compare.shown import asked_s
from streamgauge.compare.subjects import AskedScenario, ComparedSubject
from streamgauge.compare.trials import alone_beside, cases_of
from streamgauge.matrix.cells import Matrix
from streamgauge.scenario.lower import Keep
from streamgauge.systems.registry import Mode

__all__ = ["MatrixTrials", "begun", "run_matrix"]


@dataclass(frozen=True, kw_only=True)
class MatrixTrials:
    """The trials of a matrix: of each kind of scenario those of each system, by mode, and its neighbours'."""

    matrix: Matrix
    by_kind: Mapping[str, Sequence[SubjectTrials]]
    """By a kind's name: cases called by their systems' names, and the neighbours alone, called ``""``."""
    ran: CollectedTrials = field(repr=False)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C came before all had run."""
        return self.ran.interrupted

    @property
    def count(self) -> int:
        """How many valid trials of cells there are."""
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
    verify: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> MatrixTrials:
    """Runs every cell that can run, and loads the emulated trials of cells that lie in `out`.

    What lies there already is not run again. A cell that cannot run in a mode is left out of it.

    Raises:
        StreamGaugeError: if a trial cannot run.
    """
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
    how = Trials(
        out=out,
        modes=runs,
        first_seed=first_seed,
        keep=keep,
        emu=emu or EmuSettings(),
        verify=verify,
    )
    ran = collect([one for one in subjects if one.asked], how, repeat=repeat, progress=progress)
    lying = [] if "emu" in modes else _emulated(matrix, out)
    kind_of = {cell.scenario.id: cell.kind for cell in matrix.cells}
    by_kind: dict[str, list[SubjectTrials]] = {kind.name: [] for kind in matrix.kinds}
    for case in [*ran.trials, *lying]:
        kind = kind_of.get(case.id.removesuffix("-alone"))
        if kind is not None:
            by_kind[kind].append(replace(case, of=kind, base=_conditions(kind)))
    return MatrixTrials(matrix=matrix, by_kind=by_kind, ran=ran)


def _conditions(kind: str) -> dict[str, Any]:
    """What systems of one kind have in common is that: that each plays the film as it can, and in some beside
    its own kind, is what is compared."""
    return {"path": {"kind": kind}}


def _emulated(matrix: Matrix, out: Path) -> list[SubjectTrials]:
    """The emulated trials of cells that lie in the campaign's folder, with the neighbours' alone."""
    systems = {cell.scenario.id: cell.system for cell in matrix.cells}
    folders: dict[str, list[Path]] = {}
    for folder in sweep(out):
        name = scenario_of(folder)
        if name in systems and folder.parent.name == "mode=emu":
            folders.setdefault(systems[name], []).append(folder)
    found = [case for system, mine in folders.items() for case in cases_of(system, load_trials(mine))]
    beside = [case for case in alone_beside([out]) if case.mode == "emu"] if found else []
    return [*found, *beside]


def begun(case: SubjectTrials) -> SubjectTrials:
    """The case in which a viewer who never saw a picture waited for one, and for nothing else, all the time:
    start-up and latency are as long as the picture was asked for, and nothing moved."""
    name = next((name for name, flow in case.scenario["flows"].items() if flow.get("role") == "subject"), "")
    trials = {}
    for seed, read in case.trials.items():
        if read.get("frames_shown") == 0:
            asked = asked_s(lambda metric: 0.0, case.scenario, name)
            read = {**read, "startup_delay": asked, "live_latency": asked, "frozen_share": 1.0}
        trials[seed] = read
    return replace(case, trials=trials)

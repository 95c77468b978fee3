"""Which kinds of scenario are emulated beside the simulated ones, and why these: a quarter of them, as a
trial in real or virtual time takes a hundred times as long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from streamgauge.campaign import sweep
from streamgauge.campaign.layout import machine_folders, machine_of, scenario_of
from streamgauge.campaign.loaded import load_trials
from streamgauge.compare import SubjectTrials
from streamgauge.compare.trials import alone_beside, cases_of
from streamgauge.errors import ScenarioError
from streamgauge.matrix.cells import Matrix, MatrixCell

__all__ = ["HOST", "QUARTER", "emulated_of", "lying", "with_quarter"]

QUARTER: Final[Mapping[str, str]] = {
    "tcp-cubic": "the base of the kinds with other queues and round trips: one TCP of the kernel",
    "cross-medium": "a paper's own kind, without TCP but a system's own",
    "link-loss": "losses in bursts, which exercise each repair",
    "tcp-3bbr": "the heaviest traffic, by the TCP that is hardest to simulate",
    "queue-fq": "a queue that separates flows",
    "rtt-200": "the longest round trip, for timers and windows",
    "rfc8867-5.7": "short transfers, for the start of TCP",
    "beside-itself": "two instances of each system",
}
"""One kind at least of each group, and of greedy TCPs two; the order is that in which they are run."""
HOST: Final = "host"
_ALONE: Final = "-alone"
"""Behind a cell's id in that of its neighbours alone."""


def with_quarter(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """Returns the matrix with the emulation reasons of cells of kinds in `QUARTER`, and these kinds of it.

    Raises:
        ScenarioError: if the matrix has none of them.
    """
    kinds = {kind.name: kind for kind in matrix.kinds}
    names = [name for name in QUARTER if name in kinds]
    if not names:
        raise ScenarioError(
            f"none of these kinds is emulated beside simulated ones; those are {', '.join(QUARTER)}",
            key="--emulate",
            hint="--mode both runs any kind in both modes",
        )
    asked = matrix.asked_in("emu", names)
    return asked, asked.with_kinds(names)


def emulated_of(folder: Path) -> str:
    """Returns the machine of a folder's trials: ``host``, ``virtual``."""
    kind, _, _ = machine_of(folder).partition("-")
    return kind or HOST


def lying(matrix: Matrix, out: Path) -> tuple[list[SubjectTrials], dict[str, str]]:
    """Returns the existing emulated trials of cells in the campaign's folder or in a machine's below it, with
    the neighbours' alone; for each kind those of one machine, the one with more cells.

    Returns:
        The cases, and the machine of each kind.
    """
    of = {cell.scenario.id: cell for cell in matrix.cells}
    best: dict[str, dict[str, list[Path]]] = {}
    where: dict[str, Path] = {}
    for folder in (out, *machine_folders(out)):
        found: dict[str, dict[str, list[Path]]] = {}
        for place in sweep(folder):
            cell = of.get(scenario_of(place))
            if cell is not None and place.parent.name == "mode=emu":
                found.setdefault(cell.kind, {}).setdefault(cell.system, []).append(place)
        for kind, systems in found.items():
            if len(systems) > len(best.get(kind, {})):
                best[kind], where[kind] = systems, folder
    cases = [
        replace(case, id=name)
        for systems in best.values()
        for system, places in systems.items()
        for case in cases_of(system, load_trials(places))
        if _is_of(of[name := str(case.scenario["id"])], case)
    ]
    left = {of[case.id].kind for case in cases}
    where = {kind: folder for kind, folder in where.items() if kind in left}
    for folder in dict.fromkeys(where.values()):
        kinds = {kind for kind, place in where.items() if place == folder}
        for case in alone_beside([folder]):
            name = str(case.scenario["id"])
            cell = of.get(name.removesuffix(_ALONE))
            if cell is not None and case.mode == "emu" and cell.kind in kinds:
                cases.append(replace(case, id=name))
    return cases, {kind: emulated_of(folder) for kind, folder in where.items()}


def _is_of(cell: MatrixCell, case: SubjectTrials) -> bool:
    """Returns whether trials are of that cell, and not of one of its name in which something was set."""
    mine = cell.scenario.in_mode("emu").normalised()
    return all(mine.get(key) == case.scenario.get(key) for key in ("path", "flows", "until"))

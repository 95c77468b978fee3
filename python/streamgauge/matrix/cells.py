"""Parts of the matrix: a scenario file with two axes as its ``variants``, kinds of scenario and systems, and
systems of the user's own beside these."""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.processors import processors
from streamgauge.scenario import Scenario, load
from streamgauge.scenario.catalogue import catalogue_folder
from streamgauge.scenario.document import declared_ids, parse_document, read_text
from streamgauge.scenario.loading import load_file
from streamgauge.scenario.lower import lower
from streamgauge.scenario.values import nearest
from streamgauge.systems.machines import lacking_library
from streamgauge.systems.registry import SYSTEMS, Mode

__all__ = ["SHIPPED", "Matrix", "MatrixCell", "MatrixSystem", "ScenarioKind", "matrix_of"]

SHIPPED = Path("matrix") / "matrix.yaml"
"""The matrix that ships, below the catalogue's folder."""
REAL = {name: entry.added_by for name, entry in SYSTEMS.items() if entry.added_by is not None}
"""Systems of others that stand beside those of a file where they are asked for by name, with the scenario
whose subject they are."""
_SYSTEM = ("system", "traffic", "parameters", "congestion_control", "ecn", "clip", "sim", "emu")
"""Parts of a flow that belong to the system that it plays; the rest belongs to the kind of scenario."""


@dataclass(frozen=True, kw_only=True)
class ScenarioKind:
    """A row of the matrix: a path and the flows beside the system on it."""

    name: str
    """The end of its ids: ``tcp-cubic``."""
    label: str
    question: str
    group: str
    """Group of kinds with the same beginning of their names: ``tcp``."""


@dataclass(frozen=True, kw_only=True)
class MatrixSystem:
    """A column of the matrix."""

    name: str
    label: str
    own: bool = False
    """Whether it is the user's, and not of the file."""


@dataclass(frozen=True, kw_only=True)
class MatrixCell:
    """A system in a kind of scenario, or why there is no such thing."""

    kind: str
    system: str
    scenario: Scenario
    refused: Mapping[Mode, str]
    """Why it cannot run, by mode."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Kinds of scenario, systems, and a cell of each pair."""

    id: str
    question: str
    kinds: tuple[ScenarioKind, ...]
    systems: tuple[MatrixSystem, ...]
    cells: tuple[MatrixCell, ...]

    def of_kind(self, kind: str) -> Iterator[MatrixCell]:
        """Returns its cells, in the systems' order."""
        return (cell for cell in self.cells if cell.kind == kind)

    def with_kinds(self, names: Sequence[str]) -> Matrix:
        """These of its kinds alone, in this order, with their cells."""
        by_name = {kind.name: kind for kind in self.kinds}
        cells = tuple(cell for name in names for cell in self.of_kind(name))
        return replace(self, kinds=tuple(by_name[name] for name in names), cells=cells)

    def asked_in(self, mode: Mode, names: Collection[str]) -> Matrix:
        """Returns the matrix with the reasons why cells of these kinds cannot run in `mode`."""
        cells = tuple(
            replace(cell, refused={**cell.refused, **_refused(cell.scenario, [mode])})
            if cell.kind in names
            else cell
            for cell in self.cells
        )
        return replace(self, cells=cells)


def matrix_of(
    file: Path | None = None,
    *,
    own: Sequence[str] = (),
    kinds: Sequence[str] = (),
    systems: Sequence[str] = (),
    settings: Iterable[str] = (),
    modes: Sequence[Mode] = ("sim",),
) -> Matrix:
    """Returns the matrix of a file, with systems of the user's own.

    Args:
        file: a scenario file with a list of two mappings as its ``variants``; the shipped one if None.
        own: ids, globs or files of scenarios, each with one subject flow, which replaces the system in
            every kind.
        kinds: names or globs of kinds; all if empty.
        systems: names or globs of systems of the file, or names of `REAL`; all of the file if empty.
        settings: ``ADDRESS=VALUE``, set in every cell.
        modes: modes for which reasons against a cell are given.

    Raises:
        ScenarioError: with file and key, for a file that is no matrix, a name that matches nothing, and a
            scenario without one subject flow.
    """
    path = catalogue_folder() / SHIPPED if file is None else file
    settings = list(settings)
    text = read_text(path)
    document = parse_document(text, str(path))
    rows, columns = _axes(document.data.get("variants"), path)
    ids = declared_ids(text, file=str(path))
    wanted_rows = _chosen(kinds, list(rows), "--kind")
    real = [name for name in systems if name in REAL and name not in columns]
    of_file = [name for name in systems if name not in real]
    wanted_columns = _chosen(of_file, list(columns), "--system") if of_file or not real else []
    places = dict(zip(itertools.product(rows, columns), ids, strict=True))
    # A setting may be invalid in kinds that were not requested.
    if len(wanted_rows) == len(rows):
        scenarios = dict(zip(places, load_file(path, settings=settings, mutants=False), strict=True))
    else:
        scenarios = {
            place: load_file(path, settings=settings, only=id_, mutants=False)[0]
            for place, id_ in places.items()
            if place[0] in wanted_rows
        }
    put = [(told, scenario) for told in own for scenario in load(told, settings=[])]
    mine = [_own_system(scenario, told, list(columns)) for told, scenario in put]
    for name in real:
        put += [(REAL[name], scenario) for scenario in load(REAL[name], mutants=False)]
        mine.append(MatrixSystem(name=name, label=SYSTEMS[name].title, own=True))
    cells = []
    for row in wanted_rows:
        cells += [_cell(row, column, scenarios[row, column], modes) for column in wanted_columns]
        model = scenarios[row, next(iter(columns))]
        names = _playing(scenarios, row, list(columns))
        for system, (_, scenario) in zip(mine, put, strict=True):
            cells.append(_cell(row, system.name, _with(model, names, scenario, row, system), modes))
    base = str(document.data.get("id", "")).rstrip("/-")
    return Matrix(
        id=base,
        question=str(document.data.get("question") or "Which is best?"),
        kinds=tuple(_kind(row, rows[row], scenarios[row, next(iter(columns))]) for row in wanted_rows),
        systems=(
            *(
                MatrixSystem(name=name, label=str(columns[name].get("label") or name))
                for name in wanted_columns
            ),
            *mine,
        ),
        cells=tuple(cells),
    )


def _axes(variants: Any, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(variants, list) or len(variants) != 2 or not all(isinstance(v, dict) for v in variants):
        raise ScenarioError(
            "is no matrix: its variants are not a list of two mappings, kinds of scenario and then systems",
            file=path,
            key="variants",
            hint="docs/matrix.md shows one",
        )
    rows, columns = ({str(name): changes or {} for name, changes in axis.items()} for axis in variants)
    return rows, columns


def _chosen(wanted: Sequence[str], known: Sequence[str], option: str) -> list[str]:
    """Returns the known names that names or globs select, in the file's order."""
    found: set[str] = set()
    for text in wanted:
        mine = [name for name in known if fnmatch.fnmatchcase(name, text)]
        if not mine:
            close = nearest(text, list(known))
            raise ScenarioError(
                f"the matrix has no '{text}'; there are {', '.join(known)}",
                key=option,
                hint=f"did you mean '{close}'?" if close else None,
            )
        found.update(mine)
    return [name for name in known if not wanted or name in found]


def _kind(name: str, changes: Mapping[str, Any], scenario: Scenario) -> ScenarioKind:
    label = str(changes.get("label") or name)
    return ScenarioKind(
        name=name, label=label, question=str(scenario.question or label), group=name.partition("-")[0]
    )


def _cell(kind: str, system: str, scenario: Scenario, modes: Iterable[Mode]) -> MatrixCell:
    return MatrixCell(kind=kind, system=system, scenario=scenario, refused=_refused(scenario, modes))


def _refused(scenario: Scenario, modes: Iterable[Mode]) -> dict[Mode, str]:
    """Returns why it cannot run, by mode."""
    refused: dict[Mode, str] = {}
    for mode in modes:
        why = scenario.unsupported(mode)
        if why is None and mode not in scenario.modes:
            why = f"it is for {' and '.join(scenario.modes)} alone"
        if why is None:
            try:
                lower(scenario, mode, 1)
            except ScenarioError as error:
                why = error.message
        if why is None:
            why = _lacking(scenario, mode)
        if why is not None:
            refused[mode] = why
    return refused


def _lacking(scenario: Scenario, mode: Mode) -> str | None:
    """Returns the library that a flow needs and this build lacks, or the processors that its programs need
    and this machine lacks: those that they keep busy, and one for the emulator."""
    flows = [flow.in_mode(mode) for flow in scenario.flows.values()]
    entries = [flow.registered for flow in flows if flow.registered is not None]
    if mode == "sim":
        return next((why for one in entries if (why := lacking_library(one.name)) is not None), None)
    externals = [one.adapter.external for one in entries]
    busy = sum(external.cores for external in externals if external is not None)
    needed = math.ceil(busy + 1)
    if not busy or needed <= processors():
        return None
    return f"not run: {needed} cores needed, and this machine has {processors()}"


def _own_system(scenario: Scenario, told: str, known: Sequence[str]) -> MatrixSystem:
    tested = [name for name, flow in scenario.flows.items() if flow.role == "subject"]
    if len(tested) != 1:
        raise ScenarioError(
            f"{scenario.id} has {len(tested)} subjects; a system of the matrix is one subject",
            file=told,
            key="flows",
            hint="give exactly one flow `role: subject`",
        )
    name = scenario.id.rpartition("/")[2]
    if name in known:
        raise ScenarioError(
            f"the matrix has a system '{name}' already",
            file=told,
            key="id",
            hint="give the scenario another id",
        )
    return MatrixSystem(name=name, label=scenario.title or name, own=True)


def _playing(scenarios: Mapping[tuple[str, str], Scenario], row: str, columns: Sequence[str]) -> list[str]:
    """Returns the flows of a kind that play the system: those that differ from system to system."""
    first = scenarios[row, columns[0]]
    tested = {name for name, flow in first.flows.items() if flow.role == "subject"}
    return [
        name
        for name in first.flows
        if name in tested
        or any(scenarios[row, column].flows[name] != first.flows[name] for column in columns[1:])
    ]


def _with(model: Scenario, names: Sequence[str], own: Scenario, row: str, system: MatrixSystem) -> Scenario:
    """Returns a kind's scenario in which those flows play the system of the user's own."""
    tested = next(name for name, flow in own.flows.items() if flow.role == "subject")
    theirs: dict[str, Any] = own.model_dump(mode="json", by_alias=True, exclude_unset=True)["flows"][tested]
    data: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for key in ("checks", "assumed", "figures"):
        data.pop(key, None)
    for name in names:
        kept = {key: value for key, value in data["flows"][name].items() if key not in _SYSTEM}
        data["flows"][name] = {**{key: theirs[key] for key in _SYSTEM if key in theirs}, **kept}
    data["id"] = f"{model.id.partition('/')[0]}/{row}-{system.name}"
    data["title"] = f"{row}: {system.label}"
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ScenarioError(f"{own.id} cannot play in {row}: {where}: {first['msg']}", key=row) from None

"""``compare matrix``: every system in every kind of scenario."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.markup import escape
from rich.text import Text

from streamgauge.campaign import EmuSettings
from streamgauge.cli.cases import check_cases, print_cases
from streamgauge.cli.gating import written
from streamgauge.cli.options import REPLACE, Keep
from streamgauge.cli.output import DIM, heads, remark, say, table
from streamgauge.cli.progress import Bar
from streamgauge.cli.status import INTERRUPTED, STATUS
from streamgauge.compare import say_value
from streamgauge.compare.words import RANK_NOTE, say_rank
from streamgauge.documents import check_place
from streamgauge.errors import ScenarioError
from streamgauge.matrix import (
    EmulatedBeside,
    JudgedMatrix,
    agreements,
    brief_of,
    judged,
    matrix_of,
    run_matrix,
    sentences,
    to_json,
    write_page,
)
from streamgauge.matrix.answer import SENTENCES_NEED, answering
from streamgauge.matrix.cases import write_cases
from streamgauge.matrix.judged import MEASURES, measures_of
from streamgauge.scenario.catalogue import catalogue_folder
from streamgauge.systems.registry import Mode

__all__ = ["MATRIX", "MatrixRequest", "check_options", "family_file", "matrix_command"]

MATRIX = "matrix"
"""The operand that selects it."""
_SHOWN = ("shown_rate", "frozen_share", "startup_delay", "live_latency", "harm", "jain")
_PAGE = "matrix.html"


@dataclass(frozen=True, kw_only=True)
class MatrixRequest:
    """Request on the command line."""

    file: Path | None
    """A family's file in the place of the matrix's."""
    own: Sequence[str]
    kinds: Sequence[str]
    systems: Sequence[str]
    settings: Sequence[str]
    mode: str | None
    seed: int
    repeat: int | None
    out: Path
    keep: Keep
    way: str | None
    brought: tuple[Path, ...]
    jobs: int
    replace: int | None
    verify: bool
    report: Path | None
    emulate: int | None
    """Number of further emulated trials of each cell of a quarter of the kinds."""
    emulated_out: Path
    """Where they go."""
    as_json: bool


def family_file(operand: str) -> Path | None:
    """Returns the file of a family of cases that ships and is compared as a whole, as the matrix is; None of
    anything else that is compared."""
    if not operand.replace("-", "").isalnum():
        return None
    file = catalogue_folder() / operand / f"{operand}.yaml"
    return file if file.is_file() else None


def check_options(is_matrix: bool, own: Mapping[str, object], others: Mapping[str, object]) -> None:
    """Refuses options without a meaning for the comparison: those of the matrix alone, and those that it
    lacks.

    Raises:
        ScenarioError: naming the option.
    """
    given = next((option for option, value in (others if is_matrix else own).items() if value), None)
    if given is None:
        return
    if is_matrix:
        raise ScenarioError(
            "the matrix has no such option: it ranks all its systems under equal conditions",
            key=given,
            hint="leave it out; --set, --kind, --system, --mode and --repeat are there",
        )
    raise ScenarioError(
        "is of the matrix alone", key=given, hint=f"write 'compare {MATRIX}', or leave it out"
    )


def matrix_command(request: MatrixRequest) -> int:
    """Runs the matrix, writes its page, prints the answer, and returns the exit status."""
    page = request.report or request.out / _PAGE
    check_place(page, "--report")
    by_word: dict[str | None, list[Mode]] = {"emu": ["emu"], "both": ["sim", "emu"]}
    modes: list[Mode] = by_word.get(request.mode) or ["sim"]
    beside = None
    if request.emulate is not None:
        if "emu" in modes:
            raise ScenarioError(
                "it adds emulated trials to simulated ones, and --mode emulates every kind",
                key="--emulate",
                hint="leave one of them out",
            )
        beside = EmulatedBeside(out=request.emulated_out, repeat=request.emulate)
    matrix = matrix_of(
        request.file,
        own=request.own,
        kinds=request.kinds,
        systems=request.systems,
        settings=request.settings,
        modes=modes,
    )
    by_case = measures_of(matrix) != MEASURES
    if by_case:
        check_cases(request)
    if all(set(cell.refused) >= set(modes) for cell in matrix.cells):
        first = matrix.cells[0]
        raise ScenarioError(f"no cell can run: {first.scenario.id}: {first.refused[modes[0]]}", key="--mode")
    with Bar() as bar:
        ran = run_matrix(
            matrix,
            request.out,
            modes=modes,
            first_seed=request.seed,
            repeat=request.repeat,
            keep=request.keep,
            emu=EmuSettings(
                way=request.way,
                brought=request.brought,
                jobs=request.jobs,
                replace=REPLACE if request.replace is None else request.replace,
            ),
            beside=beside,
            verify=request.verify,
            progress=bar.update,
        )
    if ran.interrupted:
        remark("interrupted; the same command resumes")
        return INTERRUPTED
    found = judged(ran)
    if not found.kinds:
        say("No trial of any cell is valid, so nothing is ranked.")
        return STATUS["inconclusive"]
    if not by_case:
        written(page, partial(write_page, found))
    elif request.report is not None:
        written(page, partial(write_cases, found))
    if request.as_json:
        json.dump(to_json(found), sys.stdout, indent=2, allow_nan=False)
        print()
    elif by_case:
        print_cases(found)
        if request.report is not None:
            say(f"The page is {escape(str(page))}")
    else:
        _print(found, page)
    invalid = sum(one.invalid for one in found.kinds)
    return STATUS["inconclusive" if 3 * invalid > invalid + found.trials else "pass"]


def _print(found: JudgedMatrix, page: Path) -> None:
    """The sentences, the systems over all kinds, and where the rest is."""
    told = sentences(found)
    for one in map(str, told):
        say(escape(one))
    if not told:
        say(SENTENCES_NEED)
    block = answering(found) or found.kinds[0]
    measures = [one for one in block.measures if one.name in _SHOWN]
    say()
    say(f"[b]{escape(block.kind.label)}[/b] {block.mode}, n = {block.n}, ranked by {measures[0].short}")
    lines: list[Sequence[str | Text]] = [
        heads("rank", "system", *(measure.short for measure in measures), style=DIM)
    ]
    order = [row.subject for row in block.ordered(measures[0].name)]
    order += [one.name for one in found.matrix.systems if one.name not in order]
    by_value = False
    for system in order:
        rows = [block.row(system, measure.name) for measure in measures]
        if not any(rows):
            continue
        values = [
            "" if row is None else f"[green]{said}[/green]" if row.rank == 1 else said
            for row in rows
            for said in ["" if row is None else escape(say_value(row))]
        ]
        by_value = by_value or (rows[0] is not None and rows[0].ranked_by_value)
        lines.append([say_rank(rows[0]), escape(found.label(system)), *values])
    table(lines, f"rl{'l' * len(measures)}", keys=2)
    if by_value:
        say(RANK_NOTE)
    if measured := agreements(found):
        say(f"Emulated beside simulated. {escape(brief_of(measured))}.")
    for note in found.notes[:5]:
        say(f"[yellow]{escape(note)}[/yellow]")
    if len(found.notes) > 5:
        say(f"[yellow]{len(found.notes) - 5} more notes are on the page.[/yellow]")
    say()
    say(f"{found.trials} trials; every kind of scenario is on {escape(str(page))}")

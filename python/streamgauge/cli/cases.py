"""``compare`` of a family of cases with media made as they are sent: one ranked table, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from rich.markup import escape
from rich.text import Text

from streamgauge.cli.output import DIM, heads, say, table
from streamgauge.compare import say_value
from streamgauge.errors import ScenarioError
from streamgauge.matrix.judged import JudgedKind, JudgedMatrix

__all__ = ["check_cases", "mean_rank", "print_cases"]


class _Asked(Protocol):
    @property
    def report(self) -> Path | None: ...
    @property
    def emulate(self) -> int | None: ...


def check_cases(request: _Asked) -> None:
    """Refuses options of the matrix of films alone.

    Raises:
        ScenarioError: naming the option.
    """
    for option, given in (("--report", request.report), ("--emulate", request.emulate)):
        if given is not None:
            raise ScenarioError(
                "this family has one table and no page",
                key=option,
                hint="leave it out; --json has every number",
            )


def mean_rank(block: JudgedKind, system: str) -> float | None:
    """Returns a system's rank, averaged over the measures that are known of it; None if none is."""
    ranks = [
        row.rank
        for measure in block.measures
        if (row := block.row(system, measure.name)) is not None and row.rank is not None
    ]
    return sum(ranks) / len(ranks) if ranks else None


def print_cases(found: JudgedMatrix) -> None:
    """Prints a table of all cases: in each the systems by their mean rank, with intervals."""
    blocks = (*found.kinds, *found.overall)
    measures = list({measure.name: measure for block in blocks for measure in block.measures}.values())
    lines: list[Sequence[str | Text]] = [
        heads("case", "rank", "system", *(measure.short for measure in measures), style=DIM)
    ]
    for block in blocks:
        for number, (rank, system) in enumerate(_ranked(found, block)):
            values = []
            for measure in measures:
                row = block.row(system, measure.name)
                said = "" if row is None else escape(say_value(row))
                values.append(f"[green]{said}[/green]" if row is not None and row.rank == 1 else said)
            case = "" if number else escape(block.kind.label)
            lines.append([case, f"{rank:.1f}", escape(found.label(system)), *values])
    counts = sorted({block.n for block in blocks})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    say(f"[b]{escape(found.matrix.question)}[/b]")
    table(lines, f"lrl{'l' * len(measures)}", keys=3)
    modes = " and ".join({"sim": "simulated", "emu": "emulated"}.get(mode, mode) for mode in found.modes)
    say(f"Rank: the mean of a system's ranks by these measures. {modes}, n = {n}, ± half the 95 % interval.")
    for note in found.notes[:5]:
        say(f"[yellow]{escape(note)}[/yellow]")


def _ranked(found: JudgedMatrix, block: JudgedKind) -> list[tuple[float, str]]:
    """Mean ranks and systems, the best first; equals in the file's order."""
    ranks = [(mean_rank(block, one.name), place, one.name) for place, one in enumerate(found.matrix.systems)]
    known = sorted((rank, place, name) for rank, place, name in ranks if rank is not None)
    return [(rank, name) for rank, _, name in known]

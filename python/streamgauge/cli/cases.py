"""``compare`` of a family of cases with media made as they are sent: one ranked table, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.markup import escape
from rich.text import Text

from streamgauge.cli.output import DIM, heads, say, table
from streamgauge.compare import say_value
from streamgauge.errors import ScenarioError
from streamgauge.matrix.cases import left_out, ranked
from streamgauge.matrix.judged import JudgedMatrix

__all__ = ["check_cases", "print_cases"]


class _Asked(Protocol):
    @property
    def emulate(self) -> int | None: ...


def check_cases(request: _Asked) -> None:
    """Refuses an option of the matrix of films alone.

    Raises:
        ScenarioError: naming the option.
    """
    if request.emulate is not None:
        raise ScenarioError(
            "this family has no further emulated trials beside simulated ones",
            key="--emulate",
            hint="leave it out; --mode both runs every case in both modes",
        )


def print_cases(found: JudgedMatrix) -> None:
    """Prints a table of all cases: in each the systems by their mean rank, with intervals."""
    blocks = (*found.kinds, *found.overall)
    measures = list({measure.name: measure for block in blocks for measure in block.measures}.values())
    lines: list[Sequence[str | Text]] = [
        heads("case", "rank", "system", *(measure.short for measure in measures), style=DIM)
    ]
    for block in blocks:
        for number, (rank, system) in enumerate(ranked(found, block)):
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
    for line in left_out(found):
        say(f"[yellow]left out: {escape(line)}[/yellow]")
    for note in found.notes[:5]:
        say(f"[yellow]{escape(note)}[/yellow]")

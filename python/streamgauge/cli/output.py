"""How commands write: in colour and at the terminal's width on one, a sentence a line elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from streamgauge.terminal import columns_of, fold, lay_out, tell

__all__ = ["BOLD", "DIM", "heads", "remark", "say", "say_text", "table"]

BOLD, DIM = "bold", "dim"


def say(markup: str = "", *, hanging: int = 2) -> None:
    """Prints text with Rich's markup on stdout, folded lines indented by `hanging`; any other text has to be
    escaped."""
    _print(fold(Text.from_markup(markup), columns_of(sys.stdout), hanging=hanging))


def say_text(text: str) -> None:
    """Prints text as it is on stdout."""
    _print(fold(text, columns_of(sys.stdout)))


def remark(text: str) -> None:
    """Prints ``streamgauge: text`` on stderr, where results are not."""
    tell(f"streamgauge: {text}", sys.stderr)


def heads(*titles: str, style: str = BOLD) -> list[Text]:
    """Returns the titles of a table's columns."""
    return [Text(title, style=style) for title in titles]


def table(
    rows: Sequence[Sequence[str | Text]], kinds: str, *, keys: int = 1, together: int = 1, indent: int = 0
) -> None:
    """Prints a table on stdout, of cells with Rich's markup; see `lay_out`."""
    cells = [[Text.from_markup(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    columns = columns_of(sys.stdout)
    _print(lay_out(cells, kinds, columns=columns, keys=keys, together=together, indent=indent))


def _print(lines: Sequence[Text]) -> None:
    console = Console()
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)

"""Text and tables at the width of a terminal.

On a terminal no line is longer than that is wide: sentences are folded with a hanging indent, tables take a
second line or a second block. Elsewhere, in a pipe or a file, a sentence and a row are a line each, so that
`grep` and `awk` find them whole.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

__all__ = ["columns_of", "fold", "lay_out", "tell", "tie"]

_USUAL = 80
"""Columns of a terminal of unknown width."""
_GAP = 2
_NARROW = 36
"""A column of words that would be narrower than that is below its row instead."""
_BELOW = 4
"""Its indentation there."""
_BULLET = re.compile(r" *(?:- )?")


def columns_of(stream: TextIO) -> int | None:
    """Returns the number of columns of the terminal that `stream` writes to; None if it is no terminal."""
    if not stream.isatty():
        return None
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL
    except (OSError, ValueError):
        return _USUAL


def tie(text: str) -> str:
    """Keeps numbers, their units, their ± and the ends of their intervals on one line, by no-break spaces."""
    text = re.sub(r"(?<=[\d\]]) (?=(?:[kMG]?bit/s|[kMG]?B|ms|µs|s|%|packets)(?![A-Za-z]))", "\u00a0", text)
    text = re.sub(r"(\[[^][ ]+,) ([^][ ]+\])", "\\1\u00a0\\2", text)
    return text.replace(" ± ", "\u00a0±\u00a0").replace("n = ", "n\u00a0=\u00a0")


def fold(text: str | Text, columns: int | None, *, hanging: int = 2) -> list[Text]:
    """Returns a text's lines, none longer than `columns`, except a longer word such as a path. That stays in
    one piece, so that it can be copied.

    The lines after a line's first are indented by `hanging` more than its own beginning, spaces and a dash.
    """
    text = Text(text) if isinstance(text, str) else text
    found: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        line.rstrip()
        found += [line] if columns is None or line.cell_len <= columns else _folded(line, columns, hanging)
    return found


def _folded(line: Text, columns: int, hanging: int) -> list[Text]:
    begin = _BULLET.match(line.plain)
    bullet = 0 if begin is None else begin.end()
    indent = bullet if "-" in line.plain[:bullet] else bullet + hanging
    plain = re.sub(
        r"[^ ]+",
        lambda word: word[0] if len(word[0]) <= columns - indent else word[0].replace("\u00a0", " "),
        tie(line.plain),
    )
    cuts: list[int] = []
    indents = [0]
    since = 0
    # A word contains no space, and has the spaces before it.
    for found in re.finditer(r" *[^ ]+", plain[bullet:]):
        word = found[0].lstrip(" ")
        begin_at, end_at = bullet + found.end() - len(word), bullet + found.end()
        if indents[-1] + cell_len(plain[since:end_at]) > columns and bullet + found.start() > since:
            since = begin_at
            cuts.append(since)
            # A word that just fits is indented less.
            indents.append(max(0, min(indent, columns - cell_len(word))))
    lines = []
    for part, spaces in zip(line.divide(cuts), indents, strict=True):
        part.rstrip()
        lines.append(Text(" " * spaces) + part if spaces else part)
    return lines


def tell(text: str, stream: TextIO | None = None) -> None:
    """Prints a text to a stream, stdout by default, folded if that is a terminal."""
    stream = stream or sys.stdout
    for line in fold(text, columns_of(stream)):
        print(line.plain, file=stream, flush=stream is sys.stderr)


def lay_out(
    rows: Sequence[Sequence[str | Text]],
    kinds: str,
    *,
    columns: int | None,
    keys: int = 1,
    together: int = 1,
    indent: int = 0,
) -> list[Text]:
    """A table's lines, aligned, without spaces at the end; if it is too wide for `columns`, words are folded,
    or put below their row, or columns follow in a second block.

    Args:
        rows: of heads first, each with as many cells as `kinds` has letters.
        kinds: of each column: ``l`` to the left, ``r`` to the right, ``w`` words, to the left, which may be
            folded, ``c`` words that are cut.
        columns: the room that there is; None for as much as it takes.
        keys: how many columns stand in every block.
        together: how many of the others, from the first on, are never parted.
        indent: of every line.
    """
    grid = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [max((row[i].cell_len for row in grid), default=0) for i in range(len(kinds))]
    if columns is None or _total(widths, indent) <= columns:
        return _lines(grid, kinds, widths, indent)
    words = [i for i, kind in enumerate(kinds) if kind in "wc"]
    if words:
        given = _shared(words, widths, columns - _total(widths, indent) + sum(widths[i] for i in words))
        fitted = [given.get(i, width) for i, width in enumerate(widths)]
        if _total(fitted, indent) <= columns and all(given[i] >= min(_NARROW, widths[i]) for i in words):
            return _lines(grid, kinds, fitted, indent)
        first = words[0]
        at_the_end = words == list(range(first, len(kinds)))
        if first and at_the_end and _total(widths[:first], indent) <= columns:
            return _below(grid, kinds, first, columns, indent)
    return _blocks(grid, kinds, widths, columns, keys, together, indent)


def _total(widths: Sequence[int], indent: int) -> int:
    return indent + sum(widths) + _GAP * (len(widths) - 1)


def _shared(words: Sequence[int], widths: Sequence[int], room: int) -> dict[int, int]:
    """How wide each column of words may be: none wider than it is, and otherwise alike."""
    given: dict[int, int] = {}
    for left, i in zip(range(len(words), 0, -1), sorted(words, key=lambda one: widths[one]), strict=True):
        given[i] = max(1, min(widths[i], room // left))
        room -= given[i]
    return given


def _lines(grid: Sequence[Sequence[Text]], kinds: str, widths: Sequence[int], indent: int) -> list[Text]:
    lines = []
    for row in grid:
        cells = [_cell(cell, kind, width) for cell, kind, width in zip(row, kinds, widths, strict=True)]
        for at in range(max(map(len, cells))):
            line = Text(" " * indent)
            for i, (cell, kind, width) in enumerate(zip(cells, kinds, widths, strict=True)):
                part = cell[at] if at < len(cell) else Text()
                pad = " " * max(0, width - part.cell_len)
                line.append(" " * _GAP if i else "")
                line = line + (Text(pad) + part if kind == "r" else part + Text(pad))
            line.rstrip()
            lines.append(line)
    return lines


def _cell(cell: Text, kind: str, width: int) -> list[Text]:
    if cell.cell_len <= width or kind not in "wc":
        return [cell]
    if kind == "w":
        return fold(cell, width, hanging=0)
    cut = cell.copy()
    cut.truncate(width, overflow="ellipsis")
    return [cut]


def _below(grid: Sequence[Sequence[Text]], kinds: str, first: int, columns: int, indent: int) -> list[Text]:
    """Returns the words of a row from column `first` on, below the earlier columns, a line or more each."""
    heads = [row[:first] for row in grid]
    widths = [max(row[i].cell_len for row in heads) for i in range(first)]
    lines: list[Text] = []
    for row in grid:
        lines += _lines([row[:first]], kinds[:first], widths, indent)
        for cell in row[first:]:
            inner = " " * (indent + _BELOW)
            lines += fold(Text(inner) + cell, columns, hanging=0) if cell.plain else []
    return lines


def _blocks(
    grid: Sequence[Sequence[Text]],
    kinds: str,
    widths: Sequence[int],
    columns: int,
    keys: int,
    together: int,
    indent: int,
) -> list[Text]:
    """One table after another, each with the keys and as many of the other columns as there is room for."""
    keys = min(keys, len(kinds) - 1)
    own = list(range(keys))

    def fits(some: Sequence[int]) -> bool:
        return _total([widths[i] for i in some], indent) <= columns

    parts: list[list[int]] = []
    for begin in range(keys, len(kinds), together):
        part = list(range(begin, min(begin + together, len(kinds))))
        parts += [part] if fits(own + part) else [[i] for i in part]
    lines: list[Text] = []
    while parts:
        chosen = own + parts.pop(0)
        while parts and fits(chosen + parts[0]):
            chosen += parts.pop(0)
        kept = [[row[i] for i in chosen] for row in grid]
        if lines:
            lines.append(Text())
        found = _lines(kept, "".join(kinds[i] for i in chosen), [widths[i] for i in chosen], indent)
        # Rather a fold within a cell than a line that the terminal breaks.
        lines += [part for line in found for part in fold(line, columns)]
    return lines

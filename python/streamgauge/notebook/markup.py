"""Tables and lines as HTML below a notebook's cell, and as text.

They take their colours from the page around them, so that they read in the light and in the dark. All that
is not ours is escaped: names of scenarios and flows come from files.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["MARKS", "VerdictCell", "html_lines", "html_table", "once", "text_table"]

MARKS = {"pass": ("✓", "#2a9d5c"), "fail": ("✗", "#e0574c"), "inconclusive": ("?", "#c98a10"),
         "better": ("▲", "#2a9d5c"), "worse": ("▼", "#e0574c"), "equal": ("=", "#8a8a8a"),
         "undecided": ("?", "#c98a10")}  # fmt: skip
"""A verdict's sign and its colour, which shows on white and on black."""

_BORDER = "1px solid rgba(128,128,128,.45)"
_CELL = f"padding:.25em .7em .25em 0;text-align:left;vertical-align:top;border:0;border-bottom:{_BORDER}"
_ONE_LINE, _SHORT = 30, 8
"""As many characters of a value, and of any cell, are not broken."""
_NUMBER = "font-variant-numeric:tabular-nums"


class VerdictCell(str):
    """A cell that is a verdict, in words: the verdict's sign precedes them."""

    verdict: str

    def __new__(cls, words: str, verdict: str) -> VerdictCell:
        made = super().__new__(cls, words)
        made.verdict = verdict
        return made


def html_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    before: str = "",
    after: str = "",
) -> str:
    """Returns a table of text, with HTML before and after it; no table without rows."""
    head = "".join(f'<th style="{_CELL};font-weight:600;opacity:.75">{escape(one)}</th>' for one in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = ""
    if body:
        table = (
            '<div style="overflow-x:auto">'
            '<table style="border-collapse:collapse;background:none;margin:.4em 0">'
            f'<thead><tr style="background:none">{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )
    return f'<div class="streamgauge" style="line-height:1.45">{before}{table}{after}</div>'


def _cell(text: str) -> str:
    sign = ""
    if isinstance(text, VerdictCell) and text.verdict in MARKS:
        mark, colour = MARKS[text.verdict]
        sign = f'<span style="color:{colour};font-weight:700" aria-hidden="true">{mark}</span> '
    # A value with its interval stays on one line, and names break before the table scrolls.
    value = text[:1].isdigit() or text[:1] in "+-" or len(text) <= _SHORT
    whole = ";white-space:nowrap" if value and len(text) <= _ONE_LINE else ""
    return f'<td style="{_CELL};{_NUMBER}{whole}">{sign}{escape(text)}</td>'


def html_lines(lines: Iterable[str], *, faint: bool = False) -> str:
    """Lines of text, each a paragraph."""
    style = "margin:.2em 0;max-width:60em" + (";opacity:.7" if faint else "")
    return "".join(f'<p style="{style}">{escape(line)}</p>' for line in lines if line)


def text_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns the same as text, columns two spaces apart; empty without rows."""
    rows = [list(row) for row in rows]
    if not rows:
        return ""
    cells = [list(headings), *rows]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell + " " * (wide - _width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _width(text: str) -> int:
    """Columns of a terminal."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def once(rows: Iterable[Sequence[str]], columns: int) -> list[list[str]]:
    """Returns rows without the values, in the first columns from the left, that repeat the row above."""
    found = []
    last: Sequence[str] = ()
    for row in rows:
        same = 0
        while last and same < min(columns, len(row)) and row[same] == last[same]:
            same += 1
        found.append(["" if at < same else cell for at, cell in enumerate(row)])
        last = row
    return found

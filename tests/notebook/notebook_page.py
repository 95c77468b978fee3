"""The cells of docs/notebook.md and what they show.

``python tests/notebook/notebook_page.py`` runs them in an empty folder and writes what they show into the
page.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"
_CELL = re.compile(r"^```python\n(?P<source>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.M | re.S)


@dataclass(frozen=True)
class Cell:
    """A cell, and what the page says that it shows; None where the page leaves that out."""

    source: str
    shown: str | None


def cells(page: str) -> list[Cell]:
    return [Cell(found["source"], found["shown"]) for found in _CELL.finditer(page)]


def run(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Runs a cell as a notebook does: what it prints, and the value of its last line."""
    tree = ast.parse(source)
    *body, last = tree.body
    value = None
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pl.Config(tbl_width_chars=100, tbl_rows=8, fmt_str_lengths=48):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(body, []), str(PAGE), "exec"), names)
            value = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)
            if value is not None:
                print(repr(value))
        else:
            exec(compile(tree, str(PAGE), "exec"), names)
    return said.getvalue(), value


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def written(page: str) -> str:
    """The page with what its cells show now, where it shows anything."""
    names: dict[str, Any] = {}

    def again(found: re.Match[str]) -> str:
        shown, _ = run(found["source"], names)
        if found["shown"] is None:
            return found[0]
        lines = "\n".join(line.rstrip() for line in shown.splitlines())
        return f"```python\n{found['source']}```\n\n```text\n{lines}\n```\n"

    return _CELL.sub(again, page)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty, inside(Path(empty)):
        text = written(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")

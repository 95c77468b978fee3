"""A figure's data as CSV, and as Python: a program that draws it of these."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import cache
from importlib import resources
from pathlib import Path

from streamgauge.report.chart import THEMES, DrawnFigure
from streamgauge.report.draw import FORMATS

__all__ = ["SUFFIXES", "WRITTEN", "check_format", "csv_text", "program", "program_template", "written"]

WRITTEN = (".csv", ".py")
"""Formats that need no drawing."""
SUFFIXES = (*FORMATS, *WRITTEN)
"""Endings of all formats of a figure."""


def check_format(file: Path) -> None:
    """Raises ValueError if a figure cannot be written as such a file, picture or text."""
    if file.suffix not in SUFFIXES:
        *most, last = SUFFIXES
        raise ValueError(f"a figure is written as {', '.join(most)} or {last}, not {file.suffix!r}")


def written(figure: DrawnFigure, suffix: str) -> str:
    """Returns the text of a figure's .csv or .py."""
    return csv_text(figure) if suffix == ".csv" else program(figure)


def csv_text(figure: DrawnFigure) -> str:
    """Returns a figure's rows below the names of their columns (RFC 4180, lines that end in LF); nothing
    where a row has no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(figure.columns)
    writer.writerows(figure.rows)
    return text.getvalue()


def program(figure: DrawnFigure) -> str:
    """Returns a Python program that draws a figure from its CSV beside it, with Altair."""
    numbers = [
        name
        for place, name in enumerate(figure.columns)
        if not any(isinstance(row[place], str) for row in figure.rows)
    ]
    spec = json.dumps({**figure.spec, "config": THEMES["light"]}, ensure_ascii=False, indent=1)
    filled = {
        "__TITLE__": json.dumps(f"{figure.title}. {figure.caption}", ensure_ascii=False),
        "__ID__": figure.id,
        "__NUMBERS__": json.dumps(numbers),
        # In a raw string between three apostrophes.
        "__SPEC__": spec.replace("'", "\\u0027"),
    }
    return re.sub("|".join(filled), lambda found: filled[found[0]], program_template())


@cache
def program_template() -> str:
    """Returns `program` with names in the place of the parts that differ: pages fill it in themselves."""
    return (resources.files("streamgauge.report") / "templates" / "figure.py.txt").read_text(encoding="utf-8")

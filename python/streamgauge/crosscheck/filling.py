"""The measured parts of a page, from a crosscheck's document.

The page's prose is written by hand. Measurements are between two comments and are replaced: ``<!-- measured:
NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamgauge.claims.dimension import plain
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.report.chart import DrawnFigure, save

__all__ = [
    "MARKS",
    "Document",
    "MeasuredPage",
    "coarse",
    "counted",
    "differences",
    "drawn",
    "measured_on",
    "mutants",
    "number",
    "trials_left_out",
    "with_unit",
]

Document = Mapping[str, Any]
_BLOCK = re.compile(r"(<!-- measured: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_DIGITS: Final = 3
MARKS: Final = {"equivalent": "", "explained": " (e)", "inconclusive": " (?)", "unexplained": " **(!)**"}
"""Mark of a cell, by its verdict."""


@dataclass(frozen=True)
class MeasuredPage:
    """Blocks of a page that measurements fill."""

    blocks: Mapping[str, Callable[[Document], str]]
    """By name."""
    figures: Callable[[Document], list[DrawnFigure]]

    def check(self, page: Path) -> None:
        """Raises ScenarioError if `page` cannot take the measured parts."""
        try:
            names = {found["name"] for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))}
        except OSError as error:
            raise ScenarioError(f"--docs {page}: {error.strerror}; it fills a page that is there") from None
        unknown = names - set(self.blocks)
        if unknown or not names:
            what = (
                f"knows no block '{min(unknown)}'" if unknown else "finds no '<!-- measured: NAME -->' there"
            )
            raise ScenarioError(f"--docs {page}: {what}; the blocks are {', '.join(self.blocks)}")

    def write(self, document: Document, page: Path) -> list[Path]:
        """Fills the page's blocks, and writes its figures into ``images/`` beside it if one of these shows
        them; returns the written files.

        Raises:
            ScenarioError: if the page is not there or has no block.
            CannotRunError: if it cannot be written.
        """
        self.check(page)
        text = page.read_text(encoding="utf-8")
        filled = _BLOCK.sub(
            lambda found: f"{found[1]}{self.blocks[found['name']](document)}\n{found[3]}", text
        )
        written = [page]
        try:
            page.write_text(filled, encoding="utf-8")
            # A page without the block shows none, and another page's are not its to replace.
            shown = any(found["name"] == "figures" for found in _BLOCK.finditer(text))
            for figure in self.figures(document) if shown else ():
                file = page.parent / "images" / f"{figure.id}.png"
                file.parent.mkdir(exist_ok=True)
                # On a dark page a picture without ground cannot be read.
                spec = {**figure.spec, "background": "white", "padding": 8}
                written.append(save(type(figure)(**{**vars(figure), "spec": spec}), file, scale=1.6))
        except OSError as error:
            raise CannotRunError(f"cannot write {error.filename}: {error.strerror}.") from error
        return written


def measured_on(document: Document) -> str:
    """Returns date, machine and version."""
    told = str(document.get("commit") or "")
    # With "+" after it of a checkout that differs.
    commit = f", commit {told[:10]}{'+' if told.endswith('+') else ''}" if told else ""
    version = f"StreamGauge {document['streamgauge']}{commit}"
    guest = document.get("virtual_machine")
    if guest is not None:
        speeds = " and ".join(f"{speed / 1e9:g}" for speed in guest["instructions_per_s"])
        return (
            f"Measured {document['date'][:10]}. Real trials: Linux {document['kernel']}, in virtual machines "
            f"(QEMU {', '.join(guest['qemu'])}, image {', '.join(guest['image'])}) at {speeds} G "
            f"instructions a second ([virtual.md](virtual.md)); {version}."
        )
    return (
        f"Measured {document['date'][:10]} on {document['cpus']} processors "
        f"({document.get('cpu') or 'unknown'}), Linux {document['kernel']}, {version}."
    )


def counted(document: Document) -> str:
    """Returns how many rows there are of each verdict."""
    words = [row["verdict"] for row in document["rows"]]
    return f"{len(words)} rows: " + ", ".join(
        f"{words.count(word)} {word}" for word in MARKS if word in words
    )


def trials_left_out(document: Document) -> list[str]:
    """Sentences about real trials that are missing, each a paragraph."""
    found = []
    short = [case for case in document["cases"] if case["valid"]["emu"] < case["wanted"]["emu"]]
    invalid = sum(len(case["invalid"]) for case in document["cases"])
    if invalid:
        found.append(f"{invalid} real trials were invalid and are left out; others ran in their place.")
    if short:
        told = ", ".join(
            f"{case['id']} ({case['valid']['emu']} of {case['wanted']['emu']})" for case in short
        )
        found.append(f"Fewer real trials than requested: {told}.")
    reasons: dict[str, list[str]] = {}
    for one in document["skipped"]:
        reasons.setdefault(one["why"], []).append(f"`{one['case']}`")
    return found + [f"Not run: {', '.join(names)}: {why}." for why, names in reasons.items()]


def drawn(figures: Sequence[DrawnFigure]) -> str:
    """Returns figures as in the page, with their files in ``images/``."""
    found = [f"![{one.title}](images/{one.id}.png)\n\n*{one.caption}*" for one in figures]
    return "\n\n".join(found) or "Nothing to draw."


def mutants(document: Document) -> str:
    """Returns a table: the deliberate faults, and the rows that detected them."""
    lines = ["| mutant | | rejected | by |", "|---|---|---|---|"]
    for mutant in document["mutants"]:
        rejected = {True: "yes", False: "**no**", None: "not run"}[mutant["rejected"]]
        by = [
            f"`{case}`: " + ", ".join(_moved(row) for row in rows[:3]) + (" ..." if len(rows) > 3 else "")
            for case, rows in mutant["cases"].items()
            if rows
        ]
        lines.append(f"| `{mutant['name']}` | {mutant['words']} | {rejected} | {'; '.join(by)} |")
    return "\n".join(lines)


def _moved(row: Mapping[str, Any]) -> str:
    return f"{row['metric']} {number(row['sim'], row)} for {with_unit(row['emu'], row)}"


def differences(document: Document) -> str:
    """Returns every row that is not equivalent, and why as far as it is known."""
    lines = []
    for row in document["rows"]:
        values = f"sim {number(row['sim'], row)}, emu {with_unit(row['emu'], row)}"
        where = f"`{row['case']}` {row['metric']}: {values}"
        margin = f", margin {number(row['margin'], row)}" if row["margin"] is not None else ""
        if row["verdict"] == "explained":
            told = row["explained"]
            lines.append(
                f"- {where}{margin}: *explained* by `{told['switch']}`, with which sim has "
                f"{number(told['after'], row)}."
            )
        elif row["verdict"] == "unexplained":
            lines.append(f"- {where}{margin}: **unexplained**: no switch moves it inside the margin.")
        elif row["verdict"] == "inconclusive":
            why = row["why"] or (
                f"the 90 % interval of the difference, {number(row['low'], row)} to "
                f"{number(row['high'], row)}, crosses the margin"
            )
            lines.append(f"- {where}{margin}: *inconclusive*: {why}.")
    return "\n".join(lines) or "None."


def coarse(document: Document) -> str:
    """Returns a table of the rows with a wide margin: a line for each case, with its quantities."""
    by_case: dict[str, list[str]] = {}
    for row in document["rows"]:
        if row["coarse"] and row["verdict"] == "equivalent":
            by_case.setdefault(row["case"], []).append(f"`{row['metric']}`")
    if not by_case:
        return "None."
    lines = [f"| `{case}` | {', '.join(metrics)} |" for case, metrics in by_case.items()]
    return "\n".join(["| case | quantities |", "|---|---|", *lines])


def number(value: float | None, row: Mapping[str, Any]) -> str:
    """Returns a value in the unit of its row, without it."""
    return "none" if value is None else plain(value * row["factor"], _DIGITS)


def with_unit(value: float | None, row: Mapping[str, Any]) -> str:
    """Returns a value with its unit."""
    return f"{number(value, row)} {row['unit']}".strip()

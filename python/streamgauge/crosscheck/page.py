"""The measured parts of docs/fidelity.md, from a crosscheck's document.

The page's prose is written by hand. What is measured stands between two comments and is replaced:
``<!-- measured: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streamgauge.claims.dimension import plain
from streamgauge.crosscheck.draw import figures
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.report.chart import save

__all__ = ["BLOCKS", "check", "write"]

Document = Mapping[str, Any]
_BLOCK = re.compile(r"(<!-- measured: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_DIGITS: Final = 3
_MARK: Final = {"equivalent": "", "explained": " (e)", "inconclusive": " (?)", "unexplained": " **(!)**"}


def check(page: Path) -> None:
    """Raises ScenarioError if `page` cannot take the measured parts."""
    try:
        names = {found["name"] for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))}
    except OSError as error:
        raise ScenarioError(f"--docs {page}: {error.strerror}; it fills a page that is there") from None
    unknown = names - set(BLOCKS)
    if unknown or not names:
        what = f"knows no block '{min(unknown)}'" if unknown else "finds no '<!-- measured: NAME -->' there"
        raise ScenarioError(f"--docs {page}: {what}; the blocks are {', '.join(BLOCKS)}")


def write(document: Document, page: Path) -> list[Path]:
    """Fills the page's blocks and writes its figures into ``images/`` beside it; returns what was written.

    Raises:
        ScenarioError: if the page is not there or has no block.
        CannotRunError: if it cannot be written.
    """
    check(page)
    text = page.read_text(encoding="utf-8")
    filled = _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found['name']](document)}\n{found[3]}", text)
    written = [page]
    try:
        page.write_text(filled, encoding="utf-8")
        for figure in figures(document):
            file = page.parent / "images" / f"{figure.id}.png"
            file.parent.mkdir(exist_ok=True)
            # On a dark page a picture without ground cannot be read.
            spec = {**figure.spec, "background": "white", "padding": 8}
            written.append(save(type(figure)(**{**vars(figure), "spec": spec}), file, scale=1.6))
    except OSError as error:
        raise CannotRunError(f"cannot write {error.filename}: {error.strerror}.") from error
    return written


def _summary(document: Document) -> str:
    words = [row["verdict"] for row in document["rows"]]
    singles = _of_kind(document, ("single",))
    alike = sum(row["verdict"] == "equivalent" for row in singles)
    lines = [
        f"Measured {document['date'][:10]} on {document['cpus']} processors "
        f"({document.get('cpu') or 'unknown'}), Linux {document['kernel']}, "
        f"StreamGauge {document['streamgauge']}"
        f"{', commit ' + str(document['commit'])[:10] if document.get('commit') else ''}.",
        "",
        f"{len(words)} rows: "
        + ", ".join(f"{words.count(word)} {word}" for word in _MARK if word in words)
        + f". Of the {len(singles)} rows of single flows {alike} are equivalent.",
    ]
    if document["not_asked"]:
        links: dict[str, list[str]] = {}
        for name in document["not_asked"]:
            who, _, link = name.partition("/")
            links.setdefault(link, []).append(who)
        told = "; ".join(f"`{link}`: {', '.join(whos)}" for link, whos in links.items())
        lines += ["", f"Not measured in this run, {len(document['not_asked'])} cases: {told}."]
    short = [case for case in document["cases"] if case["valid"]["emu"] < case["wanted"]["emu"]]
    invalid = sum(len(case["invalid"]) for case in document["cases"])
    if invalid:
        lines += ["", f"{invalid} real trials were invalid and are left out; others ran in their place."]
    if short:
        told = ", ".join(
            f"{case['id']} ({case['valid']['emu']} of {case['wanted']['emu']})" for case in short
        )
        lines += ["", f"Fewer real trials than wanted: {told}."]
    reasons: dict[str, list[str]] = {}
    for one in document["skipped"]:
        reasons.setdefault(one["why"], []).append(f"`{one['case']}`")
    lines += [f"\nNot run: {', '.join(names)}: {why}." for why, names in reasons.items()]
    return "\n".join(lines)


def _mutants(document: Document) -> str:
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
    return f"{row['metric']} {_number(row['sim'], row)} for {_value(row['emu'], row)}"


def _figures(document: Document) -> str:
    drawn = [f"![{one.title}](images/{one.id}.png)\n\n*{one.caption}*" for one in figures(document)]
    return "\n\n".join(drawn) or "Nothing to draw."


def _singles(document: Document) -> str:
    rows = _of_kind(document, ("single",))
    links = list(dict.fromkeys(row["case"].partition("/")[2] for row in rows))
    return "\n\n".join(_table(document, link, rows) for link in links)


def _table(document: Document, link: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows are quantities, columns controllers; a cell is sim / emu, with a mark if not equivalent."""
    mine = {
        (row["case"].partition("/")[0], row["metric"]): row
        for row in rows
        if row["case"].endswith(f"/{link}")
    }
    controls = list(dict.fromkeys(who for who, _ in mine))
    metrics = list(dict.fromkeys(metric for _, metric in mine))
    third = any("ns3" in row for row in mine.values())
    lines = [f"**{link}** (sim / emu{' / ns-3' if third else ''})", ""]
    lines += ["| | " + " | ".join(controls) + " |", "|---|" + "---|" * len(controls)]
    for metric in metrics:
        sample = next(row for (_, name), row in mine.items() if name == metric)
        unit = f", {sample['unit']}" if sample["unit"] else ""
        cells = [_cell(mine.get((who, metric))) for who in controls]
        lines.append(f"| {sample['words']}{unit} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    third = [_number(row["ns3"]["mean"], row)] if "ns3" in row else []
    values = " / ".join([_number(row["sim"], row), _number(row["emu"], row), *third])
    return values + _MARK[row["verdict"]]


def _others(document: Document) -> str:
    lines = ["| case | quantity | sim | emu | spread | margin | verdict |", "|---|---|---|---|---|---|---|"]
    last = ""
    for row in _of_kind(document, ("pair", "paced", "short")):
        case = f"`{row['case']}`" if row["case"] != last else ""
        last = row["case"]
        cells = [_number(row[key], row) for key in ("spread", "margin")]
        verdict = f"**{row['verdict']}**" if row["verdict"] == "unexplained" else row["verdict"]
        lines.append(
            f"| {case} | {row['metric']} | {_number(row['sim'], row)} | {_value(row['emu'], row)} | "
            f"{cells[0]} | {cells[1]} | {verdict} |"
        )
    return "\n".join(lines)


def _differences(document: Document) -> str:
    lines = []
    for row in document["rows"]:
        where = (
            f"`{row['case']}` {row['metric']}: sim {_number(row['sim'], row)}, emu {_value(row['emu'], row)}"
        )
        margin = f", margin {_number(row['margin'], row)}" if row["margin"] is not None else ""
        if row["verdict"] == "explained":
            told = row["explained"]
            lines.append(
                f"- {where}{margin}: *explained* by `{told['switch']}`, with which sim has "
                f"{_number(told['after'], row)}."
            )
        elif row["verdict"] == "unexplained":
            lines.append(f"- {where}{margin}: **unexplained**: no switch moves it inside the margin.")
        elif row["verdict"] == "inconclusive":
            why = row["why"] or (
                f"the 90 % interval of the difference, {_number(row['low'], row)} to "
                f"{_number(row['high'], row)}, lies on both sides of the margin's edge"
            )
            lines.append(f"- {where}{margin}: *inconclusive*: {why}.")
    return "\n".join(lines) or "None."


def _coarse(document: Document) -> str:
    coarse = [row for row in document["rows"] if row["coarse"] and row["verdict"] == "equivalent"]
    if not coarse:
        return "None."
    return ", ".join(f"`{row['case']}` {row['metric']}" for row in coarse) + "."


def _of_kind(document: Document, kinds: Sequence[str]) -> list[Mapping[str, Any]]:
    wanted = {case["id"] for case in document["cases"] if case["kind"] in kinds}
    return [row for row in document["rows"] if row["case"] in wanted]


def _number(value: float | None, row: Mapping[str, Any]) -> str:
    return "none" if value is None else plain(value * row["factor"], _DIGITS)


def _value(value: float | None, row: Mapping[str, Any]) -> str:
    return f"{_number(value, row)} {row['unit']}".strip()


BLOCKS: Final[Mapping[str, Callable[[Document], str]]] = {
    "summary": _summary,
    "mutants": _mutants,
    "figures": _figures,
    "singles": _singles,
    "others": _others,
    "differences": _differences,
    "coarse": _coarse,
}
"""What can be measured into the page, by name."""

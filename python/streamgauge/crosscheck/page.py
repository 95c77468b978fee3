"""The measured parts of docs/fidelity.md, from a crosscheck's document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamgauge.crosscheck.draw import figures
from streamgauge.crosscheck.filling import (
    MARKS,
    Document,
    MeasuredPage,
    coarse,
    counted,
    differences,
    drawn,
    measured_on,
    mutants,
    number,
    trials_left_out,
    with_unit,
)

__all__ = ["PAGE"]


def _summary(document: Document) -> str:
    singles = _of_kind(document, ("single",))
    alike = sum(row["verdict"] == "equivalent" for row in singles)
    lines = [
        measured_on(document),
        f"{counted(document)}. {alike} of the {len(singles)} rows of single flows are equivalent.",
    ]
    lines.append(_how_many(document))
    if document["not_asked"]:
        lines.append(f"Not measured in this run, {len(document['not_asked'])} cases: {_left(document)}.")
    return "\n\n".join(lines + trials_left_out(document))


def _how_many(document: Document) -> str:
    """Trials of a case: how many of them, how long, by link."""
    lengths: dict[str, tuple[float, float]] = {}
    for case in document["cases"]:
        if case["kind"] != "short":
            begin, end = case["window_s"]
            lengths[case["id"].partition("/")[2]] = (end, begin)
    said: dict[tuple[float, float], list[str]] = {}
    for link, length in lengths.items():
        said.setdefault(length, []).append(f"`{link}`")
    spans = " ".join(
        f"A trial is of {end:g} s less the first {begin:g} on {', '.join(links)}."
        for (end, begin), links in said.items()
    )
    usual = sorted({case["wanted"]["emu"] for case in document["cases"]})
    counts = " or ".join(str(one) for one in usual)
    return f"Real trials of a case: {counts}. {spans}" if spans else ""


def _left(document: Document) -> str:
    """Returns the cases that were not asked for, by link; of a link without any, its name alone."""
    asked = {case["id"] for case in document["cases"]} | {one["case"] for one in document["skipped"]}
    measured = {name.partition("/")[2] for name in asked}
    whole: list[str] = []
    links: dict[str, list[str]] = {}
    for name in document["not_asked"]:
        who, _, link = name.partition("/")
        if link in measured:
            links.setdefault(link, []).append(who)
        elif link not in whole:
            whole.append(link)
    told = [f"`{link}`: {', '.join(whos)}" for link, whos in links.items()]
    if whole:
        told.append("all of " + ", ".join(f"`{link}`" for link in whole))
    return "; ".join(told)


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
    third = [number(row["ns3"]["mean"], row)] if "ns3" in row else []
    values = " / ".join([number(row["sim"], row), number(row["emu"], row), *third])
    return values + MARKS[row["verdict"]]


def _others(document: Document) -> str:
    lines = ["| case | quantity | sim | emu | spread | margin | verdict |", "|---|---|---|---|---|---|---|"]
    last = ""
    for row in _of_kind(document, ("pair", "paced", "short")):
        case = f"`{row['case']}`" if row["case"] != last else ""
        last = row["case"]
        cells = [number(row[key], row) for key in ("spread", "margin")]
        verdict = f"**{row['verdict']}**" if row["verdict"] == "unexplained" else row["verdict"]
        lines.append(
            f"| {case} | {row['metric']} | {number(row['sim'], row)} | {with_unit(row['emu'], row)} | "
            f"{cells[0]} | {cells[1]} | {verdict} |"
        )
    return "\n".join(lines)


def _of_kind(document: Document, kinds: Sequence[str]) -> list[Mapping[str, Any]]:
    wanted = {case["id"] for case in document["cases"] if case["kind"] in kinds}
    return [row for row in document["rows"] if row["case"] in wanted]


PAGE: Final = MeasuredPage(
    blocks={
        "summary": _summary,
        "mutants": mutants,
        "figures": lambda document: drawn(figures(document)),
        "singles": _singles,
        "others": _others,
        "differences": differences,
        "coarse": coarse,
    },
    figures=figures,
)
"""docs/fidelity.md."""

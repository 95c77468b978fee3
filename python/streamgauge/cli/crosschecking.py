"""``crosscheck``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.text import Text

from streamgauge.claims import dimension
from streamgauge.claims.dimension import TIME, plain
from streamgauge.cli.output import heads, remark, say, table
from streamgauge.cli.progress import Bar
from streamgauge.cli.status import INTERRUPTED, STATUS
from streamgauge.crosscheck import ABR, TCP, CrosscheckRequest, crosscheck
from streamgauge.crosscheck.abr.page import PAGE as ABR_PAGE
from streamgauge.crosscheck.compared import CrosscheckMatter
from streamgauge.crosscheck.contribution import contribution_matter
from streamgauge.crosscheck.contribution.page import PAGE as CONTRIBUTION_PAGE
from streamgauge.crosscheck.joined import joined, load_document
from streamgauge.crosscheck.page import PAGE as TCP_PAGE
from streamgauge.crosscheck.stored import real_trials
from streamgauge.crosscheck.systems import patterns_of, systems_matter
from streamgauge.crosscheck.systems.cases import CONDITIONS
from streamgauge.crosscheck.systems.page import PAGE as SYSTEMS_PAGE
from streamgauge.errors import ScenarioError

__all__ = ["asked_of", "crosscheck_command"]

_STYLE = {
    "equivalent": "green",
    "explained": "cyan",
    "inconclusive": "yellow",
    "unexplained": "red",
    "different": "red",
}
_PAGES = {"tcp": TCP_PAGE, "abr": ABR_PAGE, "systems": SYSTEMS_PAGE, "contribution": CONTRIBUTION_PAGE}
_FILES = {
    "tcp": "crosscheck.json",
    "abr": "crosscheck-abr.json",
    "systems": "crosscheck-systems.json",
    "contribution": "crosscheck-contribution.json",
}
_DIGITS = 3


def asked_of(
    what: str, patterns: Sequence[str], systems: str | None, conditions: int | None
) -> tuple[CrosscheckMatter, list[str]]:
    """Returns the matter of the comparison, and the globs of its cases.

    Raises:
        ScenarioError: for options that do not go together, or a name that is no system's.
    """
    named = [
        option
        for option, value in (("--systems", systems), ("--conditions", conditions))
        if value is not None
    ]
    if what != "systems":
        if named:
            raise ScenarioError(f"{named[0]}: it is of crosscheck systems; leave it out of crosscheck {what}")
        matters = {"tcp": TCP, "abr": ABR, "contribution": contribution_matter()}
        return matters[what], list(patterns)
    if named and patterns:
        raise ScenarioError(f"{named[0]}: it does not go with --case; leave one of them out")
    matter = systems_matter(conditions or CONDITIONS)
    return matter, list(patterns) or patterns_of(systems, conditions or CONDITIONS)


def crosscheck_command(
    request: CrosscheckRequest,
    docs: Path | None,
    also: Sequence[Path],
    as_json: bool,
    real: Sequence[Path] = (),
) -> int:
    """Runs, shows, writes. The exit status is the verdict's; 130 if Ctrl-C cut it short.

    Args:
        request: the run.
        docs: the page to fill; None for none.
        also: documents of other runs, which are shown and fill it as well.
        as_json: print the document and nothing else.
        real: documents of earlier runs with real trials that count in place of new ones.
    """
    page = _PAGES[request.matter.name]
    others = [load_document(file, request.matter.schema) for file in also]
    if real:
        if request.matter is not ABR or request.quick or request.reference != "emu":
            raise ScenarioError("--real: it is of crosscheck abr without --quick and --against; leave it out")
        stored = [load_document(file, request.matter.schema, "--real") for file in real]
        request = replace(request, real=real_trials(request.matter, stored))
    if others and (request.quick or request.reference != "emu"):
        raise ScenarioError("--also: only trials of full length against emu are joined; leave it out")
    if docs is not None:
        if request.quick or request.reference != "emu":
            raise ScenarioError(
                "--docs: only trials of full length against emu fill it; leave --quick, --against out"
            )
        page.check(docs)
    with Bar() as bar:
        found = crosscheck(replace(request, progress=bar.update))
    request.out.mkdir(parents=True, exist_ok=True)
    file = request.out / _FILES[request.matter.name]
    file.write_text(json.dumps(found, allow_nan=False), encoding="utf-8")
    if not found["interrupted"]:
        found = joined(request.matter, found, others)
    if as_json:
        json.dump(found, sys.stdout, indent=1, allow_nan=False)
        print()
    else:
        _show(found)
        for sentence in request.matter.closing(found):
            say(escape(sentence))
    if found["interrupted"]:
        remark(f"interrupted; finished trials are kept in {request.out}; the same command resumes")
        return INTERRUPTED
    if docs is not None:
        for file in page.write(found, docs):
            remark(f"written: {file}")
    return STATUS[found["verdict"]]


def _show(found: Mapping[str, Any]) -> None:
    third = any("ns3" in row for row in found["rows"])
    reference = found["reference"]
    columns = ["sim", reference, "spread", "margin", "90 % interval", *(["ns-3"] if third else [])]
    rows: list[list[Text | str]] = [[*heads("case", "metric", "unit", *columns, "verdict")]]
    last = ""
    for row in found["rows"]:
        style = _STYLE[row["verdict"]]
        word = row["verdict"] + (" (coarse)" if row["coarse"] and row["verdict"] == "equivalent" else "")
        cells = [_number(row[key], row) for key in ("sim", "emu", "spread", "margin")]
        span = "" if row["low"] is None else f"{_number(row['low'], row)} to {_number(row['high'], row)}"
        more = [_number(row["ns3"]["mean"], row) if "ns3" in row else ""] if third else []
        case = "" if row["case"] == last else escape(row["case"])
        named = [case, escape(row["metric"]), escape(row["unit"])]
        rows.append([*named, *cells, span, *more, f"[{style}]{word}[/]"])
        last = row["case"]
    table(rows, f"lll{'r' * len(columns)}l", keys=3)
    for row in found["rows"]:
        if row["verdict"] == "explained":
            told = row["explained"]
            moved = f"{_number(told['before'], row)} becomes {_number(told['after'], row)} {row['unit']}"
            say(escape(f"{row['case']} {row['metric']}: explained by '{told['switch']}': {moved}"))
        elif row["why"] and row["verdict"] != "equivalent":
            say(escape(f"{row['case']} {row['metric']}: {row['verdict']}: {row['why']}"))
    for one in found["skipped"]:
        say(f"[yellow]not run: {escape(one['case'])}[/]: {escape(one['why'])}")
    for case in found["cases"]:
        if case["invalid"]:
            seeds = ", ".join(str(one["seed"]) for one in case["invalid"])
            why = escape(case["invalid"][0]["why"])
            say(f"{case['id']}: invalid trials left out, seeds {seeds} (the first: {why})")
    for mutant in found["mutants"]:
        say(_mutant(mutant))
    words = [row["verdict"] for row in found["rows"]]
    counts = ", ".join(f"{words.count(word)} {word}" for word in _STYLE if word in words)
    took = dimension.say(found["duration_s"], TIME)
    say(f"{len(words)} rows: {counts or 'none'}; {took}; [bold]{found['verdict']}[/]")


def _mutant(mutant: Mapping[str, Any]) -> str:
    """Returns how something fared that is wrong on purpose, and so must be rejected."""
    name = escape(f"{mutant['name']} ({mutant['words']})")
    if mutant["rejected"] is None:
        return f"[yellow]wrong on purpose, {name}: not run[/]: {escape(mutant['why'])}"
    by = [
        f"{case} by {', '.join(row['metric'] for row in rows)}"
        for case, rows in mutant["cases"].items()
        if rows
    ]
    if mutant["rejected"]:
        return f"[green]wrong on purpose, {name}: rejected[/] by {escape('; '.join(by))}"
    return f"[red]wrong on purpose, {name}: not rejected[/], no row sees it"


def _number(value: float | None, row: Mapping[str, Any]) -> str:
    return "none" if value is None else plain(value * row["factor"], _DIGITS)

"""``evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JsonOption

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Compare and report", "evaluate", _evaluate)


def _evaluate(
    kind: Annotated[Literal["cc"], typer.Argument(help="cc: a congestion control of TCP.")],
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME|FILE...", help="Controls by name, or a class: FILE.py:NAME."),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="A,B", help="Controls of the cross traffic. Default: cubic,reno,bbr."
        ),
    ] = None,
    reference: Annotated[
        str,
        typer.Option("--reference", metavar="NAME", help="Control that it is compared with."),
    ] = "cubic",
    suite: Annotated[
        str, typer.Option("--suite", metavar="NAME", help="bcp133, bbr, rfc8867, l4s or all.")
    ] = "bcp133",
    mode: Annotated[
        Literal["sim", "emu"], typer.Option("--mode", help="emu runs the kernel's controls.")
    ] = "sim",
    until: Annotated[
        Literal["decided"] | None,
        typer.Option("--until", help="decided: double the seeds until no row is undecided, up to 40."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One condition for each criterion.")] = False,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, max=40, help="Trials of a condition.")
    ] = 5,
    as_json: JsonOption = False,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="Folder for records, result and page; a rerun resumes there."
        ),
    ] = Path("runs/evaluate"),
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Also write the page to this file.")
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FILE", help="Write one table of all controls there, as Markdown."),
    ] = None,
) -> int:
    """Judge a congestion control by the criteria of standards.

    It runs a suite of conditions, judges each criterion by a stated bound, and writes a page and JSON. A
    rerun resumes in DIR (docs/own-congestion-control.md).

    [b]Examples[/b]

      streamgauge evaluate cc bbr3 --quick

      streamgauge evaluate cc mine.py:Mine --report mine.html

      streamgauge evaluate cc mine.py:Mine --suite l4s --until decided --json
    """
    from streamgauge.cli.evaluating import EvaluateRequest, evaluate_command

    return evaluate_command(
        EvaluateRequest(
            kind=kind,
            names=names,
            against=against,
            reference=reference,
            suite=suite,
            mode=mode,
            until_decided=until is not None,
            quick=quick,
            seeds=seeds,
            as_json=as_json,
            out=out,
            report=report,
            docs=docs,
        )
    )

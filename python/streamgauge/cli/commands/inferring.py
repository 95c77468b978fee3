"""``infer``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JsonOption, OnOption

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Compare and report", "infer", _infer)


def _infer(
    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help="hessler, darwin, ccn, realvideo or windows-media.")
    ],
    points: Annotated[
        int,
        typer.Option(
            "--points",
            metavar="N",
            min=2,
            help="Points of a search: half drawn at random and shared by all searches, half bred. Screening "
            "adds one for each value.",
        ),
    ] = 120,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="Trials of a scenario at a point.")
    ] = 1,
    confirm: Annotated[
        int,
        typer.Option("--confirm", metavar="N", min=2, help="Number of new seeds that confirm the result."),
    ] = 10,
    members: Annotated[
        int,
        typer.Option(
            "--members", metavar="N", min=1, help="Maximum number of clips of a playlist at a point."
        ),
    ] = 16,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Take minutes: 24 points, 3 new seeds, 4 clips of a playlist."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for readings and result; the same command resumes there. Default: runs/infer/PAPER.",
        ),
    ] = None,
    on: OnOption = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="File of the page. Default: DIR/PAPER.html."),
    ] = None,
    reading: Annotated[
        bool,
        typer.Option(
            "--write-reading",
            help="Write the result as the reading 'described' of catalogue/PAPER/readings.yaml.",
        ),
    ] = False,
    split: Annotated[
        int | None,
        typer.Option(
            "--draw-split",
            metavar="SEED",
            min=0,
            help="Draw new halves of the claims by this seed, write catalogue/PAPER/split.yaml, and stop.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Infer the conditions that a paper does not state from its printed results, in sim.

    Each unknown of catalogue/PAPER/unknowns.yaml has plausible values. A fit to one half of the claims is
    judged by the other half. A fit to permuted claims is the control (docs/inferred.md). Ctrl-C keeps
    finished trials.

    [b]Examples[/b]

      streamgauge infer hessler

      streamgauge infer darwin --quick --report darwin.html

      streamgauge infer ccn --points 200 --seeds 2 --out runs/infer/ccn

      streamgauge infer realvideo --on tcp://head:8786 --out /shared/realvideo
    """
    from streamgauge.cli.inferring import InferRequest, infer_command

    return infer_command(
        InferRequest(
            paper=paper,
            points=24 if quick else points,
            seeds=seeds,
            confirm=3 if quick else confirm,
            members=4 if quick else members,
            out=out,
            on=on,
            report=report,
            write_reading=reading,
            draw_split=split,
            as_json=as_json,
        )
    )

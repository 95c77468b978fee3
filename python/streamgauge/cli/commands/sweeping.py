"""``sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import (
    JobsOption,
    JsonOption,
    Keep,
    MachineOption,
    ModeOption,
    Names,
    RepeatOption,
    ReplaceOption,
    SeedOption,
    SetOption,
    VerifyOption,
    WayOption,
    WithOption,
    emus,
    on_machine,
)

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Compare and report", "sweep", _sweep)


def _sweep(
    names: Names,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="ADDRESS=V1,V2",
            help="Values of an address; given again, all combinations. "
            "Also a list, \\[droptail 10 kB, codel], or a range, 1Mbit/s..5Mbit/s step 1Mbit/s.",
        ),
    ],
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="METRIC[.FLOW]",
            help="Metric to measure, such as goodput or rtt.video (docs/metrics.md). Default: goodput, loss, "
            "queueing delay and the viewer's metrics, where the subject has them.",
        ),
    ] = None,
    mode: ModeOption = None,
    seed: SeedOption = None,
    repeat: RepeatOption = None,
    settings: SetOption = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for records, table and figures; the same command resumes there.",
        ),
    ] = Path("runs"),
    keep: Annotated[Keep, typer.Option("--keep", help="Parts of each record to store.")] = "metrics",
    way: WayOption = None,
    machine: MachineOption = "host",
    brought: WithOption = None,
    jobs: JobsOption = None,
    replace: ReplaceOption = None,
    verify: VerifyOption = False,
    as_json: JsonOption = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the table as CSV.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Also write the table as Parquet.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Also draw the figure: .svg, .png or .pdf."),
    ] = None,
) -> int:
    r"""Run a scenario with several values, and write one table and one figure.

    Every point is checked before the first trial starts. Records have the folders of [b]run --set[/b], and
    finished trials are not run again. Checks are not judged (docs/sweep.md).

    [b]Examples[/b]

      streamgauge sweep hessler/ftp-medium --over path.down.queue=10kB,20kB,50kB

      streamgauge sweep my.yaml --repeat 5 --out rates \
        --over 'path.down.rate=1Mbit/s..5Mbit/s step 1Mbit/s'

      streamgauge sweep my.yaml --metric goodput \
        --over 'path.down.queue=\[droptail 50 kB, codel]'
    """
    from streamgauge.cli.sweeping import SweepRequest, sweep_command

    on_it = on_machine(machine, way, jobs, brought)
    return sweep_command(
        SweepRequest(
            names=names,
            over=over,
            metrics=metrics or [],
            mode=emus(machine, mode),
            seed=seed,
            repeat=repeat,
            settings=settings or [],
            out=Path(out) / on_it.folder,
            keep=keep,
            way=on_it.way,
            brought=on_it.brought,
            jobs=on_it.jobs,
            replace=replace,
            verify=verify,
            as_json=as_json,
            csv=csv,
            parquet=parquet,
            figure=figure,
        )
    )

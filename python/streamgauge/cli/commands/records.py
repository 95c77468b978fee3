"""``report``, ``quality`` and ``two-phases``: of records that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JsonOption, Records, RecordsAnywhere

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the commands to `app`."""
    register(app, "Compare and report", "report", _report)
    register(app, "Compare and report", "quality", _quality)
    register(app, "Compare and report", "two-phases", _two_phases)


def _report(
    directory: RecordsAnywhere,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="The page. Default: DIR/report.html; for a URL, ./report.html."
        ),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer", metavar="ID", help="Also print the answers of scenarios: an id, or a glob of ids."
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            "--figures",
            metavar="FORMAT,...",
            help="Also write each figure into figures/: svg, png, pdf, csv (data) or py (program).",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Check every byte of the records, and exclude damaged ones with the reason. Without it "
            "complete records are trusted.",
        ),
    ] = False,
) -> None:
    """Write one self-contained HTML page about the trials in a folder.

    [b]Example[/b]

      streamgauge report runs --out ftp.html

      streamgauge report runs --answer 'hessler/ftp-*'

      streamgauge report runs --figures pdf,csv
    """
    from streamgauge.cli.elsewhere import local_copy
    from streamgauge.cli.reporting import figure_formats, report_command

    formats = figure_formats(figures)
    with local_copy(directory) as folder:
        page = out or (None if folder == Path(directory) else Path("report.html"))
        report_command(folder, page, answer, verify=verify, formats=formats)


def _quality(
    directory: Records,
    flow: Annotated[
        str | None,
        typer.Option("--flow", metavar="NAME", help="Only this flow. Default: all flows that play."),
    ] = None,
    with_mos: Annotated[
        bool,
        typer.Option(
            "--p1203",
            help="Also the mean opinion score of ITU-T P.1203, for players that report their segments. Needs "
            "itu-p1203, which you install: it is for non-commercial research only.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Judge the shown pictures against the source by SSIM and PSNR.

    It judges systems rtp, darwin and realvideo, and players of a ladder with reported segments. The records
    need their events. ffmpeg is needed. --json lists each frame or segment. docs/quality.md describes the
    method.

    [b]Examples[/b]

      streamgauge quality runs

      streamgauge quality runs --flow qt1 --json
    """
    from streamgauge.cli.judging import quality_command

    return quality_command(directory, flow, as_json, with_mos)


def _two_phases(
    directory: Records,
    fitted: Annotated[
        list[str],
        typer.Option("--fit", metavar="GLOB", help="Ids that the model is fitted to. Repeatable."),
    ],
    judged: Annotated[
        list[str] | None,
        typer.Option(
            "--judge", metavar="GLOB", help="Ids that the fitted model is compared with. Repeatable."
        ),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option("--flow", metavar="NAME", help="The stream. Default: the one that plays a clip."),
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Also write the table (.csv), with errors (.json), or a figure (.svg, .png, .pdf). "
            "Repeatable.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a model of a stream that fills a buffer first and then plays.

    The inputs are encoded rates, capacity, loss and a TCP flow beside it. The outputs are length, rates,
    losses and bursts of both phases. Simulators can use the table (docs/two-phases.md).

    [b]Examples[/b]

      streamgauge two-phases runs --fit 'windows-media/sbr-sweep-725-*'

      streamgauge two-phases runs --fit 'windows-media/sbr-sweep-725-*' \\
        --judge 'windows-media/sbr-sweep-*' --out model.csv --out model.svg
    """
    from streamgauge.cli.two_phases import two_phases_command

    two_phases_command(directory, fitted, judged or [], flow, out or [], as_json)

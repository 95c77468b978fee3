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
            "--out", metavar="FILE", help="The page. Default: DIR/report.html; of a URL, report.html here."
        ),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer", metavar="ID", help="Also print what scenarios answer: an id, or a glob of ids."
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            "--figures",
            metavar="FORMAT,...",
            help="Also write every figure as files into figures/ beside the page: svg, png, pdf, its data as "
            "csv, a program that draws it of these as py.",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Read every record wholly, and leave those out that are not as they were written, with the "
            "reason. Without, files that are there, whole and each other's are trusted.",
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
        str | None, typer.Option("--flow", metavar="NAME", help="This flow alone. Default: all that play.")
    ] = None,
    with_mos: Annotated[
        bool,
        typer.Option(
            "--p1203",
            help="Also the mean opinion score of ITU-T P.1203 of players that say which segments they show, "
            "by itu-p1203, which you install yourself: it is for non-commercial research only.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Judge the pictures that players showed against the source: SSIM and PSNR, from what arrived in time.

    For systems rtp, darwin and realvideo, and for players of a ladder that say which segments they show, of
    records from either mode whose events were kept. Needs ffmpeg. With --json also frame by frame or
    segment by segment. What is compared with what: docs/quality.md.

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
        typer.Option("--fit", metavar="GLOB", help="Ids that it is fitted to; repeatable."),
    ],
    judged: Annotated[
        list[str] | None,
        typer.Option("--judge", metavar="GLOB", help="Ids that it is then held against; repeatable."),
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
            help="Also write the model's table as .csv, with its parameters and errors as .json, or its "
            "lines over what was measured as .svg, .png or .pdf; repeatable.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a model of a stream that fills its player's buffer first and then plays, and say how far off it is.

    Of encoded rates, capacity, loss and a TCP beside it the model says of both phases how long they are, what
    is offered, received and lost, in which bursts, and what is taken where too much is lost. The table is for
    simulators of one's own (docs/two-phases.md).

    [b]Examples[/b]

      streamgauge two-phases runs --fit 'windows-media/sbr-sweep-725-*'

      streamgauge two-phases runs --fit 'windows-media/sbr-sweep-725-*' \\
        --judge 'windows-media/sbr-sweep-*' --out model.csv --out model.svg
    """
    from streamgauge.cli.two_phases import two_phases_command

    two_phases_command(directory, fitted, judged or [], flow, out or [], as_json)

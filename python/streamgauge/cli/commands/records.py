"""``report`` and ``quality``: of records that are there."""

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

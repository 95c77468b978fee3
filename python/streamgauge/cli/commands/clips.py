"""``clip``, ``ladder`` and ``package``: content as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Stream", "clip", _clip, no_args_is_help=True)
    register(app, "Stream", "ladder", _ladder, no_args_is_help=True)
    register(app, "Stream", "package", _package, no_args_is_help=True)


def _clip(
    name: Annotated[
        str, typer.Argument(metavar="SOURCE-RATE", help="As in a scenario: carphone-550k, bigbuckbunny-1.5M.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .mp4 file to write.")],
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="How long it plays.")] = "10 s",
    audio: Annotated[
        str, typer.Option("--audio", metavar="RATE", help="The share of the rate that is sound, a tone.")
    ] = "0 bit/s",
    as_json: Annotated[bool, typer.Option("--json", help="What it holds, as JSON.")] = False,
) -> None:
    """Write a clip that ships as a file, to serve it or to look at it.

    Encoded by ffmpeg on first use: H.264, and AAC if it has sound. Folders are made; a file that is there
    with other content stays.

    [b]Examples[/b]

      streamgauge clip carphone-550k videos/clip.mp4

      streamgauge clip testsrc2-1M card.mp4 --duration 60s --audio 48kbit/s
    """
    from streamgauge.cli.clips import clip_command

    clip_command(name, file, duration, audio, as_json)


def _ladder(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...", help="What ships (carphone), a video file, or the files of a ladder."
        ),
    ],
    rates: Annotated[
        str | None, typer.Option("--rates", metavar="RATES", help="Of its pictures, the lowest first.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FOLDER|FILE", help="A new folder to write it to, or one file: film.wmv."
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration", metavar="TIME", help="How long it plays; a film's length, or 10 s of what ships."
        ),
    ] = None,
    audio: Annotated[
        str | None,
        typer.Option(
            "--audio", metavar="RATE", help="The rate of its sound, a track of its own; none if left out."
        ),
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option("--segment", metavar="TIME", help="From key frame to key frame; 2 s if left out."),
    ] = None,
    frame_rate: Annotated[
        str | None,
        typer.Option("--frame-rate", metavar="N", help="Frames a second; a film's own, or 25 of what ships."),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes", metavar="WxH,...", help="Of each rate's pictures; a film's own, or by the rate."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", min=1, help="Encoders at once; as many as processors if left out."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What it holds, as JSON.")] = False,
) -> None:
    r"""Encode content at several rates whose key frames align, for a packager to cut into segments.

    FOLDER gets an MP4 file of H.264 for each rate, one of AAC if it has sound, and content.json, which has
    every frame's size, time and key flag. Encodings are kept by content and settings, so the same again takes
    no time. A film's own size, frame rate, channels and length are kept unless an option says otherwise; the
    output states each change. Two or more files without --rates are taken as a ladder as they are, and held
    against the same rule.

    [b]Examples[/b]

      streamgauge ladder carphone --rates 235k,560k,1050k,1750k --out videos

      streamgauge ladder my.mp4 --rates 500k@426x240,1.5M@640x360 \
        --audio 128kbit/s --segment 4s --out videos

      streamgauge ladder low.mp4 high.mp4 --json

      streamgauge ladder carphone --rates 28k,109k,282k --audio 24kbit/s \
        --out films/film.wmv
    """
    from streamgauge.cli.clips import ladder_command

    ladder_command(
        sources,
        rates,
        out,
        duration=duration,
        audio=audio,
        segment=segment,
        frame_rate=frame_rate,
        sizes=sizes,
        jobs=jobs,
        as_json=as_json,
    )


def _package(
    ladder: Annotated[
        Path,
        typer.Argument(metavar="LADDER", help="A folder that `streamgauge ladder` wrote, or an MP4 file."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A new folder to write it to.")],
    index: Annotated[
        str | None,
        typer.Option(
            "--index",
            metavar="HOW",
            help="How DASH tells segments: number or timeline; by number if all are of one length.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What it holds, as JSON.")] = False,
) -> None:
    """Cut a ladder into segments, with the manifests of DASH and of HLS that name them.

    By ffmpeg's packager: fragmented MP4, pictures and sound apart, representations from the lowest rate up,
    segments as long as the ladder's. FOLDER gets manifest.mpd, master.m3u8 and presentation.json, which says
    what there is. A folder that any web server can serve.

    [b]Examples[/b]

      streamgauge package videos --out served

      streamgauge package clip.mp4 --out served --index timeline --json
    """
    from streamgauge.cli.clips import package_command

    package_command(ladder, out, index, as_json)

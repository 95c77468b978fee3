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
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Duration.")] = "10 s",
    audio: Annotated[
        str, typer.Option("--audio", metavar="RATE", help="Share of the rate for sound, a tone.")
    ] = "0 bit/s",
    as_json: Annotated[bool, typer.Option("--json", help="Print the contents as JSON.")] = False,
) -> None:
    """Write a clip that ships as a file.

    ffmpeg encodes it at first use: H.264, and AAC if it has sound. Missing folders are made. A file with
    other content is kept.

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
            metavar="SOURCE...", help="Content that ships (carphone), a video file, or the files of a ladder."
        ),
    ],
    rates: Annotated[
        str | None,
        typer.Option("--rates", metavar="RATES", help="Bit rates of the pictures, the lowest first."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER|FILE", help="A new folder, or one new file: film.wmv."),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration", metavar="TIME", help="Duration. Default: the film's; 10 s for content that ships."
        ),
    ] = None,
    audio: Annotated[
        str | None,
        typer.Option(
            "--audio", metavar="RATE", help="Bit rate of the sound, a separate track. Default: no sound."
        ),
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option("--segment", metavar="TIME", help="Time between key frames. Default: 2 s."),
    ] = None,
    frame_rate: Annotated[
        str | None,
        typer.Option(
            "--frame-rate",
            metavar="N",
            help="Frames a second. Default: the film's rate, or 25 for shipped content.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="WxH,...",
            help="Picture size of each rate. Default: the film's, or by the rate.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            help="Number of concurrent encoders. Default: one for each processor.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the contents as JSON.")] = False,
) -> None:
    r"""Encode content at several rates with aligned key frames, for a packager to cut.

    FOLDER gets one H.264 file for each rate, one AAC file for sound, and content.json. That file has the
    size, time and key flag of every frame. The same content and settings are encoded once.

    A film keeps its size, frame rate, channels and length, unless an option changes them. The output lists
    each change. Two or more files without --rates are used unchanged as a ladder, if they are aligned.

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
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A new folder.")],
    index: Annotated[
        str | None,
        typer.Option(
            "--index",
            metavar="HOW",
            help="How DASH addresses segments: number or timeline. Default: number if all have one length.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the contents as JSON.")] = False,
) -> None:
    """Cut a ladder into segments with manifests of DASH and HLS.

    ffmpeg packages fragmented MP4, with separate pictures and sound, from the lowest rate up. FOLDER gets
    manifest.mpd, master.m3u8 and presentation.json, a description of both. Any web server can serve it.

    [b]Examples[/b]

      streamgauge package videos --out served

      streamgauge package clip.mp4 --out served --index timeline --json
    """
    from streamgauge.cli.clips import package_command

    package_command(ladder, out, index, as_json)

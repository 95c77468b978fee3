"""``clip``: built-in content as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Stream", "clip", _clip, no_args_is_help=True)


def _clip(
    name: Annotated[
        str, typer.Argument(metavar="SOURCE-RATE", help="As in a scenario: carphone-550k, bigbuckbunny-1.5M.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .mp4 file to write.")],
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="How long it plays.")] = "10 s",
    audio: Annotated[
        str, typer.Option("--audio", metavar="RATE", help="The share of the rate that is sound, a tone.")
    ] = "0 bit/s",
) -> None:
    """Write a clip that ships as a file, to serve it or to look at it.

    Encoded by ffmpeg on first use: H.264, and AAC if it has sound. Folders are made; a file that is there
    with other content stays.

    [b]Examples[/b]

      streamgauge clip carphone-550k videos/clip.mp4

      streamgauge clip testsrc2-1M card.mp4 --duration 60s --audio 48kbit/s
    """
    from streamgauge.cli.clips import clip_command

    clip_command(name, file, duration, audio)

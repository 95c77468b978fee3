"""``machine``: the virtual machine's image and snapshots."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JsonOption

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Instrument", "machine", _machine)


def _machine(
    what: Annotated[
        Literal["build", "list", "remove"],
        typer.Argument(
            metavar="build|list|remove",
            help="build: make image and snapshot now; list: say what is kept and where; remove: all of it.",
        ),
    ] = "list",
    speed: Annotated[
        int,
        typer.Option(
            "--speed", help="Of which snapshot to build: 1, 2 or 4 thousand million instructions/s."
        ),
    ] = 1,
    again: Annotated[bool, typer.Option("--again", help="Build the image though it is there.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Build, list or remove what emu's virtual machine starts from (docs/virtual.md).

    It is built at first use too: half a minute for the image, of the distribution's packages, and as long for
    the snapshot that trials begin from. Building takes no root.

    [b]Examples[/b]

      streamgauge machine build

      streamgauge machine build --speed 2

      streamgauge machine list
    """
    from streamgauge.cli.machines import machine_command

    return machine_command(what, speed, again=again, as_json=as_json)

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
            help="build: make image and snapshot; list: print the kept files; remove: delete them.",
        ),
    ] = "list",
    speed: Annotated[
        int,
        typer.Option("--speed", help="Speed of the snapshot to build: 1, 2 or 4 GHz."),
    ] = 1,
    again: Annotated[bool, typer.Option("--again", help="Build the image even if it exists.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Build, list or remove the image of emu's virtual machine (docs/virtual.md).

    The first trial also builds it. Image and snapshot take half a minute each. Building needs no root.

    [b]Examples[/b]

      streamgauge machine build

      streamgauge machine build --speed 2

      streamgauge machine list
    """
    from streamgauge.cli.machines import machine_command

    return machine_command(what, speed, again=again, as_json=as_json)

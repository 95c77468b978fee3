"""``list``, ``show``, ``systems``, ``presets`` and ``schema``."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Literal

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JsonOption, SetOption

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the commands to `app`."""
    register(app, "Look up", "list", _list)
    register(app, "Look up", "show", _show)
    register(app, "Look up", "systems", _systems)
    register(app, "Look up", "presets", _presets)
    register(app, "Look up", "schema", _schema)


def _list(
    pattern: Annotated[str, typer.Argument(metavar="[GLOB]", help="Only ids that match.")] = "*",
    as_json: JsonOption = False,
) -> None:
    """List the catalogue.

    Without GLOB, many scenarios of one file are one line with their glob.

    [b]Examples[/b]

      streamgauge list

      streamgauge list 'today/*'
    """
    from streamgauge.cli.looking import list_command

    list_command(pattern, as_json)


def _show(
    name: Annotated[str, typer.Argument(metavar="FILE|ID", help="A scenario file or an id.")],
    settings: SetOption = None,
    plan: Annotated[
        Literal["sim", "emu"] | None,
        typer.Option("--plan", help="Print the plan of a trial in this mode instead, as JSON."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The plan's seed.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Show a scenario: in words, normalised as JSON, or lowered to a trial's plan.

    [b]Examples[/b]

      streamgauge show hessler/ftp-heavy

      streamgauge show my.yaml --plan sim --seed 3
    """
    from streamgauge.cli.looking import show_command

    show_command(name, settings or [], plan, seed, as_json)


def _systems(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Show this one and its parameters; tcp for TCP's."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the systems and traffic for flows, or show one with its parameters and sources.

    [b]Examples[/b]

      streamgauge systems

      streamgauge systems darwin

      streamgauge systems tcp
    """
    from streamgauge.cli.systems import systems_command

    systems_command(name, as_json)


def _presets(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show this one in full.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the paths that ship, or show one with its sources and assumptions.

    [b]Examples[/b]

      streamgauge presets

      streamgauge presets lte
    """
    from streamgauge.cli.presets import presets_command

    presets_command(name, as_json)


def _schema() -> None:
    """Print the JSON Schema of scenario files.

    [b]Example[/b]

      streamgauge schema > scenario.schema.json
    """
    from streamgauge.scenario import json_schema

    json.dump(json_schema(), sys.stdout, indent=2)
    print()

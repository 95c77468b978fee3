"""``list``, ``show``, ``systems``, ``presets``, ``schema`` and ``doctor``."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Literal

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JsonOption, SetOption, WayOption

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the commands to `app`."""
    register(app, "Look", "list", _list)
    register(app, "Look", "show", _show)
    register(app, "Look", "systems", _systems)
    register(app, "Look", "presets", _presets)
    register(app, "Look", "schema", _schema)
    register(app, "Look", "doctor", _doctor)


def _list(
    pattern: Annotated[str, typer.Argument(metavar="[GLOB]", help="Only ids that match.")] = "*",
    as_json: JsonOption = False,
) -> None:
    """List the catalogue.

    [b]Example[/b]

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
    """List the systems and traffic that flows may name, or show one: its parameters and where they are from.

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
    """List the paths that ship, or show one: what it is, where its figures come from and what was assumed.

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


def _doctor(way: WayOption = None, as_json: JsonOption = False) -> int:
    """Say what this machine can do, why not, and the remedy. Exit status 4 if emu cannot run.

    [b]Example[/b]

      streamgauge doctor
    """
    from streamgauge.cli.looking import doctor_command

    return doctor_command(way, as_json)

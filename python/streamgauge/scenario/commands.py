"""A system given as commands: each side one command, or several named processes in their order."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from streamgauge.scenario.values import Flag, Model, issue
from streamgauge.systems.adapter import SIDES, CommandLine, Side
from streamgauge.systems.command import check_lines
from streamgauge.systems.processes import ProcessError

__all__ = ["Command", "CommandProcess"]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CommandProcess(Model):
    """One of several processes of a side; a bare command is enough if it needs no further settings."""

    name: str = ""
    """A word. In a mapping of processes its key is the name."""
    command: str
    """Run by a shell's rules of quoting but without a shell."""
    ready: str | None = None
    """How it shows that the next may start: ``port``, ``end``, ``file``, or a path that it fills."""
    essential: Flag = True
    """Whether the trial is worth nothing once it has failed."""
    helpers: tuple[str, ...] = ()
    """Files and folders that it needs; from a scenario file, relative to it."""

    @classmethod
    def from_words(cls, data: Any) -> Any:
        return {"command": data} if isinstance(data, str) else data


def _named(given: Any) -> Any:
    """Returns a mapping as a list, which keeps its order wherever it is written down."""
    if not isinstance(given, dict):
        return given
    for key, process in given.items():
        if process.name not in ("", key):
            raise issue(f"'{key}' has another name, '{process.name}', too", (key, "name"), "leave 'name' out")
    return tuple(process.changed(name=key) for key, process in given.items())


def _form(value: Any) -> str:
    if isinstance(value, dict):
        return "~mapping"
    return "~list" if isinstance(value, list | tuple) else "~command"


CommandOrMore = Annotated[
    CommandProcess, BeforeValidator(lambda value: value, json_schema_input_type=str | CommandProcess)
]
Processes = Annotated[
    Annotated[str, Tag("~command")]
    | Annotated[dict[str, CommandOrMore], Tag("~mapping")]
    | Annotated[tuple[CommandProcess, ...], Tag("~list")],
    Discriminator(_form),
    AfterValidator(_named),
]


class Command(Model):
    """A system given as commands. Each end reads its part from STREAMGAUGE_* variables (docs/adapters.md),
    and exits with 127 if it does not support a request."""

    server: Processes
    """Run at the server's end, by a shell's rules of quoting but without one; several by name, in order."""
    player: Processes
    """Run at the player's end."""
    name: str = "command"
    """Name in results."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment that both ends get besides the contract's."""
    folder: str | None = None
    """Working folder of both ends; from a file, relative to it, and the file's own folder if left out."""

    @model_validator(mode="after")
    def _sound(self) -> Command:
        for name, value in self.env.items():
            if not _VARIABLE.fullmatch(name):
                why = f"{name!a} is no name of a variable; expected a letter or _, then letters, digits or _"
                raise issue(why, ("env", name), "rename it")
            if "\0" in value:
                raise issue(f"the value of {name} contains a zero byte", ("env", name), "leave it out")
        for side in SIDES:
            try:
                check_lines(side, self.lines(side))
            except ProcessError as error:
                raise issue(error.why, error.key, error.hint) from None
        return self

    def lines(self, side: Side) -> list[CommandLine]:
        """Returns the processes of a side, in order."""
        given = getattr(self, side)
        if isinstance(given, str):
            return [CommandLine(command=given)]
        return [
            CommandLine(
                name=one.name,
                command=one.command,
                ready=one.ready,
                essential=one.essential,
                helpers=one.helpers,
            )
            for one in given
        ]

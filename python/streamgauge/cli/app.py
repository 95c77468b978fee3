"""The program's commands, in the order of its help."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from streamgauge import __version__
from streamgauge.cli.commands import (
    analyzing,
    clips,
    comparing,
    evaluating,
    gateways,
    inferring,
    latency,
    linking,
    looking,
    machine,
    measuring,
    records,
    running,
    serving,
    sweeping,
)
from streamgauge.cli.commands.register import reflowed

__all__ = ["command"]

_HELP = """Measure how streaming media behaves when the network gets tight.

A scenario is one experiment as data: a path, the flows on it, and checks. [b]sim[/b] runs it in virtual
time, on any machine. [b]emu[/b] runs real servers and players through our link emulator. Both leave the same
record.

[b]Examples[/b]

  streamgauge run hessler/ftp-heavy
  streamgauge run my.yaml --set path.down.rate=300kbit/s --repeat 5
  streamgauge reproduce 'hessler/*' --mode sim --mutants
  streamgauge report runs

Exit status: 0 every check passes, 1 a check failed, 2 inconclusive, 3 bad input, 4 cannot run here.
Status 2 also means that more than a third of the trials were invalid.
"""

_app = typer.Typer(
    help=reflowed(_HELP),
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command() -> Any:
    """Returns the command that `main` runs."""
    return typer.main.get_command(_app)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"streamgauge {__version__}")
        raise typer.Exit


@_app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


for _topic in (
    running,
    comparing,
    sweeping,
    latency,
    evaluating,
    inferring,
    linking,
    gateways,
    records,
    analyzing,
    looking,
    clips,
    serving,
    measuring,
    machine,
):
    _topic.add(_app)

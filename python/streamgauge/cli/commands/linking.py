"""``link``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    settings = {"allow_interspersed_args": False}
    register(app, "Run experiments", "link", _link, no_args_is_help=True, context_settings=settings)


def _link(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The command and its arguments.")
    ],
    down: Annotated[
        str | None,
        typer.Option("--down", metavar="PATH", help="Towards the command, 'rate 1 Mbit/s, delay 20 ms'."),
    ] = None,
    up: Annotated[str | None, typer.Option("--up", metavar="PATH", help="From the command.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="A path of 'streamgauge presets'; --down and --up change parts of it.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace", metavar="FILE|NAME", help="The down rate by a trace: a file, or one that ships."
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="CMD", help="A shell line to run at the far end, in a namespace of its own."
        ),
    ] = None,
    internet: Annotated[
        bool, typer.Option("--internet", help="Let packets out of this machine (root, nftables).")
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="DIR", help="Keep the record, which 'streamgauge report DIR' draws."),
    ] = None,
    capture: Annotated[
        Path | None, typer.Option("--capture", metavar="FILE", help="Keep a capture that Wireshark opens.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of random loss and jitter.")] = 1,
    preflight: Annotated[
        bool,
        typer.Option(
            "--preflight/--no-preflight", help="Test the path before the command starts: measure it empty."
        ),
    ] = True,
    drain: Annotated[
        bool,
        typer.Option("--drain/--no-drain", help="Let what is in flight arrive when the command has ended."),
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks and no summary.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The summary as one line of JSON, the last on stderr.")
    ] = False,
) -> int:
    r"""Run any command behind an emulated path, without root.

    COMMAND's only way out is the path; it keeps its terminal, files, user, signals and exit status.
    A direction reads as in a scenario: [b]rate[/b], [b]queue[/b] (bytes, packets or time; drop-tail unless it
    names a discipline), [b]delay[/b], [b]jitter[/b], [b]loss[/b] and more (docs/link-command.md).

    [b]What is at the far end[/b]

    --server CMD runs in a fresh namespace there; its address is $STREAMGAUGE_SERVER for both. Without it
    the far end is your own namespace if you may change that: as root, where $STREAMGAUGE_SERVER is this
    machine, reached through the path, or inside another link, so that links chain. An ordinary user at top
    level has no such right: then the far end is empty, and there is no way to the internet; let --server be
    the other side. Packets leave the machine only with --internet, as root.

    [b]Examples[/b]

      streamgauge link --down 'rate 1 Mbit/s, queue 10 kB, delay 20 ms' \
        --server 'python3 -m http.server' \
        -- sh -c 'curl -so /dev/null http://$STREAMGAUGE_SERVER:8000/file'

      streamgauge link --down 'delay 40 ms' -- \
        streamgauge link --down 'loss 1 %' -- bash

      sudo streamgauge link --preset lte --internet -- \
        curl -O https://example.org/file

      streamgauge link --trace lte.trace --log runs/lte \
        --server 'iperf3 -s -1' -- sh -c 'iperf3 -R -c $STREAMGAUGE_SERVER'

    A summary follows on stderr. Exit status: the command's (128 + n after signal n); 3 bad input, 4 this
    machine cannot, 126 or 127 if the command cannot be run.
    """
    from streamgauge.link_command.link import run_link
    from streamgauge.link_command.options import LinkRequest
    from streamgauge.link_command.paths import label_of, path_of

    request = LinkRequest(
        command=tuple(command),
        path=path_of(down=down, up=up, preset_name=preset, trace=trace),
        label=label_of(down=down, up=up, preset_name=preset, trace=trace),
        server=server,
        internet=internet,
        seed=seed,
        log=log,
        capture=capture,
        preflight=preflight,
        drain=drain,
    )
    return run_link(request, as_json=as_json, quiet=quiet)

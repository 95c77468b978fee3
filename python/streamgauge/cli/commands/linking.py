"""``link``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import LiveOption, LivePortOption

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
        typer.Option("--down", metavar="PATH", help="Path to the command: 'rate 1 Mbit/s, delay 20 ms'."),
    ] = None,
    up: Annotated[str | None, typer.Option("--up", metavar="PATH", help="Path from the command.")] = None,
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
        typer.Option("--preflight/--no-preflight", help="Measure the empty path before the command starts."),
    ] = True,
    drain: Annotated[
        bool,
        typer.Option("--drain/--no-drain", help="Deliver the packets in flight after the command has ended."),
    ] = True,
    live: LiveOption = None,
    live_port: LivePortOption = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no remarks and no summary.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one line of JSON, the last on stderr.")
    ] = False,
) -> int:
    r"""Run any command behind an emulated path, without root.

    The path is COMMAND's only way out. It keeps its terminal, files, user, signals and exit status. A
    direction has the keys of a scenario: [b]rate[/b], [b]queue[/b], [b]delay[/b], [b]jitter[/b], [b]loss[/b]
    and more (docs/link-command.md).

    [b]The far end[/b]

    --server CMD runs in a fresh namespace at the far end. Its address is $STREAMGAUGE_SERVER on both sides.

    Without --server, root's far end is this machine, and links inside links chain. For an ordinary user the
    far end is then empty. Packets leave the machine only with --internet, as root.

    [b]Examples[/b]

      streamgauge link --down 'rate 1 Mbit/s, queue 10 kB, delay 20 ms' \
        --server 'python3 -m http.server' \
        -- sh -c 'curl -so /dev/null http://$STREAMGAUGE_SERVER:8000/file'

      streamgauge link --down 'delay 40 ms' -- \
        streamgauge link --down 'loss 1 %' -- bash

      streamgauge link --preset lte --live -- bash

      sudo streamgauge link --preset lte --internet -- \
        curl -O https://example.org/file

      streamgauge link --trace lte.trace --log runs/lte \
        --server 'iperf3 -s -1' -- sh -c 'iperf3 -R -c $STREAMGAUGE_SERVER'

    A summary follows on stderr. Exit status: the command's, or 128 + n after signal n. 3 bad input, 4 cannot
    run here, 126 or 127 cannot run the command.
    """
    from streamgauge.cli.showing import live_asked
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
        live=live_asked(live, live_port),
    )
    return run_link(request, as_json=as_json, quiet=quiet)

"""``gateway``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import LiveOption, LivePortOption

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Run experiments", "gateway", _gateway, no_args_is_help=True)


def _gateway(
    lan: Annotated[
        str | None, typer.Option("--lan", metavar="IFACE", help="The interface towards the clients.")
    ] = None,
    wan: Annotated[
        str | None,
        typer.Option(
            "--wan",
            metavar="IFACE",
            help="The interface towards the servers; by default the way out, routed.",
        ),
    ] = None,
    container: Annotated[
        str | None,
        typer.Option(
            "--container",
            metavar="NAME|PID",
            help="A running container or process with a network of its own.",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="[ADDRESS:]PORT", help="A port of this machine, TCP and UDP."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="HOST:PORT", help="The server behind --listen.")
    ] = None,
    down: Annotated[
        str | None,
        typer.Option("--down", metavar="PATH", help="Path to the clients: 'rate 1 Mbit/s, delay 20 ms'."),
    ] = None,
    up: Annotated[str | None, typer.Option("--up", metavar="PATH", help="Path from the clients.")] = None,
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
    duration: Annotated[
        str | None, typer.Option("--duration", metavar="TIME", help="End after this time: '10 min'.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the changes of this machine's network, and make none.")
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
            "--preflight/--no-preflight", help="Measure the empty path first, where it is possible."
        ),
    ] = True,
    live: LiveOption = None,
    live_port: LivePortOption = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no remarks and no summary.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one line of JSON, the last on stderr.")
    ] = False,
) -> int:
    r"""Put phones, set-top boxes or containers behind an emulated path.

    This machine becomes the bottleneck of a network segment until Ctrl-C or --duration. The path has the keys
    of [b]link[/b] (docs/gateway.md).

    [b]Forms[/b]

    Two wired interfaces make a transparent bridge. The option --lan alone, or Wi-Fi, makes a router with NAT.
    A container or process must have a network of its own. The options --listen and --to forward TCP and UDP.

    All but the forwarder require root, nft and Linux 5.16. Each prints its changes first; --dry-run makes
    none. All are undone at the end, SIGKILL included.

    [b]Examples[/b]

      sudo streamgauge gateway --lan eth1 --wan eth2 --preset lte --live

      sudo streamgauge gateway --lan wlan0 --down 'rate 2 Mbit/s, queue 30 kB'

      sudo streamgauge gateway --container player --preset dsl --duration '10 min'

      streamgauge gateway --listen 8554 --to camera.local:554 --down 'delay 40 ms'

    A summary follows on stderr. Exit status: 0 at the end, 2 the link or the container died, 3 bad input, 4
    cannot run here.
    """
    from streamgauge.cli.showing import live_asked
    from streamgauge.errors import ScenarioError
    from streamgauge.gateway.gateway import run_gateway
    from streamgauge.gateway.request import GatewayRequest, kind_of
    from streamgauge.link_command.paths import label_of, path_of
    from streamgauge.units import Time, UnitError

    try:
        duration_s = None if duration is None else Time(duration).s
    except UnitError as error:
        raise ScenarioError(f"--duration: {error}") from None
    if duration_s is not None and duration_s <= 0:
        raise ScenarioError(f"--duration {duration}: no time; give such as '10 min'")
    request = GatewayRequest(
        command=("gateway", *sys.argv[2:]),
        path=path_of(down=down, up=up, preset_name=preset, trace=trace),
        label=label_of(down=down, up=up, preset_name=preset, trace=trace),
        seed=seed,
        log=log,
        capture=capture,
        preflight=preflight,
        live=live_asked(live, live_port),
    )
    request.check()
    kind = kind_of(lan=lan, wan=wan, container=container, listen=listen, to=to)
    return run_gateway(kind, request, duration_s=duration_s, dry_run=dry_run, as_json=as_json, quiet=quiet)

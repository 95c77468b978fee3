"""``latency-table``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JsonOption, SetOption

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Compare and report", "latency-table", _latency_table)


def _latency_table(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM...", help="Systems that repeat lost packets within a latency: srt, rist."
        ),
    ],
    loss: Annotated[
        str, typer.Option("--loss", metavar="P1,P2", help="Shares of lost packets, the same both ways.")
    ] = "0%,0.5%,1%,2%,5%,10%,15%,20%",
    rtt: Annotated[
        str, typer.Option("--rtt", metavar="T1,T2", help="Round trips of the path.")
    ] = "10ms,20ms,50ms,100ms,200ms,400ms",
    burst: Annotated[
        str | None,
        typer.Option(
            "--burst",
            metavar="N",
            help="Lose packets in bursts of this mean length, such as '3 packets' (Gilbert's model).",
        ),
    ] = None,
    share: Annotated[
        str, typer.Option("--share", metavar="P", help="Share of pictures that must be shown.")
    ] = "99.9%",
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="Trials of each loss and round trip, of 60 s each.")
    ] = 10,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the first trial.")] = 1,
    settings: SetOption = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for records; the same command resumes there.")
    ] = Path("runs/latency-table"),
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write table and heat map as .html, or the map as .svg, .png or .pdf.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Print the least latency that shows 99.9 % of pictures, by loss and round trip.

    Each trial answers for all latencies up to 8 round trips (at least 250 ms). The pictures of all seeds
    count together, and the interval is by seeds. Trials run in sim (docs/contribution.md). Several systems
    stand beside each other, and plain ARQ by theory beside all.

    [b]Examples[/b]

      streamgauge latency-table srt

      streamgauge latency-table srt rist --loss 1%,5% --report table.html

      streamgauge latency-table srt --burst '3 packets' --json
    """
    from streamgauge.cli.latency import LatencyRequest, latency_command

    return latency_command(
        LatencyRequest(
            systems=systems,
            losses=loss.split(","),
            rtts=rtt.split(","),
            burst=burst,
            share=share,
            repeat=repeat,
            first_seed=seed,
            settings=settings or [],
            out=out,
            report=report,
            as_json=as_json,
        )
    )

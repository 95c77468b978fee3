"""``analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JsonOption

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Compare and report", "analyze", _analyze, no_args_is_help=True)


def _analyze(
    captures: Annotated[
        list[Path],
        typer.Argument(metavar="A [B]", help="One or two captures: pcap or pcapng, plain, gzip or zstd."),
    ],
    at: Annotated[
        Literal["sender", "receiver"] | None,
        typer.Option("--at", help="Place of capture A. Default: found from the round trips."),
    ] = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(
            "--flow",
            metavar="TEXT|A=B",
            help="Only flows with this text. A=B: two names of one translated address.",
        ),
    ] = None,
    base_delay: Annotated[
        str | None,
        typer.Option("--base-delay", metavar="TIME", help="Minimum delay to the receiver, if known: 20 ms."),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option("--scenario", metavar="FILE", help="Write the measured path and flows as a scenario."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Write rate, delay and loss over time as a trace."),
    ] = None,
    qlogs: Annotated[
        list[Path] | None,
        typer.Option("--qlog", metavar="FILE", help="Place a QUIC endpoint's qlog beside the packets."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write a record of two captures, as a trial leaves one."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write the page of that record.")
    ] = None,
    checks: Annotated[
        Path | None,
        typer.Option("--checks", metavar="FILE", help="Judge the record by the checks in this YAML file."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Analyse packet captures: loss, retransmissions, round trips, jitter and limits of each flow.

    A and B are two captures of one path at the same time. They are matched packet by packet. The result is
    each packet's fate and delay, the clocks' offset, and the bottleneck's rate and queue.

    One capture, or - for standard input, shows each flow's rate, loss and timing. A dash marks figures that
    the captures cannot show.

    [b]Examples[/b]

      streamgauge analyze server.pcapng client.pcapng

      streamgauge analyze server.pcapng client.pcapng --out record \\
        --report page.html

      tcpdump -i eth0 -w - -c 10000 | streamgauge analyze -
    """
    from streamgauge.captures.analysis import AnalysisRequest
    from streamgauge.cli.analyzing import AnalysisFiles, analyze_command
    from streamgauge.errors import ScenarioError

    texts = [text for text in flow or () if "=" not in text]
    renamed = tuple(
        (theirs, ours) for ours, _, theirs in (text.partition("=") for text in flow or () if "=" in text)
    )
    if len(texts) > 1:
        raise ScenarioError(f"--flow was given {len(texts)} times", hint="one text chooses flows")
    request = AnalysisRequest(
        tuple(captures),
        at=at,
        flow=texts[0] if texts else None,
        renamed=renamed,
        qlogs=tuple(qlogs or ()),
        base_delay_s=_seconds(base_delay),
    )
    files = AnalysisFiles(scenario=scenario, trace=trace, out=out, report=report, checks=checks)
    return analyze_command(request, as_json, files)


def _seconds(base_delay: str | None) -> float | None:
    from streamgauge.errors import ScenarioError
    from streamgauge.units import Time, UnitError

    if base_delay is None:
        return None
    try:
        return Time(base_delay).s
    except UnitError as error:
        raise ScenarioError(f"--base-delay: {error}") from None

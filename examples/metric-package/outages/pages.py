"""Traffic `pages`: a page that curl fetches again and again from Python's web server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.systems.adapter import (
    ENDS,
    Action,
    Adapter,
    Clock,
    Collected,
    External,
    FlowSetup,
    Process,
    Program,
)
from streamgauge.systems.events import event
from streamgauge.systems.parameter import Number, Parameter
from streamgauge.systems.player_files import UNFIT, FileRefusedError, read_in
from streamgauge.systems.system import System

PAGE_BYTES = 50_000


class Pages:
    """The adapter of traffic `pages`."""

    version = 1
    programs: Sequence[Program] = (
        Program(name="python3", packages="python3", purpose="the server of traffic pages"),
        Program(name="curl", packages="curl", purpose="the player of traffic pages", version=["--version"]),
    )
    external: External | None = External(
        protocols={"tcp": ("http",)}, content="none", media_over=lambda parameters: "tcp"
    )
    of_arrivals: Adapter | None = None

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        """Returns False: the programs are those of others."""
        return False

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        """Returns the actions of a scenario that it supports."""
        return ENDS

    def processes(self, flow: FlowSetup) -> list[Process]:
        """Returns the server and the player, in the order of their start."""
        serve = ["python3", "-u", "-m", "http.server", "--protocol", "HTTP/1.1", "--bind", flow.server_ip]
        address = f"http://{flow.server_ip}:{flow.port}/page?[1-{flow.parameters.get('count', '20')}]"
        fetch = ["stdbuf", "-oL", "curl", "--silent", "--show-error", "--fail"]
        fetch += ["--write-out", "%{time_total} %{size_download}\n"]
        return [
            Process(
                side="server",
                command=[*serve, "--directory", str(flow.out("server")), str(flow.port)],
                files={"page": "x" * PAGE_BYTES},
                namespace=flow.sending_namespace,
                early=True,
                ready="port",
            ),
            Process(
                side="player",
                command=[*fetch, "--output", str(flow.out("player") / "page"), address],
                namespace=flow.playing_namespace,
                may_end=True,
                acted_on=True,
            ),
        ]

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        """Returns the time of each page, as curl printed it."""
        found = Collected(received_bytes=0, received_what="bodies that curl wrote")
        try:
            printed = read_in(flow.out("player"), "stdout.log", 20_000_000)
        except FileRefusedError as error:
            found.faults.append(f"{flow.name}-player-stdout.log {error}")
            return found
        at_ns = clock.started["player"]
        for number, line in enumerate(printed.data.splitlines() if printed else (), 1):
            try:
                took_s, octets = map(float, line.split())
                at_ns += round(took_s * 1e9)
                found.received_bytes = (found.received_bytes or 0) + int(octets)
            except UNFIT:
                found.faults.append(f"{flow.name}-player-stdout.log:{number}: no time and size of a page")
                break
            found.events.append(event(at_ns, "page_received", took_s, "s", f"{octets:.0f} B"))
        return found


SYSTEM = System(
    name="pages",
    title="A page fetched again and again",
    modes={"emu": "Python's web server to curl"},
    ours=frozenset(),
    plays=False,
    tcp="always",
    parameters={
        "count": Parameter(
            name="count", kind=Number(whole=True), default="20", least="1", help="pages to fetch"
        )
    },
    adapter=Pages(),
)

"""Any server and player, given as command lines. The contract is in docs/adapters.md."""

from __future__ import annotations

import os
import shlex
import string
import sys
from collections.abc import Mapping
from pathlib import Path

from streamgauge.systems.adapter import Clock, Collected, FlowSetup, ProcessSpec, Side
from streamgauge.systems.events import last, read_events

UNSUPPORTED = 127
"""Exit status by which a command says that it cannot do what was asked."""


class Command:
    """The adapter of a system written as ``{server: CMD, player: CMD}``."""

    programs: Mapping[str, str] = {}

    def processes(self, flow: FlowSetup) -> list[ProcessSpec]:
        specs = []
        if "server" in flow.commands:
            specs.append(self._process(flow, "server"))
        if "player" in flow.commands:
            specs.append(self._process(flow, "player"))
        return specs

    @staticmethod
    def _process(flow: FlowSetup, side: Side) -> ProcessSpec:
        return ProcessSpec(
            side=side,
            command=split_command(flow.commands[side], flow.variables(side)),
            namespace=flow.sending_namespace if side == "server" else "client",
            early=side == "server",
            ready="file or port",
            environment=flow.environment,
            working_folder=flow.working_folder,
            may_end=side == "player",
            acted_on=side == "player",
        )

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        found = Collected()
        sides: tuple[Side, Side] = ("server", "player")
        for side in sides:
            found.events += read_events(flow, side, clock, found.faults)
        packets = last(found.events, "total_packets_received")
        octets = last(found.events, "total_bytes_received")
        if packets is not None:
            found.received_packets, found.received_what = int(packets), "packets that the player reports"
        if octets is not None:
            found.received_bytes = int(octets)
        return found


def programs_path() -> str:
    """``PATH`` for commands: the caller's, and last the folder that has `streamgauge`."""
    own = Path(sys.executable).parent
    return os.pathsep.join([os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"), str(own)])


def split_command(text: str, variables: Mapping[str, str]) -> list[str]:
    """A command split by a shell's rules of quoting, without a shell; ``$NAME`` of `variables` expanded."""
    return [string.Template(part).safe_substitute(variables) for part in shlex.split(text)]

"""The whole of ``streamgauge gateway``: the four forms as occupants of a link."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.emu.engine import search_path
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.gateway import rules
from streamgauge.gateway.forwarder import forward
from streamgauge.gateway.holding import hold
from streamgauge.gateway.request import (
    Bridged,
    Contained,
    Forwarded,
    GatewayRequest,
    Kind,
    Routed,
    open_namespace,
)
from streamgauge.gateway.saying import intended
from streamgauge.gateway.tables import Table
from streamgauge.link_command.link import run_link
from streamgauge.link_command.running import Ended
from streamgauge.link_command.testbed import Far, Testbed
from streamgauge.terminal import tell

__all__ = ["run_gateway"]

_PACKET_MEMBERSHIP, _PROMISCUOUS = 1, 1
"""packet(7): PACKET_ADD_MEMBERSHIP and PACKET_MR_PROMISC."""
_SOL_PACKET = 263


def run_gateway(
    kind: Kind,
    request: GatewayRequest,
    *,
    duration_s: float | None,
    dry_run: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Opens the gateway until a signal or its time ends it; returns the exit status.

    With `dry_run` it prints the intended changes alone. Raises StreamGaugeError; in every case nothing of the
    gateway outlives the call.
    """
    name = f"streamgauge_gateway_{os.getpid()}"
    if dry_run:
        for line in intended(kind, name, request):
            tell(line, sys.stdout)
        return 0
    if not quiet:
        for line in intended(kind, name, request, short=True):
            tell(f"streamgauge: {line}", sys.stderr)
    with ExitStack() as stack:
        occupant = Gateway(kind, name, duration_s)
        if isinstance(kind, Contained):
            occupant.process, occupant.network = open_namespace(kind.pid)
            stack.callback(os.close, occupant.process)
            stack.callback(os.close, occupant.network)
        if isinstance(kind, Bridged | Contained):
            # Both ends are in one namespace, where no packet of ours could find its way.
            request = replace(request, preflight=False)
        if isinstance(kind, Routed):
            request = replace(request, internet=True)
        return run_link(request, as_json=as_json, quiet=quiet, occupant=occupant)


@dataclass
class Gateway:
    """The traffic of a gateway; see `link_command.occupant`."""

    kind: Kind
    name: str
    duration_s: float | None
    network: int | None = None
    process: int = -1

    @property
    def far(self) -> Far:
        """Returns the kind of link that it needs."""
        match self.kind:
            case Routed():
                return "caller"
            case Forwarded():
                return "empty"
        return "segment"

    def use(
        self, testbed: Testbed, stack: ExitStack, watch: Callable[[], None], remark: Callable[[str], None]
    ) -> Ended:
        """Diverts the packets, and waits for the end."""
        # Undone before the link drains: packets then pass by it, and those inside still arrive.
        with ExitStack() as ours:
            ends: dict[int, str] = {}
            match self.kind:
                case Bridged(lan, wan):
                    near, far = testbed.ends
                    for side in (lan.name, wan.name):
                        ours.callback(_promiscuous(side).close)
                    text = rules.bridged(self.name, lan=lan.name, wan=wan.name, near=near, far=far)
                    self._table(testbed, ours, testbed.ends_at, text)
                case Contained(name, _, interface):
                    near, far = testbed.ends
                    _same_address(testbed, interface, near)
                    text = rules.contained(self.name, interface=interface, near=near, far=far)
                    self._table(testbed, ours, testbed.ends_at, text)
                    ends[self.process] = f"--container {name}: it has ended, and the gateway with it."
                case Routed(lan, _):
                    inner = f"sginner{os.getpid()}"
                    self._routed(testbed, ours, inner, lan)
                case Forwarded(listening):
                    ends = forward(testbed, listening, ours)
            return hold(testbed, watch, remark, duration_s=self.duration_s, ends=ends)

    def _table(self, testbed: Testbed, stack: ExitStack, where: str, text: str) -> None:
        stack.callback(Table(testbed, where, self.name, text).close)

    def _routed(self, testbed: Testbed, stack: ExitStack, inner: str, lan: Any) -> None:
        network = lan.network
        assert network is not None
        script = rules.inner_pair(inner, network, f"/proc/self/fd/{testbed.spaces['client'].net}")
        _shell(testbed, "caller", script[0])
        stack.callback(_shell, testbed, "caller", f"ip link delete {inner}")
        _shell(testbed, "client", script[1])
        self._table(testbed, stack, "client", rules.masqueraded(self.name))
        self._table(
            testbed, stack, "caller", rules.routed(self.name, lan=lan.name, network=network, inner=inner)
        )


def _shell(testbed: Testbed, where: str, script: str) -> str:
    made = testbed.enter(
        where,
        ["/bin/sh", "-c", f"set -e\n{script}"],
        trusted=True,
        outlives=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "PATH": search_path()},
    )
    said, _ = made.communicate()
    if made.returncode != 0:
        text = said.strip().replace("\n", "; ")
        raise TrialBrokenError(f"the gateway's network cannot be set up: {text}.")
    return str(said)


def _promiscuous(interface: str) -> socket.socket:
    """Makes an interface take frames for all stations, for as long as the socket is open."""
    held = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    asked = struct.pack("iHH8s", socket.if_nametoindex(interface), _PROMISCUOUS, 0, b"")
    held.setsockopt(_SOL_PACKET, _PACKET_MEMBERSHIP, asked)
    return held


def _same_address(testbed: Testbed, interface: str, near: str) -> None:
    """Gives the near end the interface's Ethernet address: frames for it are the container's own there. The
    kernel's test of sources requires an IPv4 address beside it."""
    _shell(
        testbed,
        testbed.ends_at,
        f"ip address add {rules.CONTAINED}/32 dev {near}\n"
        f"ip link set dev {near} address $(ip -br link show dev {interface} | awk '{{print $3}}')",
    )

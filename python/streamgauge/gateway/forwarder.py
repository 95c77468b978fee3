"""A port of this machine that leads to a server through the link: both halves run `forwarding`.

The front half is in the link's near namespace. It listens on sockets of this machine's own network, and dials
the far end. The back half is in this machine's network. It listens on sockets of the far namespace, and dials
the server. Each TCP connection is thus three, and the middle one crosses the link.
"""

from __future__ import annotations

import array
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from streamgauge.emu.errors import TrialBrokenError
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.link_command.testbed import Testbed

__all__ = ["Listening", "forward", "listening"]

_MODULE = "streamgauge.gateway.forwarding"
_INSIDE = 8083
"""The far namespace is new: all of its ports are free."""


@dataclass(frozen=True)
class Listening:
    """A port, and the server behind it."""

    address: str
    port: int
    host: str
    """The server's name or address, as given."""
    server: str
    """Its IPv4 address."""
    server_port: int


def listening(listen: str, to: str) -> Listening:
    """Reads ``[ADDRESS:]PORT`` and ``HOST:PORT``.

    Raises StreamGaugeError if they are none, or the server's name is unknown.
    """
    address, _, port = listen.rpartition(":")
    host, _, server_port = to.rpartition(":")
    if not host:
        raise ScenarioError(f"--to {to}: expected HOST:PORT, such as camera.local:554")
    try:
        server = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise CannotRunError(
            f"--to {to}: {host} has no IPv4 address that is known here; give an address."
        ) from error
    return Listening(
        address or "0.0.0.0",
        _port("--listen", listen, port),
        host,
        str(server),
        _port("--to", to, server_port),
    )


def _port(option: str, text: str, port: str) -> int:
    if not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise ScenarioError(f"{option} {text}: a port is a number from 1 to 65535, such as 8554")
    return int(port)


def bind(address: str, port: int) -> tuple[socket.socket, socket.socket]:
    """Returns sockets of TCP and UDP that listen. Raises OSError."""
    tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    tcp.bind((address, port))
    tcp.listen(128)
    udp.bind((address, port))
    return tcp, udp


def forward(testbed: Testbed, asked: Listening, stack: ExitStack) -> dict[int, str]:
    """Forwards until `stack` is closed. Returns descriptors that become readable if a half dies, and the
    fault.

    Raises CannotRunError if the port is taken.
    """
    try:
        outer = bind(asked.address, asked.port)
    except OSError as error:
        raise CannotRunError(
            f"--listen {asked.port}: {error.strerror or error}; name a free port of this machine."
        ) from error
    inner = _bound_in_server(testbed)
    ends = {}
    halves = (
        ("client", outer, f"{testbed.block.near}:{_INSIDE}"),
        ("caller", inner, f"{asked.server}:{asked.server_port}"),
    )
    for where, (tcp, udp), to in halves:
        fds = (tcp.fileno(), udp.fileno())
        for descriptor in fds:
            os.set_inheritable(descriptor, True)
        popen = testbed.enter(
            where,
            [sys.executable, "-m", _MODULE, "forward", *map(str, fds), to],
            trusted=True,
            outlives=True,
            keep=fds,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        stack.callback(_end, popen)
        tcp.close()
        udp.close()
        assert popen.stdout is not None
        if popen.stdout.readline() != b"ready\n":
            raise TrialBrokenError("the forwarder does not start; see above.")
        ends[popen.stdout.fileno()] = "the forwarder died; start the gateway again."
    return ends


def _bound_in_server(testbed: Testbed) -> tuple[socket.socket, socket.socket]:
    """Sockets of the far namespace, from a process that was there."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        binder = testbed.enter(
            "server",
            [sys.executable, "-m", _MODULE, "bind", str(theirs.fileno()), testbed.block.near, str(_INSIDE)],
            trusted=True,
            outlives=True,
            keep=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        message, found, _, _ = socket.recv_fds(ours, 16, 2)
        binder.wait()
    if not message or len(found) != 2:
        raise TrialBrokenError("the forwarder cannot listen at the link's far end; see above.")
    tcp, udp = (socket.socket(fileno=descriptor) for descriptor in found)
    return tcp, udp


def send(to: int, tcp: socket.socket, udp: socket.socket) -> None:
    """Hands two sockets over."""
    with socket.socket(fileno=os.dup(to)) as other:
        pair = array.array("i", [tcp.fileno(), udp.fileno()])
        other.sendmsg([b"both"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, pair)])


def _end(popen: subprocess.Popen[bytes]) -> None:
    assert popen.stdin is not None
    with suppress(BrokenPipeError):
        popen.stdin.close()
    try:
        popen.wait(timeout=2)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()

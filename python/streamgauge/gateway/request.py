"""The request to ``streamgauge gateway``: which of its four forms, checked before anything starts."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.gateway.forwarder import Listening, listening
from streamgauge.gateway.interfaces import Interface, check_bridged, check_routed, find, way_out
from streamgauge.gateway.tables import check_nft
from streamgauge.link_command.internet import check_internet
from streamgauge.link_command.options import LinkRequest
from streamgauge.link_command.testbed import may_use_own_network

__all__ = ["Bridged", "Contained", "Forwarded", "GatewayRequest", "Kind", "Routed", "kind_of"]


@dataclass(frozen=True, kw_only=True)
class GatewayRequest(LinkRequest):
    """The link of a gateway. Its command is the gateway's own command line."""

    @staticmethod
    def _check_command(program: str) -> None:
        """Any: no program of that name is started."""


@dataclass(frozen=True)
class Bridged:
    """Two interfaces, and the link as the wire between them."""

    lan: Interface
    wan: Interface


@dataclass(frozen=True)
class Routed:
    """The clients' interface, and this machine's way out."""

    lan: Interface
    wan: str


@dataclass(frozen=True)
class Contained:
    """A process whose network namespace is behind the link."""

    name: str
    pid: int
    interface: str


@dataclass(frozen=True)
class Forwarded:
    """A port of this machine that leads to a server through the link."""

    listening: Listening


Kind = Bridged | Routed | Contained | Forwarded


def kind_of(
    *, lan: str | None, wan: str | None, container: str | None, listen: str | None, to: str | None
) -> Kind:
    """Returns the form of the gateway.

    Raises StreamGaugeError if the options do not fit together or this machine cannot do it.
    """
    if wan is not None and lan is None:
        raise ScenarioError("--wan: it has no --lan; name the clients' interface too")
    forms = {"--lan": lan, "--container": container, "--listen": listen}
    given = [option for option, value in forms.items() if value is not None]
    if len(given) != 1:
        named = " and ".join(given) or "none of them was given"
        raise ScenarioError(f"give one of --lan, --container and --listen ({named})")
    if (listen is None) != (to is None):
        raise ScenarioError("--listen and --to belong together, such as --listen 8554 --to camera.local:554")
    if listen is not None and to is not None:
        return Forwarded(listening(listen, to))
    if not may_use_own_network():
        raise CannotRunError(f"{given[0]}: only root may divert a network's packets; call it with sudo.")
    check_nft()
    if container is not None:
        return _contained(container)
    assert lan is not None
    side = find("--lan", lan)
    if wan is not None:
        other = find("--wan", wan)
        if lan == wan:
            raise ScenarioError(f"--lan and --wan are both {lan}; name two interfaces")
        if not (side.wireless or other.wireless):
            check_bridged("--lan", side)
            check_bridged("--wan", other)
            return Bridged(side, other)
    check_routed("--lan", side)
    check_internet("--lan")
    outward = way_out()
    if wan is not None and wan not in outward:
        raise CannotRunError(
            f"--wan {wan}: the default route leads through {outward[0]}; name that, or none."
        )
    return Routed(side, wan or outward[0])


def _contained(name: str) -> Contained:
    pid = int(name) if name.isdecimal() else _pid_of(name)
    namespace = Path(f"/proc/{pid}/ns/net")
    try:
        theirs = namespace.stat()
    except OSError as error:
        raise CannotRunError(f"--container {name}: there is no process {pid}; start it first.") from error
    ours = Path("/proc/self/ns/net").stat()
    if (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino):
        raise CannotRunError(
            f"--container {name}: it has this machine's own network, no other; give it a network namespace."
        )
    interface = _outward(pid)
    if interface is None:
        raise CannotRunError(f"--container {name}: no default route leads out of its network; give it one.")
    return Contained(name, pid, interface)


def _pid_of(name: str) -> int:
    """Returns the first process of a running container of Docker or Podman."""
    there = []
    for program in ("docker", "podman"):
        try:
            done = subprocess.run(
                [program, "inspect", "--format", "{{.State.Pid}}", name],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                timeout=20,
            )
        except (FileNotFoundError, subprocess.TimeoutExpired):
            continue
        there.append(program)
        said = done.stdout.strip()
        if done.returncode == 0 and said.isdecimal():
            if said == "0":
                raise CannotRunError(f"--container {name}: it is not running; `{program} start {name}`.")
            return int(said)
    asked = " and ".join(there) or "neither docker nor podman is here"
    raise CannotRunError(
        f"--container {name}: there is no such container ({asked}); give a running one, or a process id."
    )


def _outward(pid: int) -> str | None:
    """Returns the interface of the default route in a process's network namespace."""
    try:
        lines = Path(f"/proc/{pid}/net/route").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    rows = [line.split() for line in lines[1:]]
    return next((row[0] for row in rows if row[1] == "00000000" and row[7] == "00000000"), None)


def open_namespace(pid: int) -> tuple[int, int]:
    """Returns descriptors of a process and of its network namespace.

    Raises CannotRunError if it has ended.
    """
    try:
        process = os.pidfd_open(pid)
        return process, os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotRunError(f"--container {pid}: the process has ended; start it again.") from error

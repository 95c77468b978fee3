"""A link's sandbox: made, entered, and removed with its maker."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from streamgauge.emu.engine import search_path
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.helper import Helper
from streamgauge.emu.lock import address_lock
from streamgauge.errors import CannotRunError
from streamgauge.link_command import commands
from streamgauge.link_command.addresses import Routes, fresh_block

__all__ = ["FLOW", "Far", "Testbed", "may_use_own_network"]

Far = Literal["server", "caller", "empty", "segment"]
"""Kind of the far end: a namespace with a server in it, the caller's own, a namespace with nothing in it, or,
for a segment of a network, the namespace that has the near end too."""

FLOW = "command"
"""Name of the flow that is all of the command's traffic."""

_NET_ADMIN, _SYS_ADMIN = 12, 21
_NS_GET_USERNS = 0xB701
"""ioctl_ns(2): the user namespace that owns a namespace."""


def _may(capability: int) -> bool:
    """Returns whether this process has a capability, over any object."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    effective = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return bool(effective >> capability & 1)


def may_use_own_network() -> bool:
    """Returns whether we may put an interface into the network namespace that we are in."""
    if not _may(_NET_ADMIN):
        return False
    ours = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Refused if the owner is an ancestor of our user namespace, where our capabilities count for nothing.
        owner = fcntl.ioctl(ours, _NS_GET_USERNS)
    except OSError:
        return False
    finally:
        os.close(ours)
    try:
        return os.fstat(owner).st_ino == Path("/proc/self/ns/user").stat().st_ino
    finally:
        os.close(owner)


@dataclass(frozen=True)
class Space:
    """Descriptors of a namespace's user, network and pid namespace."""

    user: int
    net: int
    pid: int


class Testbed:
    """The namespaces of a link with its emulator, as a context manager: nothing of it outlives the block."""

    def __init__(
        self,
        *,
        engine: Path,
        folder: Path,
        far: Far,
        internet: bool,
        passed_on: tuple[int, ...] = (),
        network: int | None = None,
    ) -> None:
        self.engine = str(engine)
        self.folder = folder
        self.far = far
        self.internet = internet
        self._passed_on = passed_on
        self._network = network
        # Root of a container may be no more than a name.
        self.rootless = os.geteuid() != 0 or not _may(_SYS_ADMIN)
        self.block = fresh_block()
        self.interface: str | None = None
        self.nested = False
        self.emulator: Helper
        self.spaces: dict[str, Space] = {}
        self._lifeline = -1

    def __enter__(self) -> Testbed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, config: dict[str, Any]) -> dict[str, Any]:
        """Makes the namespaces and starts the emulator with `config`; returns its message when it is ready.

        Raises CannotRunError if this machine does not let us.
        """
        file = self.folder / "link.json"
        config["flows"], config["rest"] = [], FLOW
        file.write_text(json.dumps(config), encoding="utf-8")
        if self.far == "caller":
            # From the search for free addresses until one is taken.
            with address_lock():
                own = Routes.read()
                self.nested = own.inside() is not None
                self.block = next(own.free())
                self._launch(file, ["default"] if self.internet or self.nested else own.local())
                self._bring_to_caller()
        else:
            self._launch(file, [])
            if self.far == "segment":
                self._bring_both_ends()
        self.emulator.send(cmd="go")
        return self.emulator.expect("ready")

    def _launch(self, config: Path, routes: Sequence[str]) -> None:
        lifeline, self._lifeline = os.pipe()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = commands.inside(
            self.engine,
            self.block,
            ids=(os.geteuid(), os.getegid()) if self.rootless else None,
            fresh=self.far != "caller",
            segment=self.far == "segment",
            routes=routes,
            socket=theirs.fileno(),
            config=str(config),
        )
        file = self.folder / "sandbox.sh"
        file.write_text(script, encoding="utf-8")
        way = "user" if self.rootless else "root"
        command = [self.engine, "sandbox", "--way", way, "--parent", str(os.getpid())]
        command += ["--lifeline", str(lifeline), "--", "/bin/sh", str(file)]
        with ours:
            with theirs:
                self.emulator = Helper(
                    "the link",
                    command,
                    self.folder / "link.log",
                    pass_fds=(lifeline, theirs.fileno(), *self._passed_on),
                    environment={**os.environ, "PATH": search_path()},
                )
            os.close(lifeline)
            expected = {"caller": 2, "segment": 1}.get(self.far, 3)
            while len(self.spaces) < expected:
                name, found, _, _ = socket.recv_fds(ours, 64, 3)
                if not name:
                    self._refused()
                self.spaces[name.decode()] = Space(*found)

    def _refused(self) -> None:
        """The sandbox ended before it was one."""
        code = self.emulator.popen.wait()
        said = (self.folder / "link.log").read_text(errors="replace").strip().splitlines()
        # A usage error of the engine's own has the fault first, and a hint last.
        first = next((line for line in said if line.startswith("error:")), None)
        last = (first or said[-1]) if said else f"status {code}"
        if code == CannotRunError.exit_status:
            raise CannotRunError(last)
        raise TrialBrokenError(f"the link's network cannot be set up: {last}.")

    def _bring_to_caller(self) -> None:
        """Moves the far end's interface into our own namespace; it disappears with the sandbox, which has its
        other end."""
        router = self.spaces["sandbox"].net
        self.interface = f"{commands.INTERFACE}{os.getpid()}"
        script = commands.caller_end(
            self.interface,
            self.block,
            f"/proc/self/fd/{router}",
            forwards=self.internet or self.nested,
        )
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            pass_fds=(router,),
            env={**os.environ, "PATH": search_path()},
        )
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().replace("\n", "; ")
            raise TrialBrokenError(f"the link's far end cannot be put into this namespace: {said}.")

    @property
    def ends_at(self) -> str:
        """Returns the place of a segment's two ends, for `enter`."""
        return "caller" if self._network is None else "segment"

    @property
    def ends(self) -> tuple[str, str]:
        """Returns the names of a segment's ends: towards the clients, and towards the servers."""
        return f"sgnear{os.getpid()}", f"sgfar{os.getpid()}"

    def _bring_both_ends(self) -> None:
        """Makes a segment's two ends; they disappear with the sandbox, which has their other ends."""
        router = self.spaces["sandbox"].net
        if self._network is not None:
            self.spaces["segment"] = Space(
                os.dup(self.spaces["sandbox"].user), os.dup(self._network), os.dup(self.spaces["sandbox"].pid)
            )
        script = commands.segment_ends(*self.ends, f"/proc/self/fd/{router}")
        made = self.enter(
            self.ends_at,
            ["/bin/sh", "-c", script],
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
            raise TrialBrokenError(f"the link's ends cannot be put into the network: {text}.")

    def enter(
        self,
        where: str,
        command: Sequence[str],
        *,
        tell: int | None = None,
        show: Sequence[tuple[Path, Path]] = (),
        trusted: bool = False,
        outlives: bool = False,
        keep: Sequence[int] = (),
        **popen: Any,
    ) -> subprocess.Popen[Any]:
        """Starts a command in the namespace `where`: ``client``, ``server``, ``sandbox``, ``segment``, or
        ``caller``.

        Args:
            where: the namespace.
            command: the command.
            tell: its process id is written there.
            show: files of ours and those that they replace.
            trusted: one of our own tools, with the sandbox's rights and with the descriptors of all
                namespaces.
            outlives: with ``trusted``, it does not end with the sandbox, which ends with the emulator.
            keep: with ``trusted``, further descriptors that it inherits.
            popen: for subprocess.Popen.
        """
        sandbox = self.spaces["sandbox"]
        parts = [self.engine, "enter", "--parent", str(os.getpid())]
        fds: set[int] = set()
        if not outlives:
            parts += ["--pid", str(sandbox.pid)]
            fds.add(sandbox.pid)
        # Our own namespace is not the sandbox's to enter.
        if self.rootless and where != "caller":
            parts += ["--sandbox-user", str(sandbox.user)]
            fds.add(sandbox.user)
        if trusted:
            parts.append("--trusted")
            fds |= {space.net for space in self.spaces.values()} | set(keep)
        elif self.rootless:
            parts += ["--user", str(self.spaces[where].user)]
            fds.add(self.spaces[where].user)
        if where != "caller":
            parts += ["--net", str(self.spaces[where].net)]
            fds.add(self.spaces[where].net)
        if tell is not None:
            parts += ["--tell", str(tell)]
            fds.add(tell)
        for shown, at in show:
            parts += ["--show", str(shown), str(at)]
        return subprocess.Popen([*parts, "--", *command], pass_fds=sorted(fds), **popen)

    def read(self, where: str, *files: str) -> str:
        """Returns the contents of files of /proc in a namespace. Raises TrialBrokenError if they cannot be
        read there."""
        if where == "caller":
            return "".join(Path(file).read_text(encoding="ascii") for file in files)
        pipe = subprocess.PIPE
        command = ["cat", *files]
        reader = self.enter(
            where,
            command,
            trusted=True,
            outlives=True,
            stdout=pipe,
            stderr=pipe,
            encoding="utf-8",
            errors="replace",
        )
        text, said = reader.communicate()
        if reader.returncode:
            why = said.strip() or f"status {reader.returncode}"
            raise TrialBrokenError(f"{' '.join(files)} cannot be read at the {where}: {why}")
        return str(text)

    def received_packets(self) -> dict[str, int]:
        """Returns the own counts of the interfaces at the two ends."""
        if self.far == "segment":
            text = self.read(self.ends_at, "/proc/net/dev")
            return dict(zip(("client", "server"), (_received(text, end) for end in self.ends), strict=True))
        far = "caller" if self.far == "caller" else "server"
        return {
            "client": _received(self.read("client", "/proc/net/dev"), "eth0"),
            "server": _received(self.read(far, "/proc/net/dev"), self.interface or "eth0"),
        }

    def received_packets_since(self, before: Mapping[str, int]) -> dict[str, int]:
        """Returns the same, from an earlier look on."""
        return {end: count - before[end] for end, count in self.received_packets().items()}

    def path_of(self, where: str) -> str:
        """Returns the network namespace `where` as a path, for a trusted tool."""
        return "/proc/self/ns/net" if where == "caller" else f"/proc/self/fd/{self.spaces[where].net}"

    def close(self) -> None:
        """Ends everything inside and waits until it has ended."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if hasattr(self, "emulator"):
            self.emulator.popen.wait()
        for space in self.spaces.values():
            for descriptor in (space.user, space.net, space.pid):
                with suppress(OSError):
                    os.close(descriptor)
        self.spaces = {}


def _received(text: str, interface: str) -> int:
    """Packets received, of /proc/net/dev. Raises TrialBrokenError: no count is not a count of zero."""
    for line in text.splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            return int(numbers.split()[1])
    raise TrialBrokenError(f"there is no interface {interface} among those counted: {' '.join(text.split())}")

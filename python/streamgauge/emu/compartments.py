"""The private parts of each side of each flow: a view of the files, processes, IPC, a user, a network,
bounds.

A program of a flow sees the machine's files read-only, and in the trial's folder only its own side's folders.
It can neither name nor reach a process of another side, the emulator or a witness. `network.build` joins the
sides' networks to the ends. A flow through a relay stays in the end's own network, where the relay is.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import streamgauge
from streamgauge.emu.control_groups import ControlGroups
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.helper import Helper
from streamgauge.emu.inside import FIRST_RUNS, WORK
from streamgauge.systems.adapter import SIDES, FlowSetup, Namespace, Side
from streamgauge.systems.command import programs_path
from streamgauge.systems.relay import RelaySetup

SHOWN_UID = 1000
"""User id that programs see in the ordinary user's way."""
FIRST_UID, UIDS_PER_TRIAL, TRIALS_APART = 1_900_000_000, 1000, 60_000
"""Users of root's way: numbers that no distribution gives away, others for each of some trials at once."""

HIDDEN = ("/tmp", "/var/tmp", "/dev/shm", "/run")
"""Folders that a side has empty ones of its own for."""
_MOST_FILES = 1000
"""Limit for a hidden folder that a command runs in."""
_IN_HIDDEN = re.compile(rf"(?:{'|'.join(HIDDEN)})/[^\s'\"`;|&<>(){{}}$,:=]+")

MEMORY_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
ROOM_BYTES = max(64 << 20, min(4 << 30, MEMORY_BYTES // 4))
"""The files that a side may have: its folders, /tmp and /dev/shm together."""
RESIDENT_BYTES = max(256 << 20, MEMORY_BYTES // 2)
"""The memory that the processes of a side may have."""
MOST_PROCESSES = 2048
"""Processes and threads of a side."""
LIMITS = {
    # At 0 a crash would start the machine's handler all the same (fs/coredump.c).
    "core": 1,
    "data": RESIDENT_BYTES,
    "fsize": ROOM_BYTES,
    # A user who may have a real-time class for the emulator must not hand it on.
    "nice": 0,
    "nofile": 65_536,
    "nproc": MOST_PROCESSES,
    "rtprio": 0,
}
"""Bounds of each process, by setrlimit(2)."""
MOST_SOCKETS = 16_384
"""The sockets of a side's network: their content is no process's memory and no file."""
GROUP = {"pids": MOST_PROCESSES, "memory": RESIDENT_BYTES + ROOM_BYTES}
"""Bounds of a side's control group: its files and the kernel's own memory, such as pipes, count."""
CROWDED = MOST_PROCESSES * 3 // 4
"""Processes and threads from which on a side is ended: at its bound a program may fail unseen."""

_CLONE_NEWPID = 0x2000_0000
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(kw_only=True)
class Compartment:
    """One side of a flow, or a relay."""

    flow: FlowSetup
    side: Side
    way: str
    #: The user that its programs see themselves as.
    uid: int
    #: Its first process.
    pid: int = 0
    #: Inode of its pid namespace.
    namespace: int = 0
    #: That bounds it, where there is one.
    groups: ControlGroups = field(default_factory=ControlGroups)
    #: Why it was ended before the trial was over, a sentence each.
    faults: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The file of its network namespace."""
        return f"{self.flow.index}-{self.side}"

    @property
    def end(self) -> Namespace:
        """The end of the path that it is at."""
        return self.flow.namespace(self.side)

    @property
    def has_network(self) -> bool:
        """Whether its network is its own, and not the end's."""
        return self.side != "relay" and self.flow.plan.get("via") is None

    @property
    def netns(self) -> str:
        """Name of the network namespace that its programs are in."""
        return self.name if self.has_network else self.end

    @property
    def owner(self) -> int | None:
        """The user that owns its folders; None if it is the sandbox's own."""
        return self.uid if self.way == "root" else None

    @property
    def cache(self) -> Path:
        """The folder for files that its programs make at their first start."""
        return self.flow.folder / "cache" / self.side

    def command(self, command: Sequence[str], *, trusted: bool, variables: Mapping[str, str]) -> list[str]:
        """The command as it is started: in here, or, a trusted one, in its network alone.

        Its `variables` are a scenario's in part. The tools that start it have privileges: loaders and shells
        among them follow such as LD_PRELOAD, and must not have them.
        """
        parts = [str(self.flow.engine), "run-as"]
        parts += [part for name, value in variables.items() for part in ("--variable", f"{name}={value}")]
        if trusted:
            return [*parts, "--netns", self.netns, "--keep-privileges", "--", *command]
        if not self.has_network:
            parts += ["--netns", self.netns]
        parts += ["--side", str(self.pid), "--uid", str(self.uid), "--gid", str(self.uid)]
        parts += [part for name, value in LIMITS.items() for part in ("--limit", f"{name}={value}")]
        return [*self.groups.entering(self.name), *parts, "--", *command]

    @contextmanager
    def children(self) -> Iterator[None]:
        """Processes that this one starts meanwhile are in the pid namespace of the compartment."""
        theirs = os.open(f"/proc/{self.pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        ours = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _set_namespace(theirs)
            try:
                yield
            finally:
                _set_namespace(ours)
        finally:
            os.close(theirs)
            os.close(ours)

    def stop(self, why: str) -> None:
        """Ends all that runs in here, once; `why` completes a sentence that begins with its side."""
        if not self.faults:
            self.faults.append(f"its {self.side} {why}, and was ended")
            os.kill(self.pid, signal.SIGTERM)

    def sockets(self) -> int:
        """How many its network has, if that is its own; 0 of one that has ended."""
        if self.has_network:
            with suppress(TrialBrokenError, ValueError, IndexError):
                return int(self.read_net("sockstat").split()[2])
        return 0

    def read_net(self, *files: str) -> str:
        """Returns the content of files of /proc/net in its network."""
        folder = Path(f"/proc/{self.pid}/net")
        try:
            return "".join((folder / file).read_text(encoding="ascii") for file in files)
        except OSError as error:
            who = f"flow {self.flow.name}, {self.side}"
            raise TrialBrokenError(f"the sandbox of {who} has ended; run the trial again.") from error


def _set_namespace(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _CLONE_NEWPID) != 0:
        raise OSError(ctypes.get_errno(), "cannot start a process in the pid namespace of a side")


@dataclass
class Compartments:
    """Those of a trial, and the process of the engine that holds them."""

    all: list[Compartment]
    helper: Helper | None = None
    groups: ControlGroups = field(default_factory=ControlGroups)

    @classmethod
    def plan(
        cls, flows: Iterable[FlowSetup], relays: Iterable[RelaySetup], *, way: str, player_uid: int
    ) -> Compartments:
        """Lists the owners of compartments: every side of every flow, and every relay."""
        users = _Users(way, player_uid)
        made: list[tuple[FlowSetup, Side]] = [(relay, "relay") for relay in relays]
        made += [(flow, side) for flow in flows for side in SIDES]
        return cls(
            [
                Compartment(flow=flow, side=side, way=way, uid=users.of(flow.index, side))
                for flow, side in made
            ]
        )

    def of(self, flow: FlowSetup, side: Side) -> Compartment:
        """The one of a side."""
        return next(one for one in self.all if one.flow is flow and one.side == side)

    def faults(self, flow: FlowSetup) -> list[str]:
        """Why a flow's were ended."""
        return [fault for one in self.all if one.flow is flow for fault in one.faults]

    def at(self, end: str) -> list[Compartment]:
        """Those at an end that have networks of their own."""
        return [one for one in self.all if one.end == end and one.has_network]

    def make(self, *, engine: str, log: Path, sysctls: Mapping[str, str]) -> None:
        """Makes them. `sysctls` are set in each network."""
        config = {"sides": [_as_data(one) for one in self.all], "sysctls": dict(sysctls)}
        file = WORK / "sides.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        self.helper = Helper("the sandbox of the flows", [engine, "sides", "--config", str(file)], log)
        pids = self.helper.expect("ready")["sides"]
        if self.all and self.all[0].way == "root":
            self.groups = ControlGroups.make((one.name for one in self.all), GROUP, WORK / "groups")
        for one in self.all:
            one.pid, one.groups = pids[one.name], self.groups
            self.groups.hold(one.name, one.pid)
            one.namespace = Path(f"/proc/{one.pid}/ns/pid").stat().st_ino
            if FIRST_RUNS.is_dir():
                shutil.copytree(FIRST_RUNS, one.cache, dirs_exist_ok=True)

    def watch(self) -> None:
        """Ends a compartment that exceeds its bounds on processes, sockets or memory."""
        used = {one.namespace: [0, 0] for one in self.all}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                # Processes end while they are looked at.
                with suppress(OSError, ValueError, IndexError):
                    mine = used.get((entry / "ns" / "pid").stat().st_ino)
                    if mine is not None:
                        fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                        mine[0] += int(fields[17])
                        mine[1] += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        for one in self.all:
            tasks, resident = used[one.namespace]
            what = ""
            if tasks > CROWDED:
                what = f"ran {tasks} processes and threads at once (bound {CROWDED})"
            elif resident > RESIDENT_BYTES:
                what = f"had {resident >> 20} MiB in memory (bound {RESIDENT_BYTES >> 20} MiB)"
            elif (sockets := one.sockets()) > MOST_SOCKETS:
                what = f"had {sockets} sockets at once (bound {MOST_SOCKETS})"
            elif self.groups.has_killed(one.name):
                what = f"used {GROUP['memory'] >> 20} MiB in all, the kernel's memory for it included"
            if what:
                one.stop(what)

    def end(self) -> None:
        """Ends all that runs in any."""
        if self.helper is not None:
            self.helper.end()
        self.groups.end()


class _Users:
    """Returns the user of a side's programs."""

    def __init__(self, way: str, player_uid: int) -> None:
        self._way, self._other = way, player_uid
        # No two trials at once have one: a bound of processes counts a user's.
        trial = Path("/proc/self/ns/pid").stat().st_ino % TRIALS_APART
        self._first = FIRST_UID + trial * UIDS_PER_TRIAL
        self._are_apart = way == "root" and _is_mapped(self._first + UIDS_PER_TRIAL)

    def of(self, index: int, side: Side) -> int:
        if self._way != "root":
            return SHOWN_UID
        return self._first + 2 * index + (side == "player") if self._are_apart else self._other


def _is_mapped(uid: int) -> bool:
    """Whether this sandbox has that user: root of a container may have few."""
    rows = [
        [int(word) for word in line.split()]
        for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    ]
    return any(first <= uid < first + count for first, _, count in rows)


def _as_data(one: Compartment) -> dict[str, object]:
    """As the engine takes it."""
    flow = one.flow
    helpers = flow.folder / "helpers"
    helpers.mkdir(parents=True, exist_ok=True)
    readable = [WORK / "bin", helpers]
    if flow.media is not None:
        readable.append(flow.media)
    return {
        "name": one.name,
        "network": one.has_network,
        "room": str(flow.folder / "room" / one.side),
        "bytes": ROOM_BYTES,
        "owner": one.owner,
        "writable": [str(path) for path in (flow.out(one.side), flow.shared(one.side), one.cache)],
        "readable": [str(path) for path in readable],
        "outside": [str(path) for path in outside(flow, one.side)],
    }


def outside(flow: FlowSetup, side: Side) -> list[Path]:
    """Returns the paths that a side needs in folders that are hidden from it: where its commands run, the
    files that they name, and the programs on its PATH."""
    package = Path(streamgauge.__file__).parent.parent
    named = [*programs_path().split(os.pathsep), sys.prefix, sys.base_prefix, str(package)]
    texts = [*(line.command for line in flow.commands.get(side, ())), *flow.environment.values()]
    named += [found for text in texts for found in _IN_HIDDEN.findall(text)]
    found: set[Path] = set()
    if flow.working_folder is not None:
        folder = Path(flow.working_folder)
        if str(folder.resolve()) in HIDDEN:
            files = [one for one in sorted(folder.iterdir()) if _is_plain(one, stat.S_ISREG)]
            found |= set(files[:_MOST_FILES])
        else:
            named.append(str(folder))
    for text in named:
        for path in {Path(text), Path(text).resolve()}:
            if (place := _place(path)) is not None:
                found.add(place)
    return sorted(one for one in found if not found & set(one.parents))


def _place(path: Path) -> Path | None:
    """Returns the visible part for a path in a hidden folder: the folder that it is, or is in. A file
    directly in the hidden folder is visible alone."""
    path = Path(os.path.normpath(path))
    roots = [Path(root) for root in HIDDEN if Path(root) in path.parents]
    if not roots or path == WORK or WORK in path.parents:
        return None
    while not path.exists():
        path = path.parent
    if _is_plain(path, stat.S_ISREG) and str(path.parent) not in HIDDEN:
        path = path.parent
    wanted = _is_plain(path, stat.S_ISREG) or _is_plain(path, stat.S_ISDIR)
    return path if wanted and str(path) not in HIDDEN else None


def _is_plain(path: Path, kind: object) -> bool:
    with suppress(OSError):
        return bool(kind(path.stat().st_mode))  # type: ignore[operator]
    return False

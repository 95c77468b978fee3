"""The interface of an adapter: it lists the processes of a flow and reads their files.

An adapter starts and writes nothing itself. It is given a flow with its addresses, folders and media, and
answers with processes: command lines, in order, with the files that each needs; the sandbox runs them, in the
namespace and with the rights named. The contract that every command is run under (environment variables,
folders, exit status 127) is in docs/adapters.md.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

Side = Literal["server", "player", "relay"]
SIDES: tuple[Side, ...] = ("server", "player")
"""Those of a flow; a relay's one process is on neither."""
Namespace = Literal["server", "client", "cross"]
Action = Literal["pause", "resume", "stop"]

#: Actions of a scenario on a flow while it runs. Our own machines take all of them, in both modes.
ACTIONS: tuple[Action, ...] = ("pause", "resume", "stop")
#: Actions on a program that can be ended, but not paused.
ENDS: tuple[Action, ...] = ("stop",)

EVENTS_FILE = "events.jsonl"
"""Name of a process's events file in its folder."""
READY_FILE = "ready"
"""Name of the file that a process touches when it is ready."""
SIGNALS = "signals.jsonl"
"""Name of the file with a process's messages to the other side of its flow."""
PROGRAMS = Path(__file__).parent / "programs"
"""Our helpers of third-party systems."""

PREFIX = "STREAMGAUGE_"
"""Prefix of the contract's variables."""

GSTREAMERS_PAYLOAD = 1388
"""Bytes of RTP payload in GStreamer's packets: 1400 with the header (rtph264pay's default MTU)."""


def place(side: Side, name: str = "") -> str:
    """Returns the name of a process in files and times: its side, or, where a side has several, its name
    too."""
    return f"{side}-{name}" if name else side


def spoken(side: Side, name: str = "") -> str:
    """Returns the process as sentences call it."""
    return f"{side}'s {name}" if name else side


def whose(side: Side, name: str, flow: str) -> str:
    """Returns the process of that flow, or the relay of that name, as sentences call it."""
    return f"relay {flow}" if side == "relay" else f"{spoken(side, name)} of flow {flow}"


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """One process of a system that is given as commands, as the scenario has it."""

    command: str
    #: Empty if the side is given as one command.
    name: str = ""
    #: ``port``, ``end``, ``file`` or a path with variables; None if the scenario has none.
    ready: str | None = None
    essential: bool = True
    #: Files and folders for it, as paths of the launcher's.
    helpers: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class FlowSetup:
    """A flow as its adapter sees it. Times are ns since the trial's start, sizes bytes, rates bit/s."""

    name: str
    index: int
    #: Its name in the registry, or "command".
    system: str
    #: Values as a scenario writes them, with units, or words; defaults filled in.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: The media file, or the folder of a ladder, as it is seen inside the sandbox.
    media: Path | None = None
    #: Command lines of a system that is given as commands, in order.
    commands: Mapping[Side, Sequence[CommandLine]] = field(default_factory=dict)
    #: Extra environment of those commands.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Working folder of those commands; the launcher's if None.
    working_folder: str | None = None
    #: The flow's entry in the trial plan.
    plan: Mapping[str, Any] = field(default_factory=dict)
    #: The whole trial plan.
    trial: Mapping[str, Any] = field(default_factory=dict)
    #: The contents that the trial plan names, by digest.
    contents: Mapping[str, Any] = field(default_factory=dict)
    server_ip: str = ""
    player_ip: str = ""
    #: Address of its relay, which each of its ends takes for the other; empty without one.
    relay_ip: str = ""
    port: int = 0
    #: Folder of the flow inside the sandbox; each process has its own folder in it.
    folder: Path = Path()
    #: The engine's executable as it is seen inside the sandbox.
    engine: Path = Path()

    @property
    def start_ns(self) -> int:
        """Returns when the flow starts."""
        return int(self.plan["start"])

    @property
    def duration_ns(self) -> int:
        """Returns when the trial ends at the latest."""
        return int(self.trial["duration"])

    @property
    def at_router(self) -> bool:
        """True if its packets enter at the bottleneck."""
        return self.plan.get("entry") == "router"

    @property
    def has_arrivals(self) -> bool:
        """True if it is many short transfers."""
        app = self.plan.get("app")
        return isinstance(app, Mapping) and any("arrivals" in settings for settings in app.values())

    @property
    def goes_up(self) -> bool:
        """True if its media travels up: its server is at the client's end of the path."""
        return self.plan.get("direction") == "up"

    @property
    def sending_namespace(self) -> Namespace:
        """Returns where its server runs."""
        if self.goes_up:
            return "client"
        return "cross" if self.at_router else "server"

    @property
    def playing_namespace(self) -> Namespace:
        """Returns where its player runs."""
        return "server" if self.goes_up else "client"

    def namespace(self, side: Side) -> Namespace:
        """Returns where the processes of a side run."""
        return self.sending_namespace if side == "server" else self.playing_namespace

    def variables(self, side: Side, name: str = "") -> dict[str, str]:
        """Returns the environment of the adapter contract (docs/adapters.md) for one process."""
        out = self.out(side, name)
        values = {
            "STREAMGAUGE_ROLE": side,
            "STREAMGAUGE_FLOW": self.name,
            "STREAMGAUGE_SERVER": self.server_ip,
            "STREAMGAUGE_PLAYER": self.player_ip,
            "STREAMGAUGE_PORT": str(self.port),
            "STREAMGAUGE_OUT": str(out),
            "STREAMGAUGE_EVENTS": str(out / EVENTS_FILE),
            "STREAMGAUGE_READY": str(out / READY_FILE),
            "STREAMGAUGE_SHARED": str(self.shared(side)),
            "STREAMGAUGE_HELPERS": str(self.helpers(side, name)),
            "STREAMGAUGE_DURATION_S": f"{(self.duration_ns - self.start_ns) / 1e9:.3f}",
        }
        if self.media is not None:
            values["STREAMGAUGE_MEDIA"] = str(self.media)
        for name, value in self.parameters.items():
            values[f"STREAMGAUGE_PARAM_{name.upper().replace('-', '_')}"] = str(value)
        return values

    @classmethod
    def variable_names(cls, parameters: Mapping[str, Any], *, has_clip: bool) -> list[str]:
        """Returns the names of `variables` for a flow with those parameters."""
        media = Path() if has_clip else None
        flow = cls(
            name="",
            index=0,
            system="command",
            parameters=parameters,
            media=media,
            plan={"start": 0},
            trial={"duration": 0},
        )
        return list(flow.variables("server"))

    def out(self, side: Side, name: str = "") -> Path:
        """Returns the folder for the files of a process; its logs and events are there too."""
        return self.folder / side / name

    def shared(self, side: Side) -> Path:
        """Returns the folder for files that the processes of a side exchange; it is not kept."""
        return self.folder / "shared" / side

    def helpers(self, side: Side, name: str = "") -> Path:
        """Folder with the copies of a process's helpers."""
        return self.folder / "helpers" / place(side, name)

    def app(self, kind: str) -> Mapping[str, Any]:
        """Returns the settings of the plan's machine, which must be of that kind."""
        settings: Mapping[str, Any] = self.plan["app"][kind]
        return settings


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of the machine that a system needs. `streamgauge doctor` looks for all of them."""

    #: Name in commands: a name on PATH, or a path. For a Python module its name, for a file its path.
    name: str
    #: Debian's packages that have it, as `apt-get install` takes them; empty if none does.
    packages: str
    #: Purpose, in a few words.
    purpose: str
    #: Name in `streamgauge doctor`; ``program.NAME`` if empty.
    id: str = ""
    #: Arguments that print its version; none if it has no such option.
    version: Sequence[str] = ()
    #: Arguments of a check, passed with status 0, that all parts that the system needs are present, with a
    #: printed list; none if the program itself is enough.
    probe: Sequence[str] = ()
    #: Whether a flow needs it.
    needed: Callable[[FlowSetup], bool] = lambda flow: True
    #: Kind: a program, a module that our own Python imports, or a file that is only read.
    kind: Literal["program", "module", "file"] = "program"
    #: Other names by which distributions have the same program.
    also: Sequence[str] = ()
    #: How to come by it, where no package of Debian's has it: a sentence without its end.
    remedy: str = ""

    def find(self, path: str | None = None) -> str | None:
        """Returns where it is, programs on `path` (``$PATH`` if None); None if it is not there."""
        if self.kind == "file":
            return self.name if Path(self.name).is_file() else None
        if self.kind == "module":
            found = importlib.util.find_spec(self.name)
            return None if found is None else found.origin or self.name
        return next(filter(None, (shutil.which(name, path=path) for name in (self.name, *self.also))), None)


@dataclass(frozen=True, kw_only=True)
class External:
    """Facts about third-party servers and players, which no machine of the plan has."""

    #: Protocols of its channels, by carrier, for the classifier of packets (crates/plan/src/protocols.rs); it
    #: guesses where none is given.
    protocols: Mapping[Literal["tcp", "udp"], tuple[str, ...]] = field(default_factory=dict)
    #: Input of its server in a trial: the encoded clip as a file, its presentation (DASH and HLS) as a
    #: folder, or nothing.
    content: Literal["file", "presentation", "none"]
    #: Returns the carrier of its media with those parameters (as in a scenario, defaults may be left out);
    #: None if it is unknown.
    media_over: Callable[[Mapping[str, Any]], Literal["udp", "tcp"] | None]
    #: Its server encodes the content anew, as a camera's pictures: the rates of the clip are not its own.
    is_camera: bool = False
    #: Processors that the programs of one flow keep busy, both ends together; 0 if that is little.
    cores: float = 0.0
    #: Largest payload of its RTP packets, bytes.
    max_payload: int = GSTREAMERS_PAYLOAD


Ready = Literal["file", "port", "file or port", "line", "end"]


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process of a flow.

    Those of a side start in their order. An early one waits until all before it on its side are ready; the
    others start one right after another. The last essential one is the side's main process: its end is the
    side's.
    """

    side: Side
    #: One word. Empty if it is the only one of its side.
    name: str = ""
    command: Sequence[str]
    namespace: Namespace
    #: Runs before t = 0 and must be ready by then; otherwise it is started when the flow starts.
    early: bool = False
    #: Readiness of an early process: it touches ``STREAMGAUGE_READY``, listens on ``STREAMGAUGE_PORT``, does
    #: either, prints a line with ``"event":"ready"``, ends with status 0, or fills the file at that path.
    #: None: the run does not wait for it.
    ready: Ready | Path | None = "file"
    #: Files and folders that are copied to `FlowSetup.helpers` before it starts, readable by all users.
    helpers: Sequence[Path] = ()
    #: Files that are written to its folder before it starts, by name: text, or data as JSON.
    files: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)
    #: Without it the trial is worth nothing. The end of another one does not make the trial invalid, except
    #: for status 127.
    essential: bool = True
    #: Accepts JSON commands on stdin: ``start`` with times, ``stop``, and the scenario's actions on its flow.
    control: bool = False
    #: Lines of JSON in its file `SIGNALS` reach the ``control`` of the flow's other side before t = 0,
    #: outside the path: the agreement of two ends, without a server of theirs.
    signals: bool = False
    #: Working folder; its own if None.
    working_folder: str | None = None
    #: Keeps the sandbox's rights (raw sockets). Only for our own programs.
    trusted: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    #: How it is asked to end: SIGINT unless it has a ``control`` line.
    stop_signal: int = 2
    #: Its end with status 0 before the trial's is no fault (a transfer of limited size, media that ended).
    may_end: bool = False
    #: The scenario's actions on the flow apply to this process: ``stop`` ends it, ``pause`` and ``resume``
    #: are lines on its ``control``. `Adapter.actions` alone lists the actions of a system.
    acted_on: bool = False


@dataclass(kw_only=True)
class Collected:
    """Data that an adapter read from the files of its processes after the trial."""

    #: Events in the format of docs/adapters.md, with ``t_monotonic_ns``.
    events: list[dict[str, Any]] = field(default_factory=list)
    #: The congestion control that the sender reports; None if it reports none.
    congestion_control: str | None = None
    #: Totals of the player's own counters, for comparison with the taps.
    received_packets: int | None = None
    received_bytes: int | None = None
    #: Whether the packets are all datagrams that arrived, and not those of media alone.
    counts_datagrams: bool = False
    #: Description of those bytes.
    received_what: str = ""
    #: Time at which the player had heard enough (monotonic ns) and the TCP bytes that it had not read from
    #: its kernel then; None if it stayed, or reports neither.
    left_monotonic_ns: int | None = None
    left_unread_bytes: int = 0
    #: Sentences on faults; each makes the trial invalid.
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Clock:
    """When the trial began, for logs that count in other clocks."""

    t0_monotonic_ns: int
    #: CLOCK_REALTIME at t0, in ns.
    t0_realtime_ns: int
    #: When each process was started (monotonic ns), by its `place`.
    started: Mapping[str, int]
    #: When the last process had ended (monotonic ns).
    ended_monotonic_ns: int


class Adapter(Protocol):
    """A system or a kind of traffic in emu."""

    #: Raised when its processes, or their reading, would produce another record: only trials of its own run
    #: again.
    version: int
    #: Programs that it may need.
    programs: Sequence[Program]
    #: Facts that the plan lacks; None where the plan describes the flow.
    external: External | None
    #: Adapter of a flow of many short transfers in its place; None if that is itself, or there are none.
    of_arrivals: Adapter | None

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        """Returns whether both ends are our own programs with those parameters (`registry.System.values`)."""
        ...

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        """Returns the actions of a scenario on a flow with those parameters (`registry.System.values`) while
        it runs. No other place lists them."""
        ...

    def processes(self, flow: FlowSetup) -> list[Process]:
        """Returns the flow's processes, those of a side in their order.

        It is called several times. Before anything starts, the flow has neither addresses nor folders.
        """
        ...

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        """Reads their files in the flow's folders. Called after all of them have ended."""
        ...

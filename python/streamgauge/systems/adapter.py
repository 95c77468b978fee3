"""What an adapter is: it says which processes a flow consists of and reads what they leave.

An adapter starts nothing itself. It is given a flow with its addresses, folders and media, and answers with
command lines; the sandbox runs them, in the namespace and with the rights named. The contract that every
command is run under (environment variables, folders, exit status 127) is in docs/adapters.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

Side = Literal["server", "player"]
Namespace = Literal["server", "client", "cross"]

EVENTS_FILE = "events.jsonl"
"""Name of a side's events file in its folder."""
READY_FILE = "ready"
"""Name of the file that a side touches when it is ready."""

PREFIX = "STREAMGAUGE_"
"""What the names of the contract's variables begin with."""


@dataclass(frozen=True, kw_only=True)
class FlowSetup:
    """A flow as its adapter sees it. Times are ns since the trial's start, sizes bytes, rates bit/s."""

    name: str
    index: int
    #: "rtsp", "rtp", "darwin", "bulk", "cbr", "ping" or "command".
    system: str
    #: Values as a scenario writes them, with units, or words; defaults filled in.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    congestion_control: str | None = None
    #: Whether its TCP asks for ECN.
    ecn: bool = False
    #: The media file as it is seen inside the sandbox.
    media: Path | None = None
    #: Command lines of a system that is given as commands.
    commands: Mapping[Side, str] = field(default_factory=dict)
    #: Extra environment of those commands.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Working folder of those commands; the launcher's if None.
    working_folder: str | None = None
    #: The flow's entry in the trial plan.
    plan: Mapping[str, Any] = field(default_factory=dict)
    #: The whole trial plan.
    trial: Mapping[str, Any] = field(default_factory=dict)
    server_ip: str = ""
    player_ip: str = ""
    port: int = 0
    #: Folder of the flow inside the sandbox; each side has its own folder in it.
    folder: Path = Path()
    #: The engine's executable as it is seen inside the sandbox.
    engine: Path = Path()
    #: Folder with our helper programs, as it is seen inside the sandbox.
    programs: Path = Path()

    @property
    def start_ns(self) -> int:
        """When the flow starts."""
        return int(self.plan["start"])

    @property
    def duration_ns(self) -> int:
        """When the trial ends at the latest."""
        return int(self.trial["duration"])

    @property
    def at_router(self) -> bool:
        """True if its packets enter at the bottleneck."""
        return self.plan.get("entry") == "router"

    @property
    def sending_namespace(self) -> Namespace:
        """Where its server runs."""
        return "cross" if self.at_router else "server"

    def variables(self, side: Side) -> dict[str, str]:
        """The environment of the adapter contract (docs/adapters.md)."""
        out = self.out(side)
        values = {
            "STREAMGAUGE_ROLE": side,
            "STREAMGAUGE_FLOW": self.name,
            "STREAMGAUGE_SERVER": self.server_ip,
            "STREAMGAUGE_PLAYER": self.player_ip,
            "STREAMGAUGE_PORT": str(self.port),
            "STREAMGAUGE_OUT": str(out),
            "STREAMGAUGE_EVENTS": str(out / EVENTS_FILE),
            "STREAMGAUGE_READY": str(out / READY_FILE),
            "STREAMGAUGE_DURATION_S": f"{(self.duration_ns - self.start_ns) / 1e9:.3f}",
        }
        if self.media is not None:
            values["STREAMGAUGE_MEDIA"] = str(self.media)
        for name, value in self.parameters.items():
            values[f"STREAMGAUGE_PARAM_{name.upper().replace('-', '_')}"] = str(value)
        return values

    @classmethod
    def variable_names(cls, parameters: Mapping[str, Any], *, has_clip: bool) -> list[str]:
        """The names of `variables` for a flow with those parameters."""
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

    def out(self, side: Side) -> Path:
        """Folder for what a side writes; its logs and events are there too."""
        return self.folder / side

    def app(self, kind: str) -> Mapping[str, Any]:
        """The settings of the plan's machine, which must be of that kind."""
        settings: Mapping[str, Any] = self.plan["app"][kind]
        return settings


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """One process of a flow."""

    side: Side
    command: Sequence[str]
    namespace: Namespace
    #: Runs before t = 0 and must be ready by then; otherwise it is started when the flow starts.
    early: bool = False
    #: How an early process shows that it is ready: it touches ``STREAMGAUGE_READY``, prints a line with
    #: ``"event":"ready"``, or either touches the file or listens on ``STREAMGAUGE_PORT``.
    ready: Literal["file", "line", "file or port"] = "file"
    #: Takes JSON commands on stdin: ``start`` with times, ``stop``, and what a scenario does to its flow.
    control: bool = False
    #: Working folder; the side's own if None.
    working_folder: str | None = None
    #: Keeps the sandbox's rights (raw sockets). Only for our own programs.
    trusted: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    #: How it is asked to end: SIGINT unless it has a ``control`` line.
    stop_signal: int = 2
    #: Its end before the trial's end is no fault (a transfer of limited size, media that ended).
    may_end: bool = False
    #: What the scenario does to the flow is done to this process: ``stop`` ends it, ``pause`` and ``resume``
    #: are lines on its ``control``. Which of them a system can is said by `registry.System.actions` alone.
    acted_on: bool = False


@dataclass(kw_only=True)
class Collected:
    """What an adapter read from the files of its processes after the trial."""

    #: Events as docs/adapters.md says, with ``t_monotonic_ns``.
    events: list[dict[str, Any]] = field(default_factory=list)
    #: The congestion control that the sender says it used; None if it does not say.
    congestion_control: str | None = None
    #: Totals of the player's own counters that the taps can be held against.
    received_packets: int | None = None
    received_bytes: int | None = None
    #: What those bytes are.
    received_what: str = ""
    #: Sentences on what went wrong; each makes the trial invalid.
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Clock:
    """When the trial began, for logs that count in other clocks."""

    t0_monotonic_ns: int
    #: CLOCK_REALTIME at t0, in ns.
    t0_realtime_ns: int
    #: When each side was started (monotonic ns).
    started: Mapping[Side, int]
    #: When the last process had ended (monotonic ns).
    ended_monotonic_ns: int


class Adapter(Protocol):
    """A system or a kind of traffic in emu."""

    #: Programs that must be on PATH, with the Debian package that has them.
    programs: Mapping[str, str]

    def processes(self, flow: FlowSetup) -> list[ProcessSpec]:
        """The flow's processes."""
        ...

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        """Reads what they left in the flow's folders. Called after all of them have ended."""
        ...

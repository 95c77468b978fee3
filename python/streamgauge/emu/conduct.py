"""The trial itself: servers ready, t = 0, players and actions at their times, the end, the counts."""

from __future__ import annotations

import heapq
import json
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.emu import network as net
from streamgauge.emu import tcp_samples
from streamgauge.emu.compartments import Compartments
from streamgauge.emu.controls import by_linux_name
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.helper import Helper
from streamgauge.emu.overhearing import Overhearing
from streamgauge.emu.path_pairs import PathPair
from streamgauge.emu.process import Running, furnish, start
from streamgauge.emu.signals import Signals
from streamgauge.emu.trial_request import TrialRequest
from streamgauge.emu.witness_files import stamps_file
from streamgauge.errors import CannotRunError
from streamgauge.systems.adapter import SIDES, Clock, Collected, FlowSetup, Process, Side
from streamgauge.systems.adapters import adapter_for
from streamgauge.systems.collecting import collect
from streamgauge.systems.command import UNSUPPORTED
from streamgauge.systems.player_files import FileRefusedError
from streamgauge.systems.processes import main_process
from streamgauge.systems.relay import RelaySetup

READY_S = 30.0
"""How long a server may take until it is ready."""
LEAD_NS = 300_000_000
"""From the decision to start until t = 0."""
GRACE_S = 2.0
"""How long processes may take to end once asked."""
WATCH_S = 1.0
"""The interval at which the scheduler's accounts are read and progress is reported."""
LIVE_WATCH_S = 0.25
"""The same for a trial with a viewer."""


@dataclass(kw_only=True)
class _Queue:
    """The early processes of a side that are still to start, and the one that they wait for."""

    flow: FlowSetup
    left: deque[Process]
    last: Running | None = None

    def is_ready(self) -> bool:
        """Returns whether the process started last is ready. An unneeded process that has ended delays
        nothing."""
        if self.last is None or self.last.is_ready():
            return True
        return not self.last.spec.essential and self.last.popen.poll() is not None


@dataclass(kw_only=True)
class Conductor:
    """Runs the flows of one trial over a link that is ready."""

    request: TrialRequest
    flows: list[FlowSetup]
    relays: list[RelaySetup]
    #: The pairs with packets that cross the path.
    pairs: list[PathPair]
    link: Helper
    network: net.Network
    compartments: Compartments
    engine: str
    tell: Callable[..., None]
    running: list[Running] = field(default_factory=list)
    t0_ns: int = 0
    t0_realtime_ns: int = 0
    #: Processes that ended by themselves before the trial did, in order.
    endings: list[dict[str, Any]] = field(default_factory=list)
    actions_done: list[dict[str, Any]] = field(default_factory=list)
    _later: dict[str, list[Process]] = field(default_factory=dict)
    #: For each flow, the processes that end their side when they end.
    _main: dict[str, list[Process]] = field(default_factory=dict)
    _stats: dict[str, Any] | None = None
    _overhearing: Overhearing = field(default_factory=Overhearing)

    def run(self) -> dict[str, Any]:
        """Everything from preparing the servers to the last count."""
        self._prepare()
        witnesses = self._witnesses()
        before, at_start = self._counters(), self._received()
        pressure = _pressure()
        self._begin(witnesses.values())
        self._play()
        assert self._stats is not None
        unread = self._unread()
        seen = {end: helper.ask("stopped", cmd="stop") for end, helper in witnesses.items()}
        after, at_end = self._counters(), self._received()
        pressure = {key: value - pressure[key] for key, value in _pressure().items()}
        for helper in witnesses.values():
            helper.end()
        self._end_processes()
        # Their children are ended too: they would write while files are read.
        self.compartments.end()
        return {
            "t0_monotonic_ns": self.t0_ns,
            "t0_realtime_ns": self.t0_realtime_ns,
            "link": self._stats,
            "witnesses": seen,
            "counters": {
                end: {
                    key: after[end][key] - value
                    for key, value in before[end].items()
                    if after[end].get(key, value) != value
                }
                for end in before
            },
            "sides": {
                one.name: {
                    "flow": one.flow.name,
                    "end": one.end,
                    "received_packets": at_end[one.name] - at_start[one.name],
                }
                for one in self.compartments.all
                if one.has_network
            },
            "unread_bytes": unread,
            "pressure_s": pressure,
            "endings": self.endings,
            "actions": self.actions_done,
            "processes": [self._account(one) for one in self.running],
            "collected": self._collect(),
        }

    def kill_all(self) -> None:
        """Leaves no process of a flow."""
        for one in self.running:
            one.kill()

    def _ends(self) -> list[str]:
        return [name for name in self.network.namespaces if name != net.ROUTER]

    def _counters(self) -> dict[str, dict[str, int]]:
        return {end: net.counters(end, self.compartments.at(end), self.engine) for end in self._ends()}

    def _received(self) -> dict[str, int]:
        """Packets that the interfaces of the sides' own networks received."""
        return {one.name: net.received_packets(one) for one in self.compartments.all if one.has_network}

    def _unread(self) -> dict[str, int]:
        """Bytes of TCP that each flow's player, and each relay, has not read, by name."""
        found = {}
        for flow in [*self.flows, *self.relays]:
            side: Side = "relay" if isinstance(flow, RelaySetup) else "player"
            where = self.compartments.of(flow, side)
            found[flow.name] = net.unread_bytes(where).get(flow.player_ip, 0)
        return found

    def _start(self, flow: FlowSetup, spec: Process) -> list[Running]:
        """Starts a process. Returns it, or nothing if an earlier one of its side has replaced its folder."""
        is_main = any(spec is main for main in self._main[flow.name])
        compartment = self.compartments.of(flow, spec.side)
        try:
            one = start(flow, spec, is_main=is_main, compartment=compartment)
        except FileRefusedError as error:
            compartment.stop(f"replaced a file of its process {spec.name}, which {error}")
            return []
        self.running.append(one)
        return [one]

    def _prepare(self) -> None:
        """Starts the processes that must run before t = 0 and waits until they are ready: relays, then sides
        at once, the processes of each in their order."""
        queues: list[_Queue] = []
        for flow in [*self.relays, *self.flows]:
            processes = adapter_for(flow).processes(flow)
            for spec in processes:
                furnish(flow, spec, self.compartments.of(flow, spec.side).owner)
            sides = dict.fromkeys(spec.side for spec in processes)
            self._main[flow.name] = [main_process(processes, side) for side in sides]
            if late := [spec for spec in processes if not spec.early]:
                self._later[flow.name] = late
            early = [spec for spec in processes if spec.early]
            # A side's first early process represents its queue, so that sides start in the adapter's order.
            for side in dict.fromkeys(spec.side for spec in early):
                queues.append(_Queue(flow=flow, left=deque(spec for spec in early if spec.side == side)))
        self.tell(say="waiting for servers")
        signals = Signals()
        while queues:
            signals.carry(self.running)
            for queue in queues:
                while queue.left and queue.is_ready():
                    started = self._start(queue.flow, queue.left.popleft())
                    queue.last = started[0] if started else queue.last
            for one in self.running:
                if one.has_failed_early():
                    self._refuse(one)
            queues = [queue for queue in queues if queue.left or not queue.is_ready()]
            overdue_ns = time.monotonic_ns() - round(READY_S * 1e9)
            waited_for = [queue.last for queue in queues if queue.last is not None]
            if late_ones := [one for one in waited_for if one.started_ns < overdue_ns]:
                names = ", ".join(one.label for one in late_ones)
                first = late_ones[0]
                raise TrialBrokenError(
                    f"{names}: not ready after {READY_S:g} s {first.last_words()}; it must {first.sign()}."
                )
            time.sleep(0.01)

    def _refuse(self, one: Running) -> None:
        """An early process that ended before the trial began."""
        if one.popen.returncode == UNSUPPORTED:
            why = one.last_words() or "exit status 127"
            raise CannotRunError(
                f"the {one.label} cannot do what the scenario asks, or was not found: {why}."
            )
        unready = "" if one.popen.returncode or one.is_main else f", and did not {one.sign()}"
        raise TrialBrokenError(f"the {one.label} {one.fate()} before the trial began{unready}.")

    def _witnesses(self) -> dict[str, Helper]:
        """Counts at the ends, by the kernel's taps there and not by the emulator."""
        helpers = {}
        for end in self._ends():
            pairs = [
                pair.as_data() | self._asked_where(flow, end)
                for pair, flow in zip(self.pairs, self.flows, strict=True)
            ]
            file = Path("/run/streamgauge") / f"witness-{end}.json"
            words = {
                "netns": end,
                "interface": net.END_INTERFACE,
                "flows": pairs,
                "stamps": str(stamps_file(Path(self.request.directory), end)),
                "tcp": tcp_samples.settings(self.request.plan, Path(self.request.directory), end),
            }
            file.write_text(json.dumps(words), encoding="utf-8")
            log = Path(self.request.directory) / "logs" / f"witness-{end}.log"
            helpers[end] = Helper(
                f"the witness at the {end}", [self.engine, "witness", "--config", str(file)], log
            )
        for helper in helpers.values():
            helper.expect("ready")
        return helpers

    def _asked_where(self, flow: FlowSetup, end: str) -> dict[str, str]:
        """Where a flow's TCP at an end is, if in a network of its side's own."""
        found = [one.netns for one in self.compartments.at(end) if one.flow is flow]
        return {"netns": found[0]} if found else {}

    def _begin(self, witnesses: Iterable[Helper]) -> None:
        """Fixes t = 0 and reports it to every waiting process."""
        # The two clocks are read as close together as can be: half their distance is the error.
        readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(10)]
        first, real, second = min(readings, key=lambda reading: reading[2] - reading[0])
        self.t0_ns = readings[-1][2] + LEAD_NS
        self.t0_realtime_ns = real + (self.t0_ns - (first + second) // 2)
        for helper in (self.link, *witnesses):
            helper.send(cmd="start", t0_monotonic_ns=self.t0_ns)
        for one in self.running:
            one.baseline()
            if one.spec.control:
                words: dict[str, Any] = {"cmd": "start", "t0_monotonic_ns": self.t0_ns}
                if one.spec.ready != "line":  # our own programs that do not read the plan
                    words["start_monotonic_ns"] = self.t0_ns + one.flow.start_ns
                one.command(words)
        self.link.expect("started")

    def _play(self) -> None:
        """Starts players, does actions, watches everything, until the link reports the end of the trial."""
        due: list[tuple[int, int, str, FlowSetup]] = []
        for number, flow in enumerate(self.flows):
            if flow.name in self._later:
                heapq.heappush(due, (self.t0_ns + flow.start_ns, number, "start", flow))
            for at, action in flow.plan.get("actions", ()):
                heapq.heappush(due, (self.t0_ns + at, number, action, flow))
        selector = selectors.DefaultSelector()
        selector.register(self.link.descriptor, selectors.EVENT_READ, None)
        for one in self.running:
            selector.register(one.pidfd, selectors.EVENT_READ, one)
        end_ns = self.t0_ns + self.request.plan["duration"]
        next_look = time.monotonic()
        while self._stats is None:
            now = time.monotonic_ns()
            while due and due[0][0] <= now:
                at, _, what, flow = heapq.heappop(due)
                for one in self._do(what, flow, at):
                    selector.register(one.pidfd, selectors.EVENT_READ, one)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + (WATCH_S if self.request.live_fd is None else LIVE_WATCH_S)
                self._look(now)
            if now > end_ns + 30_000_000_000:
                raise TrialBrokenError("the emulator did not end the trial in time.")
            next_ns = min([end_ns + 10_000_000_000, *(entry[0] for entry in due[:1])])
            timeout = min(max((next_ns - time.monotonic_ns()) / 1e9, 0), max(next_look - time.monotonic(), 0))
            for key, _ in selector.select(timeout):
                if key.data is None:
                    self._listen()
                else:
                    selector.unregister(key.fd)
                    self._died(key.data)
        selector.close()

    def _do(self, what: str, flow: FlowSetup, at_ns: int) -> list[Running]:
        """Starts a flow's processes, or applies an action to it. Returns the started processes."""
        if what == "start":
            return [one for spec in self._later[flow.name] for one in self._start(flow, spec)]
        done_ns = time.monotonic_ns()
        for one in reversed(self.running):
            if one.flow.name == flow.name and one.spec.acted_on:
                one.act(what)
        self.actions_done.append(
            {
                "flow": flow.name,
                "action": what,
                "at_s": (done_ns - self.t0_ns) / 1e9,
                "late_s": (done_ns - at_ns) / 1e9,
            }
        )
        return []

    def _look(self, now_ns: int) -> None:
        for one in self.running:
            one.measure()
        self.compartments.watch()
        if self.request.live_fd is not None:
            for said in self._overhearing.heard(self.running):
                self.tell(player=said)
        self.tell(at_s=max(0.0, (now_ns - self.t0_ns) / 1e9))

    def _listen(self) -> None:
        while self._stats is None and (answer := self.link.poll()) is not None:
            if answer.get("event") == "stopped":
                self._stats = answer["stats"]
                if self._stats is None:
                    raise TrialBrokenError("the emulator ended without a record.")

    def _died(self, one: Running) -> None:
        """A process of a flow has ended before the trial."""
        code = one.popen.wait()
        one.ended_ns = time.monotonic_ns()
        if code == UNSUPPORTED and not one.asked:
            self._refuse(one)
        if not one.asked:
            self.endings.append(
                {
                    "flow": one.flow.name,
                    "side": one.spec.side,
                    "name": one.spec.name,
                    "at_s": (one.ended_ns - self.t0_ns) / 1e9,
                    "status": code,
                    "how": one.fate(),
                    "may_end": one.spec.may_end,
                    "essential": one.spec.essential,
                    "is_main": one.is_main,
                }
            )
        ends_side = one.spec.side == "player" and one.is_main
        if self.request.plan.get("until_media_end") == one.flow.name and ends_side:
            self.link.send(cmd="stop")

    def _end_processes(self) -> None:
        """Asks everybody to end, players first, then relays, then servers, and of a side those that were
        started last; kills who does not."""
        for side in ("player", "relay", "server"):
            asked = [one for one in reversed(self.running) if one.spec.side == side]
            for one in asked:
                one.measure()
                one.stop()
            until = time.monotonic() + GRACE_S
            while any(one.popen.poll() is None for one in asked) and time.monotonic() < until:
                time.sleep(0.01)
            for one in asked:
                one.kill()

    def _account(self, one: Running) -> dict[str, Any]:
        return {
            "flow": one.flow.name,
            "side": one.spec.side,
            "name": one.spec.name,
            "is_main": one.is_main,
            "command": list(one.spec.command),
            "early": one.spec.early,
            "started_s": (one.started_ns - self.t0_ns) / 1e9,
            "ended_s": None if one.ended_ns is None else (one.ended_ns - self.t0_ns) / 1e9,
            "status": one.popen.returncode,
            "cpu_s": one.cpu_s,
            "waited_s": one.waited_s,
        }

    def _collect(self) -> dict[str, Any]:
        """Returns the data that adapters read from the files of their processes."""
        assert self._stats is not None
        found, duration_s = {}, self._stats["duration_s"]
        ended_ns = time.monotonic_ns()
        for flow in [*self.flows, *self.relays]:
            mine = [one for one in self.running if one.flow.name == flow.name]
            begun = {one.spec.side for one in mine}
            clock = Clock(
                t0_monotonic_ns=self.t0_ns,
                t0_realtime_ns=self.t0_realtime_ns,
                started={one.place: one.started_ns for one in mine},
                ended_monotonic_ns=ended_ns,
            )
            missing = [side for side in SIDES if side not in begun and flow.name in self._later]
            if missing and flow.start_ns >= duration_s * 1e9:
                collected = Collected()  # the trial was over before its time
            elif missing:
                collected = Collected(faults=[f"its {missing[0]} was never started"])
            else:
                collected = collect(adapter_for(flow), flow, clock)
            found[flow.name] = {
                "events": collected.events,
                "congestion_control": by_linux_name(collected.congestion_control, self.request.own_controls),
                "received_packets": collected.received_packets,
                "received_bytes": collected.received_bytes,
                "counts_datagrams": collected.counts_datagrams,
                "received_what": collected.received_what,
                "left_s": None
                if collected.left_monotonic_ns is None
                else (collected.left_monotonic_ns - self.t0_ns) / 1e9,
                "left_unread_bytes": collected.left_unread_bytes,
                "faults": [*collected.faults, *self.compartments.faults(flow)],
            }
        return found


def _pressure() -> dict[str, float]:
    """Seconds in which some task waited for a processor, machine-wide; empty if there is no account."""
    file = Path("/proc/pressure/cpu")
    if not file.exists():
        return {}
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}  # CONFIG_PSI_DEFAULT_DISABLED
    some = next(line for line in lines if line.startswith("some"))
    return {"some": int(some.rpartition("total=")[2]) / 1e6}

"""Our own machines on real sockets, by ``streamgauge-engine node``: the same code as in sim."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.systems.adapter import (
    ACTIONS,
    EVENTS_FILE,
    PROGRAMS,
    SIDES,
    Action,
    Adapter,
    Clock,
    Collected,
    External,
    FlowSetup,
    Process,
    Program,
    Side,
)
from streamgauge.systems.events import read_events
from streamgauge.systems.parameter import function_of
from streamgauge.systems.player_files import FileRefusedError, read_in, write_in
from streamgauge.systems.scripted import SYSTEM_PYTHON

LARGEST_EVENTS_BYTES = 2_000_000_000
"""Size of the events of a machine of ours, at about a hundred bytes for each frame: more than a day of
them."""


SAID_FILE = "stdout.log"
"""The events of a node are lines of its output, among others."""


class NodeAdapter:
    """The adapter of every machine that we wrote; of ``cbr`` where mgen cannot serve.

    Both ends read the scenario's actions on the flow from the plan.
    """

    version = 1
    programs: Sequence[Program] = ()
    external: External | None = None
    of_arrivals: Adapter | None = None

    def __init__(self, *, raw_sockets: bool = False) -> None:
        #: ICMP echo needs a raw socket, which only the sandbox's own user may open.
        self._raw_sockets = raw_sockets

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        return True

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ACTIONS

    def processes(self, flow: FlowSetup) -> list[Process]:
        return [self._process(flow, "player"), self._process(flow, "server")]

    def _process(self, flow: FlowSetup, side: Side) -> Process:
        config: dict[str, Any] = {
            "plan": flow.trial,
            "contents": _played(flow),
            "flow": flow.name,
            "side": side,
            # A client behind a relay sees no other end.
            "server_ip": flow.server_ip if side == "server" else flow.relay_ip or flow.server_ip,
            "player_ip": flow.player_ip if side == "player" else flow.relay_ip or flow.player_ip,
        }
        helpers: list[Path] = []
        if side == "player" and (own := _functions(flow)):
            for file, name in own:
                there = flow.helpers(side) / Path(file).name
                config["plan"] = _renamed(config["plan"], f"{file}:{name}", f"{there}:{name}")
                helpers.append(Path(file))
            script = PROGRAMS / "function_caller.py"
            helpers.append(script)
            config["caller"] = {"program": SYSTEM_PYTHON, "script": str(flow.helpers(side) / script.name)}
        return Process(
            side=side,
            helpers=helpers,
            command=[str(flow.engine), "node", "--config", str(flow.out(side) / "node.json")],
            files={"node.json": config},
            namespace=flow.namespace(side),
            early=True,
            ready="line",
            control=True,
            trusted=self._raw_sockets,
            may_end=True,
        )

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        found = Collected()
        for side in SIDES:
            if not was_said(flow, side):
                continue
            stopped = split_said(flow, side, found.faults)
            found.events += read_events(flow, side, clock, found.faults, largest=LARGEST_EVENTS_BYTES)
            stats = stats_of(stopped)
            if stopped is None:
                found.faults.append(f"the {side} ended without saying what it had done")
            elif side == "server":
                found.congestion_control = stats.get("congestion_control")
            else:
                found.received_packets = stats.get("received_packets")
                found.received_bytes = stats.get("received_bytes")
                found.counts_datagrams = True
                found.received_what = "what our player read from its sockets"
                if isinstance(left := stopped.get("left"), Mapping):
                    found.left_monotonic_ns = left.get("t_monotonic_ns")
                    found.left_unread_bytes = left.get("unread_bytes", 0)
        return found


def _functions(flow: FlowSetup) -> list[tuple[str, str]]:
    """Returns the functions of Python that the flow's parameters name: file and name of each."""
    return [found for value in flow.parameters.values() if (found := function_of(value)) is not None]


def _renamed(plan: Any, before: str, after: str) -> Any:
    """Returns the plan with one text in place of another, wherever it is a whole value."""
    if isinstance(plan, Mapping):
        return {key: _renamed(value, before, after) for key, value in plan.items()}
    if isinstance(plan, list):
        return [_renamed(value, before, after) for value in plan]
    return after if plan == before else plan


def _played(flow: FlowSetup) -> dict[str, Any]:
    """Returns the contents that this flow plays, of all that the trial does."""
    named = json.dumps(flow.plan["app"])
    return {digest: content for digest, content in flow.contents.items() if f'"{digest}"' in named}


def split_said(
    flow: FlowSetup, side: Side, faults: list[str], largest: int = LARGEST_EVENTS_BYTES
) -> dict[str, Any] | None:
    """Moves the events among a node's lines, and lines that are not its own, to the events file; returns its
    last line."""
    out = flow.out(side)
    stopped: dict[str, Any] | None = None
    kept = []
    try:
        said = read_in(out, SAID_FILE, largest)
        for line in io.BytesIO(b"" if said is None else said.data):
            try:
                said_line = json.loads(line)
            except (ValueError, RecursionError):
                said_line = None
            if not isinstance(said_line, dict):
                kept.append(line)
            elif "name" in said_line:
                said_line.pop("flow", None)
                kept.append(json.dumps(said_line).encode() + b"\n")
            elif said_line.get("event") == "stopped":
                stopped = said_line
        write_in(out, EVENTS_FILE, b"".join(kept))
    except FileRefusedError as error:
        faults.append(f"{flow.name}-{side}-{SAID_FILE} {error}")
    return stopped


def was_said(flow: FlowSetup, side: Side) -> bool:
    """Returns whether a node of that side ever ran: its output is there, whatever it is."""
    return os.path.lexists(flow.out(side) / SAID_FILE)


def stats_of(stopped: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Returns the counts in a node's last word; none if it has none."""
    stats = (stopped or {}).get("stats")
    return stats if isinstance(stats, Mapping) else {}

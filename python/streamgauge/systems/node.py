"""Our own machines on real sockets, by ``streamgauge-engine node``: the same code as in sim."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.systems.adapter import (
    ACTIONS,
    EVENTS_FILE,
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

LARGEST_EVENTS_BYTES = 2_000_000_000
"""Of a machine of ours, which says about a hundred bytes for each frame: more than a day of them."""


class NodeAdapter:
    """The adapter of every machine that we wrote; of ``cbr`` where mgen cannot serve.

    What a scenario does to the flow both ends read from the plan.
    """

    version = 1
    programs: Sequence[Program] = ()
    external: External | None = None
    of_arrivals: Adapter | None = None

    def __init__(self, *, raw_sockets: bool = False) -> None:
        #: ICMP echo wants a raw socket, which only the sandbox's own user may open.
        self._raw_sockets = raw_sockets

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        return True

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ACTIONS

    def processes(self, flow: FlowSetup) -> list[Process]:
        return [self._process(flow, "player"), self._process(flow, "server")]

    def _process(self, flow: FlowSetup, side: Side) -> Process:
        config = {
            "plan": flow.trial,
            "contents": _played(flow),
            "flow": flow.name,
            "side": side,
            # Who goes through a relay knows no other end.
            "server_ip": flow.server_ip if side == "server" else flow.relay_ip or flow.server_ip,
            "player_ip": flow.player_ip if side == "player" else flow.relay_ip or flow.player_ip,
        }
        return Process(
            side=side,
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
            said = flow.out(side) / "stdout.log"
            if not said.is_file():
                continue
            stopped = split_said(said, flow.out(side) / EVENTS_FILE)
            found.events += read_events(flow, side, clock, found.faults, largest=LARGEST_EVENTS_BYTES)
            stats: Mapping[str, Any] = (stopped or {}).get("stats") or {}
            if stopped is None:
                found.faults.append(f"the {side} ended without saying what it had done")
            elif side == "server":
                found.congestion_control = stats.get("congestion_control")
            else:
                found.received_packets = stats.get("received_packets")
                found.received_bytes = stats.get("received_bytes")
                found.counts_datagrams = True
                found.received_what = "what our player read from its sockets"
                if (left := stopped.get("left")) is not None:
                    found.left_monotonic_ns = left["t_monotonic_ns"]
                    found.left_unread_bytes = left["unread_bytes"]
        return found


def _played(flow: FlowSetup) -> dict[str, Any]:
    """The contents that this flow plays, of all that the trial does."""
    named = json.dumps(flow.plan["app"])
    return {digest: content for digest, content in flow.contents.items() if f'"{digest}"' in named}


def split_said(said: Path, events: Path) -> dict[str, Any] | None:
    """Moves the events among a node's lines, and what is no line of it, to the events file; its last word."""
    stopped: dict[str, Any] | None = None
    kept = []
    for line in said.read_bytes().splitlines(keepends=True):
        try:
            said_line = json.loads(line)
        except ValueError:
            said_line = None
        if not isinstance(said_line, dict):
            kept.append(line)
        elif "name" in said_line:
            said_line.pop("flow", None)
            kept.append(json.dumps(said_line).encode() + b"\n")
        elif said_line.get("event") == "stopped":
            stopped = said_line
    events.write_bytes(b"".join(kept))
    return stopped

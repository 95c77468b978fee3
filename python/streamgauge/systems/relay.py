"""Relays on real sockets: one process each, ``streamgauge-engine node``, with the machine that sim runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.systems.adapter import (
    Action,
    Adapter,
    Clock,
    Collected,
    External,
    FlowSetup,
    Namespace,
    Process,
    Program,
    Side,
)
from streamgauge.systems.events import read_events
from streamgauge.systems.node import LARGEST_EVENTS_BYTES, split_said, stats_of, was_said
from streamgauge.systems.tcp import planned_tcp

__all__ = ["RelayAdapter", "RelaySetup"]


@dataclass(frozen=True, kw_only=True)
class RelaySetup(FlowSetup):
    """A relay as its adapter sees it. Its plan is its entry among the trial's relays; ``index`` is its code,
    which counts on where flows end; both addresses are its own."""

    @property
    def start_ns(self) -> int:
        """It is there before the flows."""
        return 0

    @property
    def near(self) -> Namespace:
        """Returns the end of the path that it is at."""
        return "client" if self.plan["at"] == "client" else "server"

    def namespace(self, side: Side) -> Namespace:
        """Returns where its process runs."""
        return self.near


class RelayAdapter:
    """The adapter of every relay."""

    version = 1
    programs: Sequence[Program] = ()
    external: External | None = None
    of_arrivals: Adapter | None = None

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        return True

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ()

    def processes(self, flow: FlowSetup) -> list[Process]:
        config = {"plan": flow.trial, "flow": flow.name, "side": "relay"}
        command = [str(flow.engine), "node", "--config", str(flow.out("relay") / "node.json")]
        return [
            Process(
                side="relay",
                command=command,
                files={"node.json": config},
                namespace=flow.namespace("relay"),
                early=True,
                ready="line",
                control=True,
                may_end=True,
            )
        ]

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        """Its reads from servers are compared with the path where those are at its other end. It has no one
        congestion control: beside it, connections have the kernel's."""
        found = Collected()
        if not was_said(flow, "relay"):
            return found
        stopped = split_said(flow, "relay", found.faults)
        found.events = read_events(flow, "relay", clock, found.faults, largest=LARGEST_EVENTS_BYTES)
        if stopped is None:
            found.faults.append("it ended without saying what it had done")
            return found
        stats = stats_of(stopped)
        found.received_bytes = stats.get("received_from_servers_bytes")
        if planned_tcp(flow.plan) is None:
            found.received_packets = stats.get("received_from_servers_packets")
            found.counts_datagrams = True
        found.received_what = "what it read from servers"
        return found

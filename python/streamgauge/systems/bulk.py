"""Greedy TCP by iperf3: the player asks, the server sends (iperf3's reverse mode)."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.systems.adapter import (
    ENDS,
    Action,
    Adapter,
    Clock,
    Collected,
    External,
    FlowSetup,
    Process,
    Program,
)
from streamgauge.systems.events import event
from streamgauge.systems.node import NodeAdapter
from streamgauge.systems.system import System, of_machine

BLOCK = 128 * 1024
"""What iperf3 writes at once over TCP unless told otherwise. It stops after the block that reaches the bytes
asked for, so that 14 kB would be 128 KiB."""
LARGEST_SOCKET_BUFFER = 212_992
"""Linux's default net.core.rmem_max: the largest window that iperf3 may set. Above it the route limits it."""


class Bulk:
    """The adapter of traffic ``bulk``."""

    version = 1
    programs: Sequence[Program] = (
        Program(name="iperf3", packages="iperf3", purpose="traffic bulk", version=["--version"]),
    )
    external: External | None = None
    #: iperf3 has one connection after another of one size, and none at random.
    of_arrivals: Adapter | None = NodeAdapter()

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        return False

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ENDS

    def processes(self, flow: FlowSetup) -> list[Process]:
        settings = flow.app("bulk")
        tcp: Mapping[str, Any] = settings["tcp"]
        port = str(flow.port)
        server = ["iperf3", "--server", "--one-off", "--bind", flow.server_ip, "--port", port, "--json"]
        server += ["--pidfile", str(flow.out("server") / "pid")]
        player = ["iperf3", "--client", flow.server_ip, "--bind", flow.player_ip, "--port", port, "--json"]
        player += ["--reverse", "--interval", "1"]
        if tcp["receive_window"] <= LARGEST_SOCKET_BUFFER:
            player += ["--window", str(tcp["receive_window"])]
        if settings.get("bytes") is not None:
            player += ["--bytes", str(settings["bytes"]), "--length", str(_block(settings["bytes"]))]
        else:
            # Never ends by itself within the trial: it is told to.
            left_s = (flow.duration_ns - flow.start_ns) / 1e9
            player += ["--time", str(int(left_s) + 60)]
        return [
            Process(
                side="server",
                command=server,
                namespace=flow.sending_namespace,
                early=True,
                ready="file or port",
                may_end=settings.get("bytes") is not None,
            ),
            Process(
                side="player",
                command=player,
                namespace=flow.playing_namespace,
                stop_signal=signal.SIGINT,
                may_end=settings.get("bytes") is not None,
                acted_on=True,
            ),
        ]

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        found = Collected()
        result = _result(flow, "player", found)
        if result is None:
            return found
        for interval in result.get("intervals", ()):
            total = interval["sum"]
            at = clock.started["player"] + round(total["end"] * 1e9)
            found.events.append(
                event(at, "goodput", total["bits_per_second"], "bit/s", "iperf3, receiver, one interval")
            )
        sent = _result(flow, "server", found)
        for interval in (sent or {}).get("intervals", ()):
            for stream in interval["streams"]:
                at = clock.started["player"] + round(stream["end"] * 1e9)
                for key, name, unit, factor in _STREAM:
                    if key in stream:
                        found.events.append(event(at, name, stream[key] * factor, unit, "iperf3, sender"))
        end = result.get("end", {})
        received = end.get("sum_received", {}).get("bytes")
        if received:
            found.received_bytes, found.received_what = int(received), "payload counted by iperf3"
        # In reverse mode the server knows best; its own file is complete only if it ended in order.
        used = (sent or {}).get("end", {}).get("sender_tcp_congestion") or end.get("sender_tcp_congestion")
        found.congestion_control = used
        return found


# iperf3's per-interval figures of the sending socket (tcp_info), by our names.
_STREAM = (
    ("snd_cwnd", "congestion_window", "B", 1.0),
    ("rtt", "rtt", "s", 1e-6),
    ("retransmits", "retransmissions", "1", 1.0),
)


def _block(total: int) -> int:
    """The largest block of which a whole number makes `total` bytes, but for less than a byte each."""
    blocks = -(-total // BLOCK)
    return -(-total // blocks)


def _result(flow: FlowSetup, side: str, found: Collected) -> dict[str, Any] | None:
    file = flow.folder / side / "stdout.log"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    if not text.strip():
        found.faults.append(f"iperf3's {side} left no result")
        return None
    try:
        result: dict[str, Any] = json.loads(text)
    except ValueError as error:
        found.faults.append(f"iperf3's {side} left a broken result ({error})")
        return None
    return result


SYSTEM: System = of_machine("bulk", sim="our TCP", emu="iperf3", adapter=Bulk())

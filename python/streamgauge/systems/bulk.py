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
from streamgauge.systems.player_files import UNFIT, FileRefusedError, read_in
from streamgauge.systems.system import System, of_machine

BLOCK = 128 * 1024
"""Block that iperf3 writes at once over TCP by default. It stops after the block that reaches the bytes asked
for, so that 14 kB would be 128 KiB."""
LARGEST_RESULT_BYTES = 200_000_000
"""Size of iperf3's final output: some 500 bytes for each second and stream."""
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
            # It never ends by itself within the trial: the flow stops it.
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
        try:
            self._received(result, clock, found)
        except UNFIT:
            found.faults.append(f"{_shown(flow, 'player')}: not iperf3's result as its versions write it")
        sent = _result(flow, "server", found)
        try:
            self._sent(sent or {}, clock, found)
        except UNFIT:
            found.faults.append(f"{_shown(flow, 'server')}: not iperf3's result as its versions write it")
        if found.congestion_control is None:
            # In reverse mode the server's data is best; its own file is complete only if it ended in order.
            end = result.get("end")
            found.congestion_control = end.get("sender_tcp_congestion") if isinstance(end, dict) else None
        return found

    @staticmethod
    def _received(result: Mapping[str, Any], clock: Clock, found: Collected) -> None:
        for interval in result.get("intervals", ()):
            total = interval["sum"]
            at = clock.started["player"] + round(total["end"] * 1e9)
            found.events.append(
                event(at, "goodput", total["bits_per_second"], "bit/s", "iperf3, receiver, one interval")
            )
        received = result.get("end", {}).get("sum_received", {}).get("bytes")
        if received:
            found.received_bytes, found.received_what = int(received), "payload counted by iperf3"

    @staticmethod
    def _sent(sent: Mapping[str, Any], clock: Clock, found: Collected) -> None:
        for interval in sent.get("intervals", ()):
            for stream in interval["streams"]:
                at = clock.started["player"] + round(stream["end"] * 1e9)
                for key, name, unit, factor in _STREAM:
                    if key in stream:
                        found.events.append(event(at, name, stream[key] * factor, unit, "iperf3, sender"))
        found.congestion_control = sent.get("end", {}).get("sender_tcp_congestion")


def agrees_first(flow: Mapping[str, Any]) -> bool:
    """Returns whether a plan's flow is iperf3's, where both ends agree on a connection before that of the
    data; many short transfers are not."""
    app = flow["app"]
    # A flow with commands in the scenario is a word in the plan, and has no settings.
    settings = None if isinstance(app, str) else app.get("bulk")
    return settings is not None and settings.get("arrivals") is None


# iperf3's per-interval figures of the sending socket (tcp_info), by our names.
_STREAM = (
    ("snd_cwnd", "congestion_window", "B", 1.0),
    ("rtt", "rtt", "s", 1e-6),
    ("retransmits", "retransmissions", "1", 1.0),
)


def _block(total: int) -> int:
    """Returns the largest block that divides `total` bytes, with less than a byte left for each."""
    blocks = -(-total // BLOCK)
    return -(-total // blocks)


def _result(flow: FlowSetup, side: str, found: Collected) -> dict[str, Any] | None:
    """Returns iperf3's final output, if that is one JSON object; otherwise adds the reason to the faults."""
    try:
        printed = read_in(flow.folder / side, "stdout.log", LARGEST_RESULT_BYTES)
    except FileRefusedError as error:
        found.faults.append(f"{_shown(flow, side)} {error}")
        return None
    if printed is None or not printed.data.strip():
        found.faults.append(f"iperf3's {side} left no result")
        return None
    try:
        result = json.loads(printed.data.decode(errors="replace"))
        if not isinstance(result, dict):
            raise ValueError("not a JSON object")
    except (ValueError, RecursionError) as error:
        found.faults.append(f"{_shown(flow, side)}: iperf3's {side} left a broken result ({error})")
        return None
    return result


def _shown(flow: FlowSetup, side: str) -> str:
    return f"{flow.name}-{side}-stdout.log"


SYSTEM: System = of_machine("bulk", sim="our TCP", emu="iperf3", adapter=Bulk())

"""Constant bit rate UDP by mgen, and by our own sender where mgen has no words for it."""

from __future__ import annotations

import io
import math
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.systems.actions import stopped_at
from streamgauge.systems.adapter import (
    ACTIONS,
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
from streamgauge.systems.player_files import FileRefusedError, read_in
from streamgauge.systems.system import System, of_machine

SMALLEST_MGEN_PAYLOAD = 28
"""mgen's own header, in bytes of UDP payload over IPv4."""
LARGEST_MGEN_PAYLOAD = 8192
"""mgen's own limit (its MAX_SIZE)."""

#: The lower two bits of the TOS byte (RFC 3168 section 5), in mgen's notation.
_ECN_BITS = {"no": "0x00", "ect1": "0x01", "ect0": "0x02"}
RECEIVER_LOG = "mgen.log"
LARGEST_LOG_BYTES = 2_000_000_000
"""Size of the receiver's log, which has about 150 bytes a packet."""
LONGEST_LINE_BYTES = 1_000
_RECEIVED = re.compile(rb" RECV .* seq>\d+ .* size>(\d{1,5})\b")


def speaks_mgen(flow: FlowSetup) -> bool:
    """True if mgen can send this flow."""
    settings = flow.app("cbr")
    return _fits_mgen(settings["payload_bytes"], settings["burst"])


def _fits_mgen(payload_bytes: int, burst: float) -> bool:
    """No bursts, room for mgen's header in every packet, and none too long."""
    return bool(burst == 1 and SMALLEST_MGEN_PAYLOAD <= payload_bytes <= LARGEST_MGEN_PAYLOAD)


class Cbr:
    """The adapter of traffic ``cbr``."""

    version = 1
    # It prints its version only while it runs.
    programs: Sequence[Program] = (
        Program(name="mgen", packages="mgen", purpose="traffic cbr", needed=speaks_mgen),
    )
    external: External | None = None
    of_arrivals: Adapter | None = None

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        return not _fits_mgen(parameters["size"].bytes, parameters["burst"].amount)

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ACTIONS if self.ours(parameters) else ENDS

    def processes(self, flow: FlowSetup) -> list[Process]:
        settings = flow.app("cbr")
        if not speaks_mgen(flow):
            return NodeAdapter().processes(flow)
        log = str(flow.out("player") / RECEIVER_LOG)
        player = Process(
            side="player",
            command=["mgen", "flush", "event", f"LISTEN UDP {flow.port}", "output", log],
            namespace=flow.playing_namespace,
            early=True,
            ready="file or port",
        )
        end = stopped_at(flow.plan, flow.duration_ns)
        windows = settings["windows"] or [[flow.start_ns, end]]
        sender = ["mgen"]
        for number, (on, off) in enumerate(windows, 1):
            # A window that the flow's start or end cuts short.
            on, off = max(on, flow.start_ns), min(off, end)
            if on >= off:
                continue
            pattern = f"PERIODIC [{settings['packets_per_s']:g} {settings['payload_bytes']}]"
            target = f"SRC {flow.port + 1} DST {flow.player_ip}/{flow.port}"
            tos = f" TOS {_ECN_BITS[settings['ecn']]}" if settings.get("ecn", "no") != "no" else ""
            sender += ["event", f"{_since_start(on, flow)} ON {number} UDP {target} {pattern}{tos}"]
            stop = on + _until_last_sent(off - on, settings["packets_per_s"])
            sender += ["event", f"{_since_start(stop, flow)} OFF {number}"]
        sender += ["output", str(flow.out("server") / "mgen.log")]
        server = Process(
            side="server",
            command=sender,
            namespace=flow.sending_namespace,
            stop_signal=signal.SIGINT,
            may_end=True,
            acted_on=True,
        )
        return [player, server]

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        if not speaks_mgen(flow):
            return NodeAdapter().collect(flow, clock)
        found = Collected()
        shown = f"{flow.name}-player-{RECEIVER_LOG}"
        try:
            log = read_in(flow.out("player"), RECEIVER_LOG, LARGEST_LOG_BYTES)
        except FileRefusedError as error:
            found.faults.append(f"{shown} {error}")
            return found
        if log is None:
            found.faults.append("mgen's receiver left no log")
            return found
        if log.is_cut:
            found.faults.append(
                f"{shown} has more than {LARGEST_LOG_BYTES / 1e9:g} GB; what follows is not read"
            )
        found.received_packets = found.received_bytes = 0
        for line in io.BytesIO(log.data):
            # The time of the search grows with the square of a line's length.
            if len(line) <= LONGEST_LINE_BYTES and (match := _RECEIVED.search(line)):
                found.received_packets += 1
                found.received_bytes += int(match[1])
        found.received_what = "messages logged by mgen"
        at = clock.t0_monotonic_ns + flow.duration_ns
        found.events.append(event(at, "packets_received", found.received_packets, "1", "mgen, whole flow"))
        found.events.append(
            event(at, "bytes_received", found.received_bytes, "B", "mgen, UDP payload, whole flow")
        )
        return found


def _until_last_sent(length_ns: int, packets_per_s: float) -> int:
    """Returns when mgen is to stop, in ns after it began: half an interval behind the last packet of such a
    window.

    It sends packets that are due at the very moment of OFF; a window excludes its end, in sim and in ours.
    """
    packets = math.ceil(length_ns * packets_per_s / 1e9)
    return round((packets - 0.5) / packets_per_s * 1e9)


def _since_start(at_ns: int, flow: FlowSetup) -> str:
    return f"{(at_ns - flow.start_ns) / 1e9:.6f}"


SYSTEM: System = of_machine(
    "cbr", sim="our sender", emu="mgen, or our sender for bursts and tiny packets", adapter=Cbr()
)

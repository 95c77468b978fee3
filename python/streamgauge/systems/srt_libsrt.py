"""SRT by libsrt's own program: srt-live-transmit at both ends (package srt-tools)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from streamgauge.systems.adapter import Clock, Collected, External, FlowSetup, Program
from streamgauge.systems.contribution import INPUT, Contribution, Counters, lines_of, read_lines, wall_ns
from streamgauge.systems.machines import MACHINES, Excess
from streamgauge.systems.parameter import Maybe, Parameter, ParameterValue
from streamgauge.systems.scripted import SYSTEM_PYTHON
from streamgauge.systems.system import System
from streamgauge.units import Percent, Rate, Time

__all__ = ["STATISTICS", "SYSTEM", "SrtLibsrt", "statistics"]

PROGRAM: Final = "srt-live-transmit"
OURS: Final = "srt"
"""Our machine of the same protocol."""
STATISTICS: Final = "statistics.csv"
EACH: Final = 5
"""Packets between two reports: the last one is at most so many short."""
KEY_BYTES: Final = {"off": 0, "aes-128": 16, "aes-192": 24, "aes-256": 32}
PASSPHRASES: Final = {"same": "a passphrase of both ends", "other": "not the passphrase of the sender"}
"""By which key the receiver has; the sender has the same one always."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_SENT: Final = {
    "pktRetrans": "repeated",
    "pktSndDrop": "sender_dropped",
}
_SENDER: Final = {
    "pktSent": ("packets_sent", "1"),
    "s_rtt": ("srt_rtt", "s"),
    "s_send": ("send_buffer", "s"),
}
_RECEIVED: Final = {
    "pktRcvDrop": "unrepaired",
    "pktRcvBelated": "discarded",
    "pktRcvLoss": "reported_lost",
}
_RECEIVER: Final = {
    "pktRecv": ("packets_received", "1"),
    "s_rtt": ("srt_rtt", "s"),
    "s_receive": ("receive_buffer", "s"),
}


class SrtLibsrt(Contribution):
    """The adapter of system ``srt-libsrt``."""

    version = 1
    programs: Sequence[Program] = (
        # Its version is on stderr, with a status of 1.
        Program(name=PROGRAM, packages="srt-tools", purpose="both ends of system srt-libsrt"),
        Program(
            name=SYSTEM_PYTHON,
            packages="python3",
            purpose="what watches the programs of system srt-libsrt",
            id="python3.srt",
        ),
        Program(
            name="ffmpeg",
            packages="ffmpeg",
            purpose="the source and the decoder of system srt-libsrt",
            version=["-version"],
        ),
    )
    external: External | None = External(
        protocols={"udp": ("srt",)}, content="file", media_over=lambda parameters: "udp", max_payload=1332
    )

    def sending(self, flow: FlowSetup) -> Mapping[str, Any]:
        source = f"udp://127.0.0.1:{flow.port + INPUT}"
        # Late packets are held for 1.25 times the latency, and for 1 s at least.
        hold_s = max(1.25 * Time(_said(flow, "latency")).s, 1.0) + 0.25
        command = _command(flow, "server", source, _url(flow, flow.server_ip, "listener", "same"), "-v")
        accepted = "Accepted SRT target connection"
        return {"command": command, "connected": accepted, "input": source, "hold_s": hold_s}

    def receiving(self, flow: FlowSetup) -> Mapping[str, Any]:
        url = _url(flow, flow.server_ip, "caller", _said(flow, "receiver_key"))
        # Quiet, or its words would be in the stream.
        command = _command(flow, "player", url, "file://con", "-q", "-ll:note")
        return {"command": command, "output": None, "silence_s": None}

    def read(self, flow: FlowSetup, clock: Clock, found: Collected) -> None:
        shown, lines = lines_of(flow, "server", STATISTICS, found.faults)
        sent = statistics(lines, shown, clock, found.faults)
        found.events += Counters(_SENT, _SENDER, PROGRAM).all(sent)
        shown, lines = lines_of(flow, "player", STATISTICS, found.faults)
        received = statistics(lines, shown, clock, found.faults)
        found.events += Counters(_RECEIVED, _RECEIVER, PROGRAM).all(received)
        if received:
            found.received_packets = int(received[-1][1]["pktRecv"])
            found.received_what = f"packets counted by {PROGRAM}"


def statistics(
    lines: Sequence[str], shown: str, clock: Clock, faults: list[str]
) -> list[tuple[int, dict[str, float]]]:
    """Returns the reports in the program's CSV: the time of each, CLOCK_MONOTONIC in ns, and its numbers by
    the column, with ``s_rtt``, ``s_send`` and ``s_receive`` in s.

    The first line that cannot be read is put in `faults`, and ends it. The heading may come again.
    """
    rows: list[tuple[int, dict[str, float]]] = []
    names: list[str] = []

    def read(line: str) -> None:
        nonlocal names
        cells = line.strip().split(",")
        if cells[0] == "Timepoint":
            names = cells
            return
        if len(cells) != len(names):
            raise ValueError(line)
        at = datetime.strptime(cells[0], "%Y-%m-%dT%H:%M:%S.%f%z") - _EPOCH
        at_us = (at.days * 86_400 + at.seconds) * 1_000_000 + at.microseconds
        row = {name: float(cell) for name, cell in zip(names[1:], cells[1:], strict=True)}
        if not all(map(math.isfinite, row.values())):
            raise ValueError(line)
        row["s_rtt"], row["s_send"] = row["msRTT"] / 1e3, row["msSndBuf"] / 1e3
        row["s_receive"] = row["msRcvBuf"] / 1e3
        for name in (*_SENT, *_RECEIVED, "pktSent", "pktRecv"):
            if row[name] < 0:
                raise ValueError(line)
        rows.append((wall_ns(1000 * at_us, clock), row))

    read_lines([line for line in lines if line.strip()], shown, faults, read, f"statistics of {PROGRAM}")
    return rows


def _said(flow: FlowSetup, name: str) -> str:
    return str(flow.parameters.get(name, PARAMETERS[name].default))


def _command(flow: FlowSetup, side: Any, source: str, target: str, *more: str) -> list[str]:
    out = str(flow.out(side) / STATISTICS)
    return [PROGRAM, *more, "-a:no", f"-s:{EACH}", "-pf:csv", f"-statsout:{out}", "-f", source, target]


def _url(flow: FlowSetup, address: str, mode: str, key: str) -> str:
    latency_ms = round(Time(_said(flow, "latency")).ns / 1e6)
    told = {
        "mode": mode,
        "latency": latency_ms,
        "tlpktdrop": int(_said(flow, "too_late_drop") == "on"),
        "nakreport": int(_said(flow, "periodic_nak") == "on"),
        "retransmitalgo": int(_said(flow, "retransmission") == "efficient"),
        "maxbw": _octets(_said(flow, "maxbw")),
        "inputbw": _octets(_said(flow, "inputbw")),
        "oheadbw": round(Percent(_said(flow, "oheadbw")).percent),
    }
    if length := KEY_BYTES[_said(flow, "encryption")]:
        told |= {"passphrase": PASSPHRASES[key].replace(" ", "-"), "pbkeylen": length}
    return f"srt://{address}:{flow.port}?" + "&".join(f"{name}={value}" for name, value in told.items())


def _octets(said: str) -> int:
    """Bytes/s, as libsrt takes rates; -1 for none."""
    return -1 if said == "none" else Rate(said).bps // 8


def _unfit(values: Mapping[str, ParameterValue | None]) -> Excess | None:
    if values["receiver_key"] == "other" and values["encryption"] == "off":
        why = "another key of the receiver has no effect without encryption"
        return Excess(name="receiver_key", why=why, hint="give encryption too, such as aes-128")
    return None


def _as_ours(values: Mapping[str, ParameterValue | None]) -> dict[str, str]:
    """Returns the settings of our machine that are this one's; the receiver calls, as here."""
    same = ("latency", "too_late_drop", "periodic_nak", "retransmission", "inputbw", "oheadbw")
    told = {name: str(values[name]) for name in same}
    if values["maxbw"] != "none":
        told["maxbw"] = str(values["maxbw"])
    return told | {"caller": "receiver"}


_SHARED: Final = ("latency", "too_late_drop", "periodic_nak", "inputbw", "oheadbw")
PARAMETERS: Final[dict[str, Parameter]] = {
    **{name: MACHINES[OURS].parameters[name] for name in _SHARED},
    "retransmission": Parameter(
        name="retransmission",
        kind=("efficient", "aggressive"),
        default="efficient",
        help="how the sender repeats packets that are reported lost",
        source="libsrt's SRTO_RETRANSMITALGO",
    ),
    "maxbw": Parameter(
        name="maxbw",
        kind=Maybe(Rate),
        default="none",
        help="the greatest rate, repeated packets included; 0 bit/s for the input rate and its overhead",
        source="libsrt's SRTO_MAXBW",
    ),
    "encryption": Parameter(
        name="encryption",
        kind=tuple(KEY_BYTES),
        default="off",
        help="both ends encrypt with a common passphrase and keys of this length",
        source="libsrt's SRTO_PASSPHRASE and SRTO_PBKEYLEN",
    ),
    "receiver_key": Parameter(
        name="receiver_key",
        kind=tuple(PASSPHRASES),
        default="same",
        help="the receiver has the sender's passphrase, or another one, which the sender refuses",
        source="libsrt's SRTO_ENFORCEDENCRYPTION",
    ),
}

SYSTEM: Final = System(
    name="srt-libsrt",
    title="A clip as MPEG-TS over SRT by libsrt's srt-live-transmit",
    modes={"emu": "FFmpeg to srt-live-transmit to srt-live-transmit"},
    ours=frozenset(),
    plays=True,
    parameters=PARAMETERS,
    unfit=_unfit,
    stood_in_by={OURS: _as_ours},
    adapter=SrtLibsrt(),
)

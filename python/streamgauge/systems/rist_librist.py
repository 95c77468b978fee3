"""RIST by librist's own programs: ristsender and ristreceiver (package rist-tools)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from streamgauge.systems.adapter import Clock, Collected, External, FlowSetup, Program
from streamgauge.systems.contribution import (
    INPUT,
    OUTPUT,
    Contribution,
    Counters,
    lines_of,
    read_lines,
    wall_ns,
)
from streamgauge.systems.machines import Excess
from streamgauge.systems.parameter import Number, Parameter, ParameterValue
from streamgauge.systems.scripted import SYSTEM_PYTHON
from streamgauge.systems.system import System
from streamgauge.units import Rate, Time

__all__ = ["SYSTEM", "RistLibrist", "statistics"]

OURS: Final = "rist"
"""Our machine of the same protocol."""
SENDER, RECEIVER = "ristsender", "ristreceiver"
MAIN: Final = "1"
"""The main profile (VSF TR-06-2). In the simple one only receivers listen, and here servers start first."""
STATISTICS_MS: Final = 200
SILENCE_S: Final = 1.0
"""Longer than the buffer: the receiver does not end with its sender."""
CONTROLS: Final = {"off": 0, "normal": 1, "aggressive": 2}
KEY_BITS: Final = {"off": 0, "aes-128": 128, "aes-256": 256}
SECRETS: Final = {"same": "a-secret-of-both-ends", "other": "not-the-secret-of-the-sender"}
"""By which secret the receiver has; the sender has the same one always."""
_LINE: Final = re.compile(r"(?P<s>\d+)\.(?P<us>\d{6})\|[^|]*\|\[INFO\] (?P<json>\{.*\})\s*")
_REPORT: Final = re.compile(r"\[INFO\] \{\"(?:sender-stats|receiver-stats)\"")

_SENT: Final = {"retransmitted": "repeated", "bloat_skipped": "sender_dropped"}
_SENDER: Final = {"sent": ("packets_sent", "1"), "s_rtt": ("rist_rtt", "s")}
_RECEIVED: Final = {
    "lost": "unrepaired",
    "dropped_late": "discarded",
    "missing": "reported_lost",
    "recovered_total": "recovered",
    "retries": "nack",
}
_RECEIVER: Final = {
    "received": ("packets_received", "1"),
    "quality": ("quality", "%"),
    "s_rtt": ("rist_rtt", "s"),
    "s_buffer": ("receive_buffer", "s"),
}


class RistLibrist(Contribution):
    """The adapter of system ``rist-librist``."""

    version = 1
    programs: Sequence[Program] = (
        *(
            Program(name=name, packages="rist-tools", purpose=f"the {end} of system rist-librist")
            for name, end in ((SENDER, "sender"), (RECEIVER, "receiver"))
        ),
        Program(
            name=SYSTEM_PYTHON,
            packages="python3",
            purpose="what watches the programs of system rist-librist",
            id="python3.rist",
        ),
        Program(
            name="ffmpeg",
            packages="ffmpeg",
            purpose="the source and the decoder of system rist-librist",
            version=["-version"],
        ),
    )
    external: External | None = External(
        protocols={}, content="file", media_over=lambda parameters: "udp", max_payload=1328
    )

    def sending(self, flow: FlowSetup) -> Mapping[str, Any]:
        port = flow.port + INPUT
        options = [*_options(flow, "same"), "-i", f"udp://@127.0.0.1:{port}"]
        command = [SENDER, *options, "-o", f"rist://@{flow.server_ip}:{flow.port}?{_query(flow)}"]
        hold_s = Time(_said(flow, "latency")).s + 0.5
        authenticated = "Successfully Authenticated peer"
        source = f"udp://127.0.0.1:{port}"
        return {"command": command, "connected": authenticated, "input": source, "hold_s": hold_s}

    def receiving(self, flow: FlowSetup) -> Mapping[str, Any]:
        port = flow.port + OUTPUT
        url = f"rist://{flow.server_ip}:{flow.port}?{_query(flow)}"
        options = [*_options(flow, _said(flow, "receiver_key")), "-i", url]
        command = [RECEIVER, *options, "-o", f"udp://127.0.0.1:{port}"]
        silence_s = Time(_said(flow, "latency")).s + SILENCE_S
        return {"command": command, "output": port, "silence_s": silence_s}

    def read(self, flow: FlowSetup, clock: Clock, found: Collected) -> None:
        shown, lines = lines_of(flow, "server", "stdout.log", found.faults)
        sent = statistics(lines, shown, "sender", clock, found.faults)
        found.events += Counters(_SENT, _SENDER, SENDER).all(sent)
        shown, lines = lines_of(flow, "player", "stderr.log", found.faults)
        received = statistics(lines, shown, "receiver", clock, found.faults)
        found.events += Counters(_RECEIVED, _RECEIVER, RECEIVER).all(received)


def statistics(
    lines: Sequence[str], shown: str, end: Literal["sender", "receiver"], clock: Clock, faults: list[str]
) -> list[tuple[int, dict[str, float]]]:
    """Returns the reports in a program's log: the time of each, CLOCK_MONOTONIC in ns, and its numbers, with
    ``s_rtt`` and ``s_buffer`` in s. Counters of packets are summed up, since the program counts each report
    from 0.

    The first line that cannot be read is put in `faults`, and ends it. Lines of the log without statistics
    are passed over.
    """
    rows: list[tuple[int, dict[str, float]]] = []
    totals: dict[str, float] = {}
    counted = (*_SENT, "sent") if end == "sender" else (*_RECEIVED, "received")

    def read(line: str) -> None:
        if not _REPORT.search(line):
            return
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(line)
        told = json.loads(found["json"])
        if end == "sender":
            stats = told["sender-stats"]["peer"]["stats"]
            row = {"s_rtt": float(stats["rtt"]) / 1e3}
        else:
            flow = told["receiver-stats"]["flowinstant"]
            stats, peers = flow["stats"], flow["peers"]
            row = {"s_rtt": max((float(peer["stats"]["rtt"]) for peer in peers), default=0.0) / 1e3}
            row |= {"s_buffer": float(stats["avg_buffer_time"]) / 1e3, "quality": float(stats["quality"])}
        for name in counted:
            value = float(stats[name])
            if not 0 <= value < math.inf:
                raise ValueError(line)
            totals[name] = totals.get(name, 0.0) + value
        if not all(map(math.isfinite, row.values())):
            raise ValueError(line)
        at_ns = int(found["s"]) * 10**9 + int(found["us"]) * 1000
        rows.append((wall_ns(at_ns, clock), row | totals))

    read_lines(lines, shown, faults, read, f"statistics of rist{end}")
    return rows


def _said(flow: FlowSetup, name: str) -> str:
    return str(flow.parameters.get(name, PARAMETERS[name].default))


def _options(flow: FlowSetup, key: str) -> list[str]:
    latency_ms = round(Time(_said(flow, "latency")).ns / 1e6)
    told = ["-p", MAIN, "-b", str(latency_ms), "-S", str(STATISTICS_MS)]
    if bits := KEY_BITS[_said(flow, "encryption")]:
        told += ["-s", SECRETS[key], "-e", str(bits)]
    return told


def _query(flow: FlowSetup) -> str:
    told = {
        "bandwidth": max(1, Rate(_said(flow, "maxbitrate")).bps // 1000),
        "reorder-buffer": round(Time(_said(flow, "reorder")).ns / 1e6),
        "rtt-min": round(Time(_said(flow, "rtt_min")).ns / 1e6),
        "rtt-max": round(Time(_said(flow, "rtt_max")).ns / 1e6),
        "congestion-control": CONTROLS[_said(flow, "congestion_control")],
        "min-retries": int(float(_said(flow, "min_retries"))),
        "max-retries": int(float(_said(flow, "max_retries"))),
    }
    return "&".join(f"{name}={value}" for name, value in told.items())


def _unfit(values: Mapping[str, ParameterValue | None]) -> Excess | None:
    if values["receiver_key"] == "other" and values["encryption"] == "off":
        why = "another key of the receiver has no effect without encryption"
        return Excess(name="receiver_key", why=why, hint="give encryption too, such as aes-128")
    least, most = values["rtt_min"], values["rtt_max"]
    if isinstance(least, Time) and isinstance(most, Time) and least > most:
        why = f"{least} is more than rtt_max, which is {most}"
        return Excess(name="rtt_min", why=why, hint=f"give {most} or less, or change rtt_max")
    return None


def _as_ours(values: Mapping[str, ParameterValue | None]) -> dict[str, str]:
    """Returns the settings of our machine that are this one's."""
    same = ("latency", "reorder", "rtt_min", "rtt_max", "max_retries", "maxbitrate", "congestion_control")
    return {name: str(values[name]) for name in same}


_HELP: Final = "librist 0.2.7, ristsender --help-url"
PARAMETERS: Final[dict[str, Parameter]] = {
    one.name: one
    for one in (
        Parameter(
            name="latency",
            kind=Time,
            default="1 s",
            least="20 ms",
            most="30 s",
            help="the buffer of both ends, within which lost packets are repeated",
            source=f"{_HELP}: buffer",
        ),
        Parameter(
            name="reorder",
            kind=Time,
            default="25 ms",
            least="1 ms",
            help="how long the receiver waits for a packet out of order before it asks for it",
            source=f"{_HELP}: reorder-buffer",
        ),
        Parameter(
            name="rtt_min",
            kind=Time,
            default="50 ms",
            least="1 ms",
            help="least time between two requests of a packet",
            source=f"{_HELP}: rtt-min",
        ),
        Parameter(
            name="rtt_max",
            kind=Time,
            default="500 ms",
            least="1 ms",
            help="greatest time between them",
            source=f"{_HELP}: rtt-max",
        ),
        Parameter(
            name="maxbitrate",
            kind=Rate,
            default="100 Mbit/s",
            least="1 kbit/s",
            help="the greatest rate, repeated packets included",
            source=f"{_HELP}: bandwidth",
        ),
        Parameter(
            name="congestion_control",
            kind=tuple(CONTROLS),
            default="normal",
            help="whether repeated packets are dropped while the path's queue grows",
            source=f"{_HELP}: congestion-control",
        ),
        Parameter(
            name="min_retries",
            kind=Number(whole=True),
            default="6",
            most="100",
            help="requests of a packet before that control drops any",
            source=f"{_HELP}: min-retries",
        ),
        Parameter(
            name="max_retries",
            kind=Number(whole=True),
            default="20",
            least="1",
            most="100",
            help="greatest number of requests of a packet",
            source=f"{_HELP}: max-retries",
        ),
        Parameter(
            name="encryption",
            kind=tuple(KEY_BITS),
            default="off",
            help="both ends encrypt with a common secret and keys of this length",
            source="VSF TR-06-2 section 7",
        ),
        Parameter(
            name="receiver_key",
            kind=tuple(SECRETS),
            default="same",
            help="the receiver has the sender's secret, or another one",
            source=f"{_HELP}: secret",
        ),
    )
}

SYSTEM: Final = System(
    name="rist-librist",
    title="A clip as MPEG-TS over RIST by librist's ristsender and ristreceiver",
    modes={"emu": "FFmpeg to ristsender to ristreceiver"},
    ours=frozenset(),
    plays=True,
    parameters=PARAMETERS,
    unfit=_unfit,
    stood_in_by={OURS: _as_ours},
    adapter=RistLibrist(),
)

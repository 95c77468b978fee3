"""RTSP video: gst-rtsp-server to GStreamer's rtspsrc or to ffmpeg, over UDP or interleaved on TCP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from streamgauge.systems.adapter import Clock, Collected, FlowSetup, ProcessSpec, Side
from streamgauge.systems.events import event, last, read_events

SYSTEM_PYTHON = "/usr/bin/python3"
"""GStreamer's bindings belong to the distribution's Python."""

# ffmpeg's progress keys, by our names. `frame` counts concealed pictures too: it hides loss.
_PROGRESS = {
    "frame": ("frames_decoded", "1", "concealed pictures included"),
    "fps": ("frames_per_second", "1/s", ""),
    "drop_frames": ("frames_dropped", "1", ""),
    "dup_frames": ("frames_duplicated", "1", ""),
    "out_time_us": ("position", "s", "media time decoded"),
}


class Rtsp:
    """The adapter of system ``rtsp``."""

    programs: Mapping[str, str] = {
        SYSTEM_PYTHON: "python3-gst-1.0 gir1.2-gst-rtsp-server-1.0",
        "ffmpeg": "ffmpeg",
    }

    def processes(self, flow: FlowSetup) -> list[ProcessSpec]:
        server = ProcessSpec(
            side="server",
            command=[SYSTEM_PYTHON, str(flow.programs / "gst_rtsp_server.py")],
            namespace=flow.sending_namespace,
            early=True,
        )
        if flow.parameters.get("player", "gstreamer") == "ffmpeg":
            player = ProcessSpec(
                side="player",
                command=self._ffmpeg(flow),
                namespace="client",
                may_end=True,
                acted_on=True,
            )
        else:
            player = ProcessSpec(
                side="player",
                command=[SYSTEM_PYTHON, str(flow.programs / "gst_rtsp_player.py")],
                namespace="client",
                early=True,
                control=True,
                may_end=True,
                acted_on=True,
            )
        return [server, player]

    @staticmethod
    def _ffmpeg(flow: FlowSetup) -> list[str]:
        transport = str(flow.parameters.get("transport", "udp"))
        url = f"rtsp://{flow.server_ip}:{flow.port}/clip"
        command = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "level+warning"]
        command += ["-stats_period", "1", "-progress", str(flow.out("player") / "progress.txt")]
        return [*command, "-rtsp_transport", transport, "-i", url, "-map", "0:v", "-f", "null", "-"]

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        found = Collected()
        sides: tuple[Side, Side] = ("server", "player")
        for side in sides:
            found.events += read_events(flow, side, clock, found.faults)
        progress = flow.out("player") / "progress.txt"
        if progress.is_file():
            found.events += _progress(progress, clock)
        packets = last(found.events, "total_packets_received")
        octets = last(found.events, "total_bytes_received")
        if packets is not None and octets is not None:
            found.received_packets, found.received_bytes = int(packets), int(octets)
            found.received_what = "RTP packets counted by rtpsession"
        return found


def _progress(file: Path, clock: Clock) -> list[dict[str, object]]:
    """ffmpeg writes a block of key=value lines a second, without a time of its own."""
    events: list[dict[str, object]] = []
    at, period_ns = clock.started["player"], 1_000_000_000
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, text = line.partition("=")
        if key == "progress":
            at += period_ns
        if key not in _PROGRESS:
            continue
        try:
            value = float(text)
        except ValueError:  # "N/A" before the first picture
            continue
        if not math.isfinite(value):
            continue
        name, unit, reason = _PROGRESS[key]
        value = value / 1e6 if key == "out_time_us" else value
        events.append(event(at + period_ns, name, value, unit, reason or "ffmpeg -progress"))
    return events

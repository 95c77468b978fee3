"""RTSP video: gst-rtsp-server to GStreamer's rtspsrc or to ffmpeg, over UDP or interleaved on TCP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from streamgauge.systems.adapter import (
    ACTIONS,
    ENDS,
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
)
from streamgauge.systems.events import event, last, read_events
from streamgauge.systems.machines import MACHINES, PACED_CLIP
from streamgauge.systems.parameter import Parameter
from streamgauge.systems.system import System

SYSTEM_PYTHON = "/usr/bin/python3"
"""GStreamer's bindings belong to the distribution's Python."""

_GSTREAMER = """
import gi
for module in ("Gst", "GstPbutils", "GstRtsp", "GstRtspServer"):
    gi.require_version(module, "1.0")
from gi.repository import Gst, GstRtspServer
Gst.init(None)
need = "rtspsrc rtpjitterbuffer rtph264pay rtph264depay h264parse avdec_h264 qtdemux aacparse".split()
lacking = [name for name in need if Gst.ElementFactory.find(name) is None]
if lacking:
    raise SystemExit("no element " + ", ".join(lacking))
print(Gst.version_string())
"""

# ffmpeg's progress keys, by our names. `frame` counts concealed pictures too: it hides loss.
_PROGRESS = {
    "frame": ("frames_decoded", "1", "concealed pictures included"),
    "fps": ("frames_per_second", "1/s", ""),
    "drop_frames": ("frames_dropped", "1", ""),
    "dup_frames": ("frames_duplicated", "1", ""),
    "out_time_us": ("position", "s", "media time decoded"),
}


def _transport(parameters: Mapping[str, Any]) -> Literal["udp", "tcp"]:
    return "tcp" if parameters.get("transport", "udp") == "tcp" else "udp"


class Rtsp:
    """The adapter of system ``rtsp``."""

    version = 1
    programs: Sequence[Program] = (
        Program(
            name=SYSTEM_PYTHON,
            packages="python3-gst-1.0 gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-good "
            "gstreamer1.0-plugins-bad gstreamer1.0-libav gstreamer1.0-rtsp",
            purpose="GStreamer and gst-rtsp-server, system rtsp",
            id="gstreamer",
            probe=["-c", _GSTREAMER],
        ),
        Program(
            name="ffmpeg",
            packages="ffmpeg",
            purpose="a player of system rtsp",
            version=["-version"],
            needed=lambda flow: flow.parameters.get("player") == "ffmpeg",
        ),
    )
    external: External | None = External(
        protocols={"tcp": ("rtsp",), "udp": ("rtp",)}, content="file", media_over=_transport
    )
    of_arrivals: Adapter | None = None

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        return False

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        """GStreamer's player has its server hold (RTSP's PAUSE); ffmpeg can only be ended."""
        return ACTIONS if parameters["player"] == "gstreamer" else ENDS

    def processes(self, flow: FlowSetup) -> list[Process]:
        server = Process(
            side="server",
            command=[SYSTEM_PYTHON, str(flow.helpers("server") / "gst_rtsp_server.py")],
            namespace=flow.sending_namespace,
            early=True,
            helpers=[PROGRAMS / "gst_rtsp_server.py"],
        )
        if flow.parameters.get("player", "gstreamer") == "ffmpeg":
            player = Process(
                side="player",
                command=self._ffmpeg(flow),
                namespace=flow.playing_namespace,
                may_end=True,
                acted_on=True,
            )
        else:
            player = Process(
                side="player",
                command=[SYSTEM_PYTHON, str(flow.helpers("player") / "gst_rtsp_player.py")],
                namespace=flow.playing_namespace,
                early=True,
                helpers=[PROGRAMS / "gst_rtsp_player.py"],
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
        for side in SIDES:
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


SYSTEM = System(
    name="rtsp",
    title="RTSP video from gst-rtsp-server",
    modes={"emu": "gst-rtsp-server to GStreamer rtspsrc or ffmpeg"},
    ours=frozenset(),
    plays=True,
    tcp="transport",
    parameters={
        "player": Parameter(
            name="player", kind=("gstreamer", "ffmpeg"), default="gstreamer", help="which program plays"
        ),
        "transport": MACHINES[PACED_CLIP].parameters["transport"],
    },
    adapter=Rtsp(),
)

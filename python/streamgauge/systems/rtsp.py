"""RTSP video: gst-rtsp-server to GStreamer's rtspsrc or to ffmpeg, over UDP or interleaved on TCP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from streamgauge.systems.adapter import Clock, Collected, External, FlowSetup, Process, Program
from streamgauge.systems.events import event, last
from streamgauge.systems.machines import MACHINES, PACED_CLIP
from streamgauge.systems.parameter import Parameter, ParameterValue
from streamgauge.systems.player_files import FileRefusedError, read_in
from streamgauge.systems.scripted import GSTREAMER, SYSTEM_PYTHON, ScriptedAdapter, player_of, script
from streamgauge.systems.system import System

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

PROGRESS = "progress.txt"
LARGEST_PROGRESS_BYTES = 20_000_000
"""Size of ffmpeg's progress, which is some 400 bytes a second."""

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


class Rtsp(ScriptedAdapter):
    """The adapter of system ``rtsp``. GStreamer's player, when it is paused, has its server hold."""

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
            needed=lambda flow: player_of(flow.parameters) == "ffmpeg",
        ),
    )
    external: External | None = External(
        protocols={"tcp": ("rtsp",), "udp": ("rtp",)}, content="file", media_over=_transport
    )

    def processes(self, flow: FlowSetup) -> list[Process]:
        server = script(flow, "server", "gst_rtsp_server.py", early=True)
        ends: dict[str, Any] = {"may_end": True, "acted_on": True}
        if player_of(flow.parameters) == GSTREAMER:
            player = script(flow, "player", "gst_rtsp_player.py", early=True, control=True, **ends)
        else:
            player = Process(
                side="player",
                command=self._ffmpeg(flow),
                namespace=flow.playing_namespace,
                **ends,
            )
        return [server, player]

    @staticmethod
    def _ffmpeg(flow: FlowSetup) -> list[str]:
        transport = str(flow.parameters.get("transport", "udp"))
        url = f"rtsp://{flow.server_ip}:{flow.port}/clip"
        command = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "level+warning"]
        command += ["-stats_period", "1", "-progress", str(flow.out("player") / PROGRESS)]
        return [*command, "-rtsp_transport", transport, "-i", url, "-map", "0:v", "-f", "null", "-"]

    def read(self, flow: FlowSetup, clock: Clock, found: Collected) -> None:
        try:
            progress = read_in(flow.out("player"), PROGRESS, LARGEST_PROGRESS_BYTES)
        except FileRefusedError as error:
            found.faults.append(f"{flow.name}-player-{PROGRESS} {error}")
            progress = None
        if progress is not None:
            found.events += _progress(progress.data.decode(errors="replace"), clock)
        packets = last(found.events, "total_packets_received")
        octets = last(found.events, "total_bytes_received")
        if packets is not None and octets is not None:
            found.received_packets, found.received_bytes = int(packets), int(octets)
            found.received_what = "RTP packets counted by rtpsession"


def _progress(text: str, clock: Clock) -> list[dict[str, object]]:
    """ffmpeg writes a block of key=value lines a second, without a time of its own."""
    events: list[dict[str, object]] = []
    at, period_ns = clock.started["player"], 1_000_000_000
    for line in text.splitlines():
        key, _, said = line.partition("=")
        if key == "progress":
            at += period_ns
        if key not in _PROGRESS:
            continue
        try:
            value = float(said)
        except ValueError:  # "N/A" before the first picture
            continue
        if not math.isfinite(value):
            continue
        name, unit, reason = _PROGRESS[key]
        value = value / 1e6 if key == "out_time_us" else value
        events.append(event(at + period_ns, name, value, unit, reason or "ffmpeg -progress"))
    return events


def _decoder(values: Mapping[str, ParameterValue | None]) -> dict[str, str]:
    """GStreamer's avdec_h264 discards intact pictures where certain others were lost."""
    return {"decoder": "libavcodec"} if values.get("player") == GSTREAMER else {}


SYSTEM = System(
    name="rtsp",
    title="RTSP video from gst-rtsp-server",
    modes={"emu": "gst-rtsp-server to GStreamer rtspsrc or ffmpeg"},
    ours=frozenset(),
    plays=True,
    tcp="transport",
    parameters={
        "player": Parameter(
            name="player", kind=(GSTREAMER, "ffmpeg"), default=GSTREAMER, help="which program plays"
        ),
        "transport": MACHINES[PACED_CLIP].parameters["transport"],
    },
    stood_in_by={PACED_CLIP: _decoder},
    adapter=Rtsp(),
)

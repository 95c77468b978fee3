"""Progressive download: nginx to GStreamer's playbin or to ffplay, an MP4 file over HTTP/1.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.systems import nginx
from streamgauge.systems.adapter import Clock, Collected, External, FlowSetup, Process, Program
from streamgauge.systems.events import event, last
from streamgauge.systems.parameter import Parameter
from streamgauge.systems.scripted import GSTREAMER, SYSTEM_PYTHON, ScriptedAdapter, player_of, script
from streamgauge.systems.system import System

PLAYERS = {GSTREAMER: "gst_http_player.py", "ffplay": "ffplay_player.py"}
"""Our scripts that start and watch the players, by the player's name."""

_SERVER = """\
    listen ADDRESS;
    location = /clip.mp4 {
      alias "MEDIA";
    }
"""

_GSTREAMER = """
import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
need = "playbin souphttpsrc queue2 qtdemux h264parse aacparse avdec_h264 avdec_aac fakesink".split()
lacking = [name for name in need if Gst.ElementFactory.find(name) is None]
if lacking:
    raise SystemExit("no element " + ", ".join(lacking))
print(Gst.version_string())
"""


class NginxHttp(ScriptedAdapter):
    """The adapter of system ``nginx-http``. GStreamer's player, when it is paused, holds its pipeline."""

    version = 1
    programs: Sequence[Program] = (
        nginx.program("the server of system nginx-http"),
        Program(
            name=SYSTEM_PYTHON,
            packages="python3-gst-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good "
            "gstreamer1.0-plugins-bad gstreamer1.0-libav",
            purpose="GStreamer's playbin and what watches players, system nginx-http",
            id="gstreamer.http",
            probe=["-c", _GSTREAMER],
        ),
        Program(
            name="ffplay",
            packages="ffmpeg",
            purpose="a player of system nginx-http",
            version=["-version"],
            needed=lambda flow: player_of(flow.parameters) == "ffplay",
        ),
    )
    external: External | None = External(
        protocols={"tcp": ("http",)}, content="file", media_over=lambda parameters: "tcp"
    )

    def processes(self, flow: FlowSetup) -> list[Process]:
        out = str(flow.out("server"))
        server = Process(
            side="server",
            command=nginx.command(out),
            files={"nginx.conf": _config(flow)},
            namespace=flow.sending_namespace,
            early=True,
            ready="port",
            stop_signal=nginx.SIGQUIT,
        )
        which = player_of(flow.parameters)
        player = script(
            flow,
            "player",
            PLAYERS[which],
            # GStreamer is loaded before its flow starts; ffplay asks for its file as soon as it runs.
            early=which == GSTREAMER,
            control=which == GSTREAMER,
            # Its sinks look for settings of a desktop's otherwise, and leave a file.
            environment={"GSETTINGS_BACKEND": "memory"},
            may_end=True,
            acted_on=True,
        )
        return [server, player]

    def read(self, flow: FlowSetup, clock: Clock, found: Collected) -> None:
        found.events += nginx.answers(flow, found.faults, lambda told: _answer(told, clock))
        octets = last(found.events, "total_bytes_received")
        if octets is not None:
            found.received_bytes, found.received_what = (
                int(octets),
                "bodies of responses that souphttpsrc read",
            )


def _config(flow: FlowSetup) -> str:
    server = _SERVER.replace("ADDRESS", f"{flow.server_ip}:{flow.port}").replace("MEDIA", str(flow.media))
    return nginx.config(server, types="video/mp4 mp4;")


def _answer(told: Mapping[str, Any], clock: Clock) -> list[dict[str, Any]]:
    """Returns nginx's log entry of an answer after its end."""
    at_ns = nginx.at_ns(told["t"], clock)
    return [event(at_ns, "response_sent", float(told["bytes"]), "B", nginx.answered(told))]


SYSTEM = System(
    name="nginx-http",
    title="Progressive download from nginx",
    modes={"emu": "nginx to GStreamer playbin or ffplay"},
    ours=frozenset(),
    plays=True,
    tcp="always",
    parameters={
        "player": Parameter(
            name="player", kind=tuple(PLAYERS), default=GSTREAMER, help="which program plays"
        ),
    },
    adapter=NginxHttp(),
)

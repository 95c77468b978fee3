"""Progressive download: nginx to GStreamer's playbin or to ffplay, an MP4 file over HTTP/1.1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.systems.adapter import Clock, Collected, External, FlowSetup, Process, Program
from streamgauge.systems.events import event, last
from streamgauge.systems.parameter import Parameter
from streamgauge.systems.scripted import GSTREAMER, SYSTEM_PYTHON, ScriptedAdapter, player_of, script
from streamgauge.systems.system import System

NGINX = "/usr/sbin/nginx"
"""Where distributions have it: ordinary users' PATH lacks that folder."""

PLAYERS = {GSTREAMER: "gst_http_player.py", "ffplay": "ffplay_player.py"}
"""Our scripts that start and watch the players, by the player's name."""

ACCESS_LOG = "access.log"
LARGEST_LOG_BYTES = 20_000_000
"""As much as is kept of a log."""
SIGQUIT = 3
"""On which nginx ends what it is serving, for as long as its configuration says, and writes it to its log."""

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

# Debian's sendfile and tcp_nopush, nginx's own keep-alive. An answer that is under way when the trial ends is
# cut off and logged. Words in capitals are filled in.
_CONFIG = """\
daemon off;
worker_processes 1;
worker_shutdown_timeout 500ms;
pid nginx.pid;
error_log stderr warn;
events {}
http {
  log_format answers escape=json '{"t":$msec,"status":$status,"bytes":$bytes_sent,"request":"$request",'
    '"range":"$http_range","whole":"$request_completion","connection":$connection,'
    '"on_connection":$connection_requests,"rtt_us":"$tcpinfo_rtt","cwnd":"$tcpinfo_snd_cwnd"}';
  access_log ACCESS_LOG answers;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 75s;
  types { video/mp4 mp4; }
  server {
    listen ADDRESS;
    location = /clip.mp4 {
      alias "MEDIA";
    }
  }
}
"""


class NginxHttp(ScriptedAdapter):
    """The adapter of system ``nginx-http``. GStreamer's player, when it is paused, holds its pipeline."""

    version = 1
    programs: Sequence[Program] = (
        Program(
            name=NGINX,
            packages="nginx-light",
            purpose="the server of system nginx-http",
            id="nginx",
            # It says its version on stderr.
            probe=["-v"],
        ),
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
            command=[NGINX, "-e", "stderr", "-p", out, "-c", f"{out}/nginx.conf"],
            files={"nginx.conf": _config(flow)},
            namespace=flow.sending_namespace,
            early=True,
            ready="port",
            stop_signal=SIGQUIT,
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
        found.events += _answers(flow, clock, found.faults)
        octets = last(found.events, "total_bytes_received")
        if octets is not None:
            found.received_bytes, found.received_what = (
                int(octets),
                "bodies of responses that souphttpsrc read",
            )


def _config(flow: FlowSetup) -> str:
    filled = _CONFIG.replace("ADDRESS", f"{flow.server_ip}:{flow.port}").replace("MEDIA", str(flow.media))
    return filled.replace("ACCESS_LOG", ACCESS_LOG)


def _answers(flow: FlowSetup, clock: Clock, faults: list[str]) -> list[dict[str, Any]]:
    """What nginx wrote of each answer when it had ended, by CLOCK_REALTIME. The first line that cannot be
    read is put in `faults`; a last one without its end is passed over."""
    file = flow.out("server") / ACCESS_LOG
    if not file.is_file():
        return []
    with file.open("rb") as source:
        *lines, _ = source.read(LARGEST_LOG_BYTES).split(b"\n")
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events += _answer(json.loads(line), clock)
        except (ValueError, KeyError, TypeError):
            faults.append(
                f"{flow.name}-server-{ACCESS_LOG}:{number}: not a line of nginx's as we have it written"
            )
            break
    return events


def _answer(told: Mapping[str, Any], clock: Clock) -> list[dict[str, Any]]:
    at_ns = clock.t0_monotonic_ns + round(told["t"] * 1e9) - clock.t0_realtime_ns
    cut = "whole" if told["whole"] else "cut off"
    asked = f"{told['request']}{', ' + told['range'] if told['range'] else ''}"
    which = f"number {told['on_connection']} on connection {told['connection']}"
    answer = f"{told['status']} to {asked}: {cut}; {which}"
    return [event(at_ns, "response_sent", float(told["bytes"]), "B", answer)]


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

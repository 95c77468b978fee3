"""An RTSP player on GStreamer's rtspsrc. Runs by the system's python3, which has GStreamer's bindings.

Plays ``rtsp://STREAMGAUGE_SERVER:STREAMGAUGE_PORT/clip`` over ``STREAMGAUGE_PARAM_TRANSPORT`` (udp or tcp)
into sinks that keep time and drop late pictures as a video window does, but show nothing. Waits for the line
``{"cmd":"start",...}`` on stdin when ``STREAMGAUGE_CONTROL`` is set, so that loading GStreamer delays no
start; the commands ``pause`` and ``resume`` hold the session, by RTSP's PAUSE and PLAY. Once a second, and
at the end, its statistics go to ``STREAMGAUGE_EVENTS``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
from gi.repository import GLib, Gst, GstRtsp  # noqa: E402

DECODERS = {
    "H264": "rtph264depay ! h264parse ! avdec_h264",
    "MPEG4-GENERIC": "rtpmp4gdepay ! aacparse ! avdec_aac",
}
# GstVideoSink's own default; GstBaseSink would never drop.
MAX_LATENESS_NS = 5_000_000
# A picture that follows the one before it after more than this is a freeze: three frame times at 25/s, and at
# least 150 ms more than is due (webrtc-stats, freezeCount).
FREEZE_S = 0.04 + 0.150


class Player:
    """One rtspsrc, a branch with decoder and sink for each stream, and the statistics of all of them."""

    def __init__(self) -> None:
        self.events = Path(os.environ["STREAMGAUGE_EVENTS"]).open("a", buffering=1)  # noqa: SIM115
        self.loop = GLib.MainLoop()
        self.status = 0
        self.sinks: dict[str, Any] = {}
        self.buffers: list[Any] = []
        self.manager: Any = None
        self.last_shown: float | None = None
        self.shown = 0
        self.freezes = 0
        self.frozen_s = 0.0
        self.qos = 0
        self.pipeline = Gst.Pipeline.new("player")
        self.source = Gst.ElementFactory.make("rtspsrc")
        server, port = os.environ["STREAMGAUGE_SERVER"], os.environ["STREAMGAUGE_PORT"]
        self.source.set_property("location", f"rtsp://{server}:{port}/clip")
        tcp = os.environ.get("STREAMGAUGE_PARAM_TRANSPORT", "udp") == "tcp"
        lower = GstRtsp.RTSPLowerTrans.TCP if tcp else GstRtsp.RTSPLowerTrans.UDP
        self.source.set_property("protocols", lower)
        self.source.connect("new-manager", self._new_manager)
        self.source.connect("pad-added", self._pad_added)
        self.pipeline.add(self.source)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message", self._message)

    def say(self, name: str, value: float | None = None, unit: str = "", reason: str = "") -> None:
        event = {
            "t_monotonic_ns": time.monotonic_ns(),
            "name": name,
            "value": value,
            "unit": unit,
            "reason": reason,
        }
        self.events.write(json.dumps(event) + "\n")

    def start(self) -> bool:
        """Returns False, so that a timer calls it once."""
        self.say("play_requested")
        self.pipeline.set_state(Gst.State.PLAYING)
        GLib.timeout_add(1000, self._sample)
        return False

    def pause(self) -> None:
        """rtspsrc sends PAUSE; the time until the next picture is no freeze."""
        self.say("paused")
        self.last_shown = None
        self.pipeline.set_state(Gst.State.PAUSED)

    def resume(self) -> None:
        self.say("resumed")
        self.last_shown = None
        self.pipeline.set_state(Gst.State.PLAYING)

    def stop(self) -> None:
        self._sample()
        self.say("stopped")
        self.loop.quit()

    def _new_manager(self, _source: Any, manager: Any) -> None:
        self.manager = manager
        manager.connect(
            "new-jitterbuffer", lambda _bin, buffer, session, _ssrc: self.buffers.append((session, buffer))
        )

    def _pad_added(self, _source: Any, pad: Any) -> None:
        encoding = pad.get_current_caps().get_structure(0).get_string("encoding-name")
        if encoding not in DECODERS:
            self._fail(f"cannot play RTP encoding {encoding}")
            return
        branch = Gst.parse_bin_from_description(
            f"{DECODERS[encoding]} ! queue ! fakesink name=sink sync=true", True
        )
        sink = branch.get_by_name("sink")
        sink.set_property("max-lateness", MAX_LATENESS_NS)
        sink.set_property("qos", True)
        if encoding == "H264":
            sink.set_property("signal-handoffs", True)
            sink.connect("handoff", self._shown)
        self.sinks[encoding] = sink
        self.pipeline.add(branch)
        branch.sync_state_with_parent()
        pad.link(branch.get_static_pad("sink"))

    def _shown(self, _sink: Any, _buffer: Any, _pad: Any) -> None:
        now = time.monotonic()
        self.say("frame_shown", self.shown, "1")
        self.shown += 1
        if self.shown == 1:
            self.say("first_frame_shown")
        elif self.last_shown is not None and now - self.last_shown > FREEZE_S:
            self.freezes += 1
            self.frozen_s += now - self.last_shown
            self.say("freeze", now - self.last_shown, "s", "time between two pictures shown")
        self.last_shown = now

    def _sample(self) -> bool:
        for session, buffer in self.buffers:
            stats = buffer.get_property("stats")
            where = f"stream {session}, rtpjitterbuffer"
            self.say("jitter_buffer_pushed", stats.get_value("num-pushed"), "1", where)
            self.say("jitter_buffer_lost", stats.get_value("num-lost"), "1", where)
            self.say("packets_discarded", stats.get_value("num-late"), "1", where + ": came too late")
        if self.manager is not None:
            self._sessions()
        for encoding, sink in self.sinks.items():
            stats = sink.get_property("stats")
            self.say("frames_rendered", stats.get_value("rendered"), "1", encoding)
            self.say("frames_dropped", stats.get_value("dropped"), "1", f"{encoding}: late at the sink")
        self.say("qos_messages", self.qos, "1")
        self.say("freeze_count", self.freezes, "1")
        self.say("total_freezes_duration", self.frozen_s, "s")
        found, position = self.pipeline.query_position(Gst.Format.TIME)
        if found:
            self.say("position", position / 1e9, "s", "media time shown")
        return True

    def _sessions(self) -> None:
        """What rtpsession counts of each remote source (webrtc-stats: inbound-rtp)."""
        packets = octets = 0
        for number in sorted({session for session, _ in self.buffers}):
            session = self.manager.emit("get-internal-session", number)
            for rtp_source in session.get_property("sources"):
                source = rtp_source.get_property("stats")
                if source.get_value("internal"):
                    continue
                where = f"stream {number}, rtpsession"
                packets += source.get_value("packets-received")
                octets += source.get_value("octets-received")
                self.say("packets_received", source.get_value("packets-received"), "1", where)
                self.say("bytes_received", source.get_value("octets-received"), "B", f"{where}: RTP payload")
                self.say("packets_lost", source.get_value("packets-lost"), "1", where)
                rate = source.get_value("clock-rate")
                if rate > 0:
                    self.say("jitter", source.get_value("jitter") / rate, "s", where)
        self.say("total_packets_received", packets, "1", "all streams, rtpsession")
        self.say("total_bytes_received", octets, "B", "all streams, rtpsession: RTP payload")

    def _message(self, _bus: Any, message: Any) -> None:
        if message.type == Gst.MessageType.ERROR:
            error, detail = message.parse_error()
            self._fail(f"{error.message} ({(detail or '').splitlines()[-1:]})")
        elif message.type == Gst.MessageType.EOS:
            self._sample()
            self.say("ended", reason="end of stream")
            self.loop.quit()
        elif message.type == Gst.MessageType.QOS:
            self.qos += 1

    def _fail(self, why: str) -> None:
        print(why, file=sys.stderr, flush=True)
        self.say("error", reason=why)
        self.status = 1
        self.loop.quit()


def main() -> int:
    Gst.init(None)
    player = Player()

    def command(channel: Any, _condition: Any) -> bool:
        said = os.read(channel, 4096)
        if not said:
            player.stop()
        for words in map(json.loads, said.splitlines()):
            if words["cmd"] == "start":
                # The start itself comes later: at t0 plus the flow's own start.
                wait_ns = max(0, words["start_monotonic_ns"] - time.monotonic_ns())
                GLib.timeout_add(wait_ns // 1_000_000, player.start)
            else:
                {"pause": player.pause, "resume": player.resume, "stop": player.stop}[words["cmd"]]()
        return bool(said)

    for number in (signal.SIGINT, signal.SIGTERM):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, player.stop)
    if "STREAMGAUGE_CONTROL" in os.environ:
        # Loads the plugins that playing will need, which takes hundreds of milliseconds the first time.
        for description in DECODERS.values():
            Gst.parse_bin_from_description(description, True)
        Gst.ElementFactory.make("rtpbin")
        GLib.unix_fd_add_full(GLib.PRIORITY_DEFAULT, 0, GLib.IOCondition.IN | GLib.IOCondition.HUP, command)
        Path(os.environ["STREAMGAUGE_READY"]).touch()
    else:
        player.start()
    player.loop.run()
    player.pipeline.set_state(Gst.State.NULL)
    return player.status


if __name__ == "__main__":
    sys.exit(main())

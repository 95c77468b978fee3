"""An RTSP player on GStreamer's rtspsrc. Runs by the system's python3, which has GStreamer's bindings.

Plays ``rtsp://STREAMGAUGE_SERVER:STREAMGAUGE_PORT/clip`` over ``STREAMGAUGE_PARAM_TRANSPORT`` (udp or tcp)
into sinks that keep time and drop late pictures as a video window does, but show nothing. Waits for the line
``{"cmd":"start",...}`` on stdin, so that loading GStreamer delays no start; the commands ``pause`` and
``resume`` hold the session, by RTSP's PAUSE and PLAY. Once a second, and at the end, its statistics go to
``STREAMGAUGE_EVENTS``.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
from gi.repository import Gst, GstRtsp  # noqa: E402
from gst_player import GstPlayer, drop_late, run  # noqa: E402
from player_line import first_structure  # noqa: E402

DECODERS = {
    "H264": "rtph264depay ! h264parse ! avdec_h264",
    "MPEG4-GENERIC": "rtpmp4gdepay ! aacparse ! avdec_aac",
}
# A picture that follows the one before it after more than this is a freeze: three frame times at 25/s, and at
# least 150 ms more than is due (webrtc-stats, freezeCount).
FREEZE_S = 0.04 + 0.150


class Player(GstPlayer):
    """One rtspsrc, a branch with decoder and sink for each stream, and the statistics of all of them."""

    def __init__(self) -> None:
        super().__init__(Gst.Pipeline.new("player"))
        self.buffers: list[Any] = []
        self.manager: Any = None
        self.last_shown: float | None = None
        self.freezes = 0
        self.frozen_s = 0.0
        self.qos = 0
        self.source = Gst.ElementFactory.make("rtspsrc")
        server, port = os.environ["STREAMGAUGE_SERVER"], os.environ["STREAMGAUGE_PORT"]
        self.source.set_property("location", f"rtsp://{server}:{port}/clip")
        tcp = os.environ.get("STREAMGAUGE_PARAM_TRANSPORT", "udp") == "tcp"
        lower = GstRtsp.RTSPLowerTrans.TCP if tcp else GstRtsp.RTSPLowerTrans.UDP
        self.source.set_property("protocols", lower)
        self.source.connect("new-manager", self._new_manager)
        self.source.connect("pad-added", self._pad_added)
        self.pipeline.add(self.source)

    def play(self) -> None:
        self.pipeline.set_state(Gst.State.PLAYING)

    def pause(self) -> None:
        """rtspsrc sends PAUSE; the time until the next picture is no freeze."""
        self.last_shown = None
        super().pause()

    def resume(self) -> None:
        self.say("resumed")
        self.last_shown = None
        self.play()

    def _new_manager(self, _source: Any, manager: Any) -> None:
        self.manager = manager
        manager.connect(
            "new-jitterbuffer", lambda _bin, buffer, session, _ssrc: self.buffers.append((session, buffer))
        )

    def _pad_added(self, _source: Any, pad: Any) -> None:
        with first_structure(pad.get_current_caps()) as structure:
            encoding = structure.get_string("encoding-name")
        if encoding not in DECODERS:
            self.fail(f"cannot play RTP encoding {encoding}")
            return
        branch = Gst.parse_bin_from_description(f"{DECODERS[encoding]} ! queue ! fakesink name=sink", True)
        sink = branch.get_by_name("sink")
        drop_late(sink)
        self.add_sink(encoding, sink, self._shown if encoding == "H264" else None)
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

    def sample(self) -> None:
        for session, buffer in self.buffers:
            stats = buffer.get_property("stats")
            where = f"stream {session}, rtpjitterbuffer"
            self.say("jitter_buffer_pushed", stats.get_value("num-pushed"), "1", where)
            self.say("jitter_buffer_lost", stats.get_value("num-lost"), "1", where)
            self.say("packets_discarded", stats.get_value("num-late"), "1", where + ": came too late")
        if self.manager is not None:
            self._sessions()
        self.say("qos_messages", self.qos, "1")
        self.say("freeze_count", self.freezes, "1")
        self.say("total_freezes_duration", self.frozen_s, "s")

    def _sessions(self) -> None:
        """Reads rtpsession's counters of each remote source (webrtc-stats: inbound-rtp)."""
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

    def message(self, message: Any) -> None:
        if message.type == Gst.MessageType.EOS:
            self.end("ended", "end of stream")
        elif message.type == Gst.MessageType.QOS:
            self.qos += 1


def main() -> int:
    Gst.init(None)
    player = Player()
    # Loads the plugins that playing will need, which takes hundreds of milliseconds the first time.
    for description in DECODERS.values():
        Gst.parse_bin_from_description(description, True)
    Gst.ElementFactory.make("rtpbin")
    status: int = run(player)
    return status


if __name__ == "__main__":
    sys.exit(main())

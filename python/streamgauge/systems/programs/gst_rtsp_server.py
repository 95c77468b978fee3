"""An RTSP server on gst-rtsp-server. Runs by the system's python3, which has GStreamer's bindings.

Serves ``STREAMGAUGE_MEDIA`` (MP4 with H.264 and, if there is sound, AAC) at
``rtsp://STREAMGAUGE_SERVER:STREAMGAUGE_PORT/clip``, paced in real time, without any response to congestion.
Writes the player's RTCP receiver reports to ``STREAMGAUGE_EVENTS`` once a second.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import gi

for module in ("Gst", "GstPbutils", "GstRtsp", "GstRtspServer"):
    gi.require_version(module, "1.0")
from gi.repository import GLib, Gst, GstPbutils, GstRtspServer  # noqa: E402
from player_line import Events, first_structure  # noqa: E402

PAYLOADERS = {
    "video/x-h264": "h264parse ! rtph264pay name=pay{n} pt=96 mtu=1400 config-interval=-1 "
    "aggregate-mode=zero-latency",
    "audio/mpeg": "aacparse ! rtpmp4gpay name=pay{n} pt=97 mtu=1400",
}


def launch_line(media: str) -> str:
    """Returns the bin that feeds the payloaders, one a stream of the file."""
    found = GstPbutils.Discoverer.new(5 * Gst.SECOND).discover_uri(Path(media).as_uri())
    branches = []
    for n, stream in enumerate([*found.get_video_streams(), *found.get_audio_streams()]):
        with first_structure(stream.get_caps()) as structure:
            kind = structure.get_name()
        if kind not in PAYLOADERS:
            raise SystemExit(f"{media}: cannot stream {kind}; encode it as H.264 and AAC.")
        branches.append(f"demux. ! queue ! {PAYLOADERS[kind].format(n=n)}")
    return f'( filesrc location="{media}" ! qtdemux name=demux ' + " ".join(branches) + " )"


def report(media: Any, events: Events) -> bool:
    """Returns the receiver reports of every stream, as the sender sees them (webrtc-stats:
    remote-inbound-rtp)."""
    for n in range(media.n_streams()):
        session = media.get_stream(n).get_rtpsession()
        if session is None:
            continue
        for rtp_source in session.get_property("sources"):
            source = rtp_source.get_property("stats")
            if source.get_value("internal"):
                events.say("packets_sent", source.get_value("packets-sent"), "1", f"stream {n}")
                events.say("bytes_sent", source.get_value("octets-sent"), "B", f"stream {n}: RTP payload")
            elif source.get_value("have-rb"):
                rate = source.get_value("clock-rate")
                where = f"stream {n}: RTCP RR"
                events.say("rtcp_fraction_lost", source.get_value("rb-fractionlost") / 256, "1", where)
                events.say("rtcp_cumulative_lost", source.get_value("rb-packetslost"), "1", where)
                events.say(
                    "rtcp_jitter",
                    source.get_value("rb-jitter") / (rate if rate > 0 else 90_000),
                    "s",
                    where,
                )
                # 16.16 fixed-point seconds (RFC 3550 section 6.4.1).
                events.say("rtcp_rtt", source.get_value("rb-round-trip") / 65536, "s", where)
    return True


def main() -> None:
    Gst.init(None)
    events = Events()
    server = GstRtspServer.RTSPServer()
    server.set_address(os.environ["STREAMGAUGE_SERVER"])
    server.set_service(os.environ["STREAMGAUGE_PORT"])
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(launch_line(os.environ["STREAMGAUGE_MEDIA"]))
    factory.set_shared(False)

    def configured(_factory: Any, media: Any) -> None:
        timer = GLib.timeout_add(1000, report, media, events)
        media.connect("unprepared", lambda _media: GLib.source_remove(timer))

    factory.connect("media-configure", configured)
    server.get_mount_points().add_factory("/clip", factory)
    if server.attach(None) == 0:
        raise SystemExit(f"cannot listen on {server.get_address()}:{server.get_service()}")
    loop = GLib.MainLoop()
    for number in (signal.SIGINT, signal.SIGTERM):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)
    Path(os.environ["STREAMGAUGE_READY"]).touch()
    loop.run()


if __name__ == "__main__":
    main()

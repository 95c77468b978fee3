"""What GStreamer makes of a file of RealMedia or of its URL. Runs by the system's python3, for its bindings.

``gst_realvideo.py SOURCE STREAM HEARD`` plays as fast as it comes, until nothing comes for 2 s, and prints
as JSON what came of one stream (``video_0``, ``audio_0``): the digest of each coded unit, that of each
decoded one, and in order the stream and the sequence number of each RDT packet in front of rdtdepay.
``HEARD`` says how far the other stream gets: with ``all`` as far as this one, with ``own`` to rdtdepay,
with ``chosen`` it is not even set up. With ``itself`` GStreamer finds its elements by itself, and only what
is decoded is told.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from typing import Any

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

DECODERS = {"video_0": "avdec_rv20", "audio_0": "avdec_ac3"}
#: By their order in the file and in its description.
NUMBERS = {"video_0": 0, "audio_0": 1}
SILENCE_S = 2.0
#: The longest that anything is waited for.
PATIENCE_S = 40.0


class Judge:
    """A pipeline with one of the streams at its end."""

    def __init__(self, source: str, stream: str, heard: str) -> None:
        self.coded: list[str] = []
        self.decoded: list[str] = []
        self.packets: list[tuple[int, int]] = []
        self.wrong: str | None = None
        self.loop = GLib.MainLoop()
        self._own = NUMBERS[stream] if heard == "own" else None
        self._began = self._last = time.monotonic()
        self._is_ending = False
        first = f"filesrc location={source}"
        if source.startswith("rtsp:"):
            first = f"rtspsrc name=rtspsrc location={source} protocols=tcp ! rdtdepay name=depay"
        played = f"{first} ! rmdemux name=demux demux.{stream} ! queue name=queue ! {DECODERS[stream]}"
        if heard == "itself":
            played = f"uridecodebin uri={source} ! video/x-raw ! queue name=queue"
        self.pipeline = Gst.parse_launch(f"{played} ! fakesink name=end sync=false signal-handoffs=true")
        self.pipeline.get_by_name("end").connect("handoff", self._is_decoded)
        self._queue = self.pipeline.get_by_name("queue").get_static_pad("sink")
        self._queue.add_probe(Gst.PadProbeType.BUFFER, self._is_coded)
        if heard == "chosen":
            # Streams are asked about in the order of their description.
            chosen = NUMBERS[stream]
            rtspsrc = self.pipeline.get_by_name("rtspsrc")
            rtspsrc.connect("select-stream", lambda _, number, caps: number == chosen)
        depay = self.pipeline.get_by_name("depay")
        if depay is not None:
            depay.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self._is_packet)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message", self._message)

    def run(self) -> None:
        """Plays to the end."""
        GLib.timeout_add(100, self._look)
        self.pipeline.set_state(Gst.State.PLAYING)
        self.loop.run()
        self.pipeline.set_state(Gst.State.NULL)

    def _look(self) -> bool:
        # rdtmanager passes over the packets that say a stream's end, so that over RTSP none is ever heard of.
        now = time.monotonic()
        if now - self._began > PATIENCE_S:
            self.wrong = self.wrong or "it did not end"
            self.loop.quit()
        elif now - self._last > SILENCE_S and (self.coded or self.packets) and not self._is_ending:
            self._is_ending = True
            self._queue.send_event(Gst.Event.new_eos())
        return True

    def _is_packet(self, _: Any, info: Any) -> Any:
        self._last = time.monotonic()
        head = info.get_buffer().extract_dup(0, 3)
        stream = head[0] >> 1 & 0x1F
        self.packets.append((stream, head[1] << 8 | head[2]))
        is_left_out = self._own not in (None, stream)
        return Gst.PadProbeReturn.DROP if is_left_out else Gst.PadProbeReturn.OK

    def _is_coded(self, _: Any, info: Any) -> Any:
        self._last = time.monotonic()
        self.coded.append(digest(info.get_buffer()))
        return Gst.PadProbeReturn.OK

    def _is_decoded(self, _: Any, buffer: Any, __: Any) -> None:
        self.decoded.append(digest(buffer))

    def _message(self, _: Any, message: Any) -> None:
        if message.type == Gst.MessageType.ERROR:
            self.wrong = " ".join(map(str, message.parse_error()))
        if message.type in (Gst.MessageType.ERROR, Gst.MessageType.EOS):
            self.loop.quit()


def digest(buffer: Any) -> str:
    """Of all that a buffer has."""
    return hashlib.sha256(buffer.extract_dup(0, buffer.get_size())).hexdigest()


def main(source: str, stream: str, heard: str) -> int:
    """Prints what came; status 1 and what was wrong if GStreamer failed."""
    Gst.init(None)
    judge = Judge(source, stream, heard)
    judge.run()
    if judge.wrong is not None:
        print(judge.wrong, file=sys.stderr)
        return 1
    print(json.dumps({"coded": judge.coded, "decoded": judge.decoded, "packets": judge.packets}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""An HTTP player on GStreamer's playbin. Runs by the system's python3, which has GStreamer's bindings.

Plays ``http://STREAMGAUGE_SERVER:STREAMGAUGE_PORT/clip.mp4`` into sinks that keep time and drop late
pictures as a video window does, but show nothing. As GStreamer asks of applications, it holds the pipeline
while BUFFERING is below 100 %, at the start and whenever the queue runs low. Takes ``start``, ``pause``,
``resume`` and ``stop`` on stdin; statistics go to ``STREAMGAUGE_EVENTS`` once a second, frames and stalls as
they happen.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402
from gst_player import CANNOT, GstPlayer, ready, run  # noqa: E402
from player_line import STALL_S, url  # noqa: E402

ELEMENTS = ["playbin", "souphttpsrc", "queue2", "qtdemux", "h264parse", "aacparse", "avdec_h264", "avdec_aac"]


class Player(GstPlayer):
    """A playbin, the output of its sinks, and its stalls."""

    def __init__(self) -> None:
        super().__init__(Gst.ElementFactory.make("playbin"))
        self.received = 0
        self.is_held = False
        #: The last BUFFERING was 100 %.
        self.full = False
        self.is_stalled = False
        self.stalls = 0
        self.stalled_at_s = 0.0
        #: Time of the last data, or of the last request.
        self.heard_s = 0.0
        self.source: Any = None
        self.queue: Any = None
        self.pipeline.set_property("uri", url())
        for kind, shown in (("video", self._shown), ("audio", None)):
            sink = Gst.ElementFactory.make("fakesink", kind)
            self.add_sink(kind, sink, shown)
            self.pipeline.set_property(f"{kind}-sink", sink)
        self.pipeline.connect("source-setup", self._source)
        self.pipeline.connect("deep-element-added", self._added)

    def play(self) -> None:
        """Arriving data is decoded up to the first frame, and shown once enough is buffered."""
        self.heard_s = self.requested_s
        self.pipeline.set_state(Gst.State.PAUSED)

    def pause(self) -> None:
        """The server gets no message: TCP's window holds it once the queues are full."""
        self.is_held = True
        super().pause()

    def resume(self) -> None:
        self.say("resumed")
        self.is_held = False
        # Full queues ask for nothing.
        self.heard_s = time.monotonic()
        if self.full:
            self.pipeline.set_state(Gst.State.PLAYING)

    def stop(self) -> None:
        self._say_stall(time.monotonic(), is_end=True)
        super().stop()

    def _source(self, _playbin: Any, source: Any) -> None:
        def count(_pad: Any, info: Any) -> Any:
            self.received += info.get_buffer().get_size()
            self.heard_s = time.monotonic()
            return Gst.PadProbeReturn.OK

        self.source = source
        source.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, count)

    def _added(self, _bin: Any, _inner: Any, element: Any) -> None:
        factory = element.get_factory()
        if factory is not None and factory.get_name() == "queue2":
            self.queue = element

    def _shown(self, _sink: Any, _buffer: Any, _pad: Any) -> None:
        if self.shown == 0:
            self.say("playout_start", time.monotonic() - self.requested_s, "s", "to the first frame")
        self.say("frame_shown", self.shown, "1")
        self.shown += 1

    def sample(self) -> None:
        self.say("stall_count", self.stalls, "1")
        if self.queue is not None:
            self.say("buffer_bytes", self.queue.get_property("current-level-bytes"), "B", "queue2: coded")
        self.say("total_bytes_received", self.received, "B", "out of souphttpsrc: bodies of responses")

    def message(self, message: Any) -> None:
        if message.type == Gst.MessageType.EOS:
            self.end("media_end", "end of stream")
        elif message.type == Gst.MessageType.BUFFERING:
            self._buffering(message.parse_buffering())

    def _buffering(self, percent: int) -> None:
        """Held below 100 %, as GstMessage's documentation of BUFFERING has applications do."""
        now_s = time.monotonic()
        self.full = percent == 100
        if percent < 100 and self.shown and not self.is_stalled:
            self.is_stalled, self.stalled_at_s = True, now_s
            self.pipeline.set_state(Gst.State.PAUSED)
        elif self.full:
            self._say_stall(now_s)
            self.is_stalled = False
            if not self.is_held:
                self.pipeline.set_state(Gst.State.PLAYING)

    def _say_stall(self, until_s: float, *, is_end: bool = False) -> None:
        """BUFFERING also falls below 100 % for a millisecond or two now and then: such stalls are
        invisible."""
        lasted_s = until_s - self.stalled_at_s
        if self.is_stalled and lasted_s > STALL_S:
            self.stalls += 1
            self.say("stall", reason="BUFFERING below 100 %", at_s=self.stalled_at_s)
            if not is_end:
                self.say("resume", lasted_s, "s", "BUFFERING 100 %: how long it stalled", at_s=until_s)

    def _is_silent(self) -> bool:
        """Nothing has arrived for as long as souphttpsrc waits, 15 s. An earlier failure without a stall, a
        refusal or an unplayable file, is no lack of media."""
        if self.source is None:
            return False
        return bool(time.monotonic() - self.heard_s >= self.source.get_property("timeout"))

    def erred(self, why: str) -> None:
        """An error while it waits for media is how the link looks to its viewer (souphttpsrc gives up after
        15 s without data and failed retries), and no fault of the trial: it shows nothing at all, or stalls
        to the end. Silence is no sign later, or while it is held: all data may have arrived, and full queues
        request nothing."""
        has_nothing = not self.shown and not self.is_held
        if self.is_stalled or (has_nothing and self._is_silent()):
            self._say_stall(time.monotonic(), is_end=True)
            self.end("given_up", why)
        else:
            self.fail(why)


def main() -> int:
    status: int = run(Player()) if ready(ELEMENTS) else CANNOT
    return status


if __name__ == "__main__":
    sys.exit(main())

"""A DASH player on GStreamer's playbin3 and dashdemux2. Runs by the system's python3, which has GStreamer's
bindings.

Plays into sinks that keep time and drop late pictures as a video window does, but show nothing. dashdemux2's
BUFFERING is 100 % at 30 s of media, longer than any viewer waits: this player begins with two seconds, and
gathers as much again after a stall. Accepts ``start``, ``pause``, ``resume`` and ``stop`` on stdin; its
settings are in the file that is its one argument.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402
from gst_player import CANNOT, GstPlayer, ready, run  # noqa: E402
from player_line import STALL_S  # noqa: E402

ELEMENTS = ["playbin3", "dashdemux2", "qtdemux", "h264parse", "aacparse", "avdec_h264", "avdec_aac"]
GATHERED_S = 2.0
"""Media that it holds when it begins to play, and resumes after a stall; as playbin of a file over HTTP."""
LOOK_MS = 50


class DashPlayer(GstPlayer):
    """A playbin3; dashdemux2 chooses its levels."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(Gst.ElementFactory.make("playbin3"))
        self.settings = settings
        self.demuxer: Any = None
        self.estimate = 0
        self.is_held = False
        #: It is waiting for media, at the start or in a stall.
        self.is_gathering = True
        self.shown_at_s = 0.0
        self.stalls = 0
        #: Stalls that have ended.
        self.resumes = 0
        self.pipeline.set_property("uri", settings["url"]["dash"])
        for kind, shown in (("video", self._shown), ("audio", None)):
            sink = Gst.ElementFactory.make("fakesink", kind)
            self.add_sink(kind, sink, shown)
            self.pipeline.set_property(f"{kind}-sink", sink)
        self.pipeline.connect("deep-element-added", self._added)

    def play(self) -> None:
        self.say("stall_count", 0, "1")
        self.pipeline.set_state(Gst.State.PAUSED)
        GLib.timeout_add(LOOK_MS, self._look)

    def pause(self) -> None:
        """The server gets no message: requests end once the queue is full."""
        self.is_held = True
        super().pause()

    def resume(self) -> None:
        self.say("resumed")
        self.is_held = False
        self.shown_at_s = time.monotonic()
        if not self.is_gathering:
            self.pipeline.set_state(Gst.State.PLAYING)

    def _added(self, _bin: Any, _inner: Any, element: Any) -> None:
        factory = element.get_factory()
        if factory is None or factory.get_name() != "dashdemux2":
            return
        self.demuxer = element
        told = self.settings
        if told["safety_factor"] is not None:
            element.set_property("bandwidth-target-ratio", told["safety_factor"])
        if told["initial_bps"] is not None:
            element.set_property("start-bitrate", told["initial_bps"])
        if told["buffer_s"] is not None:
            element.set_property("max-buffering-time", round(told["buffer_s"] * 1e9))

    def _held_s(self) -> float:
        """Media in the demuxer's queue of pictures."""
        if self.demuxer is None:
            return 0.0
        return float(self.demuxer.get_property("current-level-time-video") / 1e9)

    def _look(self) -> bool:
        """Returns whether play is to go on, or to wait."""
        now_s = time.monotonic()
        if self.is_held:
            return True
        # It gathers no more than it may hold.
        enough_s = min(GATHERED_S, 0.9 * (self.settings["buffer_s"] or GATHERED_S))
        if self.is_gathering and (self._held_s() >= enough_s):
            self.is_gathering = False
            # A stall lasts until a picture is shown.
            self.pipeline.set_state(Gst.State.PLAYING)
        elif not self.is_gathering and self.shown and self._is_dry(now_s):
            self.is_gathering = True
            self.stalls += 1
            self.say("stall", reason="no picture was there when it was due", at_s=self.shown_at_s)
            self.pipeline.set_state(Gst.State.PAUSED)
        return True

    def _is_dry(self, now_s: float) -> bool:
        _, state, _ = self.pipeline.get_state(0)
        still = now_s - self.shown_at_s > STALL_S
        return bool(state == Gst.State.PLAYING and still and self._held_s() < STALL_S)

    def _shown(self, _sink: Any, _buffer: Any, _pad: Any) -> None:
        now_s = time.monotonic()
        if self.shown == 0:
            self.say("playout_start", now_s - self.requested_s, "s", "to the first picture", at_s=now_s)
        elif now_s - self.shown_at_s > STALL_S and self.stalls > self.resumes:
            self.resumes = self.stalls
            self.say("resume", now_s - self.shown_at_s, "s", "a picture is shown: how long it stalled")
        self.shown_at_s = now_s
        self.say("frame_shown", self.shown, "1")
        self.shown += 1

    def sample(self) -> None:
        self.say("stall_count", self.stalls, "1")
        if self.demuxer is None:
            return
        self.say("buffer", self._held_s(), "s", "dashdemux2's queue of pictures; decoders hold little more")
        estimate = self.demuxer.get_property("current-bandwidth")
        if estimate and estimate != self.estimate:
            self.estimate = estimate
            self.say("estimate", estimate, "bit/s", "dashdemux2: current-bandwidth")

    def message(self, message: Any) -> None:
        if message.type == Gst.MessageType.EOS:
            self.end("media_end", "end of stream")
        elif message.type == Gst.MessageType.BUFFERING:
            percent = message.parse_buffering()
            self.say("buffering", percent, "%", "dashdemux2's message: of what it holds at most")

    def erred(self, why: str) -> None:
        """An error while it waits for media is how the link looks to its viewer (dashdemux2 gives up after
        three tries), and no fault of the trial: it shows nothing at all, or stalls to the end."""
        if self.is_gathering:
            self.end("given_up", why)
        else:
            self.fail(why)


def main() -> int:
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    status: int = run(DashPlayer(settings)) if ready(ELEMENTS) else CANNOT
    return status


if __name__ == "__main__":
    sys.exit(main())

"""Common part of our players on GStreamer: a pipeline under commands, its sinks, its end.

Copied beside the script that uses it. Runs by the system's python3, which has GStreamer's bindings.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402
from player_line import Events, commands  # noqa: E402

#: Exit status where GStreamer lacks an element: a shell's for a program that is not there.
CANNOT = 127
# GstVideoSink's own default; GstBaseSink would never drop.
MAX_LATENESS_NS = 5_000_000


class GstPlayer:
    """A pipeline and the sinks at its ends.

    It accepts start, pause, resume and stop, and reports its counters once a second and at its end.
    """

    def __init__(self, pipeline: Any) -> None:
        self.say = Events().say
        self.loop = GLib.MainLoop()
        self.status = 0
        self.requested_s = 0.0
        self.shown = 0
        #: Sinks by the media that they show, or by its encoding.
        self.sinks: dict[str, Any] = {}
        self.pipeline = pipeline
        bus = pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message", self._message)

    def start(self) -> bool:
        """Asks for the clip. Returns False, so that a timer calls it once."""
        self.say("play_requested")
        self.requested_s = time.monotonic()
        self.play()
        GLib.timeout_add(1000, self._sample)
        return False

    def play(self) -> None:
        """Sets the pipeline going."""
        raise NotImplementedError

    def pause(self) -> None:
        """Holds it."""
        self.say("paused")
        self.pipeline.set_state(Gst.State.PAUSED)

    def resume(self) -> None:
        """Lets it go on."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends it before the media does."""
        self.end("stopped")

    def sample(self) -> None:
        """Reports counters besides those of the sinks."""
        raise NotImplementedError

    def message(self, message: Any) -> None:
        """One from the bus, which is no error."""
        raise NotImplementedError

    def end(self, name: str, reason: str = "") -> None:
        """With its last statistics, and an event of that name."""
        self._sample()
        self.say(name, reason=reason)
        self.loop.quit()

    def fail(self, why: str) -> None:
        """An error that is the trial's."""
        print(why, file=sys.stderr, flush=True)
        self.say("error", reason=why)
        self.status = 1
        self.loop.quit()

    def erred(self, why: str) -> None:
        """Handles an error of GStreamer: one of the trial, unless a player overrides this."""
        self.fail(why)

    def add_sink(self, which: str, sink: Any, shown: Callable[..., None] | None = None) -> None:
        """A fakesink that keeps time. One of pictures, which calls `shown` with each, drops late ones as a
        video window does."""
        sink.set_property("sync", True)
        self.sinks[which] = sink
        if shown is not None:
            drop_late(sink)
            sink.set_property("signal-handoffs", True)
            sink.connect("handoff", shown)

    def _sample(self) -> bool:
        for which, sink in self.sinks.items():
            stats = sink.get_property("stats")
            if stats.get_value("rendered") or stats.get_value("dropped"):
                self.say("frames_rendered", stats.get_value("rendered"), "1", which)
                self.say("frames_dropped", stats.get_value("dropped"), "1", f"{which}: late at the sink")
        self.sample()
        found, position = self.pipeline.query_position(Gst.Format.TIME)
        if found:
            self.say("position", position / 1e9, "s", "media time shown")
        return True

    def _message(self, _bus: Any, message: Any) -> None:
        if message.type == Gst.MessageType.ERROR:
            error, detail = message.parse_error()
            lines = (detail or "").splitlines()
            self.erred(f"{error.message} ({lines[-1]})" if lines else error.message)
        else:
            self.message(message)


def ready(elements: Iterable[str]) -> bool:
    """Initialises GStreamer and loads those elements' plugins, which takes hundreds of milliseconds the first
    time; False, and a word on stderr, if it lacks some."""
    Gst.init(None)
    lacking = [name for name in elements if Gst.ElementFactory.make(name) is None]
    if lacking:
        said = f"GStreamer has no element {', '.join(lacking)}; `streamgauge doctor` says where it is from"
        print(said, file=sys.stderr)
    return not lacking


def drop_late(sink: Any) -> None:
    """Makes a sink drop frames that arrive too late to be shown."""
    sink.set_property("qos", True)
    sink.set_property("max-lateness", MAX_LATENESS_NS)


def run(player: GstPlayer) -> int:
    """Executes commands from stdin until the player has ended; returns its exit status."""

    def told(channel: Any, _condition: Any) -> bool:
        said = os.read(channel, 4096)
        if not said:
            player.stop()
        for words in commands(said):
            if words["cmd"] == "start":
                # The start itself follows later: at t0 plus the flow's own start.
                wait_ns = max(0, words["start_monotonic_ns"] - time.monotonic_ns())
                GLib.timeout_add(wait_ns // 1_000_000, player.start)
            else:
                {"pause": player.pause, "resume": player.resume, "stop": player.stop}[words["cmd"]]()
        return bool(said)

    for number in (signal.SIGINT, signal.SIGTERM):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, player.stop)
    GLib.unix_fd_add_full(GLib.PRIORITY_DEFAULT, 0, GLib.IOCondition.IN | GLib.IOCondition.HUP, told)
    Path(os.environ["STREAMGAUGE_READY"]).touch()
    player.loop.run()
    player.pipeline.set_state(Gst.State.NULL)
    return player.status

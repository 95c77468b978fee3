"""mpv without a window or a loudspeaker, on DASH. Runs by the system's python3.

mpv does not adapt: it plays the level of its settings, the highest or the lowest. Its IPC's reports on its
cache and its stalls are written to ``STREAMGAUGE_EVENTS``; SIGINT ends it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from player_line import STALL_S, Events, levels

COMMAND = ["mpv", "--no-config", "--vo=null", "--ao=null", "--no-terminal", "--idle=no", "--tls-verify=no"]
BITRATE = {"default": "max", "highest": "max", "lowest": "min"}
# mpv's property, and the event at each of its changes.
PROPERTIES = {
    "demuxer-cache-duration": ("buffer", "s", "demuxer-cache-duration"),
    "frame-drop-count": ("frames_dropped", "1", "frame-drop-count: at the output"),
    "decoder-frame-drop-count": ("frames_dropped_decoder", "1", "decoder-frame-drop-count"),
    "cache-speed": ("cache_speed", "B", "cache-speed: bytes a second that it read"),
}
WATCHED = ("paused-for-cache", "core-idle", "time-pos")
OPEN_S = 5.0


class Watch:
    """State from mpv's events, with the time of their arrival (CLOCK_MONOTONIC, s)."""

    def __init__(self, say: Events, requested_s: float) -> None:
        self.say = say.say
        self.requested_s = requested_s
        self.has_begun = False
        self.stalled_at_s: float | None = None
        self.stalls = 0
        self.sampled_at_s = 0.0
        self.why_ended = ""
        self.error = ""

    def line(self, line: bytes, now_s: float) -> None:
        """One of the IPC's lines; one that is no JSON is passed over."""
        with suppress(ValueError):
            self.event(json.loads(line), now_s)

    def event(self, told: dict[str, Any], now_s: float) -> None:
        kind, name, value = told.get("event"), told.get("name"), told.get("data")
        if kind == "end-file":
            self.why_ended, self.error = told.get("reason", ""), told.get("file_error", "")
        elif kind == "playback-restart" and not self.has_begun:
            self.has_begun = True
            self.say("playout_start", now_s - self.requested_s, "s", "to the first picture", at_s=now_s)
            self.say("stall_count", 0, "1", at_s=now_s)
        elif kind == "property-change" and name == "paused-for-cache" and isinstance(value, bool):
            self._held(value, now_s)
        elif kind == "property-change" and name == "time-pos" and value is not None:
            if now_s - self.sampled_at_s >= 1:
                self.sampled_at_s = now_s
                self.say("position", value, "s", "time-pos: media time shown", at_s=now_s)
        elif kind == "property-change" and name in PROPERTIES and value is not None:
            said, unit, reason = PROPERTIES[name]
            self.say(said, value, unit, reason, at_s=now_s)

    def _held(self, is_held: bool, now_s: float) -> None:
        """mpv holds play while its cache is empty, and until that has a second again."""
        if not self.has_begun:
            return
        if is_held:
            self.stalled_at_s = self.stalled_at_s or now_s
        elif self.stalled_at_s is not None:
            lasted_s = now_s - self.stalled_at_s
            if lasted_s > STALL_S:
                self.stalls += 1
                self.say("stall", reason="paused-for-cache", at_s=self.stalled_at_s)
                self.say("resume", lasted_s, "s", "length of the stall", at_s=now_s)
                self.say("stall_count", self.stalls, "1", at_s=now_s)
            self.stalled_at_s = None

    def over(self, now_s: float) -> None:
        """At its end an open stall is reported."""
        if self.stalled_at_s is not None and now_s - self.stalled_at_s > STALL_S:
            self.say("stall", reason="paused-for-cache, to the end", at_s=self.stalled_at_s)


def connect(path: str, player: subprocess.Popen[bytes]) -> socket.socket | None:
    """To its IPC, once that is there; None if it is not."""
    until = time.monotonic() + OPEN_S
    while time.monotonic() < until and player.poll() is None:
        wire = socket.socket(socket.AF_UNIX)
        try:
            wire.connect(path)
        except OSError:
            wire.close()
            time.sleep(0.01)
        else:
            return wire
    return None


def main() -> int:
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: asked.append(number))
    path = str(Path(os.environ["STREAMGAUGE_SHARED"]) / "mpv")
    command = [*COMMAND, f"--input-ipc-server={path}", f"--hls-bitrate={BITRATE[settings['rule']]}"]
    if settings["buffer_s"] is not None:
        command += ["--cache=yes", f"--cache-secs={settings['buffer_s']}"]
    events = Events()
    events.say("play_requested")
    rates = [one["bit_rate_bps"] for one in levels()]
    rate = rates[0] if settings["rule"] == "lowest" else rates[-1]
    events.say("level_changed", rate, "bit/s", "the level that its settings ask for")
    watch = Watch(events, time.monotonic())
    player = subprocess.Popen([*command, settings["url"]["dash"]], stdin=subprocess.DEVNULL)
    wire = connect(path, player)
    if wire is not None:
        for number, name in enumerate((*PROPERTIES, *WATCHED), 1):
            wire.sendall(json.dumps({"command": ["observe_property", number, name]}).encode() + b"\n")
        rest = b""
        # SIGINT reaches its whole group: it ends mpv, and thereby this loop.
        while said := wire.recv(65_536):
            *lines, rest = (rest + said).split(b"\n")
            for line in lines:
                watch.line(line, time.monotonic())
    status = player.wait()
    watch.over(time.monotonic())
    if asked:
        events.say("stopped")
        return 0
    if status == 0 and watch.why_ended == "eof" and watch.has_begun:
        events.say("media_end", reason="mpv ended by itself")
        return 0
    why = f"mpv ended with status {status} ({watch.error or watch.why_ended or 'it said nothing'})"
    print(why, file=sys.stderr, flush=True)
    events.say("error", reason=why)
    return 1


if __name__ == "__main__":
    sys.exit(main())

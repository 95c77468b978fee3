"""VLC without a window or a loudspeaker, on DASH. Runs by the system's python3.

Polls VLC's own counters by its HTTP interface on loopback, ten times a second: a stall is a playing time that
does not advance for longer than 0.1 s. SIGINT ends it; its reports are written to ``STREAMGAUGE_EVENTS``.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from player_line import STALL_S, Events

COMMAND = ["vlc", "-I", "dummy", "--no-metadata-network-access", "--vout", "vdummy", "--aout", "adummy"]
COMMAND += ["--extraintf", "http", "--http-host", "127.0.0.1", "--play-and-exit", "--no-video-title-show"]
PASSWORD = "streamgauge"
PERIOD_S = 0.1
SAMPLE_S = 0.5
# Keys of its status, with the names of their events.
COUNTERS = {
    "displayedpictures": ("frames_rendered", "1", "displayedpictures"),
    "lostpictures": ("frames_dropped", "1", "lostpictures: too late"),
    "demuxreadbytes": ("bytes_demuxed", "B", "demuxreadbytes"),
}


class Watch:
    """State from VLC's status, with the time of the request (CLOCK_MONOTONIC, s)."""

    def __init__(self, say: Events, requested_s: float) -> None:
        self.say = say.say
        self.requested_s = requested_s
        self.has_begun = False
        self.shown = 0
        self.shown_at_s = 0.0
        self.is_stalled = False
        #: When it began, and when a picture was seen again, s; None as long as none was.
        self.stalled_at_s = 0.0
        self.seen_at_s: float | None = None
        self.stalls = 0
        self.sampled_at_s = 0.0

    def status(self, told: dict[str, Any], now_s: float) -> None:
        stats = told.get("stats") or {}
        shown = int(stats.get("displayedpictures", 0))
        if shown and not self.has_begun:
            self.has_begun = True
            self.shown, self.shown_at_s = shown, now_s
            reason = f"to the first picture, to {PERIOD_S:g} s"
            self.say("playout_start", now_s - self.requested_s, "s", reason, at_s=now_s)
            self.say("stall_count", 0, "1", at_s=now_s)
        if not self.has_begun:
            return
        if shown != self.shown:
            self._goes_on(now_s)
            self.shown, self.shown_at_s = shown, now_s
        # Between two looks that saw another picture up to a period may lie that was no stall.
        elif now_s - self.shown_at_s > STALL_S + 2 * PERIOD_S:
            self.seen_at_s = None
            if not self.is_stalled:
                self.is_stalled, self.stalled_at_s = True, self.shown_at_s
                self.stalls += 1
                self.say("stall", reason="no picture is displayed", at_s=self.stalled_at_s)
        if now_s - self.sampled_at_s >= SAMPLE_S:
            self.sampled_at_s = now_s
            for key, (name, unit, reason) in COUNTERS.items():
                if key in stats:
                    self.say(name, stats[key], unit, reason, at_s=now_s)
            self.say("stall_count", self.stalls, "1", at_s=now_s)
            position_s = told.get("position", 0.0) * told.get("length", 0)
            self.say("position", position_s, "s", "media time shown", at_s=now_s)

    def _goes_on(self, now_s: float) -> None:
        """A stall is over when pictures follow each other: VLC shows one now and then while it waits."""
        if self.is_stalled and self.seen_at_s is not None:
            lasted_s = self.seen_at_s - self.stalled_at_s
            self.say("resume", lasted_s, "s", "pictures are displayed again", at_s=self.seen_at_s)
            self.is_stalled, self.seen_at_s = False, None
        elif self.is_stalled:
            self.seen_at_s = now_s


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: asked.append(number))
    port, scratch = free_port(), os.environ["STREAMGAUGE_SHARED"]
    command = [*COMMAND, "--http-port", str(port), "--http-password", PASSWORD]
    if settings["rule"] != "default":
        command += ["--adaptive-logic", settings["rule"]]
    if settings["buffer_s"] is not None:
        command += ["--adaptive-maxbuffer", str(round(settings["buffer_s"] * 1000))]
    events = Events()
    events.say("play_requested")
    watch = Watch(events, time.monotonic())
    log = Path("vlc.log").open("wb")  # noqa: SIM115
    player = subprocess.Popen(
        [*command, settings["url"]["dash"]],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={**os.environ, "HOME": scratch, "XDG_CONFIG_HOME": scratch, "XDG_CACHE_HOME": scratch},
    )
    head = {"Authorization": "Basic " + base64.b64encode(f":{PASSWORD}".encode()).decode()}
    wire: http.client.HTTPConnection | None = None
    while player.poll() is None and not asked:
        began_s = time.monotonic()
        try:
            wire = wire or http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            wire.request("GET", "/requests/status.json", headers=head)
            watch.status(json.loads(wire.getresponse().read()), time.monotonic())
        except (OSError, ValueError, http.client.HTTPException):
            wire = None
        time.sleep(max(0.0, began_s + PERIOD_S - time.monotonic()))
    if asked:
        player.kill()
        player.wait()
        events.say("stopped")
        return 0
    status = player.wait()
    if status == 0 and watch.has_begun:
        events.say("media_end", reason="VLC ended by itself")
        return 0
    why = f"VLC ended with status {status}" + ("" if watch.has_begun else ", and showed nothing")
    print(why, file=sys.stderr, flush=True)
    events.say("error", reason=why)
    return 1


if __name__ == "__main__":
    sys.exit(main())

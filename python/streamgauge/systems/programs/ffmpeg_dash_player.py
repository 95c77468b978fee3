"""ffmpeg reading DASH at the pace of play, and showing nothing. Runs by the system's python3.

It is no player: it does not adapt, after a wait it reads as fast as it can until it has caught up, and it
does not report its buffer. Its decoded frames, each second, are written to ``STREAMGAUGE_EVENTS``.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from player_line import Events, levels

COMMAND = ["ffmpeg", "-nostdin", "-loglevel", "error", "-stats_period", "0.5", "-progress", "pipe:1", "-re"]
# Keys of ffmpeg's progress, with the names of their events.
KEYS = {
    "frame": ("frames_decoded", "1"),
    "drop_frames": ("frames_dropped", "1"),
    "dup_frames": ("frames_duplicated", "1"),
}


class Watch:
    """State from ffmpeg's lines, with the time of their arrival (CLOCK_MONOTONIC, s)."""

    def __init__(self, say: Events, requested_s: float) -> None:
        self.say = say.say
        self.requested_s = requested_s
        self.has_begun = False
        self.has_ended = False

    def line(self, line: str, now_s: float) -> None:
        """A key and its value; others are passed over."""
        key, _, value = line.strip().partition("=")
        if key in KEYS and value.isdecimal():
            name, unit = KEYS[key]
            if name == "frames_decoded" and int(value) and not self.has_begun:
                self.has_begun = True
                reason = "to the first decoded picture, to half a second"
                self.say("playout_start", now_s - self.requested_s, "s", reason, at_s=now_s)
            self.say(name, int(value), unit, f"ffmpeg: {key}", at_s=now_s)
        elif key == "out_time_us" and value.lstrip("-").isdecimal():
            self.say("position", int(value) / 1e6, "s", "media time decoded", at_s=now_s)
        elif key == "progress":
            self.has_ended = value == "end"


def main() -> int:
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rates = [one["bit_rate_bps"] for one in levels()]
    level = 0 if settings["rule"] == "lowest" else len(rates) - 1
    events = Events()
    events.say("play_requested")
    events.say("level_changed", rates[level], "bit/s", "the level that its settings ask for")
    watch = Watch(events, time.monotonic())
    tls = ["-tls_verify", "0"] if settings["url"]["dash"].startswith("https:") else []
    maps = ["-map", f"0:v:{level}", "-map", "0:a?"]
    command = [*COMMAND, *tls, "-i", settings["url"]["dash"], *maps, "-f", "null", "-"]
    player = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
    )
    asked: list[int] = []

    def end(number: int, _frame: object) -> None:
        # By itself it ends only when its server answers.
        asked.append(number)
        player.kill()

    signal.signal(signal.SIGINT, end)
    assert player.stdout is not None
    for line in player.stdout:
        watch.line(line, time.monotonic())
    status = player.wait()
    if asked:
        events.say("stopped")
        return 0
    if status == 0 and watch.has_ended:
        events.say("media_end", reason="ffmpeg ended by itself")
        return 0
    why = f"ffmpeg ended with status {status}"
    print(why, file=sys.stderr, flush=True)
    events.say("error", reason=why)
    return 1


if __name__ == "__main__":
    sys.exit(main())

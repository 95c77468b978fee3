"""FFmpeg's player, ffplay, without a window or a loudspeaker. Runs by the system's python3.

Plays ``http://STREAMGAUGE_SERVER:STREAMGAUGE_PORT/clip.mp4`` and reads the status line that ffplay writes
some thirty times a second. Its clock runs on during a stall, and is set back at the next picture: the step
back is the length of the stall. SIGINT ends it; statistics go to ``STREAMGAUGE_EVENTS`` once a second, stalls
as they end.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

from player_line import STALL_S, Events, url

# Pictures are its clock: that of sound alone, or none, would drop pictures after a stall to catch up.
COMMAND = ["ffplay", "-hide_banner", "-loglevel", "level+info", "-stats", "-autoexit", "-sync", "video"]
WITHOUT = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "AV_LOG_FORCE_NOCOLOR": "1"}
# It decodes three pictures ahead (VIDEO_PICTURE_QUEUE_SIZE), at our clips' 25/s.
DECODED_S = 0.12
# How near the file's length the last picture's time is.
END_S = 1.0

STATUS = re.compile(
    rb"(?:\[info\])?\s*(?P<clock>\S+) (?:A-V|M-V|M-A): *\S+ fd= *(?P<dropped>\d+) "
    rb"aq= *(?P<audio>\d+)KB vq= *(?P<video>\d+)KB"
)
WHOSE = re.compile(r"^(\[[^]]*\] *)+")
DURATION = re.compile(rb"Duration: (\d+):(\d+):([\d.]+)")


class Watch:
    """State from ffplay's lines, with the time of their arrival (CLOCK_MONOTONIC, s)."""

    def __init__(self, say: Events, requested_s: float) -> None:
        self.say = say.say
        self.requested_s = requested_s
        #: Length of the file, s; None until it is known.
        self.length_s: float | None = None
        #: Media time at the last status line, s; None before the first picture.
        self.position_s: float | None = None
        #: By how much the clock of the media was behind ours at the last status line, s.
        self.behind_s = 0.0
        #: Since when nothing coded waits; None while something does.
        self.dry_at_s: float | None = None
        self.sampled_at_s = requested_s
        self.stalls = 0
        self.last_error = ""

    def line(self, line: bytes, now_s: float) -> None:
        found = STATUS.match(line)
        if found is not None:
            self._status(found, now_s)
        elif (told := DURATION.search(line)) is not None:
            hours, minutes, seconds = (float(part) for part in told.groups())
            self.length_s = hours * 3600 + minutes * 60 + seconds
        elif b"[error]" in line or b"[fatal]" in line:
            self.last_error = WHOSE.sub("", line.decode(errors="replace")).strip()

    def _status(self, found: re.Match[bytes], now_s: float) -> None:
        clock_s = float(found["clock"])
        if clock_s != clock_s:  # "nan" before the first picture
            return
        behind_s = now_s - clock_s
        if self.position_s is None:
            self.say("playout_start", now_s - self.requested_s, "s", "to the first picture", at_s=now_s)
            self.behind_s = behind_s
        stood_s = behind_s - self.behind_s
        if stood_s > STALL_S:
            self.stalls += 1
            self.say("stall", reason="no picture was there when it was due", at_s=now_s - stood_s)
            self.say("resume", stood_s, "s", "its clock was set back by that much", at_s=now_s)
        # The last line's, not the least: delays too short to be seen do not add up to one that is.
        self.behind_s = behind_s
        self.position_s = clock_s
        waiting = 1000 * (int(found["audio"]) + int(found["video"]))
        self.dry_at_s = None if int(found["video"]) else self.dry_at_s or now_s
        if now_s - self.sampled_at_s >= 1:
            self.sampled_at_s = now_s
            self.say("position", clock_s, "s", "ffplay's clock: runs on in a stall", at_s=now_s)
            self.say("stall_count", self.stalls, "1", at_s=now_s)
            self.say("frames_dropped", int(found["dropped"]), "1", "late, by ffplay", at_s=now_s)
            self.say("buffer_bytes", waiting, "B", "ffplay's queues: coded, to 1 kB", at_s=now_s)

    def over(self, now_s: float) -> None:
        """At its end an open stall is reported, from the moment at which all decoded frames had been
        shown."""
        if self.dry_at_s is not None and now_s - self.dry_at_s > DECODED_S + STALL_S:
            self.say("stall", reason="nothing to show, to the end", at_s=self.dry_at_s + DECODED_S)

    def why_not_whole(self, status: int) -> str:
        """Returns why it ended before the media did; empty if it did not. ffplay's own status is 0 either
        way."""
        said = f" ({self.last_error})" if self.last_error else ""
        if self.position_s is None:
            return f"ffplay showed nothing{said}"
        if self.length_s is not None and self.position_s < self.length_s - END_S:
            return f"ffplay ended at {self.position_s:.1f} s of {self.length_s:.1f} s{said}"
        return f"ffplay ended with status {status}{said}" if status else ""


def main() -> int:
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: asked.append(number))
    events = Events()
    events.say("play_requested")
    watch = Watch(events, time.monotonic())
    player = subprocess.Popen(
        [*COMMAND, url()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **WITHOUT}
    )
    assert player.stderr is not None
    rest = b""
    # SIGINT reaches its whole group: it ends ffplay, and thereby this loop.
    while said := os.read(player.stderr.fileno(), 65_536):
        *whole, rest = re.split(rb"[\r\n]", rest + said)
        for line in whole:
            watch.line(line, time.monotonic())
            if not STATUS.match(line):
                print(line.decode(errors="replace"), file=sys.stderr, flush=True)
    status = player.wait()
    if asked:
        watch.over(time.monotonic())
        events.say("stopped")
        return 0
    why = watch.why_not_whole(status)
    if why:
        print(why, file=sys.stderr, flush=True)
        events.say("error", reason=why)
        return 1
    events.say("media_end", reason="ffplay ended by itself")
    return 0


if __name__ == "__main__":
    sys.exit(main())

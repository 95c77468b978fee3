"""Sends the clip as MPEG-TS by a program for contribution. Runs by the system's python3.

``settings.json``, the argument, has the sending program's command (`command`), the text on its output that
reports its receiver (`connected`), the address on this machine where it takes the stream (`input`), and how
long it repeats packets after the last one (`hold_s`). FFmpeg reads ``STREAMGAUGE_MEDIA`` at its own pace from
the time at which a receiver is there. Such programs do not end with their input: this one ends them.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from player_line import Events

END_S = 1.5
"""Time within which a program ends after SIGINT; then it is killed."""
# Stamps are the clip's own, and a picture leaves as soon as it is there.
MUX = ["-c", "copy", "-copyts", "-muxdelay", "0", "-muxpreload", "0", "-flush_packets", "1", "-f", "mpegts"]


def ffmpeg(media: str, to: str) -> list[str]:
    """Returns the command that sends a clip at the pace of its pictures to a UDP address."""
    read = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-re", "-i", media]
    return [*read, *MUX, f"{to}?pkt_size=1316"]


class Sender:
    """The two programs, and how far they are."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.say = Events().say
        self.began_s = time.monotonic()
        self.asked = False
        self.connected = False
        self.last = ""
        # Line by line, so that the connection is noticed at once.
        self.program = subprocess.Popen(
            ["stdbuf", "-oL", "-eL", *settings["command"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.source: subprocess.Popen[bytes] | None = None
        self.ends_s: float | None = None

    def line(self, line: str) -> None:
        """One of the program's output, which is kept in the log."""
        print(line, flush=True)
        if line.strip():
            self.last = line.strip()
        if not self.connected and self.settings["connected"] in line:
            self.connected = True
            self.say("connected", time.monotonic() - self.began_s, "s", "a receiver is there")
            self.source = subprocess.Popen(
                ffmpeg(os.environ["STREAMGAUGE_MEDIA"], self.settings["input"]),
                stdin=subprocess.DEVNULL,
            )

    def look(self) -> int | None:
        """Returns the exit status once all is over."""
        now = time.monotonic()
        if self.asked:
            return self._end(0)
        if self.source is not None and self.ends_s is None and (status := self.source.poll()) is not None:
            if status:
                return self._fail(f"ffmpeg ended with status {status}")
            self.say("media_sent")
            self.ends_s = now + self.settings["hold_s"]
        if self.ends_s is not None and now >= self.ends_s:
            return self._end(0)
        if self.program.poll() is not None:
            name = Path(self.settings["command"][0]).name
            why = f"{name} ended with status {self.program.returncode}"
            # A receiver that leaves takes the connection along.
            if self.connected and self.program.returncode == 0:
                self.say("connection_closed", reason=why)
                return self._end(0)
            return self._fail(f"{why}: {self.last}" if self.last else why)
        return None

    def _fail(self, why: str) -> int:
        self.say("error", reason=why)
        self._end(1)
        print(why, file=sys.stderr, flush=True)
        return 1

    def _end(self, status: int) -> int:
        if not self.connected:
            self.say("connection_failed", reason="no receiver connected")
        for one in (self.source, self.program):
            if one is not None:
                end(one)
        return status


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program, as a person at a terminal does."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> int:
    sender = Sender(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))

    def asked(_number: int, _frame: object) -> None:
        sender.asked = True

    signal.signal(signal.SIGINT, asked)
    signal.signal(signal.SIGTERM, asked)
    assert sender.program.stdout is not None
    output = sender.program.stdout.fileno()
    selector = selectors.DefaultSelector()
    selector.register(output, selectors.EVENT_READ)
    rest = b""
    while True:
        for _ in selector.select(0.05):
            said = os.read(output, 65_536)
            if not said:
                selector.unregister(output)
            *lines, rest = (rest + said).split(b"\n")
            for line in lines:
                sender.line(line.decode(errors="replace"))
        status = sender.look()
        if status is not None:
            return status


if __name__ == "__main__":
    sys.exit(main())

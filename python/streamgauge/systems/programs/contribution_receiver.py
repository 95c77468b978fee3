"""Receives MPEG-TS by a program for contribution, and reports its pictures. Runs by the system's python3.

``settings.json``, the argument, has the receiving program's command (`command`), the UDP port on this machine
to which that delivers (`output`, null for its stdout), and the silence after the last packet that ends the
stream (`silence_s`, null for none). Each picture is whole or not by the packets that are delivered; FFmpeg
decodes them too, and its own count is reported. Such a decoder conceals losses: it counts damaged pictures as
decoded. How many pictures there are, and how far apart, is read from ``STREAMGAUGE_MEDIA``.
"""

from __future__ import annotations

import json
import os
import queue
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from contribution_sender import end
from player_line import Events
from transport_stream import Numbered, Picture, PictureReader

DECODER = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "fatal", "-stats_period", "1"]
DECODER += [
    "-progress",
    "pipe:1",
    "-f",
    "mpegts",
    "-i",
    "pipe:0",
    "-map",
    "0:v:0",
    "-fps_mode",
    "passthrough",
]
DECODER += ["-f", "null", "-"]
BUFFER_BYTES = 4 << 20
STAMPED = re.compile(r"^[\d:.]+/\S+ |^[\d.]+\|[\d.]+\|")
"""Times and places before the lines of the programs' logs."""
SO_RXQ_OVFL = 40
"""Linux's option by which a socket reports the datagrams that it had no room for."""
PROBE = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries"]
PROBE += ["stream=avg_frame_rate,nb_frames", "-of", "json"]
DECODED_S = 3.0
"""Time for the decoder to finish."""


class Decoder:
    """FFmpeg, fed by a thread: a slow decoder delays no packet's time."""

    def __init__(self, say: Any) -> None:
        self.process = subprocess.Popen(
            DECODER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._say = say
        self._data: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._feed, self._watch)]
        for thread in self._threads:
            thread.start()

    def push(self, data: bytes) -> None:
        self._data.put(data)

    def finish(self) -> None:
        self._data.put(b"")
        for thread in self._threads:
            thread.join(DECODED_S)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _feed(self) -> None:
        assert self.process.stdin is not None
        try:
            while data := self._data.get():
                self.process.stdin.write(data)
                self.process.stdin.flush()
            self.process.stdin.close()
        except OSError as error:
            self._say("decoder_failed", reason=str(error))

    def _watch(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            key, _, value = line.decode(errors="replace").strip().partition("=")
            if key == "frame" and value.isdecimal():
                self._say("frames_decoded", int(value), "1", "ffmpeg; concealed pictures included")


class Receiver:
    """The receiving program, the decoder, and the pictures so far."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.say = Events().say
        self.asked = False
        self.shown = 0
        self.reader = PictureReader()
        self._pictures: Numbered | None = None
        self.last_s: float | None = None
        self.last_line = ""
        self.full = 0
        self.has_faults = False
        self._probe = subprocess.Popen(
            [*PROBE, os.environ["STREAMGAUGE_MEDIA"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        self.socket: socket.socket | None = None
        out: Any = subprocess.PIPE
        if settings["output"] is not None:
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
            self.socket.bind(("127.0.0.1", settings["output"]))
            out = subprocess.DEVNULL
        self.began_s = time.monotonic()
        self.say("play_requested")
        self.say("stall_count", 0, "1", "a receiver of this kind skips, and never stalls")
        # Unbuffered: each packet is delivered when it is due.
        self.program = subprocess.Popen(
            ["stdbuf", "-o0", "-eL", *settings["command"]],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
        )
        self.decoder = Decoder(self.say)

    @property
    def pictures(self) -> Numbered:
        """Returns the pictures of the clip, which is read while the connection begins."""
        if self._pictures is None:
            told, _ = self._probe.communicate()
            (stream,) = json.loads(told)["streams"]
            over, under = map(int, stream["avg_frame_rate"].split("/"))
            self._pictures = Numbered(under / over, int(stream["nb_frames"]))
        return self._pictures

    def data(self, data: bytes) -> None:
        """Some of the delivered stream."""
        now_s = time.monotonic()
        self.last_s = now_s
        self.decoder.push(data)
        for picture in self.reader.push(data, now_s):
            self.picture(picture)
        if self.reader.faults and not self.has_faults:
            self.has_faults = True
            self.say("not_mpegts", reason="the program delivered bytes that are no transport stream")

    def picture(self, picture: Picture) -> None:
        """One that is over."""
        number = self.pictures.number(picture)
        if number is None:
            return
        self.miss(self.pictures.after - self.pictures.DEPTH, picture.at_s)
        if not picture.is_whole:
            reason = f"frame {number}: packets of it are missing"
            self.say("frame_incomplete", reason=reason, at_s=picture.at_s)
            return
        if not self.shown:
            self.say("playout_start", picture.at_s - self.began_s, "s", at_s=picture.at_s)
        self.shown += 1
        self.say("frame_shown", number, "1", at_s=picture.at_s)

    def miss(self, before: int, at_s: float) -> None:
        """Reports missing pictures."""
        for lost in self.pictures.missing(before):
            self.say("frame_incomplete", reason=f"frame {lost}: no packet", at_s=at_s)

    def error_line(self, line: str) -> None:
        """One of the program's, which is kept in the log."""
        print(line, file=sys.stderr, flush=True)
        if line.strip() and not line.lstrip().startswith("{"):
            self.last_line = STAMPED.sub("", line.strip())

    def read_socket(self) -> None:
        """Reads all waiting datagrams, and the number of those that found no room."""
        assert self.socket is not None
        while True:
            try:
                data, more, _, _ = self.socket.recvmsg(65_536, 64, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            for _, kind, value in more:
                if kind == SO_RXQ_OVFL:
                    self.full = int.from_bytes(value, sys.byteorder)
            self.data(data)

    def look(self) -> int | None:
        """Returns the exit status once all is over."""
        if self.asked:
            return self._end("stopped")
        if self.full:
            return self._fail(f"{self.full} delivered datagrams found no room on the way to the reader")
        silence_s = self.settings["silence_s"]
        if silence_s is not None and self.last_s is not None and time.monotonic() - self.last_s > silence_s:
            return self._end("media_end", f"nothing came for {silence_s:g} s")
        if self.program.poll() is None:
            return None
        name = Path(self.settings["command"][0]).name
        if self.last_s is None:
            status = self.program.returncode
            why = f"{name} received nothing and ended with status {status}"
            return self._fail(f"{why}: {self.last_line}" if self.last_line else why)
        return self._end("media_end", f"{name} ended: the sender closed the connection")

    def _fail(self, why: str) -> int:
        self.say("error", reason=why)
        self._end("given_up")
        print(why, file=sys.stderr, flush=True)
        return 1

    def _end(self, name: str, why: str = "") -> int:
        end(self.program)
        if self.last_s is None and name == "stopped":
            self.say("connection_failed", reason="no sender was there")
        for picture in self.reader.finish():
            self.picture(picture)
        if self.last_s is not None:
            # After a stop the rest of the clip is not missing.
            self.miss(self.pictures.count if name == "media_end" else self.pictures.after, self.last_s)
        self._probe.kill()
        self._probe.wait()
        self.decoder.finish()
        self.say(name, self.shown, "1", why)
        return 0


def main() -> int:
    receiver = Receiver(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))

    def asked(_number: int, _frame: object) -> None:
        receiver.asked = True

    signal.signal(signal.SIGINT, asked)
    signal.signal(signal.SIGTERM, asked)
    selector = selectors.DefaultSelector()
    assert receiver.program.stderr is not None
    errors = receiver.program.stderr.fileno()
    selector.register(errors, selectors.EVENT_READ)
    source = receiver.socket or receiver.program.stdout
    assert source is not None
    stream = source.fileno()
    selector.register(stream, selectors.EVENT_READ)
    rest = b""
    while True:
        for key, _ in selector.select(0.05):
            if key.fd == stream and receiver.socket is not None:
                receiver.read_socket()
                continue
            said = os.read(key.fd, 65_536)
            if not said:
                selector.unregister(key.fd)
            elif key.fd == stream:
                receiver.data(said)
            else:
                *lines, rest = (rest + said).split(b"\n")
                for line in lines:
                    receiver.error_line(line.decode(errors="replace"))
        status = receiver.look()
        if status is not None:
            return status


if __name__ == "__main__":
    sys.exit(main())

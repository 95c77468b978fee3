"""A small player for it: shows 25 pictures a second, stalls when none is there, and says so to StreamGauge.

    python3 player.py ADDRESS PORT

Events go to the file that STREAMGAUGE_EVENTS names, a line of JSON each: playout_start, frame_shown, stall,
resume, and stall_count, without which nobody could tell a player that does not stall from one that does not say.
"""

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

PICTURES_PER_S = 25
PICTURE_BYTES = 2500
AHEAD = 10  # pictures that must be there before it shows the first, and after a stall


class Buffer:
    """Pictures that have come and are not shown yet."""

    def __init__(self) -> None:
        self.pictures = 0
        self.changed = threading.Condition()

    def fill(self, connection: socket.socket) -> None:
        """Until the server has gone."""
        received = 0
        while data := connection.recv(65536):
            received += len(data)
            with self.changed:
                self.pictures += received // PICTURE_BYTES
                self.changed.notify()
            received %= PICTURE_BYTES

    def wait_for(self, count: int) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.pictures >= count)

    def take(self) -> bool:
        with self.changed:
            if not self.pictures:
                return False
            self.pictures -= 1
            return True


def say(name: str, value: float | None = None, unit: str | None = None) -> None:
    event = {"t_monotonic_ns": time.monotonic_ns(), "name": name, "value": value, "unit": unit}
    with Path(os.environ.get("STREAMGAUGE_EVENTS", os.devnull)).open("a") as events:
        events.write(json.dumps(event) + "\n")


def main() -> None:
    asked = time.monotonic()
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    buffer = Buffer()
    threading.Thread(target=buffer.fill, args=(connection,), daemon=True).start()
    buffer.wait_for(AHEAD)
    say("playout_start", time.monotonic() - asked, "s")
    say("stall_count", stalls := 0, "1")
    due = time.monotonic()
    number = 0
    while True:
        if not buffer.take():
            say("stall")
            say("stall_count", stalls := stalls + 1, "1")
            buffer.wait_for(AHEAD)
            say("resume")
            due = time.monotonic()
            continue
        say("frame_shown", number, "1")
        number += 1
        due += 1 / PICTURES_PER_S
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass

"""Memory of a link that is shown for a long time: ``python benches/live_memory.py --minutes 30``.

A command behind `streamgauge link --live` receives all the time. A reader takes every sample, and changes the
rate once a second. Each half minute a line has the resident memory of the launcher with its page, and of the
emulator. The exit status is 1 if one of them has grown by more than `--most` MB from eleven minutes on,
when the page's memory is full, or from half of a shorter time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

SENDS = (
    "import socket\np, _ = socket.create_server(('', 8000)).accept()\nwhile True: p.sendall(bytes(10000))\n"
)
RECEIVES = (
    "import os, socket, sys, time\n"
    "until = time.monotonic() + float(sys.argv[1])\n"
    "p = socket.create_connection((os.environ['STREAMGAUGE_SERVER'], 8000))\n"
    "while time.monotonic() < until: p.recv(65536)\n"
)
EVERY_S = 30
FULL_S = 660
"""The page keeps ten minutes of samples: until then its memory grows."""


def resident_mb(pid: int) -> float:
    """Returns a process's resident memory, MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1e3


def emulator_below(pid: int) -> int | None:
    """Returns the emulator's process id among the descendants of a process; None if there is none."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        words = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
        if words[0].endswith(b"streamgauge-engine") and words[1] == b"link":
            return one
        for task in Path(f"/proc/{one}/task").iterdir():
            waiting += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
    return None


def read(url: str, counted: list[int]) -> None:
    """Takes samples until the end."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port)
    connection.request("GET", f"/events?{place.query}")
    for line in connection.getresponse():
        counted[0] += line.startswith(b"data: ")


def change(url: str, number: int) -> None:
    """Changes the rate."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port)
    body = json.dumps({"down.rate": f"{2000 + number % 1000} kbit/s"})
    connection.request("POST", f"/change?{place.query}", body)
    connection.getresponse().read()
    connection.close()


def main() -> int:
    """Runs it, and prints a line each half minute."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--most", type=float, default=10, metavar="MB")
    asked = parser.parse_args()
    lasts_s = 60 * asked.minutes
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "streamgauge", "link", "--no-preflight", "--live", "--quiet"]
        command += ["--down", "rate 2 Mbit/s, queue 30 kB, delay 10 ms", "--up", "delay 10 ms"]
        command += ["--server", shlex.join([sys.executable, "-c", SENDS])]
        command += ["--", sys.executable, "-c", RECEIVES, str(lasts_s)]
        link = subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", cwd=folder)
        assert link.stderr is not None
        url = next(line.split()[1] for line in link.stderr if line.startswith("live: http"))
        counted = [0]
        threading.Thread(target=read, args=(url, counted), daemon=True).start()
        threading.Thread(target=link.stderr.read, daemon=True).start()
        began = time.monotonic()
        rows: list[tuple[float, float, float]] = []
        print("s, launcher MB, emulator MB, samples, changes")
        number = 0
        while (at_s := time.monotonic() - began) < lasts_s - 5:
            if at_s >= EVERY_S * (len(rows) + 1) and (emulator := emulator_below(link.pid)):
                rows.append((at_s, resident_mb(link.pid), resident_mb(emulator)))
                shown = ", ".join(f"{value:.1f}" for value in rows[-1])
                print(f"{shown}, {counted[0]}, {number}", flush=True)
            change(url, number)
            number += 1
            time.sleep(1)
        status = link.wait(timeout=120)
    later = [row for row in rows if row[0] >= min(FULL_S, lasts_s / 2)]
    grown = [max(row[place] for row in later) - later[0][place] for place in (1, 2)]
    print(f"grown from {later[0][0]:.0f} s on: launcher {grown[0]:.1f} MB, emulator {grown[1]:.1f} MB")
    return int(status != 0 or max(grown) > asked.most)


if __name__ == "__main__":
    sys.exit(main())

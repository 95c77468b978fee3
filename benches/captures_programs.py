"""`analyze` beside the statistics of libsrt's and librist's own programs.

python benches/captures_programs.py [--seconds S] [--keep FOLDER]

`srt-live-transmit`, and `ristsender` with `ristreceiver` in the simple profile, send a stream of 2 Mbit/s
over a link that loses 3 % of the media. The link writes both ends to one file. Each end is then analysed by
itself, as a capture that was taken there, and compared with the counts of the program at that end. Linux,
root, packages srt-tools and rist-tools. `--keep` leaves the files (`srt.pcapng`, `srt.json`) in a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from streamgauge import _native

RATE: Final = 2e6
DATAGRAM: Final = 1316
LINK: Final = "rate 5 Mbit/s, queue 100 kB, delay 20 ms"
FEED_PORT: Final = 4200
MEDIA_PORT: Final = 9000
LATENCY_MS: Final = 400
RECEIVER, SENDER = 0, 1
"""Interfaces of the link's capture: its server receives."""


def commands(system: str, folder: Path, server: str) -> tuple[list[str], list[str]]:
    """Returns the commands of receiver and sender; their statistics go to files of `folder`."""
    if system == "srt":
        common = ["srt-live-transmit", "-s:1", "-pf:json"]
        options = f"latency={LATENCY_MS}"
        return (
            [
                *common,
                f"-statsout:{folder}/receiver",
                f"srt://:{MEDIA_PORT}?mode=listener&{options}",
                "file://con",
            ],
            [
                *common,
                f"-statsout:{folder}/sender",
                f"udp://127.0.0.1:{FEED_PORT}",
                f"srt://{server}:{MEDIA_PORT}?mode=caller&{options}",
            ],
        )
    common = ["-p", "0", "-S", "100", "-b", str(LATENCY_MS)]
    return (
        ["ristreceiver", *common, "-i", f"rist://@0.0.0.0:{MEDIA_PORT}", "-o", "udp://127.0.0.1:4302"],
        ["ristsender", *common, "-i", f"udp://@127.0.0.1:{FEED_PORT}", "-o", f"rist://{server}:{MEDIA_PORT}"],
    )


def feed(system: str, folder: Path, seconds: float) -> None:
    """The link's client: starts the sender, and gives it datagrams at a constant rate."""
    _, sender = commands(system, folder, os.environ["STREAMGAUGE_SERVER"])
    with (folder / "sender.log").open("wb") as log:
        program = subprocess.Popen(sender, stdout=subprocess.DEVNULL, stderr=log)
    time.sleep(1.5)
    media = (b"\x47\x1f\xff\x10" + bytes(184)) * (DATAGRAM // 188)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
        begin, sent = time.monotonic(), 0
        while (now := time.monotonic() - begin) < seconds:
            while sent * DATAGRAM * 8 / RATE <= now:
                to.sendto(media, ("127.0.0.1", FEED_PORT))
                sent += 1
            time.sleep(0.002)
    time.sleep(3 * LATENCY_MS / 1000)
    program.send_signal(signal.SIGINT)
    program.wait(20)


def objects(text: str) -> list[dict[str, Any]]:
    """Returns the JSON objects of a text, one a line at most. librist closes more braces than it opens."""
    found = []
    for start in re.finditer(r"^[^{\n]*(?=\{\")", text, re.M):
        try:
            found.append(json.JSONDecoder().raw_decode(text, start.end())[0])
        except json.JSONDecodeError:
            continue
    return found


def counts(system: str, folder: Path) -> dict[str, int]:
    """Returns the programs' own counts: packets sent again, first copies that the receiver missed, and
    packets that it never got."""
    if system == "srt":
        rows = {side: objects((folder / side).read_text()) for side in ("sender", "receiver")}
        return {
            "sent_again": sum(row["send"]["packetsRetransmitted"] for row in rows["sender"]),
            "missing": sum(row["recv"]["packetsLost"] for row in rows["receiver"]),
            "not_recovered": sum(row["recv"]["packetsDropped"] for row in rows["receiver"]),
        }
    sent = [
        row["sender-stats"] for row in objects((folder / "sender.log").read_text()) if "sender-stats" in row
    ]
    logged = objects((folder / "receiver.log").read_text())
    got = [row["receiver-stats"]["flowinstant"]["stats"] for row in logged if "receiver-stats" in row]
    return {
        "sent_again": sum(row["peer"]["stats"]["retransmitted"] for row in sent),
        "missing": sum(row["missing"] for row in got),
        "not_recovered": sum(row["lost"] for row in got),
    }


def analysed(capture: Path) -> dict[str, int]:
    """Returns the same by the packets, each end by itself."""
    ends = [json.loads(_native.analyse_capture(capture, at, None))["flows"][0] for at in (RECEIVER, SENDER)]
    return {
        "sent_again": ends[1]["retransmitted"],
        "missing": ends[0]["lost_before_capture"],
        "not_recovered": ends[0]["lost"],
    }


def measure(system: str, folder: Path, seconds: float) -> tuple[dict[str, int], dict[str, int]]:
    """Runs a stream; returns the programs' counts and those of the capture."""
    receiver, _ = commands(system, folder, "")
    capture = folder / "capture.pcapng"
    own = [sys.executable, __file__, "--feed", system, "--keep", str(folder), "--seconds", str(seconds)]
    command = [sys.executable, "-m", "streamgauge", "link", "--down", LINK, "--up", f"{LINK}, loss 3 %"]
    server = f"exec {shlex.join(receiver)} >/dev/null 2>{shlex.quote(str(folder / 'receiver.log'))}"
    run = [*command, "--capture", str(capture), "--server", server, "--", *own]
    found = subprocess.run(run, capture_output=True, text=True, check=False)
    if not capture.exists():
        raise SystemExit(f"{system}: no capture: {found.stderr[-500:]}")
    return counts(system, folder), analysed(capture)


def main() -> int:
    """Runs both, prints the table; 1 if a count differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--feed", choices=("srt", "rist"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.feed:
        feed(given.feed, given.keep, given.seconds)
        return 0
    differ = False
    print("| programs | count | by the programs | by the capture |\n|---|---|---|---|")
    for system in ("srt", "rist"):
        with tempfile.TemporaryDirectory() as scratch:
            theirs, ours = measure(system, Path(scratch), given.seconds)
            if given.keep:
                given.keep.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / "capture.pcapng").rename(given.keep / f"{system}.pcapng")
                (given.keep / f"{system}.json").write_text(json.dumps(theirs, indent=1) + "\n")
        for name in theirs:
            print(f"| {system} | {name} | {theirs[name]} | {ours[name]} |", flush=True)
            differ |= theirs[name] != ours[name]
    return int(differ)


if __name__ == "__main__":
    raise SystemExit(main())

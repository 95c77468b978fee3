"""The capture of a trial, read back by Wireshark's own reader, holds what the record counts."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from driving import Person, the_valid_one
from scenarios import FTP, scenario

INBOUND, OUTBOUND = 1, 2
"""Directions in epb_flags (pcapng, section 4.3.1)."""


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_capture_holds_what_entered_and_left(anyone: Person) -> None:
    trial = the_valid_one(anyone.trials(scenario(FTP, until="4 s", queue="8 packets"), "--capture"))
    folder = Path(trial["directory"])
    fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.packet_flags_direction"]
    read = subprocess.run(
        ["tshark", "-r", str(folder / "capture.pcapng"), *fields], capture_output=True, text=True, check=True
    )
    seen = Counter(line for line in read.stdout.splitlines())
    captured = {
        (name, int(way, 16)): n for (name, way), n in ((line.split("\t"), n) for line, n in seen.items())
    }

    balance = json.loads((folder / "trial.json").read_text())["balance"]
    expected: Counter[tuple[str, int]] = Counter()
    for direction, source, target in (("down", "server", "client"), ("up", "client", "server")):
        rows = [row for row in balance if row["direction"] == direction]
        stages = list(dict.fromkeys(row["stage"] for row in rows))
        expected[source, INBOUND] = sum(row["in_packets"] for row in rows if row["stage"] == stages[0])
        expected[target, OUTBOUND] = sum(row["out_packets"] for row in rows if row["stage"] == stages[-1])
    assert captured == dict(expected)
    assert all(expected.values())

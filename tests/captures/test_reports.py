"""Receiver reports of RTCP between two captures: which packets of RTP were lost, which a capture missed."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from made import CLIENT, OFFSET_NS, SERVER, Frames, write
from streamgauge import _native

EVERY = 50
"""Packets between two reports."""
PACKETS = 400
LOST = {60, 75, 160, 310}
MISSED = {110, 120, 165}
"""The fourth range has a loss and a gap, so that neither shows which packet is which."""
DELAY_NS = 20_000_000
LOST_FATE, NOT_CAPTURED, OPEN = 1, 2, 3


def udp(source: bytes, destination: bytes, port: int, number: int, payload: bytes) -> bytes:
    """An IPv4 packet with a datagram."""
    size = 28 + len(payload)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size, number, 0, 64, 17, 0, source, destination)
    return head + struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload


def rtp(number: int) -> bytes:
    return struct.pack(">BBHII", 0x80, 96, number, number * 3000, 0x1234) + bytes([number % 256]) * 100


def report(highest: int, lost: int) -> bytes:
    block = struct.pack(">II", 0x1234, lost) + struct.pack(">IIII", highest, 0, 0, 0)
    return struct.pack(">BBHI", 0x81, 201, 7, 0x99) + block


def captures(folder: Path, again: bool) -> tuple[tuple[Path, None], tuple[Path, None]]:
    """A stream of RTP from the server, with a report for each range. `again`: one packet is sent twice."""
    server: Frames = []
    client: Frames = []
    start, lost = 1_700_000_000_000_000_000, 0
    for number in range(PACKETS):
        at = start + number * 20_000_000
        packet = udp(SERVER, CLIENT, 5004, number + 1, rtp(number))
        server.append((at, packet))
        lost += number in LOST
        if number not in LOST | MISSED:
            client.append((at + DELAY_NS + OFFSET_NS, packet))
        if number % EVERY == EVERY - 1:
            answer = udp(CLIENT, SERVER, 5005, number + 1, report(number, lost))
            client.append((at + DELAY_NS + 1_000_000 + OFFSET_NS, answer))
            server.append((at + 2 * DELAY_NS + 1_000_000, answer))
        if again and number == 30:
            copy = udp(SERVER, CLIENT, 5004, 9000, rtp(20))
            server.append((at + 1_000_000, copy))
            client.append((at + 1_000_000 + DELAY_NS + OFFSET_NS, copy))
    return (write(folder / "server.pcap", server), None), (write(folder / "client.pcap", client), None)


def fates(folder: Path, again: bool = False, without: str | None = None) -> dict[int, int]:
    """By number of the packet: the fates of those without a match."""
    a, b = captures(folder, again)
    figures, columns = _native.match_captures(a, b, None, without)
    assert json.loads(figures)["path"]["main"]["delivered"] == PACKETS - len(LOST | MISSED) + again
    in_ns, fate, forward = (
        np.frombuffer(columns[at], kind) for at, kind in ((0, np.int64), (3, np.uint8), (4, np.uint8))
    )
    rows = (fate != 0) & (forward == 1)
    numbers = (in_ns[rows] - 1_700_000_000_000_000_000) // 20_000_000
    return dict(zip(numbers.tolist(), fate[rows].tolist(), strict=True))


def test_reports_tell_losses_from_gaps(tmp_path: Path) -> None:
    lost, missed, mixed = {60, 75, 310}, {110, 120}, {160, 165}
    expected = (
        dict.fromkeys(lost, LOST_FATE) | dict.fromkeys(missed, NOT_CAPTURED) | dict.fromkeys(mixed, OPEN)
    )
    assert fates(tmp_path) == expected


@pytest.mark.parametrize(("again", "without"), [(False, "reports"), (True, None)])
def test_it_stays_open_without_reports_and_where_packets_come_again(
    tmp_path: Path, again: bool, without: str | None
) -> None:
    """A report does not count a packet that arrived at its second attempt."""
    found = fates(tmp_path, again, without)
    assert found == dict.fromkeys(LOST | MISSED, OPEN)

"""Captures made packet by packet: a bottleneck between two places, of which every fate is known."""

from __future__ import annotations

import struct
from pathlib import Path

SERVER, CLIENT = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
PAYLOAD = 1448
OFFSET_NS = 37_000_000_000
Frames = list[tuple[int, bytes]]


def tcp(
    source: bytes, destination: bytes, ports: tuple[int, int], number: int, seq: int, ack: int, size: int
) -> bytes:
    """An IPv4 packet with a segment."""
    segment = struct.pack(">HHIIBBHHH", *ports, seq, ack, 5 << 4, 16, 60_000, 0, 0) + b"x" * size
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), number, 0, 64, 6, 0, source, destination)
    return head + segment


def write(file: Path, frames: Frames) -> Path:
    """A pcap file of raw IP, in ns."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)]
    for at, packet in sorted(frames):
        seconds, rest = divmod(at, 1_000_000_000)
        parts += [struct.pack("<IIII", seconds, rest, len(packet), len(packet)), packet]
    file.write_bytes(b"".join(parts))
    return file


def bottleneck(
    count: int = 3000, lost_every: int = 100, lost: frozenset[int] | None = None
) -> tuple[Frames, Frames, int]:
    """A server's segments across 4 Mbit/s and 20 ms, acknowledged by the client: the frames at each end, and
    the number of losses. Every `lost_every`-th segment is lost and comes again 200 ms later."""
    at_server: Frames = []
    at_client: Frames = []
    start, free, losses = 1_700_000_000_000_000_000, 0, 0
    plan = [(n * 2_950_000, n) for n in range(count)]
    if lost is None:
        lost = frozenset(range(lost_every - 1, count - 200, lost_every))
    again = [(at + 200_000_000, n) for at, n in plan if n in lost]
    seen = {n for _, n in again}
    arrived: set[int] = set()
    ack = 0
    first = True
    for number, (at, n) in enumerate(sorted([*plan, *again]), start=1):
        packet = tcp(SERVER, CLIENT, (80, 4000), number % 65536, n * PAYLOAD, 1, PAYLOAD)
        at_server.append((start + at, packet))
        first = n in seen
        if first:
            seen.remove(n)
            losses += 1
            continue
        free = max(at, free) + (len(packet) + 14) * 2000
        out = start + free + 20_000_000
        at_client.append((out + OFFSET_NS, packet))
        arrived.add(n)
        while ack in arrived:
            ack += 1
        answer = tcp(CLIENT, SERVER, (4000, 80), number % 65536, 1, ack * PAYLOAD, 0)
        at_client.append((out + OFFSET_NS + 10_000, answer))
        at_server.append((out + 20_010_000, answer))
    return at_server, at_client, losses

"""Two hundred clients at once: what they cost, and that all of it comes back."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Serve, Server
from rtsp_client import Client, ack

SESSIONS = 200
WATCH_S = 5.0
PATIENCE_S = 60.0
"""How long a busy machine may take to give each client what it counts on."""

FEWEST = {"udp": 25, "reliable": 25, "tcp": 1}
"""What each client counts on: packets of RTP, which are most of its pictures; over TCP, something to read."""


@dataclass
class Load:
    """What so many sessions cost the server."""

    sessions: int
    transport: str
    bytes_per_session: float
    cpu_cores: float
    descriptors_per_session: float
    received_packets: int
    least_packets: int
    residue_bytes: int


def watch(clients: Iterable[Client], fewest: int, *, reliable: bool) -> list[int]:
    """Acknowledges what comes for `WATCH_S`, and until each has `fewest` packets; how many each has."""
    clients = list(clients)
    poll, owner, counts = select.epoll(), {}, [0] * len(clients)
    for number, client in enumerate(clients):
        for socket in [pair.rtp for pair in client.pairs] or [client.socket]:
            socket.setblocking(False)
            poll.register(socket, select.EPOLLIN)
            owner[socket.fileno()] = (number, socket)
    began = time.monotonic()
    while (took := time.monotonic() - began) < WATCH_S or min(counts) < fewest:
        assert took < PATIENCE_S, f"{min(counts)} packets in {took:.0f} s"
        for file, _ in poll.poll(max(WATCH_S - took, 0.1)):
            number, socket = owner[file]
            try:
                packet = socket.recv(65536)
            except BlockingIOError:
                continue
            if not packet:
                raise AssertionError(f"client {number} was dropped")
            counts[number] += 1
            if reliable:
                (pair,) = clients[number].pairs
                sequence = int.from_bytes(packet[2:4], "big")
                pair.rtcp.sendto(ack(sequence), ("127.0.0.1", pair.server_rtcp))
    poll.close()
    return counts


def cost(server: Server, transport: str) -> Load:
    """Plays to all clients, measures, and closes them."""
    before_files, before_bytes = server.descriptors(), server.resident_bytes()
    ended = len([line for line in server.said if line["event"] == "closed"])
    clients = [Client(server.port, "/long.mp4") for _ in range(SESSIONS)]
    for client in clients:
        client.play(
            transport="tcp" if transport == "tcp" else "udp", reliable=transport == "reliable", tracks=1
        )
    began, cpu = time.monotonic(), server.cpu_s()
    counts = watch(clients, FEWEST[transport], reliable=transport == "reliable")
    cpu, took = server.cpu_s() - cpu, time.monotonic() - began
    files, resident = server.descriptors(), server.resident_bytes()
    for client in clients:
        client.close()
    server.wait_for("closed", count=ended + SESSIONS, within_s=PATIENCE_S)
    return Load(
        sessions=SESSIONS,
        transport=transport,
        bytes_per_session=(resident - before_bytes) / SESSIONS,
        cpu_cores=cpu / took,
        descriptors_per_session=(files - before_files) / SESSIONS,
        received_packets=sum(counts),
        least_packets=min(counts),
        residue_bytes=server.resident_bytes() - before_bytes,
    )


@pytest.mark.parametrize("transport", ["udp", "reliable", "tcp"])
def test_two_hundred_sessions_at_once(serve: Serve, transport: str) -> None:
    server = serve()
    # The clip is read once, by the first who asks for it.
    first = Client(server.port, "/long.mp4")
    first.play(tracks=1)
    first.close()
    server.wait_for("closed")
    files = server.descriptors()
    load = cost(server, transport)
    print(json.dumps(load.__dict__), file=sys.stderr)
    if report := os.environ.get("STREAMGAUGE_LOAD_REPORT"):
        with Path(report).open("a") as file:
            print(json.dumps(load.__dict__), file=file)
    # docs/serve.md states it.
    assert load.bytes_per_session < 100_000
    assert load.descriptors_per_session == (1 if transport == "tcp" else 3)
    # Everything is back, but for what the allocator keeps for the next.
    assert server.descriptors() == files
    assert load.residue_bytes < 100_000 * SESSIONS
    again = cost(server, transport)
    assert again.residue_bytes < 1 << 20, "a second crowd needs no more than the first"


def test_whoever_breaks_off_while_the_server_is_kept_from_running_is_freed(serve: Serve) -> None:
    """Media is due when it runs again: it learns by a write that they have gone, not by a read."""
    server = serve()
    clients = [Client(server.port, "/long.mp4") for _ in range(20)]
    for client in clients:
        client.play(transport="tcp", tracks=1)
    server.wait_for("playing", count=len(clients))
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    for client in clients:
        # What has not been read resets the connection.
        client.close()
    server.process.send_signal(signal.SIGCONT)
    server.wait_for("closed", count=len(clients), within_s=PATIENCE_S)

"""Two hundred Windows Media players at once: what they cost, and that all of it comes back."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path

import pytest
from conftest import Server
from starved import again_if_starved
from windows_media_client import WmsClient

SESSIONS = 200
WATCH_S = 5.0
PATIENCE_S = 60.0
"""How long a busy machine may take to give each client what it counts on."""

FEWEST = {"udp": 50, "tcp": 1}
"""What each client counts on: packets of 1456 B, 3 s of the film; over TCP, something to read."""

STREAM = 4
"""That of 200 kbit/s."""


def watch(clients: list[WmsClient], fewest: int) -> list[int]:
    """Takes what comes for `WATCH_S`, and until each has `fewest` packets; how many each has."""
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
            assert packet, f"client {number} was dropped"
            counts[number] += 1
    poll.close()
    return counts


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@again_if_starved
def test_two_hundred_players_at_once(wmvs: Path, transport: str) -> None:
    # Ports of its own: another room's players may have all of the usual ones.
    with Server(wmvs, "--udp-ports=32000-33999", system="windows_media") as server:
        # The film is read by the first who asks for it.
        first = WmsClient(server.port, "/long.wmv")
        first.play_streams(STREAM)
        first.close()
        server.wait_for("closed")
        files, before = server.descriptors(), server.resident_bytes()
        clients = [WmsClient(server.port, "/long.wmv") for _ in range(SESSIONS)]
        for client in clients:
            client.play_streams(STREAM, transport=transport)
        began, cpu = time.monotonic(), server.cpu_s()
        counts = watch(clients, FEWEST[transport])
        cpu, took = server.cpu_s() - cpu, time.monotonic() - began
        resident = server.resident_bytes()
        per_player = (resident - before) / SESSIONS
        load = {
            "players": SESSIONS,
            "transport": transport,
            "resident_bytes": resident,
            "bytes_per_player": per_player,
            "cpu_cores": cpu / took,
            "descriptors_per_player": (server.descriptors() - files) / SESSIONS,
            "least_packets": min(counts),
        }
        print(json.dumps(load), file=sys.stderr)
        if report := os.environ.get("STREAMGAUGE_LOAD_REPORT"):
            with Path(report).open("a") as file:
                print(json.dumps(load), file=file)
        # What is kept for 10 s over UDP, of 200 kbit/s: 250 kB, with what comes while the machine is busy.
        assert per_player < 700_000
        # The connection, and over UDP two pairs: of media, and of what is sent again.
        assert load["descriptors_per_player"] == (1 if transport == "tcp" else 5)
        for client in clients:
            client.close()
        server.wait_for("closed", count=1 + SESSIONS, within_s=PATIENCE_S)
        assert server.descriptors() == files

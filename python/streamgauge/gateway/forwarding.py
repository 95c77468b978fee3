"""A process of the forwarder: ``python -m streamgauge.gateway.forwarding``.

``bind FD ADDRESS PORT`` makes two sockets where it runs and sends them over FD. ``forward TCP UDP HOST:PORT``
forwards the data of two inherited sockets, until standard input closes.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress
from typing import cast

from streamgauge.gateway.forwarder import bind, send

__all__: list[str] = []

CHUNK = 1 << 16
MOST_PEERS = 1000
"""Senders of UDP at once. The one that has been silent for the longest gives way."""
IDLE_S = 120.0
"""A sender of UDP that is silent for so long is forgotten (RFC 4787 section 4.3: two minutes at least)."""
DATAGRAM_ROOM = 1 << 20


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        # The other way may continue: a half-closed connection stays one.
        if writer.can_write_eof():
            writer.write_eof()


class Streams:
    """TCP: one connection for each that arrives."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, away = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            return
        for one in (writer, away):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.gather(_copy(reader, away), _copy(there, writer))
        finally:
            for one in (writer, away):
                one.close()


class Away(asyncio.DatagramProtocol):
    """The socket by which one sender's datagrams go on, and the answers come."""

    def __init__(self, datagrams: Datagrams, sender: tuple[str, int]) -> None:
        self._datagrams, self._sender = datagrams, sender

    def datagram_received(self, data: bytes, _addr: object) -> None:
        self._datagrams.answer(self._sender, data)

    def error_received(self, _exc: Exception) -> None:
        """A server that is not there yet may come."""


class Datagrams(asyncio.DatagramProtocol):
    """UDP: one socket for each sender."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._here: asyncio.DatagramTransport | None = None
        # In the order of their last datagram.
        self._peers: dict[tuple[str, int], tuple[asyncio.Future[asyncio.DatagramTransport], float]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Python's own transports of datagrams are of no common class.
        self._here = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        found = self._peers.pop(addr, None)
        away = loop.create_task(self._open(addr)) if found is None else found[0]
        self._peers[addr] = (away, loop.time())
        if found is None:
            self._forget(loop.time())
        if away.done():
            self._pass_on(away, data)
        else:
            away.add_done_callback(lambda done: self._pass_on(done, data))

    def error_received(self, _exc: Exception) -> None:
        """A sender that has gone."""

    def answer(self, sender: tuple[str, int], data: bytes) -> None:
        """Sends an answer to its sender."""
        if self._here is not None and sender in self._peers:
            away, _ = self._peers.pop(sender)
            self._peers[sender] = (away, asyncio.get_running_loop().time())
            self._here.sendto(data, sender)

    async def _open(self, sender: tuple[str, int]) -> asyncio.DatagramTransport:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: Away(self, sender), remote_addr=self._to
        )
        return transport

    def _pass_on(self, away: asyncio.Future[asyncio.DatagramTransport], data: bytes) -> None:
        if not away.cancelled() and away.exception() is None:
            away.result().sendto(data)

    def _forget(self, now: float) -> None:
        """Bounds the senders, in number and in time."""
        while self._peers:
            sender, (away, last) = next(iter(self._peers.items()))
            if len(self._peers) <= MOST_PEERS and now - last < IDLE_S:
                return
            del self._peers[sender]
            if away.done() and not away.cancelled() and away.exception() is None:
                away.result().close()


async def _forward(tcp: socket.socket, udp: socket.socket, to: tuple[str, int]) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), over.set)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, DATAGRAM_ROOM)
    server = await asyncio.start_server(Streams(to).serve, sock=tcp)
    datagrams, _ = await loop.create_datagram_endpoint(lambda: Datagrams(to), sock=udp)
    print("ready", flush=True)
    await over.wait()
    server.close()
    datagrams.close()


def main(words: list[str]) -> None:
    """Runs one of the two."""
    if words[0] == "bind":
        send(int(words[1]), *bind(words[2], int(words[3])))
        return
    tcp, udp = (socket.socket(fileno=int(word)) for word in words[1:3])
    host, _, port = words[3].rpartition(":")
    tcp.setblocking(False)
    udp.setblocking(False)
    with suppress(KeyboardInterrupt):
        asyncio.run(_forward(tcp, udp, (host, int(port))))


if __name__ == "__main__":
    main(sys.argv[1:])

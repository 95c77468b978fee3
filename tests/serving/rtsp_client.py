"""An RTSP client of a few lines, for saying to a server what no player would."""

from __future__ import annotations

import re
import socket
import struct
from dataclasses import dataclass, field

RELIABLE = "our-retransmit"


@dataclass
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Pair:
    """A track's two ports."""

    rtp: socket.socket
    rtcp: socket.socket
    server_rtcp: int = 0


def udp_pair() -> Pair:
    """Two sockets on an even port of loopback and the next."""
    while True:
        rtp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        rtp.bind(("127.0.0.1", 0))
        port = rtp.getsockname()[1]
        rtcp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            if port % 2 == 0:
                rtcp.bind(("127.0.0.1", port + 1))
                return Pair(rtp, rtcp)
        except OSError:
            pass
        rtp.close()
        rtcp.close()


def ack(sequence: int, ssrc: int = 7) -> bytes:
    """An empty receiver report and Apple's acknowledgement of one packet."""
    return struct.pack("!BBHI", 0x80, 201, 1, ssrc) + struct.pack(
        "!BBHI4sIHH", 0x80, 204, 4, ssrc, b"qtak", 0, 0, sequence
    )


@dataclass
class Client:
    """One connection."""

    port: int
    path: str = "/h264.mp4"
    session: str | None = None
    pairs: list[Pair] = field(default_factory=list)
    interleaved: list[tuple[int, bytes]] = field(default_factory=list)
    _cseq: int = 0
    _buffer: bytes = b""

    def __post_init__(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=10)

    @property
    def url(self) -> str:
        """What it is about."""
        return f"rtsp://127.0.0.1:{self.port}{self.path}"

    def close(self) -> None:
        """Leaves without a word."""
        self.socket.close()
        for pair in self.pairs:
            pair.rtp.close()
            pair.rtcp.close()

    def ask(self, method: str, url: str | None = None, **headers: str) -> Answer:
        """A request and its answer."""
        self._cseq += 1
        lines = [f"{method} {url or self.url} RTSP/1.0", f"CSeq: {self._cseq}"]
        if self.session:
            lines.append(f"Session: {self.session}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.say("\r\n".join([*lines, "", ""]).encode())
        return self.answer()

    def say(self, text: bytes) -> None:
        """Any bytes."""
        self.socket.sendall(text)

    def answer(self) -> Answer:
        """The next response; packets between are kept, requests of the server are answered."""
        while True:
            if self._read(1) == b"$":
                channel, length = struct.unpack("!BH", self._take(4)[1:])
                self._read(length)
                self.interleaved.append((channel, self._take(length)))
                continue
            while b"\r\n\r\n" not in self._buffer:
                self._more()
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            start, *lines = head.decode().split("\r\n")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            length = int(headers.get("content-length", 0))
            self._read(length)
            body = self._take(length)
            if start.startswith("RTSP/1.0 "):
                return Answer(int(start.split()[1]), headers, body)
            self.say(b"RTSP/1.0 200 OK\r\n\r\n")

    def _more(self) -> None:
        bytes_ = self.socket.recv(65536)
        if not bytes_:
            raise ConnectionResetError("the server has closed")
        self._buffer += bytes_

    def _read(self, length: int) -> bytes:
        while len(self._buffer) < length:
            self._more()
        return self._buffer[:length]

    def _take(self, length: int) -> bytes:
        taken, self._buffer = self._buffer[:length], self._buffer[length:]
        return taken

    def controls(self) -> list[str]:
        """The tracks' URLs, from DESCRIBE."""
        described = self.ask("DESCRIBE", Accept="application/sdp")
        assert described.status == 200, described
        media = described.body.decode().split("m=")[1:]
        controls = [re.search(r"a=control:(\S+)", section).group(1) for section in media]  # type: ignore[union-attr]
        base = described.headers.get("content-base", self.url + "/")
        return [one if one.startswith("rtsp:") else base.rstrip("/") + "/" + one for one in controls]

    def play(self, *, transport: str = "udp", reliable: bool = False, tracks: int | None = None) -> None:
        """As far as PLAY. `reliable` asks for Reliable UDP without overbuffering."""
        for number, control in enumerate(self.controls()[:tracks]):
            if transport == "udp":
                pair = udp_pair()
                self.pairs.append(pair)
                port = pair.rtp.getsockname()[1]
                wanted = f"RTP/AVP;unicast;client_port={port}-{port + 1}"
            else:
                wanted = f"RTP/AVP/TCP;unicast;interleaved={2 * number}-{2 * number + 1}"
            extra = {"x_Retransmit": RELIABLE, "x_Dynamic_Rate": "0"} if reliable else {}
            made = self.ask("SETUP", control, Transport=wanted, **extra)
            assert made.status == 200, made
            self.session = made.headers["session"].partition(";")[0]
            if transport == "udp":
                found = re.search(r"server_port=(\d+)-(\d+)", made.headers["transport"])
                assert found, made
                self.pairs[-1].server_rtcp = int(found.group(2))
            if reliable:
                assert made.headers["x-retransmit"] == RELIABLE
        played = self.ask("PLAY", Range="npt=0-")
        assert played.status == 200, played

    def drain(self) -> int:
        """Datagrams of RTP that are here now."""
        count = 0
        for pair in self.pairs:
            pair.rtp.setblocking(False)
            while True:
                try:
                    pair.rtp.recv(65536)
                except BlockingIOError:
                    break
                count += 1
        return count

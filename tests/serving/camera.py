"""An RTSP server that is odd in one way, as cameras are. Its media is one second, sent at once."""

from __future__ import annotations

import re
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

FRAMES = 25
BLOCKS = 50
SEQ, TIME = 34_211, 123_456_789
"""The first packet's numbers, of each track."""

VIDEO = (
    "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
    "a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0LADdoFBn58,aM48gA==\r\na=control:trackID=1\r\n"
)
SOUND = "m=audio 0 RTP/AVP 8\r\na=control:trackID=2\r\n"
HEAD = (
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
    "a=control:*\r\na=range:npt=0-1\r\n"
)


@dataclass
class Odd:
    """What a camera does in its own way. In texts ``{url}``, ``{a}``, ``{b}``, ``{port}`` are filled in."""

    sdp: str = HEAD + VIDEO
    transport: str | None = "RTP/AVP/TCP;unicast;interleaved={a}-{b}"
    over_udp: str = "RTP/AVP;unicast;client_port={port}-{rtcp}"
    session: str = "12345678"
    info: str | None = "url={url}/trackID=1;seq={seq};rtptime={time}"
    base: str | None = "{url}/"
    head: Callable[[str], str] = str
    """Changes the head of each answer."""
    answers: dict[str, str] = field(default_factory=dict)
    """Answers in place of the usual ones, by a pattern that a request's first line begins with."""
    before_play: bytes = b""
    """Goes out before the answer to PLAY."""
    shift: int = 0
    """Media comes by channels that are so much above those of SETUP."""
    encoding: str = "utf-8"


def packets(payload_type: int) -> list[bytes]:
    """A second of pictures, or of sound."""
    count, step, payload = (
        (FRAMES, 3600, b"\x65" + bytes(200)) if payload_type == 96 else (BLOCKS, 160, bytes(160))
    )
    return [
        struct.pack("!BBHII", 0x80, 0x80 | payload_type, (SEQ + n) & 0xFFFF, TIME + n * step, payload_type)
        + payload
        for n in range(count)
    ]


class _Connection(socketserver.StreamRequestHandler):
    odd: Odd
    said: list[str]

    def handle(self) -> None:
        tracks: list[tuple[int, int | None, int]] = []
        url = f"rtsp://127.0.0.1:{self.server.server_address[1]}/cam"  # type: ignore[index]
        while head := self._request():
            start, *lines = head.split("\r\n")
            method, target, _ = start.split(" ", 2)
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            self.said.append(start)
            numbers = {"url": url, "seq": SEQ, "time": TIME, "a": 2 * len(tracks), "b": 2 * len(tracks) + 1}
            given = next((given for asked, given in self.odd.answers.items() if re.match(asked, start)), None)
            body, fields = "", []
            if given is not None:
                self._answer(headers, given.format(**numbers), "")
                continue
            if method == "DESCRIBE":
                body = self.odd.sdp.format(**numbers)
                fields = ["Content-Type: application/sdp"]
                fields += [f"Content-Base: {self.odd.base}"] if self.odd.base is not None else []
            elif method == "SETUP":
                asked = headers["transport"]
                port = re.search(r"client_port=(\d+)", asked)
                numbers |= {"port": int(port[1]), "rtcp": int(port[1]) + 1} if port else {}
                chosen = self.odd.over_udp if port else self.odd.transport
                fields = [f"Session: {self.odd.session}"]
                fields += [f"Transport: {chosen}"] if chosen is not None else []
                is_video = "trackID=2" not in target and "m=video" in self.odd.sdp
                tracks.append((96 if is_video else 8, int(port[1]) if port else None, 2 * len(tracks)))
            elif method == "PLAY":
                fields = ["Range: npt=0-1"] + (
                    [f"RTP-Info: {self.odd.info}"] if self.odd.info is not None else []
                )
                self.wfile.write(self.odd.before_play)
            self._answer(headers, "\r\n".join(["200 OK", *(one.format(**numbers) for one in fields)]), body)
            if method == "PLAY":
                self._send(tracks)

    def _request(self) -> str:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self.rfile.read(1)
            if byte == b"$" and not head:
                self.rfile.read(struct.unpack("!xH", self.rfile.read(3))[0])
                continue
            if not byte:
                return ""
            head += byte
        return head.decode().strip()

    def _answer(self, headers: dict[str, str], answer: str, body: str) -> None:
        content = body.encode(self.odd.encoding)
        length = f"Content-Length: {len(content)}\r\n" if content else ""
        head = f"RTSP/1.0 {answer}\r\nCSeq: {headers.get('cseq', 0)}\r\n{length}\r\n"
        self.wfile.write(self.odd.head(head).encode("latin-1") + content)

    def _send(self, tracks: list[tuple[int, int | None, int]]) -> None:
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for payload_type, port, channel in tracks:
            for packet in packets(payload_type):
                if port is not None:
                    out.sendto(packet, ("127.0.0.1", port))
                else:
                    self.wfile.write(
                        struct.pack("!cBH", b"$", channel + self.odd.shift, len(packet)) + packet
                    )
        out.close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A player that leaves early is no error."""


@contextmanager
def camera(odd: Odd) -> Iterator[tuple[str, list[str]]]:
    """The URL of such a camera, and the first lines of what it is asked."""
    said: list[str] = []
    handler = type("Handler", (_Connection,), {"odd": odd, "said": said})
    with _Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"rtsp://127.0.0.1:{server.server_address[1]}/cam", said
        server.shutdown()

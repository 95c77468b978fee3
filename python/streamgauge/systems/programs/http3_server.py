"""A server of files by HTTP/3, on aioquic. Runs by the Python that StreamGauge runs by, which has aioquic.

Serves ``STREAMGAUGE_MEDIA`` on ``STREAMGAUGE_SERVER:STREAMGAUGE_PORT`` with the certificate in
``STREAMGAUGE_SHARED``, and writes an access log of the form that nginx's has here. An answer is over once the
client has acknowledged all of it: unsent data waits in the server's own memory, and not in the kernel's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent, StopSendingReceived, StreamReset

CANNOT = 127
CONTROLS = ("reno", "cubic")
TYPES = {
    ".mpd": "application/dash+xml",
    ".m3u8": "application/vnd.apple.mpegurl",
    ".m4s": "video/mp4",
    ".json": "application/json",
}
# As nginx's configuration has them.
LEAVE = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "CMCD-Object, CMCD-Request, CMCD-Session, CMCD-Status, Range",
    "access-control-expose-headers": "Content-Length, Content-Range, Date",
    "access-control-max-age": "600",
    "cross-origin-resource-policy": "cross-origin",
    "timing-allow-origin": "*",
}
CMCD = ("object", "request", "session", "status")
LOOK_S = 0.005
"""How often it is seen whether an answer has been acknowledged."""


class Server(QuicConnectionProtocol):
    """One connection."""

    root = Path()
    log: Any = None
    count = 0

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        Server.count += 1
        self.number = Server.count
        self.http: H3Connection | None = None
        self.requests = 0
        self.cut: set[int] = set()
        self.tasks: set[asyncio.Task[None]] = set()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol in H3_ALPN:
            self.http = H3Connection(self._quic)
        if isinstance(event, StopSendingReceived | StreamReset):
            self.cut.add(event.stream_id)
            if isinstance(event, StopSendingReceived):
                self._quic.reset_stream(event.stream_id, 0x10C)  # H3_REQUEST_CANCELLED
                self.transmit()
        if self.http is not None:
            for one in self.http.handle_event(event):
                self._asked(one)

    def _asked(self, event: H3Event) -> None:
        if not isinstance(event, HeadersReceived):
            return
        self.requests += 1
        head = {name.decode(): value.decode(errors="replace") for name, value in event.headers}
        method, target = head.get(":method", ""), head.get(":path", "")
        status, body, kind = self._found(method, target)
        assert self.http is not None
        answer = {":status": str(status), "content-length": str(len(body)), "content-type": kind, **LEAVE}
        pairs = [(name.encode(), value.encode()) for name, value in answer.items()]
        self.http.send_headers(event.stream_id, pairs, end_stream=not body)
        if body:
            self.http.send_data(event.stream_id, body, end_stream=True)
        self.transmit()
        told = {
            "status": status,
            "bytes": len(body),
            "request": f"{method} {target} HTTP/3.0",
            "range": head.get("range", ""),
            "connection": self.number,
            "on_connection": self.requests,
            "rtt_us": "",
            "cwnd": "",
            "http": "HTTP/3.0",
            **{f"cmcd_{name}": head.get(f"cmcd-{name}", "") for name in CMCD},
        }
        task = asyncio.get_running_loop().create_task(self._log(event.stream_id, told, time.time()))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _found(self, method: str, target: str) -> tuple[int, bytes, str]:
        """Returns status, body and type of a request; files outside the folder are not found."""
        if method == "OPTIONS":
            return 204, b"", "text/plain"
        name = target.partition("?")[0].removeprefix("/")
        file = self.root / name
        if method != "GET" or "/" in name or not file.is_file():
            return 404, b"", "text/plain"
        return 200, file.read_bytes(), TYPES.get(file.suffix, "application/octet-stream")

    async def _log(self, stream: int, told: dict[str, Any], asked_s: float) -> None:
        """Writes an answer's line when it is over, or when the server is asked to end."""
        # aioquic gives no notice of an acknowledged stream: the stream then disappears from this table.
        streams = self._quic._streams
        is_whole = False
        with contextlib.suppress(asyncio.CancelledError):
            while stream in streams and not streams[stream].sender.is_finished and stream not in self.cut:
                await asyncio.sleep(LOOK_S)
            is_whole = stream not in self.cut
        now_s = time.time()
        line = {"t": round(now_s, 3), "took": round(now_s - asked_s, 3), "whole": "OK" if is_whole else ""}
        self.log.write(json.dumps(line | told) + "\n")


async def main() -> int:
    control = sys.argv[1]
    if control not in CONTROLS:
        said = f"aioquic has no congestion control {control}; it has {', '.join(CONTROLS)}"
        print(said, file=sys.stderr)
        return CANNOT
    shared = Path(os.environ["STREAMGAUGE_SHARED"])
    configuration = QuicConfiguration(
        alpn_protocols=H3_ALPN, is_client=False, congestion_control_algorithm=control
    )
    configuration.load_cert_chain(shared / "certificate.pem", shared / "key.pem")
    Server.root = Path(os.environ["STREAMGAUGE_MEDIA"])
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    with Path("access.log").open("w", buffering=1, encoding="utf-8") as Server.log:
        address = os.environ["STREAMGAUGE_SERVER"], int(os.environ["STREAMGAUGE_PORT"])
        await serve(*address, configuration=configuration, create_protocol=Server)
        await ended.wait()
        waiting = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

"""The page's server: loopback, a token in each address, no other host's words."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from streamgauge.errors import CannotRunError, StreamGaugeError
from streamgauge.live.connections import bounded_protocol
from streamgauge.live.session import LiveSession, Refused

__all__ = ["LiveServer", "needs_extra"]

PAGE = Path(__file__).parent / "page"
FILES = {
    "live.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "live.css": "text/css; charset=utf-8",
    "uPlot-1.6.32.js": "text/javascript; charset=utf-8",
    "uPlot-1.6.32.css": "text/css; charset=utf-8",
}
MOST_STREAMS = 8
"""Pages at once."""
MOST_ASKED_BYTES = 16_384
LINGER_S = 2.0
"""From a trial's end until the server is gone, for its last words to arrive."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'",
}


def needs_extra() -> None:
    """Raises CannotRunError if the page's server is not installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise CannotRunError(
            f"--live: {error.name} is missing; install it: pip install 'streamgauge[live]'."
        ) from None


class LiveServer:
    """Serves one session from a thread of its own."""

    def __init__(self, session: LiveSession, port: int = 0) -> None:
        needs_extra()
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self._socket = _listening(port)
        self.port = int(self._socket.getsockname()[1])
        self._hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        self._streams = 0
        self._closing: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Any = None
        self._thread = threading.Thread(target=self._run, name="live-page", daemon=True)
        self._started = threading.Event()

    @property
    def url(self) -> str:
        """Returns the page's address."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def start(self) -> None:
        """Serves until `stop`."""
        self._thread.start()
        self._started.wait(timeout=10)

    def stop(self) -> None:
        """Delivers pending data, and ends."""
        if self._loop is not None and self._closing is not None:
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(timeout=LINGER_S)
        if self._server is not None:
            self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=LINGER_S)
        self._socket.close()

    def _run(self) -> None:
        import uvicorn

        config = uvicorn.Config(
            self._app(),
            http=bounded_protocol(),
            log_level="critical",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        await self._closing.wait()
        # Streams end by themselves after their last message.
        for _ in range(20):
            if not self._streams:
                break
            await asyncio.sleep(0.05)
        self._server.should_exit = True
        await serving

    def _app(self) -> Any:
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/events", self._events),
                Route("/change", self._change, methods=["POST"]),
                Route("/scenario", self._yaml),
                Route("/{name}", self._file),
            ]
        )

    def _refusal(self, request: Any) -> Any:
        """Returns an answer to a forbidden request; None if the request is allowed."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts:
            return _error(403, f"this page is served to 127.0.0.1:{self.port} alone")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return _error(403, f"a page of {origin[:80]} may not ask; use the page's own address")
        if not hmac.compare_digest(request.query_params.get("token", "").encode(), self.token.encode()):
            return _error(403, "the token is missing or wrong; use the whole address of the line 'live: ...'")
        return None

    async def _page(self, request: Any) -> Any:
        from starlette.responses import HTMLResponse

        if (refusal := self._refusal(request)) is not None:
            return refusal
        text = (PAGE / "live.html").read_text(encoding="utf-8")
        return HTMLResponse(text.replace("TOKEN", self.token), headers=_HEADERS)

    async def _file(self, request: Any) -> Any:
        from starlette.responses import Response

        if (refusal := self._refusal(request)) is not None:
            return refusal
        name = request.path_params["name"]
        if name not in FILES:
            return _error(404, "there is no such page; the page is at /")
        return Response((PAGE / name).read_bytes(), media_type=FILES[name], headers=_HEADERS)

    async def _yaml(self, request: Any) -> Any:
        from starlette.responses import PlainTextResponse

        if (refusal := self._refusal(request)) is not None:
            return refusal
        try:
            text = await asyncio.to_thread(self.session.yaml)
        except StreamGaugeError as error:
            return _error(409, str(error))
        named = {"Content-Disposition": 'attachment; filename="steered.yaml"'}
        return PlainTextResponse(text, headers=_HEADERS | named)

    async def _change(self, request: Any) -> Any:
        from starlette.responses import JSONResponse

        if (refusal := self._refusal(request)) is not None:
            return refusal
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_ASKED_BYTES:
                return _error(413, f"a change has {MOST_ASKED_BYTES} bytes at most; send fewer settings")
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError) as error:
            return _error(400, f'the change is no JSON ({error}); send such as {{"down.rate": "500 kbit/s"}}')
        try:
            at_s = await asyncio.to_thread(self.session.change, asked)
        except Refused as error:
            return _error(error.status, str(error))
        except StreamGaugeError as error:
            return _error(400, str(error))
        return JSONResponse({"t_s": at_s}, headers=_HEADERS)

    async def _events(self, request: Any) -> Any:
        from starlette.responses import StreamingResponse

        if (refusal := self._refusal(request)) is not None:
            return refusal
        if self._streams >= MOST_STREAMS:
            return _error(503, f"{MOST_STREAMS} pages are open already; close one")
        return StreamingResponse(self._stream(), media_type="text/event-stream", headers=_HEADERS)

    async def _stream(self) -> AsyncIterator[str]:
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]](maxsize=600)

        def put(sample: dict[str, Any]) -> None:
            if not queue.full():  # a page that does not read misses samples, and delays no other
                queue.put_nowait(sample)

        def take(sample: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(put, sample)

        session = self.session
        self._streams += 1
        session.pages = self._streams
        try:
            before = session.listen(take)
            yield _event(self._words(), "hello")
            yield _event(before, "history")
            while True:
                sample = await self._next(queue)
                if sample is None:
                    yield _event({"yaml": await asyncio.to_thread(_quietly, session)}, "over")
                    return
                yield _event(sample)
        finally:
            session.forget(take)
            self._streams -= 1
            session.pages = self._streams

    async def _next(self, queue: asyncio.Queue[dict[str, Any]]) -> dict[str, Any] | None:
        """Returns the next sample, or None when there will be no other."""
        while True:
            try:
                return await asyncio.wait_for(queue.get(), timeout=0.25)
            except TimeoutError:
                if self._closing is None or self._closing.is_set() or self.session.ended.is_set():
                    return None

    def _words(self) -> dict[str, Any]:
        session = self.session
        return {
            "title": session.title,
            "mode": session.mode,
            "flows": [flow["name"] for flow in session.plan["flows"]],
            "controls": [one.as_data() for one in session.controls.values()],
            "duration_s": session.plan["duration"] / 1e9,
            "presets": session.presets(),
        }


def _quietly(session: LiveSession) -> str | None:
    try:
        return session.yaml()
    except StreamGaugeError:
        return None


def _event(data: Any, name: str | None = None) -> str:
    head = f"event: {name}\n" if name is not None else ""
    return f"{head}data: {json.dumps(data, allow_nan=False)}\n\n"


def _error(status: int, why: str) -> Any:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": why}, status_code=status, headers=_HEADERS)


def _listening(port: int) -> socket.socket:
    """Returns a socket on loopback. Raises CannotRunError if the port is taken."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
        made.listen(64)
    except OSError as error:
        made.close()
        raise CannotRunError(
            f"--live-port {port}: {error.strerror}; give another, or 0 for any that is free."
        ) from error
    return made

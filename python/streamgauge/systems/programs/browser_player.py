"""A player in a headless Chromium. Runs by the system's python3; needs nothing but its standard library.

Serves the page and the player's JavaScript on loopback, which keeps both off the path, has Chromium open the
page, and writes the page's reports to ``STREAMGAUGE_EVENTS``, with times converted from the page's clock into
CLOCK_MONOTONIC. Takes ``start``, ``pause``, ``resume`` and ``stop`` on stdin. The settings of the player are
in the file that is its one argument.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from player_line import Events, commands, levels

CANNOT = 127
NAMES = ("chromium", "chromium-browser", "google-chrome")
# A container's root has no sandbox of Chromium's own, and only our page is opened here.
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--metrics-recording-only",
    "--password-store=basic",
    # It is never in front, and is to keep time all the same.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    # Pages of loopback may fetch from the path's addresses, which are private ones, without being asked.
    "--disable-features=LocalNetworkAccessChecks,MediaRouter,OptimizationHints,Translate",
    # The log has the page's console output.
    "--enable-logging=stderr",
    "--window-size=800,600",
]
TYPES = {".html": "text/html", ".js": "text/javascript", ".json": "application/json"}
# With both, the page's clock counts in 5 us; without, in 100 us.
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
# A process has two seconds to end; some of it is Chromium's.
LAST_WORDS_S = 1.0


class BrowserPage:
    """One page: its commands and its reports."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.folder = Path(__file__).parent
        self.events = Events()
        self.told: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.lock = threading.Lock()
        #: Offset of the page's clock: ns of CLOCK_MONOTONIC at 0 ms.
        self.page_zero_ns: int | None = None
        self.requested_ns = 0
        #: It was asked to end, or the media has ended.
        self.is_over = False
        self.ended = threading.Event()
        self.why_failed = ""

    def files(self) -> dict[str, Path]:
        """Returns the served files, by path."""
        page = self.folder / "browser"
        return {
            "/": page / "page.html",
            "/page.js": page / "page.js",
            "/player.js": page / f"{self.settings['player']}.js",
            "/library.js": self.folder / self.settings["library"],
        }

    def clock(self, told: dict[str, Any]) -> None:
        """Keeps the page's measurement of our clock."""
        zero_ns = told["server_ns"] - round(told["page_ms"] * 1e6)
        with self.lock:
            before, self.page_zero_ns = self.page_zero_ns, self.page_zero_ns or zero_ns
        reason = "half the quickest exchange between the page's clock and CLOCK_MONOTONIC"
        self.events.say("page_clock_error", told["error_ms"] / 1e3, "s", reason)
        if before is not None:
            self.events.say("page_clock_drift", (zero_ns - before) / 1e9, "s", "since the page was opened")

    def say(self, said: list[dict[str, Any]]) -> None:
        """Writes the page's reports."""
        has_ended = False
        with self.lock:
            for one in said:
                assert self.page_zero_ns is not None
                at_ns = self.page_zero_ns + round(one["at_ms"] * 1e6)
                value = one["value"]
                if one["name"] == "playout_start":
                    value = (at_ns - self.requested_ns) / 1e9
                if one["name"] == "error":
                    self.why_failed = self.why_failed or one["reason"]
                if one["name"] == "media_end":
                    has_ended = self.is_over = True
                self.events.say(one["name"], value, one["unit"], one["reason"], at_s=at_ns / 1e9)
        if self.why_failed or has_ended:
            self.ended.set()

    def command(self, words: dict[str, Any]) -> None:
        """Passes commands to the player."""
        if words["cmd"] == "start":
            wait_s = words["start_monotonic_ns"] / 1e9 - time.monotonic()
            threading.Timer(max(0.0, wait_s), self.start).start()
        elif words["cmd"] == "stop":
            self.stop()
        else:
            self.told.put({"cmd": words["cmd"]})

    def start(self) -> None:
        self.requested_ns = time.monotonic_ns()
        self.events.say("play_requested")
        self.told.put({"cmd": "start"})

    def stop(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.told.put({"cmd": "stop"})
            threading.Timer(LAST_WORDS_S, self.ended.set).start()


def handler(session: BrowserPage) -> type[BaseHTTPRequestHandler]:
    """Returns the handler of the page's requests."""
    files = session.files()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Heads and bodies are sent one after the other, and are not to wait for an acknowledgement between.
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def answer(self, body: bytes, type_: str = "application/json", status: int = 200) -> None:
            self.send_response(status)
            for name, value in ISOLATED.items():
                self.send_header(name, value)
            self.send_header("Content-Type", type_)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            if self.path == "/clock":
                self.answer(json.dumps({"now_ns": time.monotonic_ns()}).encode())
            elif self.path == "/settings.json":
                self.answer(json.dumps(session.settings).encode())
            elif self.path == "/commands":
                self.commands()
            elif (file := files.get(self.path)) is not None:
                self.answer(file.read_bytes(), TYPES[file.suffix])
            else:
                self.answer(b"", status=404)

        def commands(self) -> None:
            """Server-sent events, to the session's end."""
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(b": commands follow\n\n")
            self.wfile.flush()
            with suppress(OSError):
                while True:
                    self.wfile.write(b"data: " + json.dumps(session.told.get()).encode() + b"\n\n")
                    self.wfile.flush()

        def do_POST(self) -> None:
            said = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/said":
                session.say(json.loads(said))
            elif self.path == "/clock":
                session.clock(json.loads(said))
            elif self.path == "/ready":
                Path(os.environ["STREAMGAUGE_READY"]).touch()
            elif self.path == "/ended":
                session.ended.set()
            self.answer(b"{}")

    return Handler


def listen(session: BrowserPage) -> None:
    """Reads commands from stdin."""
    while said := os.read(0, 4096):
        for words in commands(said):
            session.command(dict(words))
    session.stop()


def awaited(file: Path) -> str:
    """Returns the content of a file, once the server's side has made it."""
    while not file.is_file():
        time.sleep(0.05)
    return file.read_text(encoding="ascii")


def too_little_room() -> str:
    """Returns why no Chromium runs under a limit of address space, whatever memory there is; empty without
    one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        "its JavaScript engine, V8, reserves more address space than the limit of "
        f"{limit / 1e6:.0f} MB allows; raise it (ulimit -v unlimited)"
    )


def main() -> int:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        print("there is no Chromium; `streamgauge doctor` says where it is from", file=sys.stderr)
        return CANNOT
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings["levels"] = levels()
    session = BrowserPage(settings)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: session.stop())
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(session))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scratch = os.environ["STREAMGAUGE_SHARED"]
    flags = [*FLAGS, *settings["flags"], f"--user-data-dir={scratch}/profile"]
    if settings["spki"] is not None:
        flags.append(f"--ignore-certificate-errors-spki-list={awaited(Path(settings['spki']))}")
    with Path("chromium.log").open("wb") as log:
        browser = subprocess.Popen(
            [program, *flags, f"http://127.0.0.1:{server.server_port}/"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Its own files are not part of the trial.
            env={
                **os.environ,
                "HOME": scratch,
                "TMPDIR": scratch,
                "XDG_CONFIG_HOME": scratch,
                "XDG_CACHE_HOME": scratch,
            },
        )
        threading.Thread(target=listen, args=[session], daemon=True).start()
        while not session.ended.wait(0.1):
            if browser.poll() is not None:
                session.why_failed = f"Chromium ended with status {browser.returncode}"
                break
        browser.kill()
        browser.wait()
    if session.is_over and not session.why_failed:
        return 0
    if browser.returncode != -signal.SIGKILL and (why := too_little_room()):
        print(f"{session.why_failed}: {why}", file=sys.stderr, flush=True)
        return CANNOT
    print(session.why_failed or "the page ended", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())

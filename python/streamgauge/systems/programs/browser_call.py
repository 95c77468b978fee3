"""One end of a video call in a headless Chromium. Runs by the system's python3, on its standard library.

The browser is steered over DevTools' pipe, and its page is a file: nothing but the call itself is on the
network. The two ends exchange their descriptions (SDP) by lines of ``signals.jsonl``, which the trial carries
to the other end before time runs. Addresses of candidates are passed to the browser when the flow starts.
Takes ``signal``, ``start``, ``pause``, ``resume`` and ``stop`` on stdin. Its one argument is the file with
its settings.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from devtools import Browser, BrowserGoneError, PageError
from player_line import Events, commands

CANNOT = 127
NAMES = ("chromium", "chromium-browser", "google-chrome")
SIGNALS = "signals.jsonl"
FLAGS = [
    "--headless=new",
    # The side that it runs in is a sandbox, and only our page is opened here.
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
    "--use-fake-ui-for-media-stream",
    # It is never in front, and is to keep time all the same.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    # Candidates have the addresses of the path, and no name that multicast DNS would have to resolve.
    "--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter,OptimizationHints,Translate",
    "--enable-logging=stderr",
    "--window-size=800,600",
]
SCREAM = (
    "--force-fieldtrials=WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true"
    "/WebRTC-Bwe-ScreamV2/mode:always/"
)
CCFB = "ack ccfb"
"""RFC 8888's feedback in a description (section 6)."""


class CannotCallError(Exception):
    """This machine's programs cannot do the task, in words."""


def header_of(camera: Path) -> dict[str, Any]:
    """Returns width, height and frames per second of a Y4M file. CannotCallError if it is none."""
    with camera.open("rb") as file:
        line = file.readline(256)
    words = line.decode("ascii", "replace").split()
    fields = {word[0]: word[1:] for word in words[1:]}
    try:
        if words[0] != "YUV4MPEG2":
            raise ValueError
        pictures, seconds = map(int, fields["F"].split(":"))
        return {
            "width": int(fields["W"]),
            "height": int(fields["H"]),
            "frame_rate": pictures / seconds,
        }
    except (ValueError, KeyError, IndexError, ZeroDivisionError):
        raise CannotCallError(f"the camera's file {camera.name} is no Y4M; ffmpeg makes one") from None


def parted(description: str) -> tuple[str, list[str]]:
    """Returns a description without its candidates, and those of UDP over IPv4."""
    rest, candidates = [], []
    for line in description.splitlines():
        if line.startswith("a=candidate:"):
            fields = line.split()
            if fields[2].lower() == "udp" and ":" not in fields[4]:
                candidates.append(line[2:])
        elif line != "a=end-of-candidates":
            rest.append(line)
    return "".join(f"{line}\r\n" for line in rest), candidates


class End:
    """One end of the call: its browser, its commands and its reports."""

    def __init__(self, settings: dict[str, Any], browser: Browser) -> None:
        self.settings = settings
        self.browser = browser
        self.events = Events()
        self.inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.zero_ns = 0
        self.is_connected = False

    def say(self, told: str) -> None:
        """Writes one report of the page."""
        at_ms, name, value, unit, reason = json.loads(told)
        self.is_connected = self.is_connected or name == "connected"
        at_ns = self.zero_ns + round(at_ms * 1e6)
        self.events.say(name, value, unit, reason, at_s=at_ns / 1e9)

    def read_clock(self) -> None:
        """Reads the page's clock, and reports its error, and its drift if it was read before."""
        zero_ns, error_ns = self.browser.page_clock()
        reason = "half the quickest exchange between the page's clock and CLOCK_MONOTONIC"
        self.events.say("page_clock_error", error_ns / 1e9, "s", reason)
        if self.zero_ns:
            self.events.say(
                "page_clock_drift", (zero_ns - self.zero_ns) / 1e9, "s", "since the page was opened"
            )
        self.zero_ns = self.zero_ns or zero_ns

    def run(self, *words: Any) -> Any:
        """Calls a function of the page, by its name and its arguments."""
        name, *arguments = words
        return self.browser.call(f"{name}({', '.join(map(json.dumps, arguments))})")

    def signal(self, **words: Any) -> None:
        """Sends a message to the other end, which the trial carries."""
        with Path(SIGNALS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(words) + "\n")

    def awaited(self) -> dict[str, Any]:
        """Returns the other end's message. SystemExit if the trial ends before."""
        while True:
            words = self.inbox.get()
            if words["cmd"] == "signal":
                told: dict[str, Any] = words["signal"]
                return told
            if words["cmd"] == "stop":
                raise SystemExit(0)

    def agree(self) -> list[str]:
        """Exchanges descriptions. Returns the candidates of the other end."""
        if self.settings["side"] == "server":
            told = self.settings | header_of(Path(self.settings["camera"]))
            size = f"{told['width']}x{told['height']}"
            self.events.say("camera", told["frame_rate"], "1/s", size)
            description, candidates = parted(self.run("offer", told))
            self.check(description, candidates)
            self.signal(settings=told, sdp=description, candidates=candidates)
            answer = self.awaited()
            self.run("answered", answer["sdp"])
            return list(answer["candidates"])
        offer = self.awaited()
        description, candidates = parted(self.run("answer", offer["settings"], offer["sdp"]))
        self.check(description, candidates)
        self.signal(sdp=description, candidates=candidates)
        return list(offer["candidates"])

    def check(self, description: str, candidates: list[str]) -> None:
        """CannotCallError if this browser does not offer the requested."""
        if not candidates:
            raise CannotCallError("Chromium found no address of this side for ICE")
        if self.settings["controller"] == "scream" and CCFB not in description:
            raise CannotCallError(
                f"{self.browser.version()} has no feedback by RFC 8888 (field trial WebRTC-Bwe-ScreamV2); "
                "use Chromium 156 or controller: gcc"
            )

    def call(self, candidates: list[str]) -> None:
        """Does commands to the end of the trial."""
        while (words := self.inbox.get())["cmd"] != "stop":
            if words["cmd"] == "start":
                time.sleep(max(0.0, words["start_monotonic_ns"] / 1e9 - time.monotonic()))
                self.run("begin", candidates)
            elif words["cmd"] in ("pause", "resume"):
                self.run("pause", words["cmd"] == "pause")
            elif words["cmd"] == "gone":
                raise BrowserGoneError(self.browser.fate())
        self.run("finish")
        self.read_clock()


def listen(end: End) -> None:
    """Reads commands from stdin."""
    rest = b""
    while said := os.read(0, 1 << 16):
        whole, newline, rest = (rest + said).rpartition(b"\n")
        for words in commands(whole) if newline else ():
            end.inbox.put(dict(words))
    end.inbox.put({"cmd": "stop"})


def too_little_room() -> str:
    """Returns why no Chromium runs under a limit of address space; empty without one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        "; its JavaScript engine, V8, reserves more address space than the limit of "
        f"{limit / 1e6:.0f} MB allows; raise it (ulimit -v unlimited)"
    )


def main() -> int:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        print("there is no Chromium; `streamgauge doctor` says where it is from", file=sys.stderr)
        return CANNOT
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    scratch = os.environ["STREAMGAUGE_SHARED"]
    flags = [*FLAGS, f"--user-data-dir={scratch}/profile"]
    if settings["controller"] == "scream":
        flags.append(SCREAM)
    if settings["side"] == "server":
        flags += [
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-video-capture={settings['camera']}",
        ]
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), scratch)
    browser = Browser([program, *flags], log=Path("chromium.log"), environment={**os.environ, **folders})
    end = End(settings, browser)
    browser.heard = end.say
    browser.gone = lambda: end.inbox.put({"cmd": "gone"})
    signal.signal(signal.SIGINT, lambda *_: end.inbox.put({"cmd": "stop"}))
    threading.Thread(target=listen, args=[end], daemon=True).start()
    try:
        browser.open(Path(__file__).parent / "call" / "page.html", ready="offer")
        end.read_clock()
        end.events.say("browser", reason=browser.version())
        candidates = end.agree()
        Path(os.environ["STREAMGAUGE_READY"]).touch()
        end.call(candidates)
    except CannotCallError as error:
        print(error, file=sys.stderr, flush=True)
        return CANNOT
    except PageError as error:
        print(f"the page of the {settings['side']}: {error}", file=sys.stderr, flush=True)
        return 1
    except BrowserGoneError as error:
        print(f"{error}{too_little_room()}", file=sys.stderr, flush=True)
        return 1
    finally:
        browser.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())

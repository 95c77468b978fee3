"""A Chromium that is steered over DevTools' pipe: file descriptors 3 and 4, and no socket at all.

Needs nothing but the standard library. Copied beside the script that uses it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ANSWER_S = 20.0
"""How long the browser may take for an answer."""


class BrowserGoneError(Exception):
    """The browser has ended, or does not answer."""


class PageError(Exception):
    """A function of the page failed, in the page's words."""


class Browser:
    """One Chromium with one page. Messages end with a NUL byte (Chromium's `--remote-debugging-pipe`)."""

    def __init__(self, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()

        def descriptors() -> None:
            # Copies above 4 first: one of the pair may be 3 or 4 itself.
            reading, writing = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, "--remote-debugging-pipe"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                close_fds=False,
                preexec_fn=descriptors,
                env=dict(environment),
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._session = ""
        #: Called with the text that the page gives to `report`.
        self.heard: Callable[[str], None] = lambda said: None
        #: Called when it has ended.
        self.gone: Callable[[], None] = lambda: None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        rest = b""
        while data := os.read(self._from, 1 << 16):
            *whole, rest = (rest + data).split(b"\0")
            for one in whole:
                message = json.loads(one)
                if (waiting := self._answers.pop(message.get("id", -1), None)) is not None:
                    waiting.put(message)
                elif message.get("method") == "Runtime.bindingCalled":
                    self.heard(message["params"]["payload"])
        for waiting in list(self._answers.values()):
            waiting.put({"gone": True})
        self.gone()

    def ask(self, method: str, timeout_s: float = ANSWER_S, **parameters: Any) -> dict[str, Any]:
        """Returns DevTools' answer. BrowserGoneError without one, PageError for a refusal."""
        waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        with self._lock:
            self._number += 1
            self._answers[self._number] = waiting
            words: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
            if self._session:
                words["sessionId"] = self._session
            try:
                os.write(self._to, json.dumps(words).encode() + b"\0")
            except BrokenPipeError:
                raise BrowserGoneError(self.fate()) from None
        try:
            answer = waiting.get(timeout=timeout_s)
        except queue.Empty:
            raise BrowserGoneError(f"Chromium did not answer {method} within {timeout_s:g} s") from None
        if "gone" in answer:
            raise BrowserGoneError(self.fate())
        if "error" in answer:
            raise PageError(f"{method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer["result"]
        return result

    def fate(self) -> str:
        """Returns how it ended, in words."""
        status = self.process.wait()
        if status < 0:
            return f"Chromium was killed by {signal.Signals(-status).name}"
        return f"Chromium ended with status {status}"

    def version(self) -> str:
        """Returns its name and version, as ``Chrome/156.0.1.2``."""
        return str(self.ask("Browser.getVersion")["product"])

    def open(self, page: Path, ready: str, query: str = "") -> None:
        """Opens a file as a page, and waits until its function `ready` exists."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Runtime.enable")
        self.ask("Runtime.addBinding", name="report")
        self.ask("Page.enable")
        self.ask("Page.navigate", url=page.resolve().as_uri() + query)
        until = time.monotonic() + ANSWER_S
        while self.call(f"typeof {ready}") != "function":
            if time.monotonic() > until:
                raise BrowserGoneError(f"the page did not load within {ANSWER_S:g} s")
            time.sleep(0.05)

    def call(self, expression: str, timeout_s: float = ANSWER_S) -> Any:
        """Returns the value of an expression in the page, awaited if it is a promise. PageError if it
        throws."""
        told = self.ask(
            "Runtime.evaluate", timeout_s, expression=expression, awaitPromise=True, returnByValue=True,
            userGesture=True,
        )  # fmt: skip
        if (thrown := told.get("exceptionDetails")) is not None:
            words = thrown.get("exception", {}).get("description") or thrown.get("text", "")
            raise PageError(str(words).splitlines()[0])
        return told["result"].get("value")

    def page_clock(self, tries: int = 20) -> tuple[int, int]:
        """Returns CLOCK_MONOTONIC at 0 ms of the page's clock, and half the quickest exchange, both in ns."""
        readings = []
        for _ in range(tries):
            begun = time.monotonic_ns()
            page_ms = self.call("performance.now()")
            ended = time.monotonic_ns()
            readings.append((ended - begun, (begun + ended) // 2 - round(page_ms * 1e6)))
        took, zero_ns = min(readings)
        return zero_ns, took // 2

    def end(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait()

"""Talks to `streamgauge-engine`'s long-running helpers: the link emulator and the witnesses."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamgauge.emu.errors import TrialBrokenError
from streamgauge.errors import CannotRunError

ANSWER_S = 20.0
"""How long a helper may take to answer. Writing a long record takes seconds."""


class Helper:
    """An engine process that takes JSON lines and answers with them."""

    def __init__(
        self,
        name: str,
        command: list[str],
        log: Path,
        *,
        pass_fds: tuple[int, ...] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self._log = log
        self._buffer = b""
        with log.open("ab") as stderr:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                pass_fds=pass_fds,
                env=environment,
            )
        assert self.popen.stdout is not None
        os.set_blocking(self.popen.stdout.fileno(), False)

    @property
    def descriptor(self) -> int:
        """Readable when there is an answer, or when it has died."""
        assert self.popen.stdout is not None
        return self.popen.stdout.fileno()

    def send(self, **command: Any) -> None:
        """Sends a command."""
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError):
            self.popen.stdin.write(json.dumps(command).encode() + b"\n")
            self.popen.stdin.flush()

    def poll(self) -> dict[str, Any] | None:
        """Returns the next answer if there is one. Raises an error that the helper reports, or its death."""
        while b"\n" not in self._buffer:
            try:
                more = os.read(self.descriptor, 1 << 20)
            except BlockingIOError:
                return None
            if not more:
                raise TrialBrokenError(f"{self.name} died: {self._fate()}; run the trial again.")
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if answer.get("event") == "error":
            raise _failure(self.name, answer)
        return answer

    def expect(self, event: str, *, within_s: float = ANSWER_S) -> dict[str, Any]:
        """Waits for the answer `event`; others that come before are passed over."""
        until = time.monotonic() + within_s
        while True:
            answer = self.poll()
            if answer is not None and answer.get("event") == event:
                return answer
            if answer is None:
                left = until - time.monotonic()
                if left <= 0:
                    raise TrialBrokenError(f"{self.name} did not say '{event}' within {within_s:g} s.")
                select.select([self.descriptor], [], [], left)

    def ask(self, event: str, /, **command: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer."""
        self.send(**command)
        return self.expect(event)

    def end(self) -> None:
        """Lets it finish: its stdin closes."""
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError):
            self.popen.stdin.close()
        try:
            self.popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def _fate(self) -> str:
        try:
            code = self.popen.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        said = self._log.read_text(errors="replace").strip().splitlines() if self._log.is_file() else []
        how = f"killed by signal {-code}" if code < 0 else f"exit status {code}"
        return f"{how}, {said[-1]}" if said else how


def _failure(name: str, answer: dict[str, Any]) -> Exception:
    message, path, remedy = (answer.get(key) or "" for key in ("message", "path", "remedy"))
    # A message of a library's own may name the file and the remedy already.
    if path and path not in message:
        message = f"{message} {path}".strip()
    if remedy in message:
        remedy = ""
    text = f"{name}: cannot {answer.get('what')}: {message}"
    text += f"; {remedy}." if remedy else "."
    if answer.get("what") == "write" or answer.get("errno") in (1, 13, 28, 30):
        return CannotRunError(text)
    return TrialBrokenError(text)

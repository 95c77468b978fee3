"""Encoders that run side by side, and end together."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

__all__ = ["Programs"]

_STOPPED = -15


class Programs:
    """Programs that threads wait for. When the `with` block ends they all end, and none starts any more:
    nothing runs on after Ctrl-C."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end; its status is then negative if it was stopped."""
        environment = {**os.environ, "AV_LOG_FORCE_NOCOLOR": "1"}
        with self._lock:
            if self._stopped:
                return subprocess.CompletedProcess(command, _STOPPED, "", "stopped")
            program = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env=environment,
            )
            self._running.add(program)
        try:
            out, err = program.communicate()
        finally:
            with self._lock:
                self._running.discard(program)
        return subprocess.CompletedProcess(command, program.returncode, out, err)

    def stop(self) -> None:
        """Ends those that run."""
        with self._lock:
            self._stopped = True
            for program in self._running:
                program.kill()

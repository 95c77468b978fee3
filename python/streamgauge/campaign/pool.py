"""Processes on this machine that run simulated trials.

Processes, not threads: lowering, measuring and saving are Python's, of which threads run one at a time. Each
has two pipes: one for tasks, one for rows and errors. A process that dies takes its trial along and nothing
else; the trial is given to a new one.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import streamgauge
from streamgauge.campaign.work import Row, Task
from streamgauge.errors import CannotRunError, StreamGaugeError

__all__ = ["Pool", "receive", "send", "started_ahead"]

_LENGTH: Final = struct.Struct("<Q")
_TRIES: Final = 3
"""How many processes a trial may bring to an end before the campaign does."""


class WorkerDied(StreamGaugeError):
    """Processes died under a trial again and again."""

    exit_status = 4


class Pool:
    """As many processes as are asked for, started when there is work for them.

    `perform` is called from as many threads. At the end they go; one that works ends its trial first.
    """

    def __init__(self) -> None:
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        self._all: list[_Process] = []
        while _ahead:
            self._all.append(_ahead.pop())
            self._idle.put(self._all[-1])
        self._turn = threading.Lock()
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        try:
            self._end()
        except KeyboardInterrupt:
            self.stop()
            self._end()
            raise

    def _end(self) -> None:
        # Each takes a third of a second to go: all at once.
        for process in self._all:
            process.dismiss()
        for process in self._all:
            process.end()

    def perform(self, task: Task) -> Row:
        """Runs a trial in a process that is free, or in a new one.

        Raises the trial's error, WorkerDied if process after process ended under it.
        """
        for _ in range(_TRIES):
            process = self._free()
            try:
                found = process.ask(task)
            except (EOFError, OSError):
                said = process.last_words()
                with self._turn:
                    self._all.remove(process)
                if self._stopped:
                    break
                continue
            self._idle.put(process)
            if isinstance(found, BaseException):
                raise found
            return found
        if self._stopped:
            raise KeyboardInterrupt
        raise WorkerDied(
            f"{task.directory}: {_TRIES} processes in turn {said} while they ran this trial; if the machine "
            "is out of memory, run the scenario alone or with a shorter 'until'."
        )

    def _free(self) -> _Process:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            try:
                process = _Process()
            except OSError as error:
                raise CannotRunError(
                    f"cannot start a process for a trial: {error.strerror}. Raise the limits of processes "
                    "and open files (ulimit -u, ulimit -n) and run it again. Finished trials are kept."
                ) from error
            with self._turn:
                self._all.append(process)
            return process

    def stop(self) -> None:
        """Ends the trials that are under way; nothing of them stays."""
        self._stopped = True
        with self._turn:
            for process in self._all:
                process.kill()


class _Process:
    """One of the processes."""

    def __init__(self) -> None:
        # One thread each: the trials themselves run in parallel.
        one = dict.fromkeys(("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        # Memory that returns to the kernel between arrays must be cleared again, page by page.
        keep = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}
        # An installed package is found anyway, and its neighbours take no precedence.
        home = Path(streamgauge.__file__).parent.parent
        checkout = [] if home.name.endswith("-packages") else [str(home)]
        path = os.pathsep.join(filter(None, [*checkout, os.environ.get("PYTHONPATH")]))
        # Out of the terminal's group: Ctrl-C is for the campaign, which lets trials under way end.
        apart: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        self._process = subprocess.Popen(
            # -P: not the contents of the current folder.
            [sys.executable, "-P", "-m", "streamgauge.campaign.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | one | keep | {"PYTHONPATH": path},
            **apart,
        )

    def ask(self, task: Task) -> Row | BaseException:
        """Raises EOFError or OSError if the process is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        send(self._process.stdin, task)
        found: Row | BaseException = receive(self._process.stdout)
        return found

    def last_words(self) -> str:
        """Returns how it ended."""
        self.end()
        status = self._process.returncode
        if status >= 0:
            return f"ended with status {status}"
        return f"were killed by {signal.Signals(-status).name}"

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()

    def dismiss(self) -> None:
        """Lets it end its current task, and exit."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def end(self) -> None:
        """The same, and waits for it."""
        assert self._process.stdout is not None
        self.dismiss()
        self._process.wait()
        self._process.stdout.close()


_ahead: list[_Process] = []


@contextlib.contextmanager
def started_ahead(count: int) -> Iterator[None]:
    """Starts processes for the next `Pool` in the context: each takes a second for its imports, while this
    one loads the scenarios. Unused ones end with the context."""
    try:
        with contextlib.suppress(OSError):  # the pool reports it, if need be
            while len(_ahead) < count:
                _ahead.append(_Process())
        yield
    finally:
        while _ahead:
            process = _ahead.pop()
            process.kill()
            process.end()


def send(pipe: IO[bytes], what: object) -> None:
    """Puts an object into a pipe. Raises OSError if the other end is closed."""
    data = pickle.dumps(what)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Takes an object out of a pipe. Raises EOFError at its end."""
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    return pickle.loads(_exactly(pipe, length))


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data

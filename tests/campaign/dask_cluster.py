"""A scheduler and workers as processes of this machine, as a user starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

GIVE_UP_S = 60.0


@dataclass
class DaskCluster:
    """Begun with ``with``; at its end everything is gone. ``folder`` takes its logs."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    """The scheduler's, besides our own."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    address: str = ""
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """As ``dask scheduler --scheduler-file`` writes it."""
        return self.folder / "scheduler.json"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(self.file),
            env=self.env,
        )
        self.address = json.loads(_awaited(lambda: self.file.exists() and self.file.read_text()))["address"]
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def start(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A process of ``dask``."""
        log = (self.folder / f"{arguments[0]}-{len(self.processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            cwd=self.folder,
            env=os.environ | (env or {}),
            stdout=log,
            stderr=log,
        )
        log.close()
        self.processes.append(process)
        return process

    def worker(self, name: str, *options: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A worker of one thread, without a nanny that would start it again."""
        options = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", *options)
        process = self.start("worker", self.address, "--name", name, *options, env=env)
        self.workers[name] = process
        return process

    def wait_for(self, count: int) -> None:
        """Until so many workers are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=GIVE_UP_S)

    def workers_there(self) -> int:
        """How many there are now."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            return len(client.nthreads())


def _awaited(look: Callable[[], str | bool]) -> str:
    deadline = time.monotonic() + GIVE_UP_S
    while time.monotonic() < deadline:
        if found := look():
            return str(found)
        time.sleep(0.02)
    raise TimeoutError("the scheduler did not come up")

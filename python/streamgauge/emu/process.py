"""The processes of a flow: started in their namespace, watched, asked to end, buried."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from streamgauge.systems.adapter import READY_FILE, FlowSetup, ProcessSpec, Side
from streamgauge.systems.command import programs_path

SHOWN_UID = 1000
"""User id that players see in the ordinary user's way."""

LAST_BYTES = 65_536
"""Of a log, however long, in which the last words are looked for."""


@dataclass(kw_only=True)
class Running:
    """A process of a flow."""

    flow: FlowSetup
    spec: ProcessSpec
    popen: subprocess.Popen[bytes]
    pidfd: int
    started_ns: int
    #: When it ended, if it did so within the trial.
    ended_ns: int | None = None
    #: True once it was asked to end.
    asked: bool = False
    #: CPU time and time spent waiting for a processor, s, since `baseline`, when last looked at.
    cpu_s: float = 0.0
    waited_s: float = 0.0
    _before: tuple[float, float] = (0.0, 0.0)

    @property
    def label(self) -> str:
        """As messages call it."""
        return f"{self.spec.side} of flow {self.flow.name}"

    @property
    def out(self) -> Path:
        """Its folder."""
        return self.flow.out(self.spec.side)

    def command(self, words: dict[str, Any]) -> None:
        """Sends it a line of JSON; a process that is gone is noticed elsewhere."""
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError):
            self.popen.stdin.write(json.dumps(words).encode() + b"\n")
            self.popen.stdin.flush()

    def stop(self) -> None:
        """Asks it to end."""
        self.asked = True
        if self.popen.poll() is not None:
            return
        if self.spec.control:
            self.command({"cmd": "stop"})
        else:
            with suppress(ProcessLookupError):
                os.killpg(self.popen.pid, self.spec.stop_signal)

    def act(self, what: str) -> None:
        """Does to it what a scenario asks: ends it, or tells it."""
        if what == "stop":
            self.stop()
        else:
            self.command({"cmd": what})

    def kill(self) -> None:
        """Ends it and what it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()

    def is_ready(self) -> bool:
        """Whether an early process has shown that it is."""
        if self.spec.ready == "line":
            said = self.out / "stdout.log"
            return said.is_file() and '"event":"ready"' in said.read_text(errors="replace").replace(" ", "")
        if (self.out / READY_FILE).exists():
            return True
        return self.spec.ready == "file or port" and _listens(self.popen.pid, self.flow.port)

    def measure(self) -> None:
        """Reads the scheduler's account of all of its threads."""
        cpu = waited = 0
        with suppress(OSError):
            for task in Path(f"/proc/{self.popen.pid}/task").iterdir():
                on_cpu, on_queue, _ = (int(part) for part in (task / "schedstat").read_text().split())
                cpu, waited = cpu + on_cpu, waited + on_queue
        # Threads that have ended take their account with them: keep the largest seen.
        self.cpu_s = max(self.cpu_s, cpu / 1e9 - self._before[0])
        self.waited_s = max(self.waited_s, waited / 1e9 - self._before[1])

    def baseline(self) -> None:
        """Starts the scheduler's account afresh: what loading took is no part of the trial."""
        self.measure()
        self._before = (self._before[0] + self.cpu_s, self._before[1] + self.waited_s)
        self.cpu_s = self.waited_s = 0.0

    def last_words(self) -> str:
        """The last line of its stderr, or of its stdout if that is empty."""
        for name in ("stderr.log", "stdout.log"):
            file = self.out / name
            if not file.is_file():
                continue
            with file.open("rb") as source:
                source.seek(max(0, file.stat().st_size - LAST_BYTES))
                text = source.read(LAST_BYTES).decode(errors="replace")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return lines[-1][:300]
        return ""

    def fate(self) -> str:
        """How it ended, in words."""
        code = self.popen.returncode
        if code is None:
            return "is running"
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        words = self.last_words()
        return how + (f" ({words})" if words else "")


def start(flow: FlowSetup, spec: ProcessSpec, *, way: str, uid: int) -> Running:
    """Starts a process of a flow in its namespace, without privileges unless it is trusted."""
    out = flow.out(spec.side)
    command = [str(flow.engine), "run-as", "--netns", spec.namespace]
    if spec.trusted:
        command.append("--keep-privileges")
    else:
        shown = str(uid if way == "root" else SHOWN_UID)
        command += ["--uid", shown, "--gid", shown]
    environment = {
        "PATH": programs_path(),
        "LANG": "C.UTF-8",
        "HOME": str(out),
        "TMPDIR": str(out),
        "XDG_RUNTIME_DIR": str(out),
        "XDG_CACHE_HOME": str(flow.folder.parent / "cache"),
        **flow.variables(spec.side),
        **spec.environment,
    }
    if spec.control:
        environment["STREAMGAUGE_CONTROL"] = "1"
    stdout, stderr = _log(out / "stdout.log"), _log(out / "stderr.log")
    with stdout, stderr:
        popen = subprocess.Popen(
            [*command, "--", *spec.command],
            stdin=subprocess.PIPE if spec.control else subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            cwd=spec.working_folder or out,
            start_new_session=True,
        )
    return Running(
        flow=flow,
        spec=spec,
        popen=popen,
        pidfd=os.pidfd_open(popen.pid),
        started_ns=time.monotonic_ns(),
    )


def _log(file: Path) -> IO[bytes]:
    return file.open("wb")


def _listens(pid: int, port: int) -> bool:
    """Whether a TCP listener or a UDP socket is bound to `port` in the process's network namespace."""
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == state and int(fields[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def sides(running: list[Running], flow: FlowSetup) -> dict[Side, Running]:
    """The processes of a flow by side."""
    return {one.spec.side: one for one in running if one.flow.name == flow.name}

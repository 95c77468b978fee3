"""The processes of a flow: furnished, started in their namespace, watched, asked to end, buried."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.emu.compartments import Compartment
from streamgauge.systems.adapter import READY_FILE, FlowSetup, Process, place, whose
from streamgauge.systems.command import UNSUPPORTED, programs_path
from streamgauge.systems.player_files import (
    FileRefusedError,
    exists_in,
    folder_of,
    new_in,
    printable,
    read_in,
    tail_of,
)

FIRST_BYTES = 1 << 20
"""The part of its output with the line by which it is ready."""
LAST_BYTES = 65_536
"""The part of a log of any length that has the last messages."""


@dataclass(kw_only=True)
class Running:
    """A process of a flow."""

    flow: FlowSetup
    spec: Process
    #: Whether its end is its side's.
    is_main: bool
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
        return whose(self.spec.side, self.spec.name, self.flow.name)

    @property
    def place(self) -> str:
        """The name of its files and times."""
        return place(self.spec.side, self.spec.name)

    @property
    def out(self) -> Path:
        """Its folder."""
        return self.flow.out(self.spec.side, self.spec.name)

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
        """Applies a scenario's action to it: ends it, or sends it the command."""
        if what == "stop":
            self.stop()
        else:
            self.command({"cmd": what})

    def kill(self) -> None:
        """Ends it and its children."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()

    def is_ready(self) -> bool:
        """Returns whether an early process has shown that it is ready, or needs no wait."""
        match self.spec.ready:
            case None:
                return True
            case "line":
                try:
                    said = read_in(self.out, "stdout.log", FIRST_BYTES)
                except FileRefusedError:
                    return False
                return said is not None and b'"event":"ready"' in said.data.replace(b" ", b"")
            case "end":
                return self.popen.poll() == 0
            case "port":
                return _listens(self.popen.pid, self.flow.port)
            case "file":
                return exists_in(self.out, READY_FILE)
            case "file or port":
                return exists_in(self.out, READY_FILE) or _listens(self.popen.pid, self.flow.port)
            case path:
                file = Path(os.path.normpath(path))
                # Programs own those folders, and could put a link to another file there.
                side = self.spec.side
                for folder in (self.flow.shared(side), self.flow.out(side), self.flow.folder):
                    if file.is_relative_to(folder):
                        return exists_in(folder, file.relative_to(folder), filled=True)
                return file.is_file() and file.stat().st_size > 0

    def sign(self) -> str:
        """Returns its sign of readiness, in words."""
        match self.spec.ready:
            case "line":
                return 'print a line with "event":"ready"'
            case "end":
                return "end with status 0"
            case "port":
                return "listen on $STREAMGAUGE_PORT"
            case "file":
                return "touch $STREAMGAUGE_READY"
            case "file or port":
                return "touch $STREAMGAUGE_READY or listen on $STREAMGAUGE_PORT"
        return f"write {self.spec.ready}"

    def has_failed_early(self) -> bool:
        """Whether it ended before the trial began, and was not to: one that may end by itself is to be ready
        before, and a side's main process is to stay."""
        status = self.popen.poll()
        if status is None or status == UNSUPPORTED or not self.spec.essential:
            return status == UNSUPPORTED
        return status != 0 or self.is_main or not self.spec.may_end or not self.is_ready()

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
        """Resets the scheduler's account: the time of loading is no part of the trial."""
        self.measure()
        self._before = (self._before[0] + self.cpu_s, self._before[1] + self.waited_s)
        self.cpu_s = self.waited_s = 0.0

    def last_words(self) -> str:
        """The last line of its stderr, or of its stdout if that is empty and its own."""
        # A process that is ready by a line writes to us there.
        for name in ("stderr.log", "stdout.log")[: 1 if self.spec.ready == "line" else 2]:
            try:
                text = tail_of(self.out, name, LAST_BYTES).decode(errors="replace")
            except FileRefusedError as error:
                return f"{name} {error}"
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return printable(lines[-1])
        return ""

    def fate(self) -> str:
        """How it ended, in words."""
        code = self.popen.returncode
        if code is None:
            return "is running"
        how = f"was killed by {_signal(-code)}" if code < 0 else f"ended with status {code}"
        if code == -signal.SIGSYS:
            how += ", as are programs of 32 bits"
        words = self.last_words()
        return how + (f" ({words})" if words else "")


def _signal(number: int) -> str:
    """Its name; real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def furnish(flow: FlowSetup, spec: Process, owner: int | None) -> None:
    """Makes a process's folders, copies its helpers and writes its files. `owner` is the user who is to own
    the folder, if not this one. The compartment of its side is there."""
    out, shared = flow.out(spec.side, spec.name), flow.shared(spec.side)
    helpers = flow.helpers(spec.side, spec.name)
    for folder in (out, shared, helpers):
        folder.mkdir(parents=True, exist_ok=True)
    for folder in (out, shared):
        if owner is not None:
            os.chown(folder, owner, owner)
    # Copied, not linked: they may lie where players may not look.
    for helper in spec.helpers:
        if helper.is_dir():
            # A link in it may lead to a file that only this user may read.
            shutil.copytree(helper, helpers / helper.name, symlinks=True)
        else:
            shutil.copy(helper, helpers / helper.name)
    for copied in helpers.rglob("*"):
        if not copied.is_symlink():
            copied.chmod(0o755 if copied.stat().st_mode & 0o100 else 0o644)
    for name, content in spec.files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (out / name).write_text(text, encoding="utf-8")
        (out / name).chmod(0o644)


def start(flow: FlowSetup, spec: Process, *, is_main: bool, compartment: Compartment) -> Running:
    """Starts a process of a flow in its compartment, without privileges unless it is trusted.

    Raises FileRefusedError if a program has replaced the process's folder.
    """
    out = flow.out(spec.side, spec.name)
    environment = {
        "PATH": programs_path(),
        "LANG": "C.UTF-8",
        "HOME": str(out),
        "TMPDIR": str(out),
        "XDG_RUNTIME_DIR": str(out),
        "XDG_CACHE_HOME": str(compartment.cache),
        **flow.variables(spec.side, spec.name),
        **spec.environment,
    }
    if spec.control:
        environment["STREAMGAUGE_CONTROL"] = "1"
    # An earlier process of the side may have put a link in the folder's place.
    directory = folder_of(out)
    try:
        stdout, stderr = (os.fdopen(new_in(directory, name), "wb") for name in ("stdout.log", "stderr.log"))
        # Programs open these anew by /dev/stdout and /dev/stderr, which the owner alone may.
        if compartment.owner is not None:
            for log in (stdout, stderr):
                os.fchown(log.fileno(), compartment.owner, compartment.owner)
        with stdout, stderr, nullcontext() if spec.trusted else compartment.children():
            popen = subprocess.Popen(
                compartment.command(spec.command, trusted=spec.trusted, variables=environment),
                stdin=subprocess.PIPE if spec.control else subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={"PATH": programs_path()},
                cwd=spec.working_folder or f"/proc/self/fd/{directory}",
                start_new_session=True,
            )
    finally:
        os.close(directory)
    return Running(
        flow=flow,
        spec=spec,
        is_main=is_main,
        popen=popen,
        pidfd=os.pidfd_open(popen.pid),
        started_ns=time.monotonic_ns(),
    )


def _listens(pid: int, port: int) -> bool:
    """Whether a TCP listener or a UDP socket is bound to `port` in the process's network namespace."""
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == state and int(fields[1].rpartition(":")[2], 16) == port:
                    return True
    return False

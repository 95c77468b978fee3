"""The command in the link: started, watched, drained, with its messages and the emulator's."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.emu.errors import TrialBrokenError
from streamgauge.link_command.testbed import Testbed

__all__ = ["CommandServer", "drain", "drain_bound_s", "preflight", "run_command"]

_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
_OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)
SERVER_READY_S = 10.0
"""How long a server may take until it listens."""
MOST_DRAIN_S = 3.0


def preflight(testbed: Testbed, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Measures the empty path from its two ends; the path is empty again afterwards."""
    testbed.emulator.ask("preflight", cmd="preflight")
    far = "caller" if testbed.far == "caller" else "server"
    config = {
        "server_netns": testbed.path_of(far),
        "client_netns": testbed.path_of("client"),
        "server_ip": testbed.block.near,
        "player_ip": testbed.block.client,
        "server_if": testbed.interface or "eth0",
        "client_if": "eth0",
        "expect": plan["path"],
    }
    file = testbed.folder / "preflight.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    # The far end's own namespace is entered from where its rights are.
    where = "caller" if far == "caller" else "sandbox"
    measuring = testbed.enter(
        where,
        [testbed.engine, "preflight", "--config", str(file)],
        trusted=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    said, error = measuring.communicate()
    if measuring.returncode != 0:
        raise TrialBrokenError(
            f"the pre-flight test of the path failed: {error.strip() or measuring.returncode}."
        )
    testbed.emulator.ask("reset", cmd="reset")
    found: dict[str, Any] = json.loads(said)
    return found


class CommandServer:
    """The far end's command."""

    def __init__(self, testbed: Testbed, command: str, environment: Mapping[str, str], log: Path) -> None:
        self.command = command
        self._log = log
        read, write = os.pipe()
        with log.open("wb") as output:
            self._popen = testbed.enter(
                "server",
                ["/bin/sh", "-c", command],
                tell=write,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        os.close(write)
        self._pid = _told(read)

    def wait_until_listening(self, testbed: Testbed) -> str | None:
        """Waits for a socket in its namespace; a remark if there is none. TrialBrokenError if it has
        ended."""
        until = time.monotonic() + SERVER_READY_S
        tables = [f"/proc/{self._pid}/net/{name}" for name in ("tcp", "tcp6", "udp", "udp6")]
        namespace = os.fstat(testbed.spaces["server"].net).st_ino
        while time.monotonic() < until:
            if self._popen.poll() is not None:
                raise TrialBrokenError(
                    f"--server ended with status {self._popen.returncode} before the command began"
                    f"{self._last_words()}."
                )
            with suppress(OSError):
                # Until it has entered, the sockets are those of our own namespace.
                entered = Path(f"/proc/{self._pid}/ns/net").stat().st_ino == namespace
                if entered and any(_is_open(line) for table in tables for line in _lines(table)):
                    return None
            time.sleep(0.005)
        return f"the server listens nowhere after {SERVER_READY_S:g} s; the command starts without it"

    def stop(self) -> None:
        """Asks it to end; the sandbox's end kills the rest."""
        if self._popen.poll() is None and self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(timeout=1)

    def _last_words(self) -> str:
        said = self._log.read_text(errors="replace").strip().splitlines()
        return f": {said[-1]}" if said else ""


def _lines(file: str) -> list[str]:
    with suppress(FileNotFoundError):
        return Path(file).read_text(encoding="ascii").splitlines()
    return []  # a kernel without IPv6


def _is_open(line: str) -> bool:
    """Returns a line of /proc/net/tcp or udp: a listener, or any UDP socket."""
    fields = line.split()
    return len(fields) > 3 and fields[3] in ("0A", "07", "01") and fields[0] != "sl"


def _told(read: int) -> int:
    """Returns the process id that `enter` writes; 0 if it ended first."""
    with os.fdopen(read) as pipe:
        return int(pipe.readline() or 0)


@dataclass(frozen=True)
class Ended:
    """How the command ended."""

    status: int
    #: Seconds from its start to its end.
    took_s: float


def run_command(
    testbed: Testbed,
    command: Sequence[str],
    environment: Mapping[str, str],
    show: Sequence[tuple[Path, Path]],
    watch: Callable[[], None],
) -> Ended:
    """Runs the command with our terminal, streams and working folder until it ends.

    `watch` raises if the link has died. Signals go on to the command; those that a terminal sends reach it
    by itself.
    """
    read, write = os.pipe()
    began = time.monotonic()
    with _terminal():
        popen = testbed.enter("client", command, tell=write, show=show, env=dict(environment))
        os.close(write)
        pid = _told(read)
        if pid == 0:
            # It has printed the reason on stderr, which is ours too.
            raise TrialBrokenError(
                f"the command could not enter the link (status {popen.wait()}); see above."
            )
        with _passing_on(pid):
            pidfd = os.pidfd_open(popen.pid)
            try:
                with selectors.DefaultSelector() as selector:
                    selector.register(pidfd, selectors.EVENT_READ)
                    selector.register(testbed.emulator.descriptor, selectors.EVENT_READ)
                    while popen.poll() is None:
                        for key, _ in selector.select():
                            if key.fd != pidfd:
                                watch()
            finally:
                os.close(pidfd)
    status = popen.returncode if popen.returncode >= 0 else 128 - popen.returncode
    return Ended(status, time.monotonic() - began)


@contextmanager
def _passing_on(pid: int) -> Iterator[None]:
    """Our signals are the command's while it runs."""

    def pass_on(number: int, _frame: object) -> None:
        if number in _OF_THE_TERMINAL and _in_foreground():
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    before: dict[int, Any] = {}
    for name in _PASSED_ON:
        number = getattr(signal, name)
        # A caller that started us with a signal ignored meant the command too.
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Returns whether the terminal's signals reach us, and so the command, which is of our process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # A shell in the link has made a group of its own: input there is for it alone, and did not reach us.
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextmanager
def _terminal() -> Iterator[None]:
    """Takes the terminal back from a command that had made itself a process group, as shells do."""
    ours = sys.stdin is not None and os.isatty(0) and _in_foreground()
    try:
        yield
    finally:
        if ours:
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with suppress(OSError):
                os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, before)


def drain_bound_s(plan: Mapping[str, Any]) -> float:
    """Returns how long packets inside the path may take to leave it, s: delays and full queues, at most 3
    s."""
    total = 0.05
    for direction in ("down", "up"):
        for stage in plan["path"][direction]:
            kind = stage["kind"]
            if "delay" in kind:
                steps = [at for _, at in kind["delay"].get("steps", ())]
                total += max([kind["delay"]["delay"], *steps]) / 1e9
            elif "bottleneck" in kind:
                total += _full_queue_s(kind["bottleneck"])
            else:
                total += 0.05
    return min(total, MOST_DRAIN_S)


def _full_queue_s(bottleneck: Mapping[str, Any]) -> float:
    rate = bottleneck["rate"].get("constant")
    limit = bottleneck["queue"].get("droptail")
    if rate is None or not isinstance(limit, Mapping):
        return MOST_DRAIN_S
    if "time" in limit:
        return float(limit["time"] / 1e9)
    held = limit["bytes"] if "bytes" in limit else 1514 * limit["packets"]
    return float(8 * held / rate)


def drain(testbed: Testbed, bound_s: float) -> None:
    """Waits until the path is empty, at most `bound_s`."""
    until = time.monotonic() + bound_s
    empty = 0
    while time.monotonic() < until:
        inside = testbed.emulator.ask("status", cmd="status").get("inside", 0)
        # Twice: between two packets the path is empty for a moment, while the ends are at work.
        empty = empty + 1 if inside == 0 else 0
        if empty == 3:
            return
        time.sleep(0.003)

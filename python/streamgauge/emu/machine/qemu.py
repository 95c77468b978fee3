"""QEMU as a process: its command line, its monitor (QMP), and its certain end."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.remedy import install
from streamgauge.errors import CannotRunError

PROGRAM = "qemu-system-x86_64"
PACKAGE = "qemu-system-x86"
LEAST_VERSION = (7, 2)
"""Older ones were not tried."""
TRANSLATED_MIB = 512
"""Room for the guest's translated code."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A piece of a guest's memory, which is a file here."""

    #: As QEMU calls it.
    id: str
    path: str
    size: int
    #: Whether the guest's writes reach the file; otherwise they stay in the guest.
    shared: bool
    readonly: bool = False

    def arguments(self) -> list[str]:
        """The object's."""
        words = f"memory-backend-file,id={self.id},mem-path={self.path},size={self.size}"
        words += f",share={'on' if self.shared else 'off'}"
        return ["-object", words + (",readonly=on" if self.readonly else "")]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The parts of a guest, except its start."""

    ram: Memory
    #: Modules of memory that do not forget, in the order in which the guest numbers them.
    modules: Sequence[Memory]
    #: Files that take the output of its serial lines.
    serial: Sequence[str]
    seed: int

    def arguments(self) -> list[str]:
        """Returns QEMU's arguments. There is one processor with 1 ns of the guest's time for an instruction,
        and no device that acts by the host's clock."""
        total = self.ram.size + sum(module.size for module in self.modules)
        words = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        words += ["-machine", "pc,nvdimm=on,hpet=off,usb=off,memory-backend=ram"]
        # Its AVX2 adds wrongly (QEMU 7.2); without AVX nothing asks for it.
        words += ["-cpu", "max,avx=off,avx2=off,f16c=off,fma=off", "-smp", "1"]
        words += ["-accel", f"tcg,thread=single,tb-size={TRANSLATED_MIB}"]
        # Recording, though nothing of it is kept, has a lock that makes the threads take turns. Without it,
        # the thread that moves the clock over idle time may look before the processor's thread has counted
        # its last steps, and delays a timer by that much.
        words += ["-icount", "shift=0,sleep=off,rr=record,rrfile=/dev/null", "-seed", str(self.seed)]
        words += ["-rtc", "base=2026-01-01T00:00:00,clock=vm"]
        words += ["-m", f"size={self.ram.size >> 20}M,slots={len(self.modules)},maxmem={total >> 20}M"]
        words += self.ram.arguments()
        for module in self.modules:
            words += module.arguments()
            unarmed = ",unarmed=on" if module.readonly else ""
            words += ["-device", f"nvdimm,id=nv-{module.id},memdev={module.id}{unarmed}"]
        # Written to, it stops the guest where it is.
        words += ["-device", "pvpanic-pci", "-action", "panic=pause"]
        for file in self.serial:
            words += ["-serial", f"file:{file}"]
        return words


def version() -> str:
    """Returns QEMU's version. Raises CannotRunError if it is missing or too old."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise CannotRunError(f"{PROGRAM} is missing; {install(PACKAGE)}.")
    said = subprocess.run(
        [program, "--version"], capture_output=True, encoding="utf-8", errors="replace", check=False
    ).stdout
    words = said.partition("\n")[0].partition("version ")[2]
    numbers = words.partition(" ")[0].split(".")
    try:
        found = (int(numbers[0]), int(numbers[1]))
    except (ValueError, IndexError):
        raise CannotRunError(
            f"{program} prints no version that can be read ({said.strip()[:100]!r})."
        ) from None
    if found < LEAST_VERSION:
        raise CannotRunError(
            f"{program} is version {words}; the virtual machine needs "
            f"{'.'.join(map(str, LEAST_VERSION))} or later."
        )
    return words


@dataclass(eq=False)
class Qemu:
    """A QEMU that runs, stopped at first (`-S`), as a context."""

    arguments: Sequence[str]
    #: Descriptors that it is given.
    descriptors: Sequence[int] = ()
    _process: subprocess.Popen[bytes] | None = None
    _monitor: Any = None
    _said: dict[str, Any] = field(default_factory=dict)

    def __enter__(self) -> Qemu:
        program = shutil.which(PROGRAM)
        if program is None:
            raise CannotRunError(f"{PROGRAM} is missing; {install(PACKAGE)}.")
        ours, its = socket.socketpair()
        command = [program, "-S", *self.arguments]
        command += ["-chardev", f"socket,id=qmp,fd={its.fileno()}", "-mon", "chardev=qmp,mode=control"]
        # It ends with our process, for any reason of that.
        if (setpriv := shutil.which("setpriv")) is not None:
            command = [setpriv, "--pdeathsig", "KILL", "--", *command]
        with its:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(*self.descriptors, its.fileno()),
                # The terminal's Ctrl-C is ours to pass on. Not a session of its own: the kernel gives each
                # its share of the processors beside everything else, however nice the launcher is.
                process_group=0,
            )
        self._monitor = ours.makefile("rwb", buffering=0)
        ours.close()
        try:
            self._read()  # its greeting
            self.ask("qmp_capabilities")
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        assert self._process is not None
        return self._process.poll() is not None

    def ask(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Returns the monitor's answer. Raises TrialBrokenError if it reports an error, or is gone."""
        words: dict[str, Any] = {"execute": command}
        if arguments:
            words["arguments"] = arguments
        try:
            self._monitor.write(json.dumps(words).encode() + b"\n")
        except OSError:
            raise self.broken() from None
        while True:
            answer = self._read()
            if "error" in answer:
                raise TrialBrokenError(f"QEMU refuses {command}: {answer['error'].get('desc')}.")
            if "return" in answer:
                return answer["return"]

    def command(self, line: str) -> None:
        """Runs a command of the monitor for people, which prints only if it fails: TrialBrokenError."""
        if said := self.ask("human-monitor-command", {"command-line": line}).strip():
            raise TrialBrokenError(f"QEMU's `{line}`: {said}.")

    def status(self) -> str:
        """The guest's state in QEMU's words, such as ``running``."""
        return str(self.ask("query-status")["status"])

    def broken(self) -> TrialBrokenError:
        """The error of a QEMU that is gone."""
        assert self._process is not None and self._process.stderr is not None
        code = self._process.wait()
        said = self._process.stderr.read().decode(errors="replace").strip()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return TrialBrokenError(f"QEMU {how} before the trial did: {said.splitlines()[-1] if said else ''!s}")

    def kill(self) -> None:
        """Ends it."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        if self._monitor is not None:
            self._monitor.close()

    def _read(self) -> dict[str, Any]:
        try:
            line = self._monitor.readline()
        except OSError:
            line = b""
        if not line:
            raise self.broken()
        found: dict[str, Any] = json.loads(line)
        return found


def memory_file(name: str) -> int:
    """A file in memory without a name in any folder: gone with the last who has it open."""
    return os.memfd_create(name)


def path_of(descriptor: int) -> str:
    """By which a child that was given the descriptor opens the file once more."""
    return f"/proc/self/fd/{descriptor}"


def grow(file: Path, size: int) -> None:
    """A file of `size` bytes with nothing in it, which takes no room yet."""
    with file.open("wb") as target:
        target.truncate(size)

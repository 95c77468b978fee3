"""Who waits for the machine's lock is told who has it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamgauge.emu import holder, lock
from streamgauge.emu.holder import Waiting, holder_in_words

Hold = Callable[..., "subprocess.Popen[str]"]

# Has the lock of a file until its stdin ends.
PROGRAM = """
import fcntl, os, sys
descriptor = os.open(os.environ["LOCK"], os.O_RDONLY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's lock, for this test alone."""
    monkeypatch.setattr(lock, "lock_file", lambda name="emu.lock": tmp_path / name)
    (tmp_path / "emu.lock").touch()
    return tmp_path / "emu.lock"


@pytest.fixture
def hold(file: Path, tmp_path: Path) -> Iterator[Hold]:
    """Starts a program called ``streamgauge`` with these words behind it, which has the lock."""
    program = tmp_path / "bin" / "streamgauge"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(program), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LOCK": str(file)},
        )
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_who_waits_hears_for_whom_since_when_and_how_long(hold: Hold) -> None:
    before = time.strftime("%H:%M")
    process = hold("run", "today/x")
    said: list[str] = []

    def say(words: str) -> None:
        said.append(words)
        process.kill()
        process.wait()

    with lock.machine_lock(say):
        pass
    (words,) = said
    assert isinstance(words, Waiting)
    who = f"process {process.pid}, 'streamgauge run today/x', which began at "
    assert words.startswith(f"waiting for another emu trial on this machine ({who}")
    began, _, rest = words.partition(who)[2].partition(")")
    assert began[:5] in (before, time.strftime("%H:%M")) and rest == ", 0 s so far"


def test_nothing_of_a_command_moves_a_cursor_and_a_long_one_is_cut(hold: Hold) -> None:
    process = hold("run", "a\x1b[2Jb\nc", "x" * 100)
    command = holder._command(process.pid)
    assert command.startswith("streamgauge run a?[2Jb?c xxx") and command.endswith("x…")
    assert len(command) == 60


def test_of_another_program_the_whole_command_is_told() -> None:
    words = [sys.executable, "-c", "print(); input()", "b"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        assert holder._command(process.pid) == f"{Path(sys.executable).name} -c print(); input() b"
        process.kill()


def test_a_lock_that_nobody_has_names_nobody(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    assert holder_in_words(descriptor) == ""
    os.close(descriptor)


def test_of_a_holder_that_has_ended_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr(holder, "_holder", lambda _: gone.pid)
    assert holder_in_words(0) == f"process {gone.pid}, which has ended and whose sandbox is about to"

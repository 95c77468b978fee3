"""Runs commands with standard streams that are gone, full or closed: a program of its own.

Commands are loaded once; each case is a fork. Cases come as JSON on stdin, ``[[arguments, condition], ...]``;
an answer is ``[status, stderr]``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import tempfile
from pathlib import Path

from streamgauge.cli import main
from streamgauge.cli.app import command


def commands() -> list[list[str]]:
    """Every command and subcommand, as the program has them."""

    def below(group: object, path: list[str]) -> list[list[str]]:
        inner = getattr(group, "commands", None)
        return [path] if not inner else [one for name in inner for one in below(inner[name], [*path, name])]

    return below(command(), [])


def prepare(condition: str, errors: int) -> None:
    """Makes the process's streams what a shell would have made them."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(errors, 2)
    full = os.open("/dev/full", os.O_WRONLY)
    if condition == "| head":
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)
    elif condition == ">/dev/full":
        os.dup2(full, 1)
    elif condition == "2>/dev/full":
        os.dup2(full, 2)
    elif condition == ">&-":
        os.close(1)
        sys.stdout = sys.__stdout__ = None  # type: ignore[assignment, misc]
    elif condition == "2>&-":
        os.close(2)
        sys.stderr = sys.__stderr__ = None  # type: ignore[assignment, misc]
    elif condition == "ulimit -f":
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    elif condition == "ASCII":
        sys.stdout = sys.__stdout__ = io.TextIOWrapper(  # type: ignore[misc]
            io.FileIO(1, "wb", closefd=False), encoding="ascii"
        )


def run_one(arguments: list[str], condition: str) -> tuple[int, str]:
    """Status and stderr."""
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            try:
                prepare(condition, errors.fileno())
                status = main(arguments)
            except BaseException as error:
                os.write(errors.fileno(), f"Traceback: {error!r}".encode())
                status = 99
            os._exit(status)
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        return os.waitstatus_to_exitcode(status), errors.read().decode(errors="replace")


if __name__ == "__main__":
    if sys.argv[1:] == ["commands"]:
        print(json.dumps(commands()))
    else:
        # What a help and an error import, once and not in each fork.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(["list", "--help"])
            main(["list", "--no-such-option"])
        answers = [run_one(arguments, condition) for arguments, condition in json.load(sys.stdin)]
        Path(sys.argv[1]).write_text(json.dumps(answers), encoding="utf-8")

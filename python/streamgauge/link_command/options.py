"""The request to ``streamgauge link``, checked before anything starts."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from streamgauge.errors import CannotRunError, ScenarioError, StreamGaugeError
from streamgauge.live.showing import LiveAsked
from streamgauge.scenario.path import Path as NetworkPath

__all__ = ["CannotExecuteError", "LinkRequest"]


class CannotExecuteError(StreamGaugeError):
    """The command itself cannot be run; the exit status is a shell's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_status = status


@dataclass(frozen=True, kw_only=True)
class LinkRequest:
    """One link and the command in it."""

    command: tuple[str, ...]
    path: NetworkPath
    #: The path in a few words, for prompts and titles.
    label: str = ""
    server: str | None = None
    internet: bool = False
    seed: int = 1
    #: Where the record is kept.
    log: Path | None = None
    capture: Path | None = None
    preflight: bool = True
    drain: bool = True
    #: How the link is shown while it lasts.
    live: LiveAsked | None = None

    def check(self) -> None:
        """Raises StreamGaugeError for impossible requests."""
        if not self.command:
            raise ScenarioError("no command; expected such as 'streamgauge link --down ... -- curl URL'")
        if self.server is not None and not self.server.strip():
            raise ScenarioError(
                "--server: an empty command", hint="such as --server 'python3 -m http.server'"
            )
        if self.internet and self.server is not None:
            raise ScenarioError("--internet and --server exclude each other: the far end is one or the other")
        self._check_command(self.command[0])
        for option, file in (("--log", self.log), ("--capture", self.capture)):
            if file is not None:
                _check_writable(option, file)

    @staticmethod
    def _check_command(program: str) -> None:
        if shutil.which(program) is not None:
            return
        if "/" not in program:
            raise CannotExecuteError(
                f"{program}: no such command in PATH; install it, or name it by its path", 127
            )
        if not Path(program).exists():
            raise CannotExecuteError(f"{program}: no such file; name the command by an existing path", 127)
        why = "is a folder" if Path(program).is_dir() else "is not executable"
        raise CannotExecuteError(f"{program}: {why}; name a program", 126)

    @cached_property
    def id(self) -> str:
        """Returns the scenario's id, another each time: no two links are repetitions of one experiment."""
        slug = "_".join(re.findall(r"[a-z0-9]+", Path(self.command[0]).name.lower())) or "command"
        now = time.time_ns() // 10**6
        return f"link/{slug}-{time.strftime('%Y%m%dt%H%M%S', time.gmtime(now // 1000))}_{now % 1000:03}"

    @property
    def title(self) -> str:
        """Returns the command in one line."""
        line = shlex.join(self.command)
        return line if len(line) <= 120 else f"{line[:117]}..."


def _check_writable(option: str, file: Path) -> None:
    try:
        _check_place(option, file)
    except PermissionError as error:
        raise CannotRunError(
            f"{option} {file}: you may not look into {file.absolute().parent}; name another place."
        ) from error


def _check_place(option: str, file: Path) -> None:
    parent = file.absolute().parent
    if option == "--log" and file.exists() and (not file.is_dir() or any(file.iterdir())):
        raise ScenarioError(f"--log {file}: it is there already and not empty", hint="name a new folder")
    if option == "--capture" and file.is_dir():
        raise ScenarioError(f"--capture {file}: it is a folder", hint="name a file, such as link.pcapng")
    while option == "--log" and not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise ScenarioError(f"{option} {file}: there is no folder {parent}")
    if not os.access(parent, os.W_OK):
        raise CannotRunError(f"{option} {file}: {parent} may not be written to; name another place.")
    if parent.resolve().is_relative_to("/run"):
        raise ScenarioError(
            f"{option} {file}: the link's sandbox has a /run of its own", hint="name a place outside of /run"
        )

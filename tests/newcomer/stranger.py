"""Somebody who has just built StreamGauge: a folder of his own laid out as a checkout, and a shell."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent.parent
SHOWN = (".venv", "catalogue", "docs", "examples")


@dataclass(frozen=True)
class Done:
    """What a shell's command line did."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Stranger:
    """Types command lines in `folder`. Only what is there and on ``PATH`` is known to him."""

    folder: Path

    @classmethod
    def in_a_checkout(cls, folder: Path) -> Stranger:
        """With what a checkout shows, so that paths in pages lead there; what is written stays here."""
        for name in SHOWN:
            (folder / name).symlink_to(CHECKOUT / name)
        return cls(folder)

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(CHECKOUT / ".venv/bin"), os.environ.get("PATH", os.defpath)])
        # As wide as a page, so that nothing is folded.
        return {**os.environ, "PATH": path, "COLUMNS": "200", "TERM": "dumb"}

    def popen(self, line: str) -> subprocess.Popen[str]:
        """A shell that runs `line`, the leader of a group of processes."""
        return subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, line: str, timeout_s: float = 300) -> Done:
        """Runs `line` to its end, and ends what it has left in the background."""
        shell = self.popen(line)
        try:
            stdout, stderr = shell.communicate(timeout=timeout_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        return Done(shell.returncode, stdout, stderr)

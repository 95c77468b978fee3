"""Runs commands, one after another, on a terminal of a width: what a person there reads."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

_MARK = "\x1e"
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_EACH = f"""
import json, sys
from streamgauge.cli import main
for words in json.loads(sys.argv[1]):
    main(words)
    print({_MARK!r}, end="", flush=True)
    print({_MARK!r}, end="", file=sys.stderr, flush=True)
"""


def on_a_terminal(commands: Sequence[Sequence[str]], columns: int, folder: Path) -> list[str]:
    """What each command shows on a terminal so many columns wide, stdout and stderr, without colours."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TERM": "xterm-256color"}
    with subprocess.Popen(
        [sys.executable, "-c", _EACH, json.dumps([list(words) for words in commands])],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ):
        os.close(terminal)
        shown = b""
        try:
            while more := os.read(screen, 65536):
                shown += more
        except OSError:
            pass  # nobody writes there any more
    os.close(screen)
    text = _CODES.sub("", shown.decode()).replace("\r\n", "\n")
    return text.split(2 * _MARK)[:-1]


def too_long(shown: str, columns: int) -> list[str]:
    """The lines that are wider than the terminal; a bar that moves is written over itself."""
    lines = [line for part in shown.split("\n") for line in part.split("\r")]
    return [line for line in lines if len(line) > columns]

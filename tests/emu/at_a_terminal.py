"""Runs a shell on a terminal of its own, types into it, and prints what it shows: for `test_link_command`."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

# What is waited for, and what is then typed.
TALK: list[tuple[bytes, bytes]] = [
    (b"ms]", b"sleep 30\n"),
    (b"sleep 30", b""),
    (b"", b"\x03"),
    (b"ms]", b"echo interrupted $?\n"),
    (b"interrupted 130", b"exit 5\n"),
]


def main() -> int:
    """The shell's exit status."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    shown = b""
    for wanted, typed in TALK:
        until, seen = time.monotonic() + 20, b""
        while wanted not in seen:
            if time.monotonic() > until:
                sys.stdout.buffer.write(shown + b"\n[nothing more]\n")
                os.kill(child, 9)
                return 99
            if select.select([terminal], [], [], 0.1)[0]:
                more = os.read(terminal, 4096)
                seen, shown = seen + more, shown + more
        # A shell that has just shown its prompt, or started a job, is given a moment to wait for keys.
        time.sleep(0.5)
        if typed:
            os.write(terminal, typed)
    try:
        while select.select([terminal], [], [], 10)[0]:
            shown += os.read(terminal, 4096)
    except OSError:
        pass  # the other side is closed
    sys.stdout.buffer.write(shown)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


sys.exit(main())

"""The command line. Nothing else imports this."""

from __future__ import annotations

import os
import sys

from streamgauge.cli.early import end_at_once
from streamgauge.cli.status import INTERNAL, INTERRUPTED
from streamgauge.errors import CannotRunError, StreamGaugeError, errno_of

__all__ = ["main", "spelt_out"]

_MACHINES = (
    "ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "EACCES", "EPERM", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN",
    "ENAMETOOLONG", "ELOOP", "ENODEV", "ENXIO", "ESTALE", "ETXTBSY",
)  # fmt: skip
"""Errors of files and processes that the machine has, wherever they come up."""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit status.

    0 all checks pass, 1 one failed, 2 inconclusive, 3 bad input, 4 this machine cannot; 70 a bug of ours; 130
    after Ctrl-C, SIGTERM or SIGHUP. Errors are one line each on stderr.
    """
    from streamgauge.cli.streams import guarded_streams

    with guarded_streams():
        return _run(arguments)


def _run(arguments: list[str] | None) -> int:
    # Not at the top: until `early` has run, a signal ends imports by a traceback.
    import signal

    try:
        from streamgauge.cli.app import command
        from streamgauge.cli.doubts import doubts_remarked

        loaded = command()
        if signal.getsignal(signal.SIGINT) is end_at_once:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        # A polite end (timeout, a closed terminal, a job scheduler) is handled as Ctrl-C.
        for polite in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(polite) is signal.SIG_DFL:
                signal.signal(polite, signal.default_int_handler)
        with doubts_remarked():
            status = loaded.main(args=spelt_out(arguments), prog_name="streamgauge", standalone_mode=False)
        sys.stdout.flush()
    except StreamGaugeError as error:
        return _fail(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except MemoryError:
        return _fail("there is not enough memory; close other programs, or raise its limit", 4)
    except Exception as error:
        return _unexpected(error)
    return int(status or 0)


def spelt_out(arguments: list[str] | None) -> list[str]:
    """Returns the arguments with the default value of a bare ``--live``: the next argument is no value of
    it. That of `calibrate` takes none."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["calibrate"]:
        return list(given)
    end = given.index("--") if "--" in given else len(given)
    return ["--live=page" if one == "--live" and n < end else one for n, one in enumerate(given)]


def _unexpected(error: Exception) -> int:
    said = getattr(error, "format_message", None)
    if callable(said):  # a usage error of the command line's own
        message = _one_line(str(said())).replace("Value error, ", "")
        # Without any argument the help has been printed, and there is nothing to add.
        return _fail(f"{message} (see 'streamgauge --help')" if message else "", 3)
    if type(error).__name__ == "Abort":
        return _fail("interrupted", INTERRUPTED)
    if os.environ.get("STREAMGAUGE_TRACEBACK"):
        raise error
    if isinstance(error, FileNotFoundError) and not error.filename and _is_nowhere():
        return _fail("the working folder is gone; change to one that is there", CannotRunError.exit_status)
    if isinstance(error, OSError) and _is_the_machines(error):
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or _one_line(str(error))}", CannotRunError.exit_status)
    what = f"{type(error).__name__}: {_one_line(str(error))}"
    return _fail(f"internal error: {what} (STREAMGAUGE_TRACEBACK=1 shows where; please report it)", INTERNAL)


def _is_the_machines(error: OSError) -> bool:
    import errno

    return errno.errorcode.get(errno_of(error) or 0) in _MACHINES


def _is_nowhere() -> bool:
    """Returns whether the working folder has been removed."""
    from pathlib import Path

    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fail(message: str, status: int) -> int:
    from streamgauge.cli.output import remark

    for line in message.splitlines():
        remark(line)
    return status

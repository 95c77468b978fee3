"""The command line. Nothing else imports this."""

from __future__ import annotations

import os
import signal
import sys

from streamgauge.cli.status import INTERNAL, INTERRUPTED
from streamgauge.errors import StreamGaugeError

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit status.

    0 all checks pass, 1 one failed, 2 inconclusive, 3 bad input, 4 this machine cannot; 70 a bug of ours; 130
    after Ctrl-C, SIGTERM or SIGHUP. Errors are one line each on stderr.
    """
    from streamgauge.cli.app import command

    # Whoever ends us politely (timeout, a closed terminal, a job scheduler) gets what Ctrl-C gets.
    for polite in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(polite) is signal.SIG_DFL:
            signal.signal(polite, signal.default_int_handler)
    try:
        status = command().main(args=arguments, prog_name="streamgauge", standalone_mode=False)
        sys.stdout.flush()
    except StreamGaugeError as error:
        return _fail(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read us has gone, as `| head` does: not an error, and nothing more to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        said = getattr(error, "format_message", None)
        if callable(said):  # a usage error of the command line's own
            message = _one_line(str(said())).replace("Value error, ", "")
            # Without any argument the help has been printed, and there is nothing to add.
            return _fail(f"{message} (see 'streamgauge --help')" if message else "", 3)
        if type(error).__name__ == "Abort":
            return _fail("interrupted", INTERRUPTED)
        if os.environ.get("STREAMGAUGE_TRACEBACK"):
            raise
        what = f"{type(error).__name__}: {_one_line(str(error))}"
        return _fail(
            f"internal error: {what} (STREAMGAUGE_TRACEBACK=1 shows where; please report it)", INTERNAL
        )
    return int(status or 0)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fail(message: str, status: int) -> int:
    from streamgauge.cli.output import remark

    for line in message.splitlines():
        remark(line)
    return status

"""Ctrl-C before the program's commands are loaded. It is imported first, and imports nothing slow."""

from __future__ import annotations

# It is built in. The import of `signal` takes so long that Ctrl-C may arrive before its end.
import _signal  # type: ignore[import-not-found]
import os
import sys

__all__ = ["end_at_once"]


def end_at_once(number: int, frame: object) -> None:
    """Ends the program that has done nothing yet: an import that is broken off may fail by any error."""
    del number, frame
    try:
        os.write(2, b"streamgauge: interrupted\n")
    finally:
        os._exit(130)


# Only where this is the program: another one that imports it has handlers of its own.
if os.path.basename(sys.argv[0]) in ("streamgauge", "-m") and (  # noqa: PTH119
    _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
):
    _signal.signal(_signal.SIGINT, end_at_once)

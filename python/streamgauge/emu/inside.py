"""The worker's side of a sandbox: its folder, and its messages to `sandbox.run_worker`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamgauge.errors import CannotRunError, StreamGaugeError

WORK = Path("/run/streamgauge")
"""On the sandbox's own tmpfs: gone with it."""

FIRST_RUNS = Path("/var/cache/streamgauge")
"""The files that programs make at their first start, in a virtual machine, which has made them already."""


def tell(**words: Any) -> None:
    """One line to the launcher."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def answer(work: Callable[[], dict[str, Any]], folder: str) -> int:
    """Does `work`, which writes to `folder`, and reports the outcome. Returns the exit status."""
    try:
        tell(done=work())
    except StreamGaugeError as error:
        tell(failed={"kind": type(error).__name__, "message": str(error)})
        return 1
    except OSError as error:
        where = error.filename or folder
        message = (
            f"cannot write {where}: {error.strerror}; free some space or choose another folder with --out."
        )
        tell(failed={"kind": CannotRunError.__name__, "message": message})
        return 1
    return 0

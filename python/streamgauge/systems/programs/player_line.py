"""Common part of our scripts: the events file, and the line of commands to players.

Copied beside the script that uses it. Needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STALL_S = 0.1
"""Pictures that stand still for less are no stall: ffplay makes up for it (its AV_SYNC_THRESHOLD_MAX)."""


class Events:
    """Appends to the adapter's events file."""

    def __init__(self) -> None:
        self._file = Path(os.environ["STREAMGAUGE_EVENTS"]).open("a", buffering=1)  # noqa: SIM115

    def say(
        self,
        name: str,
        value: float | None = None,
        unit: str = "",
        reason: str = "",
        *,
        at_s: float | None = None,
    ) -> None:
        """An event of now, or of `at_s` (CLOCK_MONOTONIC, s)."""
        at_ns = time.monotonic_ns() if at_s is None else round(at_s * 1e9)
        event = {"t_monotonic_ns": at_ns, "name": name, "value": value, "unit": unit, "reason": reason}
        self._file.write(json.dumps(event) + "\n")


@contextmanager
def first_structure(caps: Any) -> Iterator[Any]:
    """Yields the first structure of GStreamer's caps (Gst.Caps), to be read within the ``with``.

    From 1.26 on (Debian 13) GStreamer's bindings lend it no other way; those of 1.22 (Debian 12) give it.
    """
    structure = caps.get_structure(0)
    if hasattr(structure, "__enter__"):
        with structure as lent:
            yield lent
    else:
        yield structure


def levels() -> list[dict[str, Any]]:
    """Returns the levels of pictures in the flow's presentation, the lowest rate first."""
    file = Path(os.environ["STREAMGAUGE_MEDIA"]) / "presentation.json"
    told = json.loads(file.read_text(encoding="utf-8"))
    return [one for one in told["representations"] if one["kind"] == "video"]


def url() -> str:
    """Returns the address of the clip on the server."""
    return f"http://{os.environ['STREAMGAUGE_SERVER']}:{os.environ['STREAMGAUGE_PORT']}/clip.mp4"


def commands(said: bytes) -> list[dict[str, object]]:
    """Returns the lines of JSON that arrived together."""
    return [json.loads(line) for line in said.splitlines()]

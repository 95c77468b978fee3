"""``link``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.around.link import run_link
from streamgauge.around.options import Request
from streamgauge.around.paths import label_of, path_of

__all__ = ["link_command"]


def link_command(
    command: Sequence[str],
    *,
    down: str | None,
    up: str | None,
    preset: str | None,
    trace: Path | None,
    server: str | None,
    internet: bool,
    log: Path | None,
    capture: Path | None,
    seed: int,
    preflight: bool,
    drain: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Runs the command behind the path; its exit status."""
    path = path_of(down=down, up=up, preset_name=preset, trace=trace)
    request = Request(
        command=tuple(command),
        path=path,
        label=label_of(down=down, up=up, preset_name=preset, trace=trace),
        server=server,
        internet=internet,
        seed=seed,
        log=log,
        capture=capture,
        preflight=preflight,
        drain=drain,
    )
    return run_link(request, as_json=as_json, quiet=quiet)

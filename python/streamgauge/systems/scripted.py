"""Common part of systems with scripts of ours as programs, or as their launchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.systems.adapter import (
    ACTIONS,
    ENDS,
    PROGRAMS,
    SIDES,
    Action,
    Adapter,
    Clock,
    Collected,
    FlowSetup,
    Process,
    Side,
)
from streamgauge.systems.events import read_events

SYSTEM_PYTHON = "/usr/bin/python3"
"""GStreamer's bindings belong to the distribution's Python."""

GSTREAMER = "gstreamer"
"""The player that is the default, and that pauses and resumes."""

_BESIDE = {
    "gst_http_player.py": ("gst_player.py", "player_line.py"),
    "gst_rtsp_player.py": ("gst_player.py", "player_line.py"),
    "gst_rtsp_server.py": ("player_line.py",),
    "ffplay_player.py": ("player_line.py",),
    "browser_call.py": ("call", "devtools.py", "player_line.py"),
    "browser_player.py": ("browser", "player_line.py"),
    "gst_dash_player.py": ("gst_player.py", "player_line.py"),
    "mpv_dash_player.py": ("player_line.py",),
    "ffmpeg_dash_player.py": ("player_line.py",),
    "vlc_dash_player.py": ("player_line.py",),
    "contribution_sender.py": ("player_line.py",),
    "contribution_receiver.py": ("contribution_sender.py", "player_line.py", "transport_stream.py"),
    "certificate.py": (),
    "http3_server.py": (),
}
"""Files that each script needs beside it."""


class ScriptedAdapter:
    """The frame of such an adapter: its players are GStreamer's, which accepts commands, and another, which
    can only be ended."""

    of_arrivals: Adapter | None = None

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        return False

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ACTIONS if player_of(parameters) == GSTREAMER else ENDS

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        found = Collected()
        for side in SIDES:
            found.events += read_events(flow, side, clock, found.faults)
        self.read(flow, clock, found)
        return found

    def read(self, flow: FlowSetup, clock: Clock, found: Collected) -> None:
        """Adds other results of the programs, beside the events of `found`, and the player's totals."""
        raise NotImplementedError


def player_of(parameters: Mapping[str, Any]) -> str:
    """Returns the player that a flow with those parameters names, or the default."""
    return str(parameters.get("player", GSTREAMER))


def script(
    flow: FlowSetup,
    side: Side,
    name: str,
    *,
    arguments: Sequence[str] = (),
    beside: Sequence[Path] = (),
    process: str = "",
    python: str = SYSTEM_PYTHON,
    **more: Any,
) -> Process:
    """Returns the process of one of our scripts, called `process`, with `arguments`, and `beside` it those
    files; `more` of `Process`."""
    return Process(
        side=side,
        name=process,
        command=[python, str(flow.helpers(side, process) / name), *arguments],
        namespace=flow.namespace(side),
        helpers=[*(PROGRAMS / one for one in (name, *_BESIDE[name])), *beside],
        **more,
    )

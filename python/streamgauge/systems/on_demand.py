"""Whether a flow plays stored media, which makes no picture of it late against live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.systems.registry import SYSTEMS

__all__ = ["is_on_demand"]


def is_on_demand(flow: Mapping[str, Any]) -> bool:
    """Returns whether a flow of a normalised scenario is a film on demand: its player fetches it over TCP at
    any speed, and nothing makes it live. False for media that a server paces, and for the user's own
    programs, which report live streams themselves."""
    entry = SYSTEMS.get(str(flow.get("system")))
    if entry is None or entry.tcp != "always":
        return False
    return str((flow.get("parameters") or {}).get("live", False)).lower() in ("false", "off")

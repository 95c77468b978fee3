"""Whether a flow plays what lies there already, so that no picture of it is behind live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.systems.registry import SYSTEMS

__all__ = ["is_on_demand"]


def is_on_demand(flow: Mapping[str, Any]) -> bool:
    """Whether a flow of a normalised scenario is a film on demand: its player fetches it over TCP as fast as
    it likes, and nothing makes it live. False of what a server paces out, and of the user's own programs,
    whose players say themselves that a stream is live."""
    entry = SYSTEMS.get(str(flow.get("system")))
    if entry is None or entry.tcp != "always":
        return False
    return str((flow.get("parameters") or {}).get("live", False)).lower() in ("false", "off")

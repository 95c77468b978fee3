"""Actions of a scenario on a flow while it runs, by the flow's entry in the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["pauses", "stopped_at"]


def stopped_at(plan: Mapping[str, Any], duration_ns: int) -> int:
    """Returns when a flow is stopped, or the trial ends, in ns."""
    return min([duration_ns, *(int(at) for at, action in plan.get("actions", ()) if action == "stop")])


def pauses(plan: Mapping[str, Any], end_ns: int) -> list[tuple[int, int]]:
    """Returns the pauses of a flow, ns, each [from, to), in order; an open one lasts until `end_ns`."""
    found: list[tuple[int, int]] = []
    since = None
    for at, action in sorted(plan.get("actions", ()), key=lambda done: done[0]):
        if action == "pause":
            since = at if since is None else since
        elif since is not None:
            found.append((since, at))
            since = None
    return found if since is None else [*found, (since, end_ns)]

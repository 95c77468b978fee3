"""Which bottleneck of a direction is the yardstick of its utilisation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.scenario.path.capacity import mean_bps

__all__ = ["bottleneck"]

_LOOK_NS = 60 * 10**9
"""Long enough for most traces to show their mean."""


def bottleneck(stages: Sequence[Mapping[str, Any]]) -> tuple[int, Mapping[str, Any]] | None:
    """Place and settings of the slowest bottleneck of a direction in a plan; None if it has none."""
    found = [
        (place, stage["kind"]["bottleneck"])
        for place, stage in enumerate(stages)
        if "bottleneck" in stage["kind"]
    ]
    return min(found, key=lambda one: _mean(one[1]["rate"]), default=None)


def _mean(rate: Mapping[str, Any]) -> float:
    """Bit/s; one that is not known is no slowest."""
    found = mean_bps(rate, _LOOK_NS)
    return math.inf if found is None else found

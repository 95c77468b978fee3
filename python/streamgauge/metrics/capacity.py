"""Capacity of a bottleneck in the samples of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgauge.metrics.grid import Floats, Grid
from streamgauge.scenario.path.capacity import bits_until

__all__ = ["carried_bits"]


def carried_bits(rate: Mapping[str, Any], grid: Grid) -> Floats | None:
    """Returns the capacity of a bottleneck in each sample, in bit; None for an unknown kind of rate."""
    until = bits_until(rate, grid.edges_ns)
    return None if until is None else np.diff(until)

"""What a bottleneck can carry in the samples of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgauge.metrics.grid import Floats, Grid
from streamgauge.scenario.path.capacity import bits_until

__all__ = ["carried_bits"]


def carried_bits(rate: Mapping[str, Any], grid: Grid) -> Floats | None:
    """What a bottleneck can carry in each sample, in bit; None if its rate is of no kind known here."""
    until = bits_until(rate, grid.edges_ns)
    return None if until is None else np.diff(until)

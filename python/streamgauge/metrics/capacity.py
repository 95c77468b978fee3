"""What a bottleneck's rate was, over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgauge.metrics.grid import SECOND_NS, Floats, Grid


def steps(rate: Mapping[str, Any], end_s: float) -> list[tuple[float, float]] | None:
    """A bottleneck's rate of the plan as (s, bit/s) from each time on; None if it is of no kind known here.

    Delivery opportunities count as the mean rate of their trace.
    """
    if "constant" in rate:
        return [(0.0, float(rate["constant"]))]
    if "steps" in rate:
        return [(float(at) / SECOND_NS, float(bps)) for at, bps in rate["steps"]]
    if "opportunities" in rate:
        trace = rate["opportunities"]
        return [(0.0, 8e9 * len(trace["times"]) * trace.get("bytes", 1504) / float(trace["period"]))]
    if "square" in rate:
        half = float(rate["square"]["period"]) / 2e9
        values = float(rate["square"]["first"]), float(rate["square"]["second"])
        return [(i * half, values[i % 2]) for i in range(math.ceil(end_s / half))]
    return None


def carried_bits(rate: Mapping[str, Any], grid: Grid) -> Floats | None:
    """What a bottleneck can carry in each sample, in bit; None if its rate is of no kind known here."""
    found = steps(rate, float(grid.edges_ns[-1]) / SECOND_NS)
    if not found:
        return None
    times, values = (np.array(column) for column in zip(*found, strict=True))
    edges = grid.edges_ns / SECOND_NS
    reached = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    latest = np.maximum(np.searchsorted(times, edges, side="right") - 1, 0)
    bits: Floats = np.diff(reached[latest] + values[latest] * (edges - times[latest]))
    return bits

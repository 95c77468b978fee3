"""The rate of a bottleneck of a plan as numbers: every reader of it asks here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["bits_until", "capacity_bits", "highest_bps", "mean_bps", "rate_steps"]

Floats = npt.NDArray[np.float64]
Rate = Mapping[str, Any]
"""As a plan has it: ``{"constant": bit/s}``, ``steps``, ``square`` or ``opportunities``."""

SECOND_NS: Final = 1_000_000_000
_MAHIMAHI_BYTES: Final = 1504
"""Bytes of an opportunity where the plan has none."""


def rate_steps(rate: Rate, end_s: float) -> list[tuple[float, float]] | None:
    """Returns the rate as (s, bit/s) from each time on, up to `end_s`; None if it is of no kind known here.

    Delivery opportunities have no rate at an instant: of them it is the mean in each second.
    """
    if "constant" in rate:
        return [(0.0, float(rate["constant"]))]
    if "steps" in rate:
        return [(float(at) / SECOND_NS, float(bps)) for at, bps in rate["steps"]]
    if "square" in rate:
        half = float(rate["square"]["period"]) / 2e9
        values = float(rate["square"]["first"]), float(rate["square"]["second"])
        return [(i * half, values[i % 2]) for i in range(max(1, math.ceil(end_s / half)))]
    if "opportunities" in rate:
        seconds = np.arange(max(1, math.ceil(end_s)) + 1, dtype=np.int64)
        means = np.diff(_opportunity_bits(rate["opportunities"], seconds * SECOND_NS)).tolist()
        changed = [n for n, bps in enumerate(means) if n == 0 or bps != means[n - 1]]
        return [(float(n), means[n]) for n in changed]
    return None


def bits_until(rate: Rate, times_ns: npt.ArrayLike) -> Floats | None:
    """Returns the bits that the rate lets through from the trial's start until each of the times: its
    integral.

    None if it is of no kind known here.
    """
    times = np.asarray(times_ns, dtype=np.int64)
    if "opportunities" in rate:
        return _opportunity_bits(rate["opportunities"], times)
    found = rate_steps(rate, float(times.max(initial=0)) / SECOND_NS)
    if not found:
        return None
    starts, values = (np.array(column) for column in zip(*found, strict=True))
    edges = times / SECOND_NS
    reached = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(starts))])
    latest = np.maximum(np.searchsorted(starts, edges, side="right") - 1, 0)
    bits: Floats = reached[latest] + values[latest] * (edges - starts[latest])
    return bits


def capacity_bits(rate: Rate, begin_ns: int, end_ns: int) -> float | None:
    """Returns the bits that the rate lets through between two times since the trial's start; None as
    `bits_until`."""
    found = bits_until(rate, [begin_ns, max(begin_ns, end_ns)])
    return None if found is None else float(found[1] - found[0])


def mean_bps(rate: Rate, end_ns: int) -> float | None:
    """Returns the mean rate from the trial's start until `end_ns`, above 0; None as `bits_until`."""
    found = capacity_bits(rate, 0, end_ns)
    return None if found is None else found * SECOND_NS / end_ns


def highest_bps(rate: Rate) -> float | None:
    """Returns the highest rate that it takes, of delivery opportunities in any second; None as
    `bits_until`."""
    if "square" in rate:
        return float(max(rate["square"]["first"], rate["square"]["second"]))
    period_s = float(rate.get("opportunities", {}).get("period") or 0) / SECOND_NS
    found = rate_steps(rate, period_s)
    return max(bps for _, bps in found) if found else None


def _opportunity_bits(trace: Mapping[str, Any], times_ns: npt.NDArray[np.int64]) -> Floats:
    """Returns the bits of the opportunities before each time."""
    chances, period = np.asarray(trace["times"], dtype=np.int64), trace.get("period")
    # One at the period's end precedes those of the next round. Without a period there is one round.
    rounds = np.maximum(times_ns - 1, 0) // int(period) if period else np.zeros_like(times_ns)
    before = np.searchsorted(chances, times_ns - rounds * int(period or 0), side="left")
    bits: Floats = (rounds * len(chances) + before) * (8.0 * trace.get("bytes", _MAHIMAHI_BYTES))
    return bits

"""What a bottleneck could have carried in a span of time: the yardstick of utilisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["bottleneck", "capacity_bits"]


def bottleneck(stages: Sequence[Mapping[str, Any]]) -> tuple[int, Mapping[str, Any]] | None:
    """Place and settings of the slowest bottleneck of a direction in a plan; None if it has none."""
    found = [
        (place, stage["kind"]["bottleneck"])
        for place, stage in enumerate(stages)
        if "bottleneck" in stage["kind"]
    ]
    # Over a minute, which is long enough for most traces to show their mean.
    return min(found, key=lambda one: capacity_bits(one[1]["rate"], 0, 60 * 10**9), default=None)


def capacity_bits(rate: Mapping[str, Any], begin_ns: int, end_ns: int) -> float:
    """Bits that a rate of the plan can send between two times since the trial's start, ns."""
    if "constant" in rate:
        return float(rate["constant"] * (end_ns - begin_ns) / 1e9)
    if "steps" in rate:
        edges = [*rate["steps"], [max(end_ns, rate["steps"][-1][0]), 0]]
        return float(
            sum(
                bps * max(0, min(until, end_ns) - max(since, begin_ns)) / 1e9
                for (since, bps), (until, _) in pairwise(edges)
            )
        )
    if "square" in rate:
        wave = rate["square"]
        return _until_square(wave, end_ns) - _until_square(wave, begin_ns)
    trace = rate["opportunities"]
    chances = _opportunities(trace, end_ns) - _opportunities(trace, begin_ns)
    return float(8 * trace.get("bytes", 1504) * chances)


def _until_square(wave: Mapping[str, Any], at_ns: int) -> float:
    half = wave["period"] // 2
    whole, rest = divmod(at_ns, 2 * half)
    in_first = whole * half + min(rest, half)
    in_second = whole * half + max(rest - half, 0)
    return float((in_first * wave["first"] + in_second * wave["second"]) / 1e9)


def _opportunities(trace: Mapping[str, Any], at_ns: int) -> int:
    """How many there are before a time."""
    times, period = trace["times"], trace.get("period")
    if not period:
        return sum(1 for one in times if one < at_ns)
    whole, rest = divmod(at_ns, period)
    return int(whole) * len(times) + sum(1 for one in times if one < rest)

"""Networks that an evaluation runs on: the centre, each axis alone about it, a Latin hypercube."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

__all__ = ["AXES", "CENTRE", "HYPERCUBE", "EvaluatedNetwork", "along", "hypercube"]

PACKET: Final = 1514
"""Bytes of Ethernet of a full segment."""
MOST_ROWS: Final = 500_000
"""Most rows of a trial's record: a bound on its time and memory."""
HYPERCUBE: Final = 64
"""Conditions of the hypercube."""
_SEED: Final = 9743
_RATES, _RTTS, _BUFFERS = (1e6, 500e6), (0.005, 0.6), (0.5, 16.0)


@dataclass(frozen=True, kw_only=True)
class EvaluatedNetwork:
    """One bottleneck, with the other effects on packets in both directions."""

    rate_bps: float = 50e6
    rtt_s: float = 0.040
    buffer_bdp: float = 1.0
    queue: str = "droptail"
    """A discipline by name; another than ``droptail`` has its own limit."""
    down: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """More keys of the way to the receiver."""
    up: Mapping[str, Any] = field(default_factory=dict, compare=False)
    seconds: float | None = None
    """How long a trial lasts; by the round-trip time if None."""
    begin_s: float | None = None
    """From when on is measured; after a third if None."""

    @property
    def bdp_bytes(self) -> float:
        """Rate times round-trip time."""
        return self.rate_bps * self.rtt_s / 8

    @property
    def queue_bytes(self) -> int:
        """Returns the limit of a drop-tail queue: never less than four packets."""
        return max(round(self.buffer_bdp * self.bdp_bytes), 4 * PACKET)

    @property
    def duration_s(self) -> float:
        """120 round trips between 12 and 45 s, less where the record would be too long."""
        if self.seconds is not None:
            return self.seconds
        wanted = min(45.0, max(12.0, 120 * self.rtt_s))
        affordable = MOST_ROWS / (1.6 * self.rate_bps / (8 * PACKET))
        return math.ceil(max(8.0, min(wanted, affordable), 16 * self.rtt_s))

    @property
    def measured_s(self) -> tuple[float, float]:
        """Returns the window of all metrics."""
        begin = self.duration_s / 3 if self.begin_s is None else self.begin_s
        return round(begin, 1), self.duration_s

    @property
    def window_bytes(self) -> int:
        """Returns a receive window that limits no control: four times the capacity of path and queue."""
        held = self.bdp_bytes + self.queue_bytes
        return min(1 << 30, max(4 << 20, math.ceil(4 * held)))

    @property
    def rows(self) -> float:
        """Returns about how many rows a trial's record has: its time is proportional to them."""
        return 1.6 * self.duration_s * self.rate_bps / (8 * PACKET)

    def path(self) -> dict[str, Any]:
        """Returns the path of a scenario."""
        limit = f"droptail {self.queue_bytes} B" if self.queue == "droptail" else self.queue
        half = f"{round(self.rtt_s * 5e5)} us"
        down = {"rate": f"{round(self.rate_bps)} bit/s", "queue": limit, "delay": half}
        return {"down": down | dict(self.down), "up": {"delay": half} | dict(self.up)}

    def words(self) -> str:
        """Returns ``50 Mbit/s, 40 ms, 1 BDP drop-tail``."""
        queue = f"{self.buffer_bdp:.3g} BDP drop-tail" if self.queue == "droptail" else self.queue
        return f"{rate_words(self.rate_bps)}, {1e3 * self.rtt_s:.3g} ms, {queue}"


def rate_words(bps: float) -> str:
    """Returns a bit rate with three digits."""
    return f"{bps / 1e6:.3g} Mbit/s" if bps >= 1e6 else f"{bps / 1e3:.3g} kbit/s"


CENTRE: Final = EvaluatedNetwork()
AXES: Final[Mapping[str, tuple[EvaluatedNetwork, ...]]] = {
    "rate": tuple(replace(CENTRE, rate_bps=1e6 * x) for x in (1, 5, 20, 100, 200, 500)),
    "round-trip time": tuple(replace(CENTRE, rtt_s=x) for x in (0.005, 0.010, 0.020, 0.080, 0.2, 0.6)),
    "buffer": tuple(replace(CENTRE, buffer_bdp=x) for x in (0.5, 2, 4, 8, 16)),
    "queue discipline": tuple(replace(CENTRE, queue=x) for x in ("codel", "pie", "fq_codel", "dualpi2")),
}
"""Each axis alone; the number of flows is another, which no network has."""


def along(axis: str) -> tuple[EvaluatedNetwork, ...]:
    """Returns the centre and the points of an axis."""
    return (CENTRE, *AXES[axis])


def hypercube(count: int = HYPERCUBE) -> list[EvaluatedNetwork]:
    """Returns a Latin hypercube (McKay, Beckman and Conover, Technometrics 21, 1979) over the logarithms of
    rate, round-trip time and drop-tail buffer: the same for everybody, so that evaluations can be
    compared."""
    random = np.random.default_rng(_SEED)
    columns = [(random.permutation(count) + random.random(count)) / count for _ in range(3)]
    return [
        EvaluatedNetwork(
            rate_bps=_three_digits(_between(_RATES, x)),
            rtt_s=_three_digits(_between(_RTTS, y)),
            buffer_bdp=_three_digits(_between(_BUFFERS, z)),
        )
        for x, y, z in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _between(ends: tuple[float, float], share: float) -> float:
    low, high = ends
    return float(low * (high / low) ** share)


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")

"""Computes numbers from the kernel's stamps at the two ends. Nothing here uses the emulator's own reports.

Times are ns of one clock, as float64 or int64 arrays with one entry a packet, in the order sent; NaN where a
packet was not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONFIDENCE_Z = 3.29
"""Standard errors either side of an interval that a sound instrument leaves once in a thousand times."""


@dataclass(frozen=True)
class Flight:
    """The packets of one pass, all of `frame` Ethernet bytes."""

    sent: Array
    received: Array
    frame: int

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Returns the sent packets that arrived."""
        return np.isfinite(self.received) & np.isfinite(self.sent)

    @property
    def left(self) -> NDArray[np.bool_]:
        """Returns which were sent."""
        return np.isfinite(self.sent)


def service_ns(frame: int, rate_bps: float) -> float:
    """Returns the time of a frame of `frame` bytes at a rate, ns."""
    return frame * 8e9 / rate_bps


def one_way_s(flight: Flight) -> Array:
    """Receiver's stamp less sender's, s, of the packets that arrived."""
    return (flight.received - flight.sent)[flight.arrived] / 1e9


def saturated_rate(flight: Flight, rate_bps: float, skip: float = 0.05) -> tuple[float, float, int]:
    """Returns the rate of a link that was never idle, and the resolution of that.

    The line through the receiver's stamps: departures of a busy link lie one service time apart, which makes
    each stamp's deviation from such a grid noise plus the rate's error times the time passed. The medians of
    the deviations in the first and last third, which single late packets do not move, give the slope.

    Args:
        flight: offered faster than `rate_bps` throughout.
        rate_bps: the configured rate.
        skip: share of the packets left out at the start, while the queue fills.

    Returns:
        (bit/s, relative resolution: the standard error of the slope, packets).
    """
    at = np.sort(flight.received[flight.arrived])
    at = at[int(len(at) * skip) :]
    number = np.arange(len(at))
    third = len(at) // 3
    if third < 10:
        return math.nan, math.nan, len(at)
    service = service_ns(flight.frame, rate_bps)
    deviation = at - at[0] - number * service
    first, last = deviation[:third], deviation[-third:]
    distance = (number[-third:].mean() - number[:third].mean()) * service
    slope = (np.median(last) - np.median(first)) / distance
    # Noise of a median: 1.25 standard deviations over the root of the count, twice.
    spread = [robust_deviation(part - slope * service * np.arange(third)) for part in (first, last)]
    resolution = 1.25 * math.hypot(*spread) / math.sqrt(third) / distance
    return rate_bps / (1 + slope), float(resolution), len(at)


def robust_deviation(values: Array) -> float:
    """Returns a standard deviation from the quartiles, which outliers do not move."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 1.349


def departure_errors_s(flight: Flight, rate_bps: float, delay_s: float) -> Array:
    """Returns the lateness of each packet, s: the receiver's stamp less the departure of an ideal link of
    that rate and delay, which takes packets in at the sender's stamps."""
    service = service_ns(flight.frame, rate_bps)
    sent = flight.sent[flight.left]
    # free(n) = max(free(n-1), sent(n)) + service: a running maximum of sent(n) - n * service.
    number = np.arange(len(sent))
    ideal = np.maximum.accumulate(sent - number * service) + (number + 1) * service
    late = flight.received[flight.left] - ideal - delay_s * 1e9
    known: Array = late[np.isfinite(late)] / 1e9
    return known


def out_of_order(flight: Flight) -> int:
    """Packets that arrived before one that was sent earlier."""
    at = flight.received[flight.arrived]
    if len(at) < 2:
        return 0
    return int((at[1:] < np.maximum.accumulate(at)[:-1]).sum())


def most_held(flight: Flight, delay_s: float = 0.0) -> tuple[int, int]:
    """Most packets that were inside at once, and how many left while the burst was being offered."""
    sent, out = flight.sent[flight.arrived], flight.received[flight.arrived] - delay_s * 1e9
    if not len(sent):
        return 0, 0
    held = max(int((out[: n + 1] > at).sum()) for n, at in enumerate(sent))
    end = flight.sent[flight.left].max()
    return held, int((out <= end).sum())


def loss_runs(flight: Flight) -> tuple[int, int, list[int], list[int]]:
    """Returns (sent, lost, lengths of runs of lost packets, lengths of runs that arrived), whole runs
    only."""
    lost = ~flight.arrived[flight.left]
    edges = np.flatnonzero(np.diff(lost.astype(np.int8)))
    lengths = np.diff(edges)
    # The first and the last run are cut by the load's ends and left out.
    starts_lost = lost[edges[:-1] + 1] if len(edges) > 1 else np.empty(0, dtype=bool)
    bad = [int(n) for n, is_lost in zip(lengths, starts_lost, strict=True) if is_lost]
    good = [int(n) for n, is_lost in zip(lengths, starts_lost, strict=True) if not is_lost]
    return len(lost), int(lost.sum()), bad, good


def bernoulli_bound(probability: float, packets: int) -> float:
    """Half width of the interval in which an honest Bernoulli loss ratio lies (normal approximation)."""
    return CONFIDENCE_Z * math.sqrt(probability * (1 - probability) / max(packets, 1))


def geometric_bound(mean: float, runs: int) -> float:
    """Returns the half width of the interval of the mean of `runs` geometric run lengths of mean `mean`, in
    packets."""
    return CONFIDENCE_Z * math.sqrt(mean * (mean - 1)) / math.sqrt(max(runs, 1))


def renewal_bound(good: float, bad: float, packets: int) -> float:
    """Half width of the interval of the loss ratio of alternating geometric runs of means `good` and `bad`:
    the variance of a renewal-reward ratio, with packets / (good + bad) cycles."""
    cycles = max(packets / (good + bad), 1)
    variance = (good**2 * bad * (bad - 1) + bad**2 * good * (good - 1)) / (good + bad) ** 4
    return CONFIDENCE_Z * math.sqrt(variance / cycles)


def step_time(flight: Flight, before_bps: float, after_bps: float) -> float:
    """Returns when a saturated link changed from one rate to the other, ns: where the two lines of departures
    meet.

    Each line has the slope asked for and the position of the median deviation from it.
    """
    at = np.sort(flight.received[flight.arrived])
    number = np.arange(len(at))
    first, second = service_ns(flight.frame, before_bps), service_ns(flight.frame, after_bps)
    # Which packets belong to which side: nearer to one spacing than to the other, by a running median.
    gaps = np.diff(at)
    slow = gaps > (first + second) / 2 if second > first else gaps < (first + second) / 2
    change = int(np.argmax(np.cumsum(np.where(slow, -1, 1)))) + 1
    margin = 3
    if change < 10 + margin or len(at) - change < 10 + margin:
        return math.nan
    before = np.median(at[5 : change - margin] - number[5 : change - margin] * first)
    after = np.median(at[change + margin :] - number[change + margin :] * second)
    meeting = (before - after) / (second - first)
    return float(before + meeting * first)


def quantile_bound(share: float, density: float, count: int) -> float:
    """Half width of the interval of an empirical quantile, in the values' unit, from the density there."""
    return CONFIDENCE_Z * math.sqrt(share * (1 - share) / max(count, 1)) / density


def quantiles(values: Array, shares: tuple[float, ...]) -> list[float]:
    """Empirical quantiles; NaN if there are no values."""
    if not len(values):
        return [math.nan] * len(shares)
    found: list[Any] = np.quantile(values, shares).tolist()
    return [float(one) for one in found]

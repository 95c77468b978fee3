"""Dimensions and units of measured quantities, as checks and figures need them.

A value is held in a canonical unit: bit, second, packet, and 1 for a fraction. A percentage has its own
dimension so that ``loss.ftp <= 0.5`` (a slip for ``0.5 %``) is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamgauge.units import Packets, Percent, Quantity, Rate, Size, Time


@dataclass(frozen=True, slots=True)
class Dimension:
    """Exponents of bit, second and packet; ``percent`` marks a fraction that people write in percent."""

    data: int = 0
    time: int = 0
    packets: int = 0
    percent: bool = False

    def __mul__(self, other: Dimension) -> Dimension:
        return self._combine(other, 1, self.percent or other.percent)

    def __truediv__(self, other: Dimension) -> Dimension:
        return self._combine(other, -1, self.percent and not other.percent)

    def _combine(self, other: Dimension, sign: int, percent: bool) -> Dimension:
        data = self.data + sign * other.data
        time = self.time + sign * other.time
        packets = self.packets + sign * other.packets
        return Dimension(data, time, packets, percent and not (data or time or packets))

    def __str__(self) -> str:
        if self in _NAMES:
            return _NAMES[self]
        powers = {"bit": self.data, "s": self.time, "packets": self.packets}
        return " ".join(f"{unit}^{power}" for unit, power in powers.items() if power)


NUMBER = Dimension()
PERCENT = Dimension(percent=True)
TIME = Dimension(time=1)
DATA = Dimension(data=1)
RATE = Dimension(data=1, time=-1)
PACKETS = Dimension(packets=1)
PACKET_RATE = Dimension(packets=1, time=-1)
PACKET_SIZE = Dimension(data=1, packets=-1)

_NAMES = {
    NUMBER: "a plain number",
    PERCENT: "a percentage",
    TIME: "a time",
    DATA: "an amount of data",
    RATE: "a bit rate",
    PACKETS: "a number of packets",
    PACKET_RATE: "a packet rate",
    PACKET_SIZE: "a packet size",
}


def _units() -> dict[str, tuple[float, Dimension]]:
    kinds: list[tuple[type[Quantity], float, Dimension]] = [
        (Percent, 0.01, PERCENT),
        (Time, 1e-9, TIME),
        (Size, 8.0, DATA),
        (Rate, 1.0, RATE),
        (Packets, 1.0, PACKETS),
    ]
    table = {
        unit: (scale * base if base >= 1 else scale / round(1 / base), dimension)
        for kind, base, dimension in kinds
        for unit, scale in kind.units.items()
    }
    return table | {
        "pt": (0.01, PERCENT),
        "bit": (1.0, DATA),
        "kbit": (1e3, DATA),
        "Mbit": (1e6, DATA),
        "B/s": (8.0, RATE),
        "kB/s": (8e3, RATE),
        "MB/s": (8e6, RATE),
        "packets/s": (1.0, PACKET_RATE),
        "B/packet": (8.0, PACKET_SIZE),
    }


UNITS: dict[str, tuple[float, Dimension]] = _units()
"""Unit name: (canonical units in one, dimension): those of scenarios, and what their quotients need.
``pt`` is a percentage point."""

JSON_UNITS: dict[Dimension, tuple[str, float]] = {
    NUMBER: ("1", 1.0),
    PERCENT: ("percent", 100.0),
    TIME: ("s", 1.0),
    DATA: ("bytes", 1 / 8),
    RATE: ("bps", 1.0),
    PACKETS: ("packets", 1.0),
    PACKET_RATE: ("packets_per_s", 1.0),
    PACKET_SIZE: ("bytes_per_packet", 1 / 8),
}
"""Dimension: (unit in JSON, factor from the canonical unit)."""


def json_value(value: float, dimension: Dimension) -> tuple[float, str]:
    """A canonical value in the unit that JSON output uses, with that unit's name."""
    unit, factor = JSON_UNITS.get(dimension, (str(dimension), 1.0))
    return value * factor, unit


_LADDERS: dict[Dimension, tuple[tuple[float, str], ...]] = {
    RATE: ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    DATA: ((8e9, "GB"), (8e6, "MB"), (8e3, "kB"), (8.0, "B")),
    TIME: ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    PERCENT: ((0.01, "%"),),
    PACKETS: ((1.0, "packets"),),
    PACKET_RATE: ((1.0, "packets/s"),),
    PACKET_SIZE: ((8.0, "B"),),
    NUMBER: ((1.0, ""),),
}


def pick_unit(value: float, dimension: Dimension) -> tuple[float, str]:
    """The unit a person would read `value` in: (canonical units in one, its name)."""
    ladder = _LADDERS.get(dimension, ((1.0, str(dimension)),))
    size = abs(value)
    for scale, name in ladder:
        if size >= scale:
            return scale, name
    # Nothing is too small to be said; zero and tiny values take the ladder's everyday unit.
    everyday = {RATE: (1e3, "kbit/s"), DATA: (8.0, "B"), TIME: (1e-3, "ms")}
    return everyday.get(dimension, ladder[-1])


def number(value: float, digits: int = 3) -> str:
    """`value` to `digits` significant digits; whole numbers are never rounded to tens."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    if decimals < 0:
        return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 10_000 else f"{value:.0f}"
    return f"{rounded:.{decimals}f}" if decimals <= digits + 3 else f"{rounded:g}"


def say(value: float, dimension: Dimension, digits: int = 3) -> str:
    """A canonical value in words: ``546 kbit/s``, ``0.84 %``, ``462 ms``."""
    scale, unit = pick_unit(value, dimension)
    text = number(value / scale, digits)
    return f"{text} {unit}".rstrip()


def say_exactly(value: float, dimension: Dimension) -> str:
    """A setting rather than a measurement: ``1 Mbit/s``, ``16.384 kB``."""
    scale, unit = pick_unit(value, dimension)
    return f"{value / scale:.9g} {unit}".rstrip()


def say_with(value: float, half: float, dimension: Dimension, digits: int = 3) -> str:
    """``245 ± 1.2 kbit/s``: a canonical value with the half-width of its interval, to the same decimals."""
    scale, unit = pick_unit(value, dimension)
    width = number(half / scale, 2)
    decimals = len(width.partition(".")[2])
    text = f"{value / scale:.{decimals}f}" if 0 < decimals <= 4 else number(value / scale, digits)
    return f"{text} ± {width} {unit}".rstrip()


def say_interval(low: float, high: float, dimension: Dimension, digits: int = 3) -> str:
    """``[low, high] unit`` with one unit for both ends."""
    scale, unit = pick_unit(max(abs(low), abs(high)), dimension)
    low, high = low / scale, high / scale
    # More digits where the ends would read the same.
    while digits < 6 and low != high and number(low, digits) == number(high, digits):
        digits += 1
    return f"[{number(low, digits)}, {number(high, digits)}] {unit}".rstrip()

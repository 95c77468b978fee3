"""Dimensions and units of measured quantities, as checks and figures need them.

A value is held in a canonical unit: bit, second, packet, and 1 for a fraction. A percentage has its own
dimension so that ``loss.ftp <= 0.5`` (a slip for ``0.5 %``) is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from streamgauge.units import Packets, Percent, Quantity, Rate, Size, Time


@dataclass(frozen=True, slots=True)
class Dimension:
    """Exponents of bit, second and packet; ``percent`` marks a fraction that people write in percent.

    ``untold`` is the dimension of a quantity with an unknown unit: any dimension fits it.
    """

    data: int = 0
    time: int = 0
    packets: int = 0
    percent: bool = False
    untold: bool = False

    def __mul__(self, other: Dimension) -> Dimension:
        return self._combine(other, 1, self.percent or other.percent)

    def __truediv__(self, other: Dimension) -> Dimension:
        return self._combine(other, -1, self.percent and not other.percent)

    def _combine(self, other: Dimension, sign: int, percent: bool) -> Dimension:
        if self.untold or other.untold:
            return UNTOLD
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
FREQUENCY = Dimension(time=-1)
UNTOLD = Dimension(untold=True)

_NAMES = {
    NUMBER: "a plain number",
    PERCENT: "a percentage",
    TIME: "a time",
    DATA: "an amount of data",
    RATE: "a bit rate",
    PACKETS: "a number of packets",
    PACKET_RATE: "a packet rate",
    PACKET_SIZE: "a packet size",
    FREQUENCY: "a frequency",
    UNTOLD: "a quantity in a unit that only a trial tells",
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
        "frames/s": (1.0, FREQUENCY),
        "Hz": (1.0, FREQUENCY),
    }


UNITS: dict[str, tuple[float, Dimension]] = _units()
"""Unit name: (canonical units in one, dimension): those of scenarios, and those that their quotients need.
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
    FREQUENCY: ("per_s", 1.0),
}
"""Dimension: (unit in JSON, factor from the canonical unit)."""


EVENT_UNITS: dict[str, tuple[float, Dimension]] = {
    "": (1.0, NUMBER),
    "1": (1.0, NUMBER),
    "s": (1.0, TIME),
    "B": (8.0, DATA),
    "bit/s": (1.0, RATE),
    "%": (0.01, PERCENT),
    "packets": (1.0, PACKETS),
    "1/s": (1.0, FREQUENCY),
}
"""Unit of an event's value as records have it: (canonical units in one, dimension)."""

CANONICAL_UNITS: dict[Dimension, str] = {
    NUMBER: "1",
    PERCENT: "1",
    TIME: "s",
    DATA: "bit",
    RATE: "bit/s",
    PACKETS: "packets",
    PACKET_RATE: "packets/s",
    PACKET_SIZE: "bit/packet",
    FREQUENCY: "1/s",
}
"""Dimension: its canonical unit by name. A percentage is a fraction."""


def json_value(value: float, dimension: Dimension) -> tuple[float, str]:
    """Returns a canonical value in the unit that JSON output uses, with that unit's name."""
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
    FREQUENCY: ((1.0, "/s"),),
    NUMBER: ((1.0, ""),),
}


def pick_unit(value: float, dimension: Dimension) -> tuple[float, str]:
    """Returns the unit a person would read `value` in: (canonical units in one, its name)."""
    ladder = _LADDERS.get(dimension, ((1.0, str(dimension)),))
    size = abs(value)
    for scale, name in ladder:
        if size >= scale:
            return scale, name
    # No value is too small to print; zero takes the everyday unit.
    everyday = {} if size else {RATE: (1e3, "kbit/s"), TIME: (1e-3, "ms")}
    return everyday.get(dimension, ladder[-1])


_MOST_DECIMALS = 12
"""Below this a number is a rounding error of zero."""


def number(value: float, digits: int = 3) -> str:
    """Returns `value` to `digits` significant digits; whole numbers are never rounded to tens, nor are powers
    of ten split off."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    return _fixed(value, max(0, _decimals(value, digits)))


def plain(value: float, digits: int = 9) -> str:
    """Formats `value` with at most this number of significant digits, without zeros at the end and powers of
    ten."""
    return format(Decimal(f"{value:.{digits}g}"), "f")


def say(value: float, dimension: Dimension, digits: int = 3) -> str:
    """Returns a canonical value in words: ``546 kbit/s``, ``0.84 %``, ``462 ms``."""
    scale, unit = pick_unit(value, dimension)
    text = number(value / scale, digits)
    return f"{text} {unit}".rstrip()


def say_exactly(value: float, dimension: Dimension) -> str:
    """Returns a setting rather than a measurement: ``1 Mbit/s``, ``16.384 kB``."""
    scale, unit = pick_unit(value, dimension)
    return f"{plain(value / scale, 9)} {unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Shown:
    """A mean and its interval as text, in one unit and to the same place: that of the second significant
    digit of the interval's half-width. `half`, `low` and `high` are empty where no interval is shown."""

    mean: str
    half: str
    low: str
    high: str
    unit: str
    crosses_zero: bool
    """The interval reaches below zero, where the quantity cannot be: `low` is 0, and there is no ±."""

    @property
    def interval(self) -> str:
        """Returns ``± 1.2``; ``[0, 2.7]`` where that would reach below zero; empty where there is none."""
        if not self.half:
            return ""
        return f"[{self.low}, {self.high}]" if self.crosses_zero else f"± {self.half}"

    def __str__(self) -> str:
        return " ".join(part for part in (self.mean, self.interval, self.unit) if part)


DIGITS_SHOW = 5e-4
"""A half-width of this share of the mean or less does not show in three digits of it."""


def show(
    value: float,
    half: float | None,
    dimension: Dimension,
    digits: int = 3,
    *,
    signed: bool = True,
    least: float = DIGITS_SHOW,
) -> Shown:
    """Returns a canonical value with the half-width of its interval, as a person would write them.

    Args:
        value: the mean.
        half: half the interval's width; None if there is no interval, 0 if nothing varied.
        dimension: of both.
        digits: significant digits where there is no interval to go by.
        signed: whether the quantity can be below zero; of one that cannot the interval ends there.
        least: the share of the mean that a half-width must exceed to be shown.
    """
    if not half or not math.isfinite(half) or half <= least * abs(value):
        scale, unit = pick_unit(value, dimension)
        return Shown(number(value / scale, digits), "", "", "", unit, False)
    scale, unit = pick_unit(max(abs(value), half), dimension)
    if not round(half / scale, _MOST_DECIMALS):
        return Shown(number(value / scale, digits), "", "", "", unit, False)
    return _shown(value / scale, half / scale, unit, _decimals(half / scale, 2), signed)


def show_in(value: float, half: float | None, decimals: int, *, signed: bool = True) -> Shown:
    """Returns the same for a column in a fixed unit, with numbers of at most `decimals`; an interval that
    would round to zero is left out."""
    if not half or not math.isfinite(half) or not round(half, decimals):
        return Shown(_fixed(value, decimals), "", "", "", "", False)
    return _shown(value, half, "", min(decimals, _decimals(half, 2)), signed)


def _shown(value: float, half: float, unit: str, decimals: int, signed: bool) -> Shown:
    low, high = value - half, value + half
    crosses = not signed and low < 0 <= value
    lowest = "0" if crosses else _fixed(low, decimals)
    return Shown(
        _fixed(value, decimals), _fixed(half, decimals), lowest, _fixed(high, decimals), unit, crosses
    )


def _decimals(value: float, digits: int) -> int:
    """Returns the decimals that give a number other than 0 this number of significant digits; negative for
    tens."""
    rounded = abs(float(f"{value:.{digits - 1}e}"))
    return digits - 1 - math.floor(math.log10(rounded)) if rounded else _MOST_DECIMALS


def _fixed(value: float, decimals: int) -> str:
    """Formats to this number of decimals, or to tens if negative; never as a power of ten, never as minus
    nothing."""
    if decimals > _MOST_DECIMALS:
        decimals = _MOST_DECIMALS if round(value, _MOST_DECIMALS) else 0
    text = f"{round(value, decimals) + 0.0:.{max(0, decimals)}f}"
    if float(text) == 0:
        text = "0" if decimals <= 0 else text.removeprefix("-")
    whole, dot, rest = text.partition(".")
    if not dot and abs(value) >= 10_000:
        whole = f"{int(whole):,}".replace(",", "\u202f")
    return f"{whole}{dot}{rest}"

"""Numbers in sentences, with units that fit."""

from __future__ import annotations

__all__ = ["counted", "say_rate", "say_time"]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 packet``, ``2 packets``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def say_rate(bps: float) -> str:
    """``3 Mbit/s``."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.3g} {unit}"
    return f"{bps:.3g} bit/s"


def say_time(seconds: float) -> str:
    """``20 ms``."""
    if abs(seconds) < 1e-3:
        return f"{seconds * 1e6:.3g} us" if seconds else "0 s"
    return f"{seconds * 1e3:.3g} ms" if abs(seconds) < 1 else f"{seconds:.3g} s"

"""Typed quantities: rates, sizes, times, percentages, packets, frequencies and bandwidth-delay products.

Every quantity is exact: it holds a decimal number of its base unit (bit/s, B, ns, %, packets, 1/s, BDP). Text
is parsed only with a unit, and ``parse(str(q)) == q`` for every quantity. Decimal prefixes are powers of
1000; KiB and MiB are powers of 1024.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from pydantic_core import core_schema

__all__ = [
    "DIMENSIONS",
    "Bdp",
    "Frequency",
    "Packets",
    "Percent",
    "Quantity",
    "Rate",
    "Size",
    "Time",
    "UnitError",
    "parse",
]

_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(\S.*?)?\s*")
# Spellings that difflib would not bring back to ours.
_USUAL_SLIPS = {
    "bps": "bit/s",
    "kbps": "kbit/s",
    "Kbps": "kbit/s",
    "kb/s": "kbit/s",
    "Kbit/s": "kbit/s",
    "Mbps": "Mbit/s",
    "mbps": "Mbit/s",
    "Mb/s": "Mbit/s",
    "mbit/s": "Mbit/s",
    "Gbps": "Gbit/s",
    "KB": "kB",
    "Kb": "kB",
    "kb": "kB",
    "K": "KiB",
    "bytes": "B",
    "byte": "B",
    "b": "B",
    "sec": "s",
    "seconds": "s",
    "msec": "ms",
    "usec": "us",
    "µs": "us",
    "minutes": "min",
    "m": "min",
    "pkt": "packets",
    "pkts": "packets",
    "pps": "packets/s",
    "fps": "frames/s",
    "percent": "%",
    "pct": "%",
    "bdp": "BDP",
}
_MAX_DIGITS = 18
_MOST = 9 * 10**18
"""Limit in the base unit: plans and records have 64 bits."""


class UnitError(ValueError):
    """Text that is not a quantity of the expected kind. The message has the expectation and the nearest
    spelling."""


class Quantity:
    """An exact, immutable number of one base unit.

    ``Rate("480 kbit/s")`` parses; ``Rate.of(480_000)`` counts in the base unit. Raises `UnitError`.
    """

    __slots__ = ("amount",)
    amount: Decimal

    #: Unit name -> how many base units. The first is the base unit.
    units: ClassVar[dict[str, int]] = {}
    #: Its name in error messages.
    noun: ClassVar[str] = "quantity"
    example: ClassVar[str] = ""
    #: True if only whole numbers of the base unit make sense.
    whole: ClassVar[bool] = True
    #: Units that `str` never chooses, though they parse.
    never_printed: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, text: str | Quantity) -> None:
        if isinstance(text, Quantity):
            if type(text) is not type(self):
                raise UnitError(f"{text} is a {text.noun}, not a {self.noun} such as {self.example}")
            amount = text.amount
        else:
            amount = self._amount(text)
        object.__setattr__(self, "amount", amount)

    @classmethod
    def of(cls, amount: int | float | Decimal) -> Self:
        """``amount`` base units (a float is taken at its shortest decimal form)."""
        made = cls.__new__(cls)
        decimal = Decimal(repr(amount)) if isinstance(amount, float) else Decimal(amount)
        object.__setattr__(made, "amount", cls._checked(decimal, str(amount)))
        return made

    @classmethod
    def _amount(cls, text: str) -> Decimal:
        if not isinstance(text, str):
            raise UnitError(cls._bare(text))
        return cls._parsed(text)

    # A catalogue contains "10 ms" some thousand times.
    @classmethod
    @lru_cache(maxsize=4096)
    def _parsed(cls, text: str) -> Decimal:
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise UnitError(
                f"{text!r} is not a {cls.noun}; expected a number and a unit, such as {cls.example}"
            )
        number, unit = match.groups()
        if unit is None:
            raise UnitError(cls._bare(number))
        if unit not in cls.units:
            hint = cls._nearest(unit)
            remedy = f"; did you mean {number} {hint}?" if hint else ""
            expected = f"expected one of {', '.join(cls.units)}"
            raise UnitError(f"{text.strip()!r}: {unit!r} is not a unit of a {cls.noun}; {expected}{remedy}")
        if len(number.replace(".", "").lstrip("+-0")) > _MAX_DIGITS:
            raise UnitError(f"{text.strip()!r} has more than {_MAX_DIGITS} digits")
        with localcontext() as context:
            context.prec = 60
            amount = cls._checked(Decimal(number) * cls.units[unit], text.strip())
        if amount > _MOST:
            base = next(iter(cls.units))
            raise UnitError(f"{text.strip()!r} is too much; a {cls.noun} is {_MOST:,} {base} at most")
        return amount

    @classmethod
    def _checked(cls, amount: Decimal, text: str) -> Decimal:
        if not amount.is_finite():
            raise UnitError(f"{text} is not a number")
        if amount < 0:
            raise UnitError(f"{text!r} is negative; a {cls.noun} is zero or more")
        if cls.whole and amount != amount.to_integral_value():
            base = next(iter(cls.units))
            raise UnitError(f"{text!r} is not a whole number of {base}, the finest unit of a {cls.noun}")
        return amount

    @classmethod
    def _bare(cls, number: object) -> str:
        units = ", ".join(cls.units)
        if isinstance(number, bool) or not isinstance(number, int | float | str | Decimal):
            return f"{number!r} is not a {cls.noun}; expected a number and a unit, such as {cls.example}"
        return f"{number} has no unit; expected a {cls.noun} such as {cls.example} (units: {units})"

    @classmethod
    def _nearest(cls, unit: str) -> str | None:
        slip = _USUAL_SLIPS.get(unit)
        if slip in cls.units:
            return slip
        folded = {name.lower(): name for name in reversed(cls.units)}
        if unit.lower() in folded:
            return folded[unit.lower()]
        close = difflib.get_close_matches(unit, cls.units, n=1, cutoff=0.5)
        return close[0] if close else None

    def __str__(self) -> str:
        return self._spelt(self.amount)

    @classmethod
    @lru_cache(maxsize=4096)
    def _spelt(cls, amount: Decimal) -> str:
        if amount == 0:
            return f"0 {'s' if 's' in cls.units else next(iter(cls.units))}"
        best: tuple[int, int, str, str] | None = None
        with localcontext() as context:
            context.prec = 60
            for unit, scale in cls.units.items():
                if unit in cls.never_printed:
                    continue
                number = amount / scale
                if number * scale != amount or (number < 1 and scale != 1):
                    continue
                text = f"{number.normalize():f}"
                # Fewest digits first, then the larger unit.
                rank = (len(text.replace(".", "")), -scale, text, unit)
                if best is None or rank[:2] < best[:2]:
                    best = rank
        assert best is not None, "the base unit always fits"
        return f"{best[2]} {best[3]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.amount == other.amount

    def __lt__(self, other: Self) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.amount < other.amount

    def __le__(self, other: Self) -> bool:
        return self == other or self < other

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.amount))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[str]]:
        return (type(self), (str(self),))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        # Late: who only computes with quantities, as emu's worker does, needs no pydantic.
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json"),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, Any]:
        units = "|".join(re.escape(unit) for unit in cls.units)
        return {
            "type": "string",
            "description": f"A {cls.noun} with its unit.",
            "pattern": rf"^\s*\+?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{{1,2}})?\s*({units})\s*$",
            "examples": [cls.example],
        }

    @classmethod
    def _validate(cls, value: Any) -> Self:
        try:
            return value if isinstance(value, cls) else cls(value)
        except UnitError as error:
            from pydantic_core import PydanticCustomError

            raise PydanticCustomError("quantity", "{why}", {"why": str(error)}) from None


class Rate(Quantity):
    """A bit rate."""

    __slots__ = ()
    units: ClassVar[dict[str, int]] = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
    noun = "bit rate"
    example = "480 kbit/s"

    @property
    def bps(self) -> int:
        """Bit/s."""
        return int(self.amount)


class Size(Quantity):
    """A number of bytes."""

    __slots__ = ()
    units: ClassVar[dict[str, int]] = {
        "B": 1,
        "kB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "KiB": 2**10,
        "MiB": 2**20,
    }
    noun = "size"
    example = "10 kB"

    @property
    def bytes(self) -> int:
        """Bytes."""
        return int(self.amount)


class Time(Quantity):
    """A length of time, or a time since the trial's start."""

    __slots__ = ()
    units: ClassVar[dict[str, int]] = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
    noun = "time"
    example = "10 ms"
    never_printed = frozenset({"min"})

    @property
    def ns(self) -> int:
        """Nanoseconds."""
        return int(self.amount)

    @property
    def s(self) -> float:
        """Seconds."""
        return int(self.amount) / 1e9


class Percent(Quantity):
    """A percentage."""

    __slots__ = ()
    units: ClassVar[dict[str, int]] = {"%": 1}
    noun = "percentage"
    example = "2 %"
    whole = False

    @property
    def percent(self) -> float:
        """Out of 100."""
        return float(self.amount)

    @property
    def fraction(self) -> float:
        """Out of 1."""
        return float(self.amount / 100)


class Packets(Quantity):
    """A number of packets; means need not be whole."""

    __slots__ = ()
    units: ClassVar[dict[str, int]] = {"packets": 1, "packet": 1}
    noun = "number of packets"
    example = "100 packets"
    whole = False
    never_printed = frozenset({"packet"})

    @property
    def count(self) -> float:
        """How many."""
        return float(self.amount)


class Frequency(Quantity):
    """How often: packets, frames or arrivals per second."""

    __slots__ = ()
    units: ClassVar[dict[str, int]] = {"packets/s": 1, "frames/s": 1, "/s": 1, "Hz": 1}
    noun = "frequency"
    example = "60 packets/s"
    whole = False
    never_printed = frozenset({"packets/s", "frames/s", "Hz"})

    @property
    def per_s(self) -> float:
        """Per second."""
        return float(self.amount)


class Bdp(Quantity):
    """A multiple of the bandwidth-delay product (rate times base RTT)."""

    __slots__ = ()
    units: ClassVar[dict[str, int]] = {"BDP": 1}
    noun = "bandwidth-delay product"
    example = "1 BDP"
    whole = False

    @property
    def times(self) -> float:
        """How many."""
        return float(self.amount)


#: Every kind of quantity.
DIMENSIONS: tuple[type[Quantity], ...] = (Rate, Size, Time, Percent, Packets, Frequency, Bdp)


def parse(text: str, *kinds: type[Quantity]) -> Quantity:
    """The quantity that ``text`` names, of one of ``kinds`` (any if none is given). Raises `UnitError`."""
    kinds = kinds or DIMENSIONS
    if len(kinds) == 1:
        return kinds[0](text)
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    unit = match.group(2) if match else None
    for kind in kinds:
        if unit in kind.units:
            return kind(text)
    nouns = ", ".join(f"a {kind.noun} ({kind.example})" for kind in kinds)
    if match is None:
        raise UnitError(f"{text!r} is not a quantity; expected {nouns}")
    if unit is None:
        raise UnitError(f"{match.group(1)} has no unit; expected {nouns}")
    for kind in kinds:
        hint = kind._nearest(unit)
        if hint is not None:
            break
    remedy = f"; did you mean {match.group(1)} {hint}?" if hint else ""
    raise UnitError(f"{text.strip()!r}: unknown unit {unit!r}; expected {nouns}{remedy}")

"""Draws by name: the same for the same arguments on every machine and in every version."""

from __future__ import annotations

import hashlib
import itertools
import re
from decimal import Decimal
from typing import Literal

from streamgauge.scenario.values import Text, Uniform
from streamgauge.units import Quantity, UnitError, parse

__all__ = ["Distribution", "draw"]

_STEPS = 10**6
"""Parts of a span between which a draw between two quantities distinguishes, where their unit is not
whole."""


def draw(seed: int, owner: str, purpose: str, low: int, high: int) -> int:
    """Returns a whole number in [low, high].

    Streams are named, so a flow that is added changes no other draw.
    """
    name = f"{seed}\x1f{owner}\x1f{purpose}".encode()
    bits = int.from_bytes(hashlib.blake2b(name, digest_size=16, person=b"streamgauge/draw").digest())
    return low + ((bits * (high - low + 1)) >> 128)


class Distribution(Text):
    """Distribution of a drawn quantity.

    ``uniform 20 s to 3 min``; ``one of 1 min, 2 min, 2 min`` (each as likely, a repeated value twice as
    likely); ``quantiles 20 s, 3 min, 30 min`` (the least, evenly spaced quantiles and the most, with a
    straight distribution function in between: of three the middle one is the median).
    """

    __slots__ = ("form", "points")
    pattern = r"^\s*(uniform\s+\S.*\s+to\s+\S.*|(one of|quantiles)\s+\S.*,.*\S)\s*$"
    example = "quantiles 20 s, 3 min, 30 min"
    description = "a distribution: uniform A to B, one of A, B, C or quantiles A, B, C"
    _FORM = re.compile(r"\s*(one of|quantiles)\s+(.*\S)\s*")

    def __init__(self, form: Literal["uniform", "one of", "quantiles"], points: tuple[Quantity, ...]) -> None:
        self.form = form
        self.points = points
        if len(points) < 2:
            raise UnitError(f"'{self}' has one value; a distribution has two or more, such as {self.example}")
        for before, point in itertools.pairwise(points):
            if type(before) is not type(point):
                raise UnitError(f"{before} and {point} are not of one kind")
            if form == "quantiles" and before > point:
                raise UnitError(f"'{self}': {point} stands after {before}; quantiles rise")

    @classmethod
    def parse(cls, text: str) -> Distribution:
        found = cls._FORM.fullmatch(text)
        if found is not None:
            form: Literal["one of", "quantiles"] = "one of" if found[1] == "one of" else "quantiles"
            return cls(form, tuple(parse(part) for part in found[2].split(",")))
        if not text.split()[:1] == ["uniform"]:
            raise UnitError(
                f"{text!r} is no {cls.description.partition(':')[0][2:]}. Expected such as "
                "`uniform 20 s to 3 min`, `one of 1 min, 2 min` or `quantiles 20 s, 3 min, 1 h`"
            )
        uniform = Uniform.parse(text)
        return cls("uniform", (uniform.low, uniform.high))

    @property
    def kind(self) -> type[Quantity]:
        """Type of the drawn quantity."""
        return type(self.points[0])

    @property
    def least(self) -> Quantity:
        """Returns the lowest that it draws."""
        return min(self.points, key=lambda point: point.amount)

    @property
    def most(self) -> Quantity:
        """Returns the highest that it draws."""
        return max(self.points, key=lambda point: point.amount)

    def draw(self, seed: int, owner: str, purpose: str) -> Quantity:
        """Returns the value of that name; between two points to a millionth of their distance."""
        if self.form == "one of":
            return self.points[draw(seed, owner, purpose, 0, len(self.points) - 1)]
        place, part = divmod(draw(seed, owner, purpose, 0, (len(self.points) - 1) * _STEPS - 1), _STEPS)
        low, high = self.points[place].amount, self.points[place + 1].amount
        amount = low + (high - low) * Decimal(part) / _STEPS
        return self.kind.of(amount.to_integral_value() if self.kind.whole else amount)

    def __str__(self) -> str:
        if self.form == "uniform":
            return f"uniform {self.points[0]} to {self.points[1]}"
        return f"{self.form} {', '.join(map(str, self.points))}"

    def __repr__(self) -> str:
        return f"Distribution.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and (self.form, self.points) == (other.form, other.points)

    def __hash__(self) -> int:
        return hash((self.form, self.points))

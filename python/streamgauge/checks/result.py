"""Result of a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from streamgauge.claims.dimension import Dimension, json_value, show
from streamgauge.metrics.interval import Interval

_NARROWEST = 5e-6
"""Verdicts rest on intervals, so they are shown down to this share of the mean."""

Verdict = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class Value:
    """A term over the repetitions."""

    text: str
    interval: Interval
    dimension: Dimension
    signed: bool = True
    """Whether it can be below zero."""

    def words(self) -> str:
        """Returns ``546.0 kbit/s [540.0, 552.0] kbit/s (95 % interval, n = 10)``."""
        measured = self.interval
        found = show(measured.mean, measured.half_width, self.dimension, signed=self.signed, least=_NARROWEST)
        text = f"{found.mean} {found.unit}".rstrip()
        if found.half:
            text += f" [{found.low}, {found.high}] {found.unit}".rstrip()
        elif measured.half_width:
            return f"{text} (95 % interval narrower than the digits show, n = {measured.n})"
        return f"{text} ({measured.words()})"

    def mean_words(self) -> str:
        """Returns ``546.0 kbit/s``: the mean with as many digits as its interval bears."""
        measured = self.interval
        found = show(measured.mean, measured.half_width, self.dimension, signed=self.signed, least=_NARROWEST)
        return f"{found.mean} {found.unit}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """Mean, interval and unit."""
        mean, unit = json_value(self.interval.mean, self.dimension)
        return {
            "mean": mean,
            "interval": bounds(self.interval, self.dimension),
            "unit": unit,
            "n": self.interval.n,
            "no_variation": self.interval.no_variation,
        }


def bounds(interval: Interval, dimension: Dimension) -> list[float] | None:
    """Returns an interval's ends in JSON units; None for fewer than two repetitions."""
    low, high = interval.low, interval.high
    if low is None or high is None:
        return None
    return [json_value(low, dimension)[0], json_value(high, dimension)[0]]


@dataclass(frozen=True)
class Compared:
    """One comparison of a check: `holds` is None if undecided."""

    text: str
    holds: bool | None
    measured: Value | None
    bound: Value | None
    margin: Value | None
    """How far on the right side of the bound, per repetition; negative is a miss."""
    why: str

    def to_json(self) -> dict[str, Any]:
        """Returns the comparison with its numbers."""
        return {
            "text": self.text,
            "holds": self.holds,
            "measured": None if self.measured is None else self.measured.to_json(),
            "bound": None if self.bound is None else self.bound.to_json(),
            "margin": None if self.margin is None else self.margin.to_json(),
            "why": self.why,
        }


@dataclass(frozen=True)
class CheckResult:
    """A check's verdict, with its evidence."""

    id: str
    scenario: str
    mode: str
    verdict: Verdict
    why: str
    """In words, with the numbers."""
    that: str
    title: str | None
    origin: str
    strict: bool
    published: Mapping[str, Any]
    """As the source prints it: by flow or metric, text with a unit or a plain number."""
    measured: Value | None
    """The left-hand side of the comparison that decided."""
    n: int
    """Valid trials that it rests on."""
    trials: int
    invalid: int
    """Number among `trials`, both without those that a further seed replaced."""
    values: Mapping[str, Value]
    """Every metric term of the expression, by its text."""
    comparisons: tuple[Compared, ...]
    replaced: int = 0
    """Invalid trials that further seeds replace."""
    note: str | None = None
    differs: str | None = None
    """Where a published number and ours differ although the check holds: by how much, and the mechanism. Or
    that they are not compared."""
    changed: bool = False
    """The scenario differs from the one with published numbers."""

    @property
    def differs_in_size(self) -> bool:
        """Returns whether it holds, and a published number is further away than its tolerance."""
        return self.verdict == "pass" and self.differs is not None and not self.changed

    def to_json(self) -> dict[str, Any]:
        """Returns the shape of ``streamgauge run --json``; `measured` and `interval` are in `unit`."""
        measured = self.measured
        published = dict(self.published)
        return {
            "id": self.id,
            "scenario": self.scenario,
            "mode": self.mode,
            "verdict": self.verdict,
            "measured": None if measured is None else measured.to_json()["mean"],
            "published": (published["value"] if list(published) == ["value"] else published) or None,
            "interval": None if measured is None else bounds(measured.interval, measured.dimension),
            "unit": None if measured is None else json_value(0.0, measured.dimension)[1],
            "no_variation": measured is not None and measured.interval.no_variation,
            "n": self.n,
            "invalid": self.invalid,
            "replaced": self.replaced,
            "origin": self.origin,
            "strict": self.strict,
            "that": self.that,
            "why": self.why,
            "note": self.note,
            "differs": self.differs,
            "values": {text: value.to_json() for text, value in self.values.items()},
            "comparisons": [compared.to_json() for compared in self.comparisons],
        }

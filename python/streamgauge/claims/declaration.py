"""The declaration of a metric: all that checks, tables, comparisons and pages need to know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from streamgauge.claims.dimension import DATA, JSON_UNITS, NUMBER, PACKETS, Dimension

__all__ = [
    "Better",
    "ComparedBy",
    "Margin",
    "Measure",
    "Metric",
    "MetricSide",
    "Part",
    "Subject",
    "declared",
]

Subject = Literal["flow", "stage", "flow or stage", "trial"]
Better = Literal["more", "less", ""]
Part = Literal["mean", "min", "max"]
MetricSide = Literal["viewer", "flow", "neighbour"]
Measure = Callable[..., object]
"""A function that measures: of a trial and a flow's row, of a trial and a stage, or of a trial.

It returns the metric over time (`streamgauge.metrics.Series`), its value over the window (a float), or None
where there is nothing to measure; for several metrics at once a mapping of these by name, or
`streamgauge.metrics.Measured`. In a mapping None is the value of a metric that exists and is unknown.
"""


@dataclass(frozen=True, slots=True)
class Margin:
    """Values this near one another are practically equal: by the absolute margin, or by that share of the
    baseline's, whichever is more."""

    absolute: float = 0.0
    """In canonical units."""
    relative: float = 0.0

    def about(self, baseline: float) -> float:
        """Returns the margin beside a baseline's value, in canonical units."""
        return max(self.absolute, self.relative * abs(baseline))


@dataclass(frozen=True, slots=True)
class ComparedBy:
    """How subjects are compared by a metric: by its mean over the subjects, or over their neighbours."""

    side: MetricSide
    rank: int
    """Its place among those of its side, ascending: the first that all subjects have decides first."""
    short: str
    """Its name in sentences and tables."""
    margin: Margin
    name: str = ""
    """The metric's by default, as are the next four."""
    title: str = ""
    dimension: Dimension | None = None
    better: Better = ""
    signed: bool | None = None
    covered_by: str = ""
    """The compared metric that covers this one and more, where it is known: a stall is a freeze."""
    on_request: bool = False
    """Whether it is compared only where it is asked for by name."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. Its function is beside the declaration, in a module of `streamgauge.metrics` or in an
    installed package."""

    name: str
    dimension: Dimension
    of: Subject
    title: str
    formula: str = ""
    """How its value follows from the record, for docs/metrics.md, in Markdown."""
    flow: Measure | None = None
    """Measures it of a flow, if it is of flows; `stage` and `trial` likewise."""
    stage: Measure | None = None
    trial: Measure | None = None
    number: str = ""
    """The catalogue's number: M1, M5 ...; empty if it has none."""
    better: Better = ""
    """Whether a flow fares better with more of it or with less; empty if unknown."""
    signed: bool = False
    """Whether it can be below zero: more can arrive in a window than is sent in it."""
    reads: tuple[str, ...] = ()
    """Events of players and servers that change it, beside packets."""
    json: str | Mapping[str, Part] | None = field(default=None, hash=False)
    """Its key in JSON, or its keys with their parts; by default its name with the unit's suffix."""
    whole: bool | None = None
    """Whether JSON has it as a whole number; by default amounts of data and of packets."""
    label: str = ""
    """Its name beside a flow's name on pages; metrics without one are not on them."""
    section: str = ""
    """Its table in docs/metrics.md; by default that of flows."""
    compared: tuple[ComparedBy, ...] = ()

    @property
    def keys(self) -> Mapping[str, Part]:
        """Returns its keys in JSON, each with its part."""
        if isinstance(self.json, Mapping):
            return self.json
        return {self.name + _SUFFIXES.get(self.dimension, "") if self.json is None else self.json: "mean"}

    @property
    def is_whole(self) -> bool:
        """Returns whether JSON has it as a whole number."""
        return self.dimension in (DATA, PACKETS) if self.whole is None else self.whole

    def measures(self) -> Mapping[str, Measure]:
        """Returns its functions by their subject, ``flow``, ``stage`` or ``trial``.

        Raises:
            ValueError: if one is missing, or one is of no use.
        """
        given = {"flow": self.flow, "stage": self.stage, "trial": self.trial}
        for what, function in given.items():
            if (function is not None) != (what in self.of.split(" or ")):
                need = f"give `{what}=`" if function is None else f"leave `{what}=` out"
                raise ValueError(f"metric '{self.name}' is of a {self.of}: {need}")
        return {what: function for what, function in given.items() if function is not None}


_SUFFIXES: Mapping[Dimension, str] = {
    dimension: f"_{unit}" for dimension, (unit, _) in JSON_UNITS.items() if dimension != NUMBER
}


def declared(*metrics: Metric) -> Mapping[str, Metric]:
    """Returns metrics by their names.

    Raises:
        ValueError: if two have one name, or a function is missing.
    """
    found: dict[str, Metric] = {}
    for metric in metrics:
        if not metric.name.isascii() or not metric.name.isidentifier():
            raise ValueError(f"'{metric.name}' is no name of a metric: use letters, digits and _")
        metric.measures()
        if any(not (one.better or metric.better) for one in metric.compared):
            raise ValueError(f"metric '{metric.name}' is compared: give `better=`")
        if found.setdefault(metric.name, metric) is not metric:
            raise ValueError(f"two metrics are called '{metric.name}'")
    return found

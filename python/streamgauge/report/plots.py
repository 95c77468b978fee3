"""Plots over time, the parts of small multiples, as data: lines, bars, bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from streamgauge.metrics.grid import Floats
from streamgauge.report.courses import GroupCourse
from streamgauge.report.vega import Spec

__all__ = ["Column", "Plot", "PlotBlock", "PlotLine", "PlotScales", "Threshold"]


@dataclass(frozen=True)
class PlotLine:
    """A quantity over time, by mode. As bars it is a share, drawn up to the whole of its row."""

    series: str
    courses: Mapping[str, GroupCourse]
    part: Literal["line", "thin", "bar"] = "line"
    mean: bool = False
    """Whether the mean over the trials is drawn, where the median would be 0 nearly always."""

    def values(self, mode: str) -> Floats:
        """Returns the drawn values, [point]."""
        course = self.courses[mode]
        return course.mean if self.mean or self.part == "bar" else course.median


@dataclass(frozen=True)
class Threshold:
    """Upper bound of lines: a capacity, a limit; its corners by mode, (time in s, value)."""

    series: str
    said: str
    """With its value, for where it is off the scale: ``capacity 2 Mbit/s``."""
    corners: Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class Plot:
    """One of the multiples. Values are divided by `scale` to be drawn."""

    title: str
    """Which no other plot of a figure has."""
    height: int
    scale: float
    lines: Sequence[PlotLine]
    """Bars have a row each, and no axis; no plot has both."""
    bounds: Sequence[Threshold] = ()
    alike: str = ""
    """Plots of one such name share the end of their axes."""
    top: float | None = None
    """End of its axis; by the drawn values if None."""
    under: Sequence[Spec] = ()
    """Layers below its lines, with data of their own."""
    shown: str = ""
    """Its heading, if not its title."""

    @property
    def bars(self) -> list[str]:
        """Returns the series that are bars, from above."""
        return [line.series for line in self.lines if line.part == "bar"]


@dataclass(frozen=True)
class Column:
    """The trials of one mode."""

    mode: str
    heading: str
    periods: Sequence[tuple[float, float]] = ()
    """Stretches of time that are shaded, in s."""
    period_words: str = ""


@dataclass(frozen=True)
class PlotBlock:
    """Plots that share an axis of time, with the text at their right."""

    plots: Sequence[Plot]
    columns: Sequence[Column]
    end_s: float
    """Where the axis of time ends."""
    aside: Spec | None = None
    aside_rows: Sequence[tuple[Any, ...]] = ()


@dataclass(frozen=True)
class PlotScales:
    """Common scales of all plots of a figure, and the end of a block's time."""

    end_s: float
    width: float
    right: float
    colours: Mapping[str, str]
    colour: Spec
    dash: Spec
    x_title: str
    tops: Mapping[str, float] = field(default_factory=dict)

"""Figures of other installed packages, which a scenario asks for by `draw: NAME`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge import installed
from streamgauge.claims.declaration import Metric
from streamgauge.errors import CannotRunError
from streamgauge.installed import JoinedTable
from streamgauge.report.chart import DrawnFigure
from streamgauge.report.model import Group
from streamgauge.report.vega import whole

__all__ = ["FIGURES", "AskedFigure", "DrawnFigure", "drawn", "whole"]


@dataclass(frozen=True)
class AskedFigure:
    """A figure that a scenario asks for, with what it may be drawn from."""

    id: str
    """Its place on the page, for `DrawnFigure.id`."""
    title: str
    """The scenario's, or the metrics' names."""
    metrics: tuple[Metric, ...]
    subjects: tuple[str, ...]
    """Flows, or bottlenecks with `by: stage`; an empty name for the whole trial."""
    groups: tuple[Group, ...]
    """The trials of each mode that has valid ones: `group.over(metric.name, subject)` is a mean with its
    interval, `group.each()` gives each trial's metrics."""


OwnFigure = Callable[[AskedFigure], DrawnFigure | None]


def _read(name: str, found: Any) -> Mapping[str, OwnFigure]:
    if not callable(found):
        raise ValueError(f"{found!r} is no function of a figure")
    return {name: found}


FIGURES: JoinedTable[OwnFigure] = JoinedTable(installed.FIGURES, lambda: {}, _read)
"""The functions that draw, by the name that `draw:` has: the entry point's. Each returns a figure, or None if
there is nothing to draw."""


def drawn(kind: str, asked: AskedFigure) -> DrawnFigure | None:
    """Returns a package's figure.

    Raises:
        CannotRunError: if the package fails, or returns something else; names the package.
    """
    package = FIGURES.package_of(kind)
    try:
        found = FIGURES[kind](asked)
        if found is not None and not isinstance(found, DrawnFigure):
            raise TypeError(f"it returned {type(found).__name__}, and no DrawnFigure")
    except Exception as error:
        raise CannotRunError(
            f"package {package}: figure {kind} fails: {type(error).__name__}: {error}. Mend the package, or "
            f"remove it (`pip uninstall {package.partition(' ')[0]}`)."
        ) from error
    return found

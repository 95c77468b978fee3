"""The names by which checks, figures and tables call a metric: one table for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from streamgauge import installed
from streamgauge.claims.declaration import Metric, declared
from streamgauge.claims.dimension import NUMBER, UNTOLD
from streamgauge.installed import JoinedTable

__all__ = [
    "METRICS", "count_metric", "event_metric", "event_of", "fed_by", "is_event", "is_known", "named",
]  # fmt: skip

_OWN = "streamgauge.metrics.table"
"""The module with our own metrics. They are looked up as those of other packages are: it imports the rooms
that measure, which are above this one."""


def _own() -> Mapping[str, Metric]:
    found: Mapping[str, Metric] = import_module(_OWN).OWN
    return found


def _read(_: str, found: Any) -> Mapping[str, Metric]:
    """Returns the metrics of an entry point: one, or several."""
    several = [found] if isinstance(found, Metric) or not isinstance(found, Iterable) else list(found)
    if not several or not all(isinstance(one, Metric) for one in several):
        raise ValueError(f"{found!r} is neither a streamgauge.metrics.Metric nor several of them")
    return declared(*several)


METRICS: JoinedTable[Metric] = JoinedTable(installed.METRICS, _own, _read)
"""Every metric that `that:` and `figures:` may name, beside those of events (`named`): our own, and those of
other installed packages."""


@cache
def fed_by(event: str) -> tuple[str, ...]:
    """Returns the metrics that an event of that name changes, those first that name it earliest."""
    found = [metric for metric in METRICS.values() if event in metric.reads]
    return tuple(metric.name for metric in sorted(found, key=lambda metric: metric.reads.index(event)))


_EVENT, _COUNT = "event.", "event_count."


def event_metric(event: str) -> str:
    """Returns the metric that is the mean of the values of the events of that name."""
    return _EVENT + event


def count_metric(event: str) -> str:
    """Returns the metric that is how many events of that name there were."""
    return _COUNT + event


def event_of(metric: str) -> str | None:
    """Returns the event that a metric is of; None if it is not of one."""
    for prefix in (_EVENT, _COUNT):
        if metric.startswith(prefix) and len(metric) > len(prefix):
            return metric.removeprefix(prefix)
    return None


def is_event(metric: str) -> bool:
    """Returns whether a metric is the mean of an event's values."""
    return metric.startswith(_EVENT)


def is_known(metric: str) -> bool:
    """Returns whether there is a metric of that name, for which any event will do."""
    return event_of(metric) is not None or metric in METRICS


def named(metric: str) -> Metric:
    """Returns a metric by its name: one of `METRICS`, or that of an event.

    Raises:
        KeyError: if there is none.
    """
    return _of_event(metric) if event_of(metric) is not None else METRICS[metric]


@cache
def _of_event(metric: str) -> Metric:
    event = event_of(metric)
    if event is None:
        raise KeyError(metric)
    if is_event(metric):
        return Metric(metric, UNTOLD, "flow", event, signed=True)
    return Metric(metric, NUMBER, "flow", f"{event}, how often")

"""The metrics of a comparison: for the viewer, the flow, and its neighbours; for each, the better direction,
and the difference that is too small to matter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from streamgauge.claims.declaration import ComparedBy, Margin, Metric, MetricSide
from streamgauge.claims.dimension import NUMBER, PERCENT, RATE, UNITS, Dimension
from streamgauge.claims.names import METRICS
from streamgauge.errors import CannotRunError
from streamgauge.metrics.frame import FlowInfo

__all__ = [
    "COMPARED",
    "SIDES",
    "ComparedMetric",
    "Margin",
    "MetricSide",
    "harm",
    "left_out_of",
    "margin_of",
    "take_from",
]

SIDES: dict[MetricSide, str] = {
    "viewer": "for the viewer",
    "flow": "for the flow",
    "neighbour": "for its neighbours",
}
"""Each side in words."""


@dataclass(frozen=True)
class ComparedMetric:
    """A metric by which subjects are compared."""

    name: str
    short: str
    """Its name in sentences and tables."""
    title: str
    side: MetricSide
    dimension: Dimension
    better: Literal["more", "less"]
    margin: Margin
    reads: str
    """The metric of the subject flow, or of its neighbours, that it is the mean of; see `take_from`."""
    said_by: str = ""
    """The metric that covers this one and more, where it is known: a stall is a freeze, and QoE weighs the
    level and its changes."""
    on_request: bool = False
    """Whether it is compared only where it is asked for by name."""

    signed: bool = False
    """Whether it can be below zero."""
    rank: int = 0
    """Its place among those of its side."""


_SHOWN_RATE = ComparedMetric(
    "shown_rate",
    "bit rate seen",
    "Bit rate of the pictures shown, over the time that they were asked for",
    "viewer",
    RATE,
    "more",
    Margin(relative=0.05),
    "shown_rate",
    "frames_lost",
    on_request=True,
    rank=80,
)
"""The one that is no metric: see `streamgauge.compare.shown`."""


def _compared(metric: Metric, one: ComparedBy) -> ComparedMetric:
    better = one.better or metric.better
    assert better, "its declaration is checked"
    return ComparedMetric(
        name=one.name or metric.name,
        short=one.short,
        title=one.title or metric.title,
        side=one.side,
        dimension=metric.dimension if one.dimension is None else one.dimension,
        better=better,
        margin=one.margin,
        reads=metric.name,
        said_by=one.covered_by,
        on_request=one.on_request,
        signed=metric.signed if one.signed is None else one.signed,
        rank=one.rank,
    )


def _table() -> dict[str, ComparedMetric]:
    found = [_compared(metric, one) for metric in METRICS.values() for one in metric.compared]
    sides = list(SIDES)
    found = sorted([*found, _SHOWN_RATE], key=lambda one: (sides.index(one.side), one.rank))
    table = {one.name: one for one in found}
    for one in found:
        if table[one.name] is not one:
            package = METRICS.package_of(table[one.name].reads) or METRICS.package_of(one.reads)
            raise CannotRunError(
                f"package {package}: two compared metrics are called '{one.name}'. Give one of them another "
                "`name=` in its ComparedBy."
            )
    return table


COMPARED: dict[str, ComparedMetric] = _table()
"""By name, in the order of tables: the first of the viewer's that all subjects have decides first. Each
metric declares how it is compared."""

_TOLD_LOSS = 0.001
"""Lower losses are not shown beside a delay."""

Value = Callable[[str, str], float]
"""Gives a metric of a flow over the measurement window, in canonical units; NaN where it is not known."""


_QUANTITY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(\S*)")


def margin_of(metric: ComparedMetric, text: str) -> Margin:
    """Returns a margin as written: in the metric's unit, ``50 ms``; for a metric that is no percentage itself
    also as a share of the baseline's value, ``2 %``. Raises ValueError with the expected form."""
    match = _QUANTITY.fullmatch(text.strip())
    scale, dimension = (0.0, None) if match is None else UNITS.get(match[2], (1.0, NUMBER))
    if match is not None and dimension == metric.dimension and (match[2] in UNITS or not match[2]):
        return Margin(absolute=float(match[1]) * scale)
    if match is not None and dimension == PERCENT:
        return Margin(relative=float(match[1]) * scale)
    share = "" if metric.dimension == PERCENT else ", or a share of the baseline's value, such as 2 %"
    raise ValueError(f"{metric.name} is {metric.dimension}; '{text}' is not{share}")


def take_from(value: Value, flows: Mapping[str, FlowInfo], *, flow: str | None = None) -> dict[str, float]:
    """Returns one trial's values: each compared metric that it has, in canonical units.

    A metric of the viewer or the flow is the mean over the subject flows, or that of `flow`; one of the
    neighbours the mean over the flows beside them, pings left out. Harm is not among them, as it needs the
    neighbours' own trials as well (`harm`): its place has ``neighbour_goodput.NAME`` of each.
    """
    mine = [
        name
        for name, info in flows.items()
        if not info.is_ping and (info.role == "subject" if flow is None else name == flow)
    ]
    others = [name for name, info in flows.items() if not info.is_ping and name not in mine]
    found: dict[str, float] = {}
    for metric in COMPARED.values():
        if metric.name == "harm":
            continue
        if metric.reads in METRICS and METRICS[metric.reads].of == "trial":
            read = value(metric.reads, "") if others else math.nan
        else:
            read = _mean(
                [value(metric.reads, name) for name in (others if metric.side == "neighbour" else mine)]
            )
        if math.isfinite(read):
            found[metric.name] = read
    for name in others:
        if math.isfinite(read := value("goodput", name)):
            found[f"{NEIGHBOUR_GOODPUT}{name}"] = read
    return found


NEIGHBOUR_GOODPUT = "neighbour_goodput."
"""Before a neighbour's name: its goodput."""


def left_out_of(metric: str, means: Mapping[str, float]) -> float | None:
    """Returns the share of packets that were lost, so that a delay is not theirs; None of other metrics, and
    if few were.

    Args:
        metric: the metric's name.
        means: means over trials, by name.
    """
    lost = means.get("loss", 0.0)
    return lost if metric == "path_delay_p95" and lost >= _TOLD_LOSS else None


def harm(beside: Mapping[str, float], alone: Mapping[str, float]) -> float:
    """Returns the harm of the subject flow to its neighbours: the mean over them of (x - y) / x, where x
    is a neighbour's goodput without the subject flow and y that beside it, in trials of one seed (Ware,
    Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019, section 3.1). 0 is no harm, 1
    all taken. NaN if a neighbour got nothing alone, or is not in both.

    Args:
        beside: result of `take_from` for the trial with the subject flow.
        alone: result for the neighbours' trial.
    """
    names = [key for key in beside if key.startswith(NEIGHBOUR_GOODPUT)]
    shares = [
        (alone[name] - beside[name]) / alone[name] if alone.get(name, 0.0) > 0 else math.nan for name in names
    ]
    return _mean(shares)


def _mean(values: list[float]) -> float:
    """NaN without any, and if one is not known: a mean over some of the flows would be another quantity."""
    return math.fsum(values) / len(values) if values else math.nan

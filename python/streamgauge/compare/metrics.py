"""The metrics of a comparison: what the viewer sees, what the flow does, what it does to its neighbours; of
each, which way is better, and which difference is too small to matter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from streamgauge.claims.dimension import NUMBER, PERCENT, RATE, TIME, Dimension
from streamgauge.metrics.frame import FlowInfo

__all__ = ["COMPARED", "SIDES", "ComparedMetric", "Margin", "MetricSide", "harm", "take_from"]

MetricSide = Literal["viewer", "flow", "neighbour"]
SIDES: dict[MetricSide, str] = {
    "viewer": "what the viewer sees",
    "flow": "what the flow does",
    "neighbour": "what it does to its neighbours",
}
"""Each side in words."""


@dataclass(frozen=True)
class Margin:
    """Values this near one another are practically equal: by so much, or by that share of the baseline's,
    whichever is more."""

    absolute: float = 0.0
    """In canonical units."""
    relative: float = 0.0

    def about(self, baseline: float) -> float:
        """The margin beside a baseline's value, in canonical units."""
        return max(self.absolute, self.relative * abs(baseline))


@dataclass(frozen=True)
class ComparedMetric:
    """A metric by which subjects are compared."""

    name: str
    title: str
    side: MetricSide
    dimension: Dimension
    better: Literal["more", "less"]
    margin: Margin
    reads: str
    """The metric of the flow under test, or of its neighbours, that it is the mean of; see `take_from`."""
    clause: str
    """What more of it says in a sentence: ``its picture stands still longer``."""

    @property
    def signed(self) -> bool:
        """Whether it can be below zero."""
        return self.name == "harm"


def _table(*rows: ComparedMetric) -> dict[str, ComparedMetric]:
    return {row.name: row for row in rows}


COMPARED: dict[str, ComparedMetric] = _table(
    ComparedMetric(
        "frozen_share", "Share of the time that the picture stands still", "viewer", PERCENT, "less",
        Margin(absolute=0.01), "frozen_share", "the picture stands still",
    ),
    ComparedMetric(
        "rebuffer_ratio", "Share of the time spent stalled", "viewer", PERCENT, "less",
        Margin(absolute=0.01), "rebuffer_ratio", "playing stalls",
    ),
    ComparedMetric(
        "frames_lost", "Frames that were due and not shown", "viewer", PERCENT, "less",
        Margin(absolute=0.01), "frames_lost", "frames are lost",
    ),
    ComparedMetric(
        "frames_shown", "Frames shown", "viewer", NUMBER, "more",
        Margin(relative=0.01), "frames_shown", "frames are shown",
    ),
    ComparedMetric(
        "startup_delay", "Start-up delay", "viewer", TIME, "less",
        Margin(absolute=0.1), "startup_delay", "the first picture takes",
    ),
    ComparedMetric(
        "live_latency", "Latency to live", "viewer", TIME, "less",
        Margin(absolute=0.1, relative=0.05), "live_latency", "the picture is behind live by",
    ),
    ComparedMetric(
        "completion_time", "Completion time of transfers", "viewer", TIME, "less",
        Margin(relative=0.05), "completion_time", "a transfer takes",
    ),
    ComparedMetric(
        "goodput", "Goodput", "flow", RATE, "more",
        Margin(relative=0.05), "goodput", "payload comes through at",
    ),
    ComparedMetric(
        "path_delay_p95", "95th percentile of one-way delay", "flow", TIME, "less",
        Margin(absolute=0.005, relative=0.05), "path_delay_p95", "95 % of its packets cross within",
    ),
    ComparedMetric(
        "loss", "Loss", "flow", PERCENT, "less",
        Margin(absolute=0.002), "loss", "packets are lost",
    ),
    ComparedMetric(
        "rate_variation", "Variation of the received rate over seconds", "flow", NUMBER, "less",
        Margin(absolute=0.05), "rate_variation", "its rate varies by",
    ),
    ComparedMetric(
        "harm", "Harm to its neighbours' goodput", "neighbour", PERCENT, "less",
        Margin(absolute=0.02), "goodput", "its neighbours lose",
    ),
    ComparedMetric(
        "neighbour_share", "Neighbours' share of their max-min fair allocation", "neighbour", PERCENT, "more",
        Margin(absolute=0.02), "max_min_share", "its neighbours get",
    ),
    ComparedMetric(
        "neighbour_delay", "Queueing delay of its neighbours", "neighbour", TIME, "less",
        Margin(absolute=0.005, relative=0.05), "queue_delay", "its neighbours' packets wait",
    ),
    ComparedMetric(
        "jain", "Jain's index", "neighbour", NUMBER, "more",
        Margin(absolute=0.02), "jain", "Jain's index is",
    ),
)  # fmt: skip
"""By name, in the order of tables: the first of the viewer's that all subjects have decides first."""

_OF_TRIAL = "jain"

Value = Callable[[str, str], float]
"""Gives a metric of a flow over the measurement window, in canonical units; NaN where it is not known."""


def take_from(value: Value, flows: Mapping[str, FlowInfo], *, flow: str | None = None) -> dict[str, float]:
    """What one trial says: each compared metric that it knows, in canonical units.

    A metric of the viewer or the flow is the mean over the flows under test, or that of `flow`; one of the
    neighbours the mean over the flows beside them, pings left out. Harm is not among them, for which the
    neighbours must have run alone as well (`harm`): in its place stands ``neighbour_goodput.NAME`` of each.
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
        if metric.reads == _OF_TRIAL:
            read = value(_OF_TRIAL, "") if others else math.nan
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


def harm(beside: Mapping[str, float], alone: Mapping[str, float]) -> float:
    """What the flow under test does to its neighbours: the mean over them of (x - y) / x, where x is a
    neighbour's goodput without the flow under test and y that beside it, in trials of one seed (Ware,
    Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019, section 3.1). 0 is no harm, 1
    all taken. NaN if a neighbour got nothing alone, or is not in both.

    Args:
        beside: what `take_from` gave of the trial with the flow under test.
        alone: what it gave of the neighbours' trial.
    """
    names = [key for key in beside if key.startswith(NEIGHBOUR_GOODPUT)]
    shares = [
        (alone[name] - beside[name]) / alone[name] if alone.get(name, 0.0) > 0 else math.nan for name in names
    ]
    return _mean(shares)


def _mean(values: list[float]) -> float:
    """NaN without any, and if one is not known: a mean over some of the flows would be another quantity."""
    return math.fsum(values) / len(values) if values else math.nan

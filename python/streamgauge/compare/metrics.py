"""The metrics of a comparison: for the viewer, the flow, and its neighbours; for each, the better direction,
and the difference that is too small to matter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from streamgauge.claims.dimension import NUMBER, PERCENT, RATE, TIME, UNITS, Dimension
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

MetricSide = Literal["viewer", "flow", "neighbour"]
SIDES: dict[MetricSide, str] = {
    "viewer": "for the viewer",
    "flow": "for the flow",
    "neighbour": "for its neighbours",
}
"""Each side in words."""


@dataclass(frozen=True)
class Margin:
    """Values this near one another are practically equal: by the absolute margin, or by that share of the
    baseline's, whichever is more."""

    absolute: float = 0.0
    """In canonical units."""
    relative: float = 0.0

    def about(self, baseline: float) -> float:
        """Returns the margin beside a baseline's value, in canonical units."""
        return max(self.absolute, self.relative * abs(baseline))


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

    @property
    def signed(self) -> bool:
        """Returns whether it can be below zero."""
        return self.name in ("harm", "qoe_lin")


def _table(*rows: ComparedMetric) -> dict[str, ComparedMetric]:
    return {row.name: row for row in rows}


COMPARED: dict[str, ComparedMetric] = _table(
    ComparedMetric(
        "frozen_share", "time frozen", "Share of the time with a frozen picture", "viewer",
        PERCENT, "less", Margin(absolute=0.01), "frozen_share",
    ),
    ComparedMetric(
        "rebuffer_ratio", "time stalled", "Share of the time spent stalled", "viewer", PERCENT, "less",
        Margin(absolute=0.01), "rebuffer_ratio", "frozen_share",
    ),
    ComparedMetric(
        "qoe_lin", "QoE", "QoE, linear, as a bit rate", "viewer", RATE, "more",
        Margin(absolute=50e3, relative=0.05), "qoe_lin",
    ),
    ComparedMetric(
        "level", "bit rate shown", "Bit rate of the level played", "viewer", RATE, "more",
        Margin(relative=0.05), "level", "qoe_lin",
    ),
    ComparedMetric(
        "level_changes", "changes of level", "Changes of level", "viewer", NUMBER, "less",
        Margin(absolute=1.0, relative=0.05), "level_changes", "qoe_lin",
    ),
    ComparedMetric(
        "frames_lost", "frames lost", "Frames that were due and not shown", "viewer", PERCENT, "less",
        Margin(absolute=0.01), "frames_lost",
    ),
    ComparedMetric(
        "frames_shown", "frames shown", "Frames shown", "viewer", NUMBER, "more",
        Margin(relative=0.01), "frames_shown", "frames_lost",
    ),
    ComparedMetric(
        "shown_rate", "bit rate seen",
        "Bit rate of the pictures shown, over the time that they were asked for", "viewer", RATE, "more",
        Margin(relative=0.05), "shown_rate", "frames_lost", on_request=True,
    ),
    ComparedMetric(
        "startup_delay", "start-up delay", "Start-up delay", "viewer", TIME, "less",
        Margin(absolute=0.1), "startup_delay",
    ),
    ComparedMetric(
        "live_latency", "latency to live", "Latency to live", "viewer", TIME, "less",
        Margin(absolute=0.1, relative=0.05), "live_latency",
    ),
    ComparedMetric(
        "completion_time", "completion time", "Completion time of transfers", "viewer", TIME, "less",
        Margin(relative=0.05), "completion_time",
    ),
    ComparedMetric(
        "goodput", "goodput", "Goodput", "flow", RATE, "more",
        Margin(relative=0.05), "goodput",
    ),
    ComparedMetric(
        "path_delay_p95", "95th percentile of delay",
        "95th percentile of the one-way delay of the packets that arrived", "flow",
        TIME, "less", Margin(absolute=0.005, relative=0.05), "path_delay_p95",
    ),
    ComparedMetric(
        "loss", "loss", "Loss", "flow", PERCENT, "less",
        Margin(absolute=0.002), "loss",
    ),
    ComparedMetric(
        "rate_variation", "rate variation", "Variation of the received rate over seconds", "flow",
        NUMBER, "less", Margin(absolute=0.05), "rate_variation",
    ),
    ComparedMetric(
        "harm", "harm to neighbours", "Harm to its neighbours' goodput", "neighbour", PERCENT, "less",
        Margin(absolute=0.02), "goodput",
    ),
    ComparedMetric(
        "neighbour_share", "neighbours' fair share", "Neighbours' share of their max-min fair allocation",
        "neighbour", PERCENT, "more", Margin(absolute=0.02), "max_min_share",
    ),
    ComparedMetric(
        "neighbour_delay", "neighbours' queueing delay", "Queueing delay of its neighbours", "neighbour",
        TIME, "less", Margin(absolute=0.005, relative=0.05), "queue_delay",
    ),
    ComparedMetric(
        "jain", "Jain's index", "Jain's index", "neighbour", NUMBER, "more",
        Margin(absolute=0.02), "jain",
    ),
)  # fmt: skip
"""By name, in the order of tables: the first of the viewer's that all subjects have decides first."""

_OF_TRIAL = "jain"
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

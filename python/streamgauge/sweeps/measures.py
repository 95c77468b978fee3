"""Measurements of a sweep: metrics by name, of flows, of bottlenecks or of the whole trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamgauge.claims.names import METRICS
from streamgauge.claims.syntax import Reference, Term
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario
from streamgauge.scenario.values import nearest
from streamgauge.sweeps.points import SweepPoint

__all__ = ["USUAL", "MetricOf", "leaves_at", "measured_of", "usual"]

USUAL = (
    "goodput", "loss", "queue_delay", "startup_delay", "frozen_share", "rebuffer_ratio", "frames_lost",
    "completion_time",
)  # fmt: skip
"""Default metrics: those of them that the subject flows have."""


@dataclass(frozen=True)
class MetricOf:
    """One metric of one flow or stage, or of the trial."""

    metric: str
    flow: str | None = None
    stage: str | None = None
    named: bool = False
    """Whether this flow was asked for by its name."""

    @property
    def leaf(self) -> Reference:
        """As checks read it."""
        return Reference(self.metric, self.flow or self.stage or "")


def usual() -> tuple[str, ...]:
    """Returns `USUAL`, as far as there are such metrics."""
    return tuple(name for name in USUAL if name in METRICS)


def measured_of(points: Sequence[SweepPoint], asked: Sequence[str]) -> list[MetricOf]:
    """Returns the metrics that ``METRIC`` and ``METRIC.SUBJECT`` select at any of the points, in the order
    asked; the usual by default. Raises ScenarioError that names the option."""
    flows = list(dict.fromkeys(name for point in points for name in point.scenario.flows))
    stages = list(dict.fromkeys(name for point in points for name in _stages(point.scenario)))
    found: dict[MetricOf, None] = {}
    for text in asked or usual():
        metric, dot, subject = text.partition(".")
        if metric not in METRICS:
            close = nearest(metric, METRICS)
            raise ScenarioError(
                f"there is no metric '{metric}'; docs/metrics.md has them all",
                file=f"--metric {text}",
                hint=f"did you mean '{close}'?" if close else None,
            )
        of = METRICS[metric].of
        if of == "trial":
            if dot:
                raise ScenarioError(f"'{metric}' is of the whole trial", file=f"--metric {text}")
            found[MetricOf(metric)] = None
            continue
        if dot and subject not in (*flows, *stages):
            close = nearest(subject, [*flows, *stages])
            raise ScenarioError(
                f"there is no flow or bottleneck '{subject}'; there are {', '.join([*flows, *stages])}",
                file=f"--metric {text}",
                hint=f"did you mean '{metric}.{close}'?" if close else None,
            )
        if of != "stage":
            found |= {
                MetricOf(metric, flow=name, named=bool(dot)): None
                for name in flows
                if not dot or name == subject
            }
        # A name of both selects the flow unless a bottleneck is named.
        if of == "stage" or (of == "flow or stage" and subject in stages and subject not in flows):
            found |= {MetricOf(metric, stage=name): None for name in stages if not dot or name == subject}
    return list(found)


def leaves_at(points: Sequence[SweepPoint], measured: Sequence[MetricOf]) -> Mapping[str, Mapping[str, Term]]:
    """Returns the metrics to read of each scenario's trials, by its id."""
    leaves: dict[str, dict[str, Term]] = {}
    for point in points:
        mine = leaves.setdefault(point.scenario.id, {})
        known = {*point.scenario.flows, *_stages(point.scenario), None}
        mine |= {str(one.leaf): one.leaf for one in measured if {one.flow, one.stage} <= known}
    return leaves


def _stages(scenario: Scenario) -> Iterator[str]:
    """Yields the bottlenecks, as checks call them."""
    yield from (stage.name for _, stage in scenario.path.down.bottlenecks())
    yield from (f"up.{stage.name}" for _, stage in scenario.path.up.bottlenecks())

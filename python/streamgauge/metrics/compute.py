"""From a record to its metrics: every function of the table of metrics, of every flow and bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from streamgauge.claims.declaration import Measure
from streamgauge.claims.names import METRICS
from streamgauge.errors import CannotRunError, RecordError
from streamgauge.metrics import fairness
from streamgauge.metrics.delay import round_trip
from streamgauge.metrics.frame import MetricLayer, RecordLike, Trial, prepare
from streamgauge.metrics.own_events import own_events
from streamgauge.metrics.result import FlowMetrics, Measured, Series, StageMetrics, TrialMetrics
from streamgauge.record.schema import METRICS_FILE, PACKETS


def compute(record: RecordLike, scenario: Any = None, *, layer: MetricLayer | None = None) -> TrialMetrics:
    """Returns every metric of one trial.

    Args:
        record: the trial's record.
        scenario: the scenario, or a mapping shaped like it, if not the one in the record: its `measure`
            gives window, sample and layer.
        layer: counts bytes at this layer instead of the scenario's (IP by default).

    Raises:
        RecordError: if the record lacks data for the metrics, or the window does not fit the trial.
        CannotRunError: if an installed package's metric fails; names the package.
    """
    header = record.trial
    if PACKETS not in header.get("kept", (PACKETS,)) and (record.directory / METRICS_FILE).exists():
        raise RecordError(
            f"{record.directory}: its packets were not kept, so nothing can be measured again. "
            f"streamgauge.load({str(record.directory)!r})[0].metrics reads the kept metrics. "
            "Run it with --keep packets to keep the packets."
        )
    if scenario is not None and not isinstance(scenario, Mapping):
        # No other part of a scenario counts, and to write it out takes as long as many metrics.
        scenario = {"measure": scenario.measure.model_dump(mode="json")}
    trial = prepare(record, scenario, layer)
    others = own_events(trial)
    flows = {}
    for row, info in enumerate(trial.flows):
        found, own = _measured("flow", trial, row), others[row]
        flows[info.name] = FlowMetrics(
            found.series | own.series,
            found.scalars,
            info=info,
            rtt_source=trial.once(round_trip, row)[1],
            events=own.units,
        )
    stages = {}
    for stage in (stage for stage in trial.stages if stage.is_bottleneck):
        found = _measured("stage", trial, stage)
        stages[stage.label] = StageMetrics(found.series, found.scalars, info=stage)
    whole = _measured("trial", trial)
    jain = whole.scalars.pop("jain")
    validity = header.get("validity") or {}
    name = header.get("scenario", {})
    return TrialMetrics(
        scenario=str(name.get("id", "") if isinstance(name, Mapping) else name),
        mode=str(header.get("mode", "")),
        seed=int(header.get("seed", 0)),
        valid=bool(validity.get("valid", True)),
        why=tuple(str(reason) for reason in validity.get("why") or ()),
        layer=trial.layer,
        grid=trial.grid,
        flows=flows,
        stages=stages,
        jain=float("nan") if jain is None else jain,
        jain_samples=whole.series.pop("jain").samples(),
        jain_flows=tuple(trial.flows[row].name for row in trial.once(fairness.sharers)),
        whole=Measured(whole.series, whole.scalars),
        packages=METRICS.packages(),
    )


@dataclass
class _Found:
    """Results for one flow, one stage or the trial."""

    series: dict[str, Series] = field(default_factory=dict)
    scalars: dict[str, float | None] = field(default_factory=dict)

    def add(self, name: str, value: object) -> None:
        """Adds one metric. Raises TypeError for something else than a value of a metric."""
        if isinstance(value, Series):
            self.series[name] = value
        elif value is None:
            self.scalars[name] = None
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self.scalars[name] = float(value)
        else:
            raise TypeError(f"'{name}' is {type(value).__name__}, and neither Series nor number")


def _measured(what: str, trial: Trial, *of: Any) -> _Found:
    """Calls every function of a kind (``flow``, ``stage`` or ``trial``)."""
    found = _Found()
    for function, names in _functions(what):
        try:
            _add(found, names, trial.once(function, *of))
        except Exception as error:
            if not (package := METRICS.package_of(names[0])):
                raise
            raise CannotRunError(
                f"package {package}: metric {names[0]} fails: {type(error).__name__}: {error}. Mend the "
                f"package, or remove it (`pip uninstall {package.partition(' ')[0]}`)."
            ) from error
    return found


def _add(found: _Found, names: tuple[str, ...], result: object) -> None:
    """Adds a function's result: one metric, or several by name."""
    if isinstance(result, Measured):
        several: dict[str, object] = dict(result.series)
        for name, scalar in result.scalars.items():
            if name in several:
                # Over the window it has a value of its own.
                found.add(name, scalar)
            several.setdefault(name, scalar)
    elif isinstance(result, Mapping):
        several = dict(result)
    else:
        several = {} if result is None else {names[0]: result}
    if unknown := several.keys() - set(names):
        raise KeyError(f"{', '.join(sorted(unknown))}: not declared with this function; declare it")
    for name, value in several.items():
        found.add(name, value)


@cache
def _functions(what: str) -> tuple[tuple[Measure, tuple[str, ...]], ...]:
    """Returns the functions of a kind, in the order of the table, each with the metrics that name it."""
    found: dict[Measure, list[str]] = {}
    for metric in METRICS.values():
        if (function := metric.measures().get(what)) is not None:
            found.setdefault(function, []).append(metric.name)
    return tuple((function, tuple(names)) for function, names in found.items())

"""Trials as polars frames in tidy form: a row an observation, with its keys in the first columns."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from streamgauge.campaign.loaded import LoadedTrial, read_header
from streamgauge.campaign.stored import FILE, long_form
from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import CANONICAL_UNITS, Dimension
from streamgauge.claims.names import METRICS, is_event, is_known, named
from streamgauge.errors import RecordError, StreamGaugeError
from streamgauge.metrics.result import VERSION, FlowMetrics, Measured, TrialMetrics
from streamgauge.record.schema import EVENTS, PACKETS, TRIAL
from streamgauge.scenario.values import nearest

__all__ = [
    "dimension_of",
    "events",
    "known",
    "measured",
    "over_time",
    "set_columns",
    "trials_frame",
    "unit_of",
]

_KEY: Mapping[str, Any] = {
    "scenario": pl.String, "mode": pl.String, "seed": pl.Int64, "valid": pl.Boolean,
}  # fmt: skip
_MEASURED: Mapping[str, Any] = {
    "flow": pl.String, "stage": pl.String, "metric": pl.String, "value": pl.Float64, "unit": pl.String,
    "min": pl.Float64, "max": pl.Float64,
}  # fmt: skip
_SERIES: Mapping[str, Any] = {
    "flow": pl.String, "stage": pl.String, "metric": pl.String, "begin_s": pl.Float64, "end_s": pl.Float64,
    "value": pl.Float64, "unit": pl.String,
}  # fmt: skip


def set_columns(trials: Iterable[LoadedTrial]) -> list[str]:
    """Returns the addresses that were set in any of the trials, such as ``path.down.rate``: a column each."""
    return list(dict.fromkeys(setting.partition("=")[0] for one in trials for setting in one.settings))


def dimension_of(metric: str, subject: Measured | None = None) -> Dimension:
    """Returns a metric's dimension; for an event's values that of the flow's unit."""
    if isinstance(subject, FlowMetrics) and is_event(metric):
        return subject.dimension(metric)
    return named(metric).dimension


def unit_of(metric: str, subject: Measured | None = None) -> str:
    """Returns the canonical unit of a metric: ``bit/s``, ``s``, ``bit``, ``packets``; ``1`` of shares and
    counts."""
    dimension = dimension_of(metric, subject)
    return CANONICAL_UNITS.get(dimension, str(dimension))


def trials_frame(trials: Sequence[LoadedTrial], replaced: Mapping[int, int]) -> pl.DataFrame:
    """Returns a row a trial; `replaced` has the seed that replaces a trial, by its place in `trials`."""
    about = {
        "why": ["; ".join(one.why) for one in trials],
        "replaces": pl.Series([one.replaces for one in trials], dtype=pl.Int64),
        "replaced_by": pl.Series([replaced.get(place) for place in range(len(trials))], dtype=pl.Int64),
        "kept": [_kept(one) for one in trials],
        "directory": [str(one.directory or "") for one in trials],
    }
    return _keys(trials).drop("place").hstack(pl.DataFrame(about))


def _kept(trial: LoadedTrial) -> str:
    """Returns the kept part of it by ``--keep``: ``packets`` and all else, ``events`` and metrics, or
    ``metrics`` alone."""
    if trial.directory is None or not (trial.directory / EVENTS).exists():
        return "metrics"
    return "packets" if (trial.directory / PACKETS).exists() else "events"


def _keys(trials: Sequence[LoadedTrial]) -> pl.DataFrame:
    """Returns the key columns, a row a trial; ``place`` is the trial's in `trials`."""
    addresses = set_columns(trials)
    said = [dict(setting.split("=", 1) for setting in one.settings) for one in trials]
    return pl.DataFrame(
        {
            "place": pl.Series(range(len(trials)), dtype=pl.UInt32),
            "scenario": [one.scenario for one in trials],
            **{name: pl.Series([one.get(name) for one in said], dtype=pl.String) for name in addresses},
            "mode": [one.mode for one in trials],
            "seed": [one.seed for one in trials],
            "valid": [one.valid for one in trials],
        },
        schema_overrides=dict(_KEY),
    )


def _told(trials: Sequence[LoadedTrial], rows: pl.DataFrame) -> pl.DataFrame:
    """Returns rows with their ``place``, behind their key columns; in the order of the trials."""
    joined = _keys(trials).join(rows, on="place", how="inner", maintain_order="left_right")
    return joined.drop("place")


def measured(
    trials: Sequence[LoadedTrial], names: Collection[str] = (), flow: str | None = None
) -> pl.DataFrame:
    """Metrics over the window: a row a metric of a flow, a stage or a trial.

    Files are scanned for these columns alone; trials without a ``metrics.parquet`` are read one by one.
    """
    for name in names:
        known(name)
    places = {str(one.directory): place for place, one in enumerate(trials) if _has_table(one)}
    parts = [_empty(_MEASURED)]
    if places:
        wanted = [pl.col("metric").is_in(list(names))] if names else []
        wanted += [pl.col("flow") == flow] if flow is not None else []
        scanned = long_form(list(places)).filter(*wanted).select("directory", *_MEASURED).collect()
        numbers = pl.DataFrame(
            {"directory": list(places), "place": pl.Series(list(places.values()), dtype=pl.UInt32)}
        )
        parts.append(scanned.join(numbers, on="directory", maintain_order="left").select("place", *_MEASURED))
    for place, one in enumerate(trials):
        if str(one.directory) not in places and (metrics := _metrics(one)) is not None:
            parts.append(_window(place, metrics, names, flow))
    roles = _roles(trials)
    rows = pl.concat(parts)
    found = _told(trials, rows.join(roles, on=["place", "flow"], how="left", maintain_order="left"))
    before = [name for name in found.columns if name not in ("role", *_MEASURED)]
    found = found.select(*before, "flow", "role", *(name for name in _MEASURED if name != "flow"))
    if flow is not None and found.is_empty():
        _no_such_flow(flow, roles["flow"])
    return found


def _has_table(trial: LoadedTrial) -> bool:
    """Returns whether its numbers are those of its ``metrics.parquet``: not where packets and events exist to
    replace an older version's measurements."""
    folder = trial.directory
    if trial.held is not None or trial.damage is not None or folder is None or not (folder / FILE).is_file():
        return False
    if not all((folder / name).exists() for name in (PACKETS, EVENTS)):
        return True
    try:
        about = json.loads(pl.read_parquet_metadata(folder / FILE)["streamgauge.metrics"])
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError):
        return False
    return int(about.get("version", 1)) >= VERSION


def _metrics(trial: LoadedTrial) -> TrialMetrics | None:
    return None if trial.damage is not None else trial.metrics


def _empty(columns: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(schema={"place": pl.UInt32, **columns})


def known(name: str) -> Metric:
    """Returns a metric by its name. Raises StreamGaugeError if there is none."""
    if not is_known(name):
        close = nearest(name, METRICS)
        remedy = f"did you mean '{close}'?" if close else f"there are {', '.join(METRICS)}"
        raise StreamGaugeError(f"there is no metric '{name}'; {remedy}")
    return named(name)


def _no_such_flow(flow: str, flows: Iterable[str]) -> None:
    known = list(dict.fromkeys(flows))
    if flow not in known:
        raise StreamGaugeError(f"no trial has a flow '{flow}'; the flows are {', '.join(known) or 'none'}")


def _roles(trials: Sequence[LoadedTrial]) -> pl.DataFrame:
    """Returns the role of each flow of each trial: ``subject`` or ``rival`` (cross traffic).

    Trials of one scenario, as it was run, have the same flows: one of each is enough.
    """
    found: dict[int, list[tuple[str, str]]] = {}
    rows: list[tuple[int, str, str]] = []
    for place, one in enumerate(trials):
        # Equal parts of trials are in memory once (`campaign.loaded`).
        scenario = one.header.get("scenario")
        whose = id(scenario) if isinstance(scenario, Mapping) else -1 - place
        if whose not in found:
            found[whose] = _flows(one)
        rows += [(place, name, role) for name, role in found[whose]]
    schema = {"place": pl.UInt32, "flow": pl.String, "role": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _flows(trial: LoadedTrial) -> list[tuple[str, str]]:
    if trial.held is not None:
        return [(name, flow.info.role) for name, flow in trial.held.flows.items()]
    if trial.directory is None:
        return []
    flows = read_header(trial.directory / TRIAL).get("flows") or []
    return [(str(flow["name"]), str(flow.get("role", "subject"))) for flow in flows]


def _subjects(metrics: TrialMetrics) -> list[tuple[str | None, str | None, Measured]]:
    """Returns each flow, then each stage, then the trial itself, with its metrics."""
    flows = [(name, None, flow) for name, flow in metrics.flows.items()]
    stages = [(None, name, stage) for name, stage in metrics.stages.items()]
    return [*flows, *stages, (None, None, metrics.whole)]


def _window(place: int, metrics: TrialMetrics, names: Collection[str], flow: str | None) -> pl.DataFrame:
    """Returns `measured` of one trial with metrics in memory."""
    part = metrics.grid.slice()
    rows: list[tuple[Any, ...]] = []
    for of_flow, of_stage, subject in _subjects(metrics):
        for name in {**subject.series, **subject.scalars}:
            if (names and name not in names) or (flow is not None and of_flow != flow):
                continue
            series, value = subject.series.get(name), subject.scalars.get(name)
            if name not in subject.scalars and series is not None:
                value = series.value(part)
            low, high = (
                None if inside is None or series is None else series.extreme(part, highest=highest)
                for inside, highest in (
                    (None if series is None else series.low, False),
                    (None if series is None else series.high, True),
                )
            )
            rows.append(
                (
                    place,
                    of_flow,
                    of_stage,
                    name,
                    _finite(value),
                    unit_of(name, subject),
                    _finite(low),
                    _finite(high),
                )
            )
    if flow is None and (not names or "jain" in names):
        rows.append((place, None, None, "jain", _finite(metrics.jain), unit_of("jain"), None, None))
    return pl.DataFrame(rows, schema={"place": pl.UInt32, **_MEASURED}, orient="row")


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def over_time(
    trials: Sequence[LoadedTrial], metric: str, flow: str | None = None, stage: str | None = None
) -> pl.DataFrame:
    """Returns a metric in each sample of each trial: a row a sample of a flow, a stage or a trial."""
    known(metric)
    parts = [_empty(_SERIES)]
    flows: dict[str, None] = {}
    alone = False
    for place, one in enumerate(trials):
        if (metrics := _metrics(one)) is None:
            continue
        flows |= dict.fromkeys(metrics.flows)
        edges = metrics.grid.edges_ns / 1e9
        courses = [
            (unit_of(metric, subject), of_flow, of_stage, subject.series[metric].samples())
            for of_flow, of_stage, subject in _subjects(metrics)
            if metric in subject.series
            and (flow is None or of_flow == flow)
            and (stage is None or of_stage == stage)
        ]
        if metric == "jain" and flow is None and stage is None:
            courses = [(unit_of("jain"), None, None, metrics.jain_samples)]
        alone |= any(metric in subject.scalars for *_, subject in _subjects(metrics))
        parts += [_course(place, metric, edges, *course) for course in courses]
    found = _told(trials, pl.concat(parts))
    if found.is_empty():
        if flow is not None and trials:
            _no_such_flow(flow, flows)
        if alone:
            raise StreamGaugeError(
                f"{metric} is a number of the whole window, without a course in time; "
                f"metrics('{metric}') has it"
            )
    return found


def _course(
    place: int,
    metric: str,
    edges: np.ndarray[Any, Any],
    unit: str,
    flow: str | None,
    stage: str | None,
    values: Any,
) -> pl.DataFrame:
    frame = pl.DataFrame({"begin_s": edges[:-1], "end_s": edges[1:], "value": values})
    value = pl.when(pl.col("value").is_finite()).then("value")
    return frame.select(
        pl.lit(place, pl.UInt32).alias("place"),
        pl.lit(flow, pl.String).alias("flow"),
        pl.lit(stage, pl.String).alias("stage"),
        pl.lit(metric, pl.String).alias("metric"),
        "begin_s",
        "end_s",
        value.alias("value"),
        pl.lit(unit, pl.String).alias("unit"),
    )


def events(
    trials: Sequence[LoadedTrial], names: Collection[str] = (), flow: str | None = None
) -> pl.DataFrame:
    """Returns the events of machines, programs and the path: a row an event.

    Warns of trials that were kept without events, if there are others.

    Raises:
        RecordError: if no trial was kept with its events, or a file is damaged.
    """
    places = {
        str(one.directory / EVENTS): place
        for place, one in enumerate(trials)
        if one.directory is not None and (one.directory / EVENTS).exists()
    }
    if trials and not places:
        raise RecordError(
            f"{trials[0].directory}: no trial here kept its events. Run again with "
            "keep='events' (on the command line --keep events), which keeps events and metrics."
        )
    if len(places) < len(trials):
        count = f"{len(trials) - len(places)} of {len(trials)} trials"
        warnings.warn(f"{count} were kept without events and are left out", stacklevel=3)
    said: Mapping[str, Any] = {
        "flow": pl.String, "name": pl.String, "time_s": pl.Float64, "value": pl.Float64, "unit": pl.String,
        "reason": pl.String,
    }  # fmt: skip
    if not places:
        return _told(trials, _empty(said))
    wanted = [pl.col("name").is_in(list(names))] if names else []
    wanted += [pl.col("flow") == flow] if flow is not None else []
    # Polars multiplies by the reciprocal, which leaves 0.3 s as 0.30000000000000004.
    seconds = (pl.col("time") / 1e9).round(9)
    try:
        scanned = (
            pl.scan_parquet(list(places), hive_partitioning=False, include_file_paths="file", glob=False)
            .filter(*wanted)
            .select("file", "flow", "name", seconds.alias("time_s"), "value", "unit", "reason")
            .collect()
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RecordError(
            f"events cannot be read: {error}; streamgauge verify names the damaged file."
        ) from error
    numbers = pl.DataFrame({"file": list(places), "place": pl.Series(list(places.values()), dtype=pl.UInt32)})
    rows = scanned.join(numbers, on="file", maintain_order="left").select("place", *said)
    found = _told(trials, rows)
    if flow is not None and found.is_empty():
        _no_such_flow(flow, _roles(trials)["flow"])
    return found

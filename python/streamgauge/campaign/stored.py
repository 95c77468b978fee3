"""Metrics beside a record, so that a campaign may keep them alone: ``metrics.parquet``, in long form.

A row is one metric of a flow, a stage or the trial, over the measurement window, with its parts in each
sample. Any reader of Parquet takes a campaign's files as they are; `docs/records.md` lists the columns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from streamgauge import _native
from streamgauge.campaign import stored_json
from streamgauge.campaign.layout import sweep
from streamgauge.claims.dimension import CANONICAL_UNITS, NUMBER
from streamgauge.claims.names import METRICS, is_event, is_known, named
from streamgauge.errors import RecordError
from streamgauge.input_files import UnfitInputError, check_file
from streamgauge.metrics.frame import FlowInfo, StageInfo
from streamgauge.metrics.grid import Floats, Grid
from streamgauge.metrics.result import VERSION, FlowMetrics, Measured, Series, StageMetrics, TrialMetrics
from streamgauge.record.schema import EVENTS, METRICS_FILE, PACKETS, TRIAL

__all__ = ["FILE", "SCHEMA", "has_metrics", "load_metrics", "long_form", "save_metrics"]

SCHEMA = "streamgauge.metrics/7"
FILE = METRICS_FILE
_LISTS = ("numerator", "denominator", "low", "high")

_COLUMNS: Mapping[str, Any] = {
    "trial": pl.String, "valid": pl.Boolean, "flow": pl.String, "stage": pl.String, "metric": pl.String,
    "begin_s": pl.Float64, "end_s": pl.Float64, "value": pl.Float64, "min": pl.Float64, "max": pl.Float64,
    "unit": pl.String, **{name: pl.List(pl.Float64) for name in _LISTS},
}  # fmt: skip

_Lists = tuple[int | None, int | None, int | None, int | None]
_Row = tuple[str | None, str | None, str, float | None, float | None, float | None, str, _Lists]
_ReadRow = tuple[str | None, str | None, str, _Lists]
_NO_LISTS: _Lists = (None, None, None, None)


def save_metrics(directory: Path, metrics: TrialMetrics, measure: Mapping[str, Any]) -> None:
    """Writes them, whole or not at all, with the ``measure`` that they were made by.

    Raises:
        OSError: if the file cannot be written.
    """
    about = json.dumps(_about(metrics, measure), separators=(",", ":"), allow_nan=False)
    rows, lists = _table(metrics)
    _native.write_metrics(
        directory / FILE,
        name_of(metrics),
        metrics.valid,
        (metrics.grid.begin_s, metrics.grid.end_s),
        about,
        rows,
        lists,
    )
    (directory / stored_json.FILE).unlink(missing_ok=True)


def has_metrics(directory: Path) -> bool:
    """Returns whether there are metrics of the trial in `directory`."""
    return (directory / FILE).exists() or (directory / stored_json.FILE).exists()


def load_metrics(directory: Path, measure: Mapping[str, Any]) -> TrialMetrics | None:
    """Reads them back, to the last bit; ``None`` if there are none, or they have another ``measure``, or an
    older version, or are by other installed packages, and the trial's packets and events exist for a new
    measurement."""
    found = _read(directory)
    if found is None or found[1] != measure:
        return None
    metrics = found[0]
    is_old = metrics.version < VERSION or metrics.packages != METRICS.packages()
    if is_old and all((directory / name).exists() for name in (PACKETS, EVENTS)):
        return None
    return metrics


def long_form(where: Path | str | Iterable[Path | str]) -> pl.LazyFrame:
    """Returns the metrics of many trials as one table, a row a metric of a flow, a stage or a trial over the
    window.

    Args:
        where: a campaign's folder, or several folders, each a campaign's or a trial's.

    Returns:
        The columns of ``metrics.parquet``, after `scenario`, `mode` and `seed` of each row's trial and before
        `directory`, the trial's folder. Nothing is read before it is collected but an older ``metrics.json``.

    Raises:
        RecordError: if no trial with metrics lies there.
    """
    folders = [Path(one) for one in ([where] if isinstance(where, Path | str) else where)]
    found = [one for folder in folders for one in ([folder] if (folder / TRIAL).exists() else sweep(folder))]
    files = [one / FILE for one in found if (one / FILE).is_file()]
    older = [one for one in found if not (one / FILE).is_file() and (one / stored_json.FILE).exists()]
    parts = []
    if files:
        scanned = pl.scan_parquet(
            files, schema=dict(_COLUMNS), hive_partitioning=False, include_file_paths="directory", glob=False
        )
        parts.append(scanned.with_columns(pl.col("directory").str.replace(r"/?[^/]*$", "")))
    parts += [frame.lazy() for frame in map(_older, older) if frame is not None]
    if not parts:
        named = ", ".join(str(folder) for folder in folders[:3]) or "no folder"
        raise RecordError(f"{named}: no trial with metrics lies there; name a folder that `run --out` wrote.")
    name = pl.col("trial").str.extract_groups(r"^(?<scenario>.*) (?<mode>\S+) seed (?<seed>-?\d+)$")
    return pl.concat(parts).select(
        name.struct.field("scenario", "mode"), name.struct.field("seed").cast(pl.Int64), pl.all()
    )


def name_of(metrics: TrialMetrics) -> str:
    """Returns the name of the trial in its rows: ``hessler/ftp-medium sim seed 1``."""
    return f"{metrics.scenario} {metrics.mode} seed {metrics.seed}"


def _older(directory: Path) -> pl.DataFrame | None:
    """Returns the rows of a trial with a ``metrics.json``."""
    found = stored_json.read(directory / stored_json.FILE)
    if found is None:
        return None
    metrics = found[0]
    rows, lists = _table(metrics)
    grid = metrics.grid
    data = [
        (name_of(metrics), metrics.valid, *row[:3], grid.begin_s, grid.end_s, *row[3:7],
         *(None if place is None else lists[place] for place in row[7]), str(directory))
        for row in rows
    ]  # fmt: skip
    return pl.DataFrame(data, schema={**_COLUMNS, "directory": pl.String}, orient="row")


def _table(metrics: TrialMetrics) -> tuple[list[_Row], npt.NDArray[np.float64]]:
    """Returns the rows, and the distinct arrays that they name, [array, sample], in order of their first
    use."""
    arrays: list[Floats] = []
    places: dict[int, int] = {}

    def place(values: Floats | None) -> int | None:
        if values is None:
            return None
        found = places.setdefault(id(values), len(arrays))
        if found == len(arrays):
            arrays.append(values)
        return found

    over_time: list[tuple[str | None, str | None, str, Series]] = []
    subjects: list[tuple[str | None, str | None, Measured]] = [
        *((name, None, flow) for name, flow in metrics.flows.items()),
        *((None, name, stage) for name, stage in metrics.stages.items()),
    ]
    for flow, stage, measured in subjects:
        over_time += [(flow, stage, name, series) for name, series in measured.series.items()]
    over_time += [(None, None, name, series) for name, series in metrics.whole.series.items()]
    of_trial = metrics.series("jain")
    listed = [
        (flow, stage, name, (place(one.numerator), place(one.denominator), place(one.low), place(one.high)))
        for flow, stage, name, one in [*over_time, (None, None, "jain", of_trial)]
    ]
    samples = len(metrics.grid)
    if any(len(values) != samples for values in arrays):
        raise ValueError(f"{name_of(metrics)}: a metric has not the {samples} samples of its trial's grid.")
    # As np.stack, in a sixth of the time.
    lists = np.concatenate(arrays, dtype=np.float64).reshape(-1, samples)
    # Along a row as over the array alone: to the same bits as `Series.value`.
    part = metrics.grid.slice()
    with np.errstate(over="ignore", invalid="ignore"):
        totals: list[float] = lists[:, part].sum(axis=1).tolist()
    lows, highs = _extremes(lists[:, part], [lists for *_, lists in listed])
    # As `TrialMetrics.value` has it: a number of the window takes precedence over the series of that name.
    scalars = {
        (flow, stage, name): scalar
        for flow, stage, measured in [*subjects, (None, None, metrics.whole)]
        for name, scalar in measured.scalars.items()
    }
    rows: list[_Row] = []
    for flow, stage, name, of in listed[:-1]:
        over, under, low, high = of
        assert over is not None
        value: float | None = totals[over]
        if (flow, stage, name) in scalars:
            value = scalars.pop((flow, stage, name))
        elif under is not None:
            value = totals[over] / totals[under] if totals[under] > 0 else None
        least = None if low is None else lows[low]
        most = None if high is None else highs[high]
        unit = _unit(name) if not is_event(name) else _unit_of_event(metrics.flows[str(flow)], name)
        rows.append((flow, stage, name, _known(value), least, most, unit, of))
    rows += [
        (flow, stage, name, _known(scalar), None, None, _unit(name), _NO_LISTS)
        for (flow, stage, name), scalar in scalars.items()
    ]
    *_, of = listed[-1]
    rows.append((None, None, "jain", _known(metrics.jain), None, None, _unit("jain"), of))
    return rows, lists


def _extremes(
    lists: Floats, places: Iterable[_Lists]
) -> tuple[dict[int, float | None], dict[int, float | None]]:
    """Returns the least of the lists that are lows, and the most of those that are highs, by their
    numbers."""

    def over(which: int, *, highest: bool) -> dict[int, float | None]:
        chosen = sorted({place for one in places if (place := one[which]) is not None})
        if not chosen:
            return {}
        values = lists[chosen]
        worst = -np.inf if highest else np.inf
        finite = np.where(np.isfinite(values), values, worst)
        found = finite.max(axis=1) if highest else finite.min(axis=1)
        return {place: _known(value) for place, value in zip(chosen, found.tolist(), strict=True)}

    places = list(places)
    return over(2, highest=False), over(3, highest=True)


def _known(value: float | None) -> float | None:
    """Returns a value as the table has it: nothing to measure is null, so that a mean over trials leaves it
    out."""
    return None if value is None or not math.isfinite(value) else value


@cache
def _unit(metric: str) -> str:
    dimension = named(metric).dimension if is_known(metric) else NUMBER
    return CANONICAL_UNITS.get(dimension, str(dimension))


def _unit_of_event(flow: FlowMetrics, metric: str) -> str:
    dimension = flow.dimension(metric)
    return CANONICAL_UNITS.get(dimension, str(dimension))


def _about(metrics: TrialMetrics, measure: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parts that are no table."""
    grid = metrics.grid
    return {
        "schema": SCHEMA,
        "version": metrics.version,
        "measure": measure,
        "scenario": metrics.scenario,
        "mode": metrics.mode,
        "seed": metrics.seed,
        "valid": metrics.valid,
        "why": list(metrics.why),
        "layer": metrics.layer,
        "grid": {
            "edges_ns": grid.edges_ns.tolist(),
            "first": grid.first,
            "last": grid.last,
            "sample_s": grid.sample_s,
        },
        "flows": {
            name: {
                "info": vars(flow.info),
                "rtt_source": flow.rtt_source,
                "scalars": _scalars_out(flow.scalars),
                "events": flow.events,
            }
            for name, flow in metrics.flows.items()
        },
        "stages": {
            name: {"info": vars(stage.info), "scalars": _scalars_out(stage.scalars)}
            for name, stage in metrics.stages.items()
        },
        "jain": _number_out(metrics.jain),
        "jain_flows": list(metrics.jain_flows),
        **_about_packages(metrics),
    }


def _about_packages(metrics: TrialMetrics) -> dict[str, Any]:
    """Returns the parts that only metrics of other packages have."""
    found: dict[str, Any] = {"packages": list(metrics.packages)} if metrics.packages else {}
    if metrics.whole.scalars:
        found["whole"] = _scalars_out(metrics.whole.scalars)
    return found


def _number_out(value: float | None) -> float | str | None:
    """Returns the number for JSON, which has no word for infinities and NaN."""
    return value if value is None or math.isfinite(value) else repr(float(value))


def _scalars_out(scalars: Mapping[str, float | None]) -> dict[str, float | str | None]:
    return {name: _number_out(value) for name, value in scalars.items()}


def _scalars_in(data: Mapping[str, Any]) -> dict[str, float | None]:
    return {name: float(value) if isinstance(value, str) else value for name, value in data.items()}


def _read(directory: Path) -> tuple[TrialMetrics, Mapping[str, Any]] | None:
    """Returns a trial's metrics, and the ``measure`` that they were made by; None if they are damaged."""
    try:
        check_file(directory / FILE)
        text, rows, found = _native.read_metrics(directory / FILE)
        about = json.loads(text)
    except (OSError, ValueError, RecursionError, RecordError, UnfitInputError):
        return stored_json.read(directory / stored_json.FILE)
    try:
        return _metrics_in(about, rows, list(found))
    except stored_json.DAMAGE:
        return None


def _metrics_in(
    about: Mapping[str, Any], rows: Iterable[_ReadRow], lists: Sequence[Floats]
) -> tuple[TrialMetrics, Mapping[str, Any]]:
    flows: dict[str, dict[str, Series]] = {name: {} for name in about["flows"]}
    stages: dict[str, dict[str, Series]] = {name: {} for name in about["stages"]}
    whole: dict[str, Series] = {}
    jain_samples: Floats = np.empty(0)
    for flow, stage, metric, (over, under, low, high) in rows:
        if over is None:
            continue
        series = Series(
            lists[over],
            None if under is None else lists[under],
            None if low is None else lists[low],
            None if high is None else lists[high],
        )
        if flow is not None:
            flows[flow][metric] = series
        elif stage is not None:
            stages[stage][metric] = series
        elif metric == "jain":
            jain_samples = series.numerator
        else:
            whole[metric] = series
    grid = about["grid"]
    metrics = TrialMetrics(
        scenario=about["scenario"],
        mode=about["mode"],
        seed=about["seed"],
        valid=about["valid"],
        why=tuple(about["why"]),
        layer=about["layer"],
        grid=Grid(np.array(grid["edges_ns"], dtype=np.int64), grid["first"], grid["last"], grid["sample_s"]),
        flows={
            name: FlowMetrics(
                flows[name],
                _scalars_in(flow["scalars"]),
                info=FlowInfo(**flow["info"]),
                rtt_source=flow["rtt_source"],
                events={event: tuple(units) for event, units in flow.get("events", {}).items()},
            )
            for name, flow in about["flows"].items()
        },
        stages={
            name: StageMetrics(stages[name], _scalars_in(stage["scalars"]), info=StageInfo(**stage["info"]))
            for name, stage in about["stages"].items()
        },
        jain=float("nan" if about["jain"] is None else about["jain"]),
        jain_samples=jain_samples,
        jain_flows=tuple(about["jain_flows"]),
        whole=Measured(whole, _scalars_in(about.get("whole", {}))),
        packages=tuple(about.get("packages", ())),
        version=about.get("version", 1),
    )
    return metrics, about["measure"]

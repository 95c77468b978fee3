"""Metrics beside a record, so that a campaign may keep them alone: ``metrics.json`` with every sample."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.metrics.frame import FlowInfo, StageInfo
from streamgauge.metrics.grid import Grid
from streamgauge.metrics.result import FlowMetrics, Series, StageMetrics, TrialMetrics

__all__ = ["SCHEMA", "load_metrics", "save_metrics"]

SCHEMA = "streamgauge.metrics/1"
_FILE = "metrics.json"
_SERIES = ("numerator", "denominator", "low", "high")


def _out(values: Any) -> list[float | None] | None:
    """An array as JSON: NaN, which JSON has not, as null."""
    return None if values is None else [None if math.isnan(v) else v for v in map(float, values)]


def _in(values: list[float | None] | None) -> Any:
    return (
        None if values is None else np.array([math.nan if v is None else v for v in values], dtype=np.float64)
    )


def _series_out(series: Mapping[str, Series]) -> dict[str, Any]:
    return {name: {part: _out(getattr(one, part)) for part in _SERIES} for name, one in series.items()}


def _series_in(data: Mapping[str, Any]) -> dict[str, Series]:
    return {name: Series(**{part: _in(one[part]) for part in _SERIES}) for name, one in data.items()}


def save_metrics(directory: Path, metrics: TrialMetrics, measure: Mapping[str, Any]) -> None:
    """Writes them with the ``measure`` that they were made by."""
    grid = metrics.grid
    data = {
        "schema": SCHEMA,
        "measure": measure,
        "scenario": metrics.scenario,
        "mode": metrics.mode,
        "seed": metrics.seed,
        "valid": metrics.valid,
        "why": list(metrics.why),
        "layer": metrics.layer,
        "grid": {
            "edges_ns": [int(edge) for edge in grid.edges_ns],
            "first": grid.first,
            "last": grid.last,
            "sample_s": grid.sample_s,
        },
        "flows": {
            name: {
                "info": asdict(flow.info),
                "rtt_source": flow.rtt_source,
                "scalars": _scalars(flow.scalars),
                "series": _series_out(flow.series),
            }
            for name, flow in metrics.flows.items()
        },
        "stages": {
            name: {
                "info": {**asdict(stage.info), "settings": dict(stage.info.settings)},
                "scalars": _scalars(stage.scalars),
                "series": _series_out(stage.series),
            }
            for name, stage in metrics.stages.items()
        },
        "jain": None if math.isnan(metrics.jain) else metrics.jain,
        "jain_samples": _out(metrics.jain_samples),
        "jain_flows": list(metrics.jain_flows),
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    (directory / _FILE).write_text(text, encoding="utf-8")


def _scalars(scalars: Mapping[str, float | None]) -> dict[str, float | None]:
    return {k: None if v is None or math.isnan(v) else float(v) for k, v in scalars.items()}


def load_metrics(directory: Path, measure: Mapping[str, Any]) -> TrialMetrics | None:
    """Reads them back; ``None`` if there are none, or they were measured otherwise."""
    try:
        data = json.loads((directory / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if data.get("schema") != SCHEMA or data.get("measure") != measure:
        return None
    grid = data["grid"]
    return TrialMetrics(
        scenario=data["scenario"],
        mode=data["mode"],
        seed=data["seed"],
        valid=data["valid"],
        why=tuple(data["why"]),
        layer=data["layer"],
        grid=Grid(np.array(grid["edges_ns"], dtype=np.int64), grid["first"], grid["last"], grid["sample_s"]),
        flows={
            name: FlowMetrics(
                _series_in(flow["series"]),
                flow["scalars"],
                info=FlowInfo(**flow["info"]),
                rtt_source=flow["rtt_source"],
            )
            for name, flow in data["flows"].items()
        },
        stages={
            name: StageMetrics(_series_in(stage["series"]), stage["scalars"], info=StageInfo(**stage["info"]))
            for name, stage in data["stages"].items()
        },
        jain=math.nan if data["jain"] is None else data["jain"],
        jain_samples=_in(data["jain_samples"]),
        jain_flows=tuple(data["jain_flows"]),
    )

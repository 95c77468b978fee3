"""Metrics beside a record, so that a campaign may keep them alone: ``metrics.json`` with every sample.

Many series share an array (bits sent are a rate, a total and what losses are a part of), so arrays stand in a
list of their own, once each, and a series says which are its numerator, denominator, low and high.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.metrics.frame import FlowInfo, StageInfo
from streamgauge.metrics.grid import Floats, Grid
from streamgauge.metrics.result import FlowMetrics, Series, StageMetrics, TrialMetrics

__all__ = ["SCHEMA", "load_metrics", "save_metrics"]

SCHEMA = "streamgauge.metrics/6"
_FILE = "metrics.json"
_SERIES = ("numerator", "denominator", "low", "high")


class _Arrays:
    """The distinct arrays of a trial's metrics, in the order of their first use."""

    def __init__(self) -> None:
        self.kept: list[Floats] = []
        self._places: dict[int, int] = {}

    def place(self, values: Floats | None) -> int | None:
        if values is None:
            return None
        if id(values) not in self._places:
            self._places[id(values)] = len(self.kept)
            self.kept.append(values)
        return self._places[id(values)]

    def series(self, series: Mapping[str, Series]) -> dict[str, list[int | None]]:
        return {name: [self.place(getattr(one, part)) for part in _SERIES] for name, one in series.items()}


def _out(values: Floats) -> str:
    """An array as text: little-endian float64 in base64, which costs a tenth of writing each number out."""
    return b64encode(np.asarray(values, dtype="<f8").tobytes()).decode("ascii")


def _in(text: str) -> Floats:
    return np.frombuffer(b64decode(text), dtype="<f8").astype(np.float64)


def _at(arrays: list[Floats], place: int | None) -> Any:
    return None if place is None else arrays[place]


def _series_in(data: Mapping[str, Any], arrays: list[Floats]) -> dict[str, Series]:
    return {
        name: Series(**{part: _at(arrays, place) for part, place in zip(_SERIES, places, strict=True)})
        for name, places in data.items()
    }


def save_metrics(directory: Path, metrics: TrialMetrics, measure: Mapping[str, Any]) -> None:
    """Writes them with the ``measure`` that they were made by."""
    grid, arrays = metrics.grid, _Arrays()
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
            "edges_ns": grid.edges_ns.tolist(),
            "first": grid.first,
            "last": grid.last,
            "sample_s": grid.sample_s,
        },
        "flows": {
            name: {
                "info": asdict(flow.info),
                "rtt_source": flow.rtt_source,
                "scalars": _scalars(flow.scalars),
                "series": arrays.series(flow.series),
            }
            for name, flow in metrics.flows.items()
        },
        "stages": {
            name: {
                "info": {**asdict(stage.info), "settings": dict(stage.info.settings)},
                "scalars": _scalars(stage.scalars),
                "series": arrays.series(stage.series),
            }
            for name, stage in metrics.stages.items()
        },
        "jain": None if math.isnan(metrics.jain) else metrics.jain,
        "jain_samples": _out(metrics.jain_samples),
        "jain_flows": list(metrics.jain_flows),
        "arrays": [_out(values) for values in arrays.kept],
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
    arrays = [_in(values) for values in data["arrays"]]
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
                _series_in(flow["series"], arrays),
                flow["scalars"],
                info=FlowInfo(**flow["info"]),
                rtt_source=flow["rtt_source"],
            )
            for name, flow in data["flows"].items()
        },
        stages={
            name: StageMetrics(
                _series_in(stage["series"], arrays), stage["scalars"], info=StageInfo(**stage["info"])
            )
            for name, stage in data["stages"].items()
        },
        jain=math.nan if data["jain"] is None else data["jain"],
        jain_samples=_in(data["jain_samples"]),
        jain_flows=tuple(data["jain_flows"]),
    )

"""Metrics as campaigns kept them before ``metrics.parquet``: ``metrics.json``, which is still read."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.input_files import UnfitInputError, read_input
from streamgauge.metrics.frame import FlowInfo, StageInfo
from streamgauge.metrics.grid import Floats, Grid
from streamgauge.metrics.result import FlowMetrics, Series, StageMetrics, TrialMetrics

__all__ = ["FILE", "SCHEMA", "read"]

SCHEMA = "streamgauge.metrics/6"
FILE = "metrics.json"
_LARGEST_BYTES = 1_000_000_000
DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)
"""Raised where a file of metrics has another form than its reader expects."""
_SERIES = ("numerator", "denominator", "low", "high")


def read(file: Path) -> tuple[TrialMetrics, Mapping[str, Any]] | None:
    """Returns its content, and the ``measure`` it was made by; ``None`` if it does not exist, has another
    schema than `SCHEMA`, or is damaged.

    Arrays are little-endian float64 in base64, once each; a series names its four.
    """
    try:
        return _metrics_in(json.loads(read_input(file, _LARGEST_BYTES)))
    except (OSError, UnfitInputError, *DAMAGE):
        return None


def _metrics_in(data: Any) -> tuple[TrialMetrics, Mapping[str, Any]] | None:
    if data.get("schema") != SCHEMA:
        return None
    grid = data["grid"]
    arrays = [_array(values) for values in data["arrays"]]
    metrics = TrialMetrics(
        scenario=data["scenario"],
        mode=data["mode"],
        seed=data["seed"],
        valid=data["valid"],
        why=tuple(data["why"]),
        layer=data["layer"],
        grid=Grid(np.array(grid["edges_ns"], dtype=np.int64), grid["first"], grid["last"], grid["sample_s"]),
        flows={
            name: FlowMetrics(
                _series(flow["series"], arrays),
                flow["scalars"],
                info=FlowInfo(**flow["info"]),
                rtt_source=flow["rtt_source"],
            )
            for name, flow in data["flows"].items()
        },
        stages={
            name: StageMetrics(
                _series(stage["series"], arrays), stage["scalars"], info=StageInfo(**stage["info"])
            )
            for name, stage in data["stages"].items()
        },
        jain=math.nan if data["jain"] is None else data["jain"],
        jain_samples=_array(data["jain_samples"]),
        jain_flows=tuple(data["jain_flows"]),
        version=0,
    )
    return metrics, data["measure"]


def _array(text: str) -> Floats:
    return np.frombuffer(b64decode(text), dtype="<f8").astype(np.float64)


def _series(data: Mapping[str, Any], arrays: list[Floats]) -> dict[str, Series]:
    def at(place: int | None) -> Any:
        return None if place is None else arrays[place]

    return {
        name: Series(**{part: at(place) for part, place in zip(_SERIES, places, strict=True)})
        for name, places in data.items()
    }

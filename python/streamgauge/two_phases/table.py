"""The model's results as a table, for users of other simulators."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.two_phases.judging import ModelError
from streamgauge.two_phases.model import StreamInputs, predict
from streamgauge.two_phases.observed import ObservedStream
from streamgauge.two_phases.parameters import FITTED, ModelParameters

__all__ = ["SCHEMA", "as_json", "grid", "row_of", "write_csv"]

SCHEMA = "streamgauge.two-phases/1"
LOSSES = (0.0, 0.01, 0.02, 0.05, 0.1)
"""Losses of the path, in the table."""


def grid(streams: Sequence[ObservedStream]) -> list[StreamInputs]:
    """Returns every clip of one rate among `streams` on every capacity among them, beside a TCP and alone, at
    `LOSSES`."""
    clips = {
        (one.inputs.pictures_bps, one.inputs.sound_bps): one.inputs
        for one in streams
        if len(one.inputs.pictures_bps) == 1
    }
    capacities = sorted({one.inputs.capacity_bps for one in streams})
    windows = sorted(
        {one.inputs.tcp_window_bytes for one in streams if one.inputs.tcp_window_bytes is not None}
    )
    return [
        dataclasses.replace(clips[key], capacity_bps=capacity, loss=loss, tcp_window_bytes=window)
        for key in sorted(clips)
        for capacity in capacities
        for window in [*windows, None]
        for loss in LOSSES
    ]


def row_of(inputs: StreamInputs, parameters: ModelParameters) -> dict[str, Any]:
    """Returns one prediction, flat. In each phase the stream is on and off: `burst_packets` at once each
    `burst_spacing_s`, for `time_s`."""
    phases = predict(inputs, parameters)
    row: dict[str, Any] = {
        "encoded_bps": phases.chosen_bps,
        "capacity_bps": inputs.capacity_bps,
        "loss": inputs.loss,
        "tcp_window_bytes": inputs.tcp_window_bytes,
        "queue_packets": inputs.queue_packets,
        "round_trip_s": inputs.round_trip_s,
        "duration_s": inputs.duration_s,
        "acceleration": phases.acceleration,
        "is_thinned": phases.is_thinned,
    }
    for name in ("filling", "playing"):
        row |= {f"{name}_{key}": value for key, value in dataclasses.asdict(getattr(phases, name)).items()}
    return row


def write_csv(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """A line each. Raises OSError if it cannot be written."""
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _plain(value) for key, value in row.items()} for row in rows)


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else value


def as_json(
    parameters: ModelParameters,
    fitted_to: Sequence[ObservedStream],
    judged: Sequence[ObservedStream],
    errors: Mapping[str, Iterable[ModelError]],
    rows: Sequence[Mapping[str, Any]],
) -> str:
    """Parameters, errors and table in one document."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "parameters": dataclasses.asdict(parameters),
            "fitted": list(FITTED),
            "fitted_to": [one.scenario for one in fitted_to],
            "judged_by": [one.scenario for one in judged],
            "errors": {name: [dataclasses.asdict(one) for one in found] for name, found in errors.items()},
            "table": list(rows),
        },
        indent=1,
    )

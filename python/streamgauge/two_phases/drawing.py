"""The model's lines over measurements."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamgauge.report import DrawnFigure
from streamgauge.report.chart import COLOURS, WIDTH
from streamgauge.report.vega import Spec, channel, filtered, layer, whole
from streamgauge.two_phases.model import StreamInputs, predict
from streamgauge.two_phases.observed import ObservedStream, predicted
from streamgauge.two_phases.parameters import ModelParameters

__all__ = ["figure"]

_PANELS = {
    "filling.time_s": ("time to fill the buffer", "s", 1.0),
    "filling.received_bps": ("received while filling", "kbit/s", 1e3),
    "filling.loss": ("lost while filling", "%", 0.01),
    "playing.received_bps": ("received while playing", "kbit/s", 1e3),
}
_POINTS = 120
"""Points of each line."""


def figure(streams: Sequence[ObservedStream], parameters: ModelParameters) -> DrawnFigure:
    """Clips of one rate on a path that loses nothing by itself: four quantities over the rate."""
    plain = [one for one in streams if len(one.inputs.pictures_bps) == 1 and one.inputs.loss == 0]
    rows: list[tuple[Any, ...]] = []
    capacities = sorted({one.inputs.capacity_bps for one in plain})
    for capacity in capacities:
        mine = sorted((one for one in plain if one.inputs.capacity_bps == capacity), key=_encoded)
        name = f"{capacity / 1e3:.0f} kbit/s"
        for quantity, (_, _, scale) in _PANELS.items():
            for one in mine:
                if quantity in one.values:
                    rows.append(
                        (quantity, name, _encoded(one) / 1e3, one.values[quantity] / scale, "measured")
                    )
            for inputs in _between(mine):
                value = predicted(predict(inputs, parameters), quantity)
                x = (inputs.pictures_bps[0] + inputs.sound_bps) / 1e3
                rows.append((quantity, name, x, value / scale, "model"))
    names = [f"{capacity / 1e3:.0f} kbit/s" for capacity in capacities]
    panels = [_panel(quantity, names) for quantity in _PANELS]
    spec = {"vconcat": [{"hconcat": panels[:2]}, {"hconcat": panels[2:]}]}
    return DrawnFigure(
        "two-phases",
        "A model of both phases",
        "Clips of one rate: measured (points, means over trials) and as the model has it (lines).",
        whole(spec),
        ("quantity", "capacity", "x", "y", "what"),
        tuple(rows),
    )


def _encoded(one: ObservedStream) -> float:
    return one.inputs.pictures_bps[0] + one.inputs.sound_bps


def _between(mine: Sequence[ObservedStream]) -> list[StreamInputs]:
    """Clips from the lowest rate to the highest, their sound in proportion to those around them."""
    encoded = [_encoded(one) for one in mine]
    sounds = [one.inputs.sound_bps for one in mine]
    found = []
    for rate in np.geomspace(encoded[0], encoded[-1], _POINTS):
        sound = float(np.interp(rate, encoded, sounds))
        found.append(
            dataclasses.replace(mine[0].inputs, pictures_bps=(float(rate) - sound,), sound_bps=sound)
        )
    return found


def _panel(quantity: str, capacities: Sequence[str]) -> Spec:
    title, unit, _ = _PANELS[quantity]
    colour = {"domain": list(capacities), "range": list(COLOURS[: len(capacities)])}
    base = {
        "x": channel("x:Q", title="encoded at, kbit/s", scale={"type": "log", "nice": False}),
        "y": channel("y:Q", title=f"{title}, {unit}"),
        "color": channel("capacity:N", scale=colour, sort=list(capacities), legend={"title": "link"}),
    }
    marks = [
        {"mark": {"type": "line"}, "encoding": base, "transform": filtered("datum.what === 'model'")},
        {
            "mark": {"type": "point", "filled": True, "size": 36, "opacity": 1},
            "encoding": base,
            "transform": filtered("datum.what === 'measured'"),
        },
    ]
    of = layer(marks, width=WIDTH / 2 - 120, height=180)
    return {**of, "transform": filtered(f"datum.quantity === '{quantity}'")}

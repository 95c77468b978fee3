#!/usr/bin/env python3
"""Makes docs/images/calls.png from records of sim.

    .venv/bin/streamgauge run 'rfc8867/5.1-*' --mode sim --repeat 1 --out runs/calls
    .venv/bin/python scripts/calls-figure.py runs/calls docs/images/calls.png

For each rate controller it draws the rate of arrival, second by second, under the link's capacity, and the
time from the capture of each picture to its display.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from streamgauge.report import load, save
from streamgauge.report.chart import BLUE, VERMILION, DrawnFigure
from streamgauge.report.model import LoadedTrial

CONTROLLERS = {"gcc": "GCC", "gcc-draft": "GCC, draft of 2016", "nada": "NADA", "scream-v2": "SCReAM v2"}
CAPACITY = ((0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0), (100, 1.0))
COLUMNS = ("controller", "what", "at", "value")


def by_second(trial: LoadedTrial, metric: str, factor: float) -> list[tuple[float, float | None]]:
    """Returns the metric's values of each second, None where there is none."""
    assert trial.metrics is not None
    grid, series = trial.metrics.grid, trial.metrics.flows["video"].series[metric]
    edges = grid.edges_ns / 1e9
    found: list[tuple[float, float | None]] = []
    for second in range(int(edges[-1])):
        part = slice(*np.searchsorted(edges, [second, second + 1]).tolist())
        value = series.value(part)
        found.append((second + 0.5, float(value) * factor if np.isfinite(value) else None))
    return found


def panel(
    controller: str, what: str, title: str, most: float, *, named: bool, headed: bool
) -> alt.LayerChart:
    chosen = alt.Chart().transform_filter((alt.datum.controller == controller) & (alt.datum.what == what))
    axis = alt.Axis(grid=True, gridColor="#eeeeee", domain=False, tickCount=5, labels=named, ticks=named)
    y = alt.Y(
        "value:Q", title=title if named else None, scale=alt.Scale(domain=[0, most], clamp=True), axis=axis
    )
    x = alt.X(
        "at:Q", title=None if headed else "s", axis=alt.Axis(values=[0, 20, 40, 60, 80, 100], grid=False)
    )
    layers = [chosen.mark_line(color=BLUE if headed else VERMILION, strokeWidth=1.4).encode(x=x, y=y)]
    if headed:
        capacity = alt.Chart().transform_filter(alt.datum.what == "capacity")
        step = capacity.mark_line(interpolate="step-after", color="#444444", strokeWidth=1, strokeDash=[4, 3])
        layers.insert(0, step.encode(x=x, y=y))
    heading = alt.TitleParams(controller, fontSize=12, fontWeight="normal") if headed else alt.TitleParams("")
    return alt.layer(*layers).properties(width=180, height=130 if headed else 90, title=heading)


def without_data(spec: Any) -> None:
    """Removes the figure's own text from the data."""
    if isinstance(spec, dict):
        for key in ("config", "data", "datasets", "$schema"):
            spec.pop(key, None)
        for inner in spec.values():
            without_data(inner)
    elif isinstance(spec, list):
        for inner in spec:
            without_data(inner)


def main(directory: Path, out: Path) -> None:
    trials = {trial.scenario: trial for trial in load(directory) if trial.valid and trial.seed == 1}
    rows: list[tuple[Any, ...]] = [("", "capacity", float(at), rate) for at, rate in CAPACITY]
    for key, label in CONTROLLERS.items():
        trial = trials.get(f"rfc8867/5.1-{key}")
        if trial is None:
            sys.exit(
                f"{directory} lacks a valid trial of rfc8867/5.1-{key}; the head of this file has the command"
            )
        rows += [(label, "rate", at, value) for at, value in by_second(trial, "receiver_rate", 1e-6)]
        rows += [(label, "delay", at, value) for at, value in by_second(trial, "live_latency", 1e3)]
    labels = list(CONTROLLERS.values())
    chart = alt.vconcat(
        alt.hconcat(
            *(panel(one, "rate", "received, Mbit/s", 2.6, named=not place, headed=True)
              for place, one in enumerate(labels)),
            spacing=12,
        ),
        alt.hconcat(
            *(panel(one, "delay", "picture shown after, ms", 800, named=not place, headed=False)
              for place, one in enumerate(labels)),
            spacing=12,
        ),
        spacing=8,
    )  # fmt: skip
    spec = chart.to_dict(validate=False)
    without_data(spec)
    whole = {**spec, "background": "#ffffff", "padding": 14}
    figure = DrawnFigure(out.stem, "", "", whole, COLUMNS, tuple(rows))
    out.parent.mkdir(parents=True, exist_ok=True)
    save(figure, out, scale=1.6)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

#!/usr/bin/env python3
"""Draws docs/images/one-link.png, the README's picture, from the record of a real trial.

    .venv/bin/streamgauge run examples/one-link.yaml --mode emu --seed 1 --out runs/readme
    .venv/bin/python scripts/readme-figure.py runs/readme docs/images/one-link.png

Draws rates over 2 s of the valid trial with the lowest seed, and prints the answer, which has the
figures of the caption.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from streamgauge.metrics import TrialMetrics
from streamgauge.report import answer, gather, load, save
from streamgauge.report.chart import BLUE, ORANGE, VERMILION, lines

SCENARIO = "examples/one-link"
FLOWS = {"film": "film, dash.js from nginx", "live": "live stream", "download": "download, CUBIC"}
PANELS = {"receiver_rate": "received from the link of 5 Mbit/s", "level": "bit rate of the level played"}
PIXELS_PER_CSS_PIXEL = 1.6
MERGED = 2
"""Samples of 1 s that make a point: segments of 2 s would draw a saw."""


def merged(trial: TrialMetrics, metric: str, flow: str) -> list[tuple[float, float]]:
    """Returns a rate as (middle in s, Mbit/s)."""
    series, edges = trial.flows[flow].series[metric], trial.grid.edges_ns / 1e9
    starts = range(0, len(edges) - MERGED, MERGED)
    points = [
        (float(edges[i] + edges[i + MERGED]) / 2, series.value(slice(i, i + MERGED)) / 1e6) for i in starts
    ]
    return [(t, value) for t, value in points if value == value]


def main(directory: Path, out: Path) -> None:
    """Draws the figure."""
    trials = [trial for trial in load(directory) if trial.mode == "emu" and trial.scenario == SCENARIO]
    shown = next((entry.groups[0].shown for entry in gather(trials)), None)
    if shown is None:
        sys.exit(f"{directory} has no valid emu trial of {SCENARIO}")
    rows = [
        (t, value, label, panel, "")
        for metric, panel in PANELS.items()
        for flow, label in FLOWS.items()
        if metric in shown.flows[flow].series
        for t, value in merged(shown, metric, flow)
    ]
    figure = lines(
        out.stem,
        "",
        "",
        rows,
        y="Mbit/s",
        series=list(FLOWS.values()),
        colours=(BLUE, VERMILION, ORANGE),
        facets=list(PANELS.values()),
        height=170,
        end=90.0,
    )
    # A card of its own, so that it reads on GitHub's light and dark pages alike.
    figure = dataclasses.replace(figure, spec={**figure.spec, "background": "#ffffff", "padding": 14})
    out.parent.mkdir(parents=True, exist_ok=True)
    save(figure, out, scale=PIXELS_PER_CSS_PIXEL)
    print(answer(trials))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

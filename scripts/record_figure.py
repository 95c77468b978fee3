"""Shared by scripts that draw pictures of the docs from records: merged samples, and a card to print on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from streamgauge.metrics import TrialMetrics
from streamgauge.report import save
from streamgauge.report.chart import DrawnFigure

PIXELS_PER_CSS_PIXEL = 1.6
MERGED = 2
"""Samples of 1 s that make a point: key frames and segments come every 2 s, and would draw a saw."""


def merged(trial: TrialMetrics, metric: str, flow: str, *, unit: float) -> list[tuple[float, float]]:
    """Returns a rate as (middle in s, rate in `unit` bit/s), without the points that have none."""
    series, edges = trial.flows[flow].series[metric], trial.grid.edges_ns / 1e9
    starts = range(0, len(edges) - MERGED, MERGED)
    points = [
        (float(edges[i] + edges[i + MERGED]) / 2, series.value(slice(i, i + MERGED)) / unit) for i in starts
    ]
    return [(t, value) for t, value in points if value == value]


def save_as_card(figure: DrawnFigure, out: Path) -> None:
    """Writes the figure on a white card of its own, so that it reads on light and dark pages alike."""
    figure = dataclasses.replace(figure, spec={**figure.spec, "background": "#ffffff", "padding": 14})
    out.parent.mkdir(parents=True, exist_ok=True)
    save(figure, out, scale=PIXELS_PER_CSS_PIXEL)

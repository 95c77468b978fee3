"""Figures that a scenario declares besides those over time: a distribution, a scatter, bars."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import (
    DATA,
    PACKET_RATE,
    PACKET_SIZE,
    PACKETS,
    PERCENT,
    RATE,
    TIME,
    Dimension,
)
from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.grid import Floats
from streamgauge.report.chart import COLOURS, WIDTH, DrawnFigure, bars, dash_of, rounded
from streamgauge.report.courses import BAND_TRIALS, Spread
from streamgauge.report.model import Entry
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

__all__ = [
    "PLOTTED",
    "Distributions",
    "SamplePairs",
    "distribution",
    "has",
    "mean_bars",
    "plotted",
    "scatter",
]

PLOTTED: dict[Dimension, tuple[float, str]] = {
    RATE: (1e3, "kbit/s"),
    DATA: (8e3, "kB"),
    TIME: (1e-3, "ms"),
    PERCENT: (0.01, "%"),
    PACKETS: (1.0, "packets"),
    PACKET_RATE: (1.0, "packets/s"),
    PACKET_SIZE: (8.0, "B"),
}
"""The unit in which each dimension is drawn: (canonical units in one, name)."""
_SHARES = np.linspace(0, 1, 101)
_MOST_POINTS = 1200
"""Most points of a scatter: more hide one another."""


def plotted(metric: Metric) -> tuple[float, str, str]:
    """Returns a metric's unit when it is drawn, (canonical units in one, name), and the title of an axis."""
    scale, unit = PLOTTED.get(metric.dimension, (1.0, ""))
    return scale, unit, f"{metric.title}, {unit}".removesuffix(", ")


def has(trial: TrialMetrics, metric: Metric, subject: str) -> bool:
    """Returns whether a flow, stage or trial has a metric over time, in its dimension: each flow may have an
    event in a unit of its own."""
    try:
        trial.series(metric.name, subject)
        return trial.dimension(metric.name, subject) == metric.dimension
    except KeyError:
        return False


def _samples(trial: TrialMetrics, metric: Metric, subject: str) -> Floats | None:
    """Returns a metric's samples in the window; None if the subject has it not over time."""
    if not has(trial, metric, subject):
        return None
    return trial.series(metric.name, subject).samples()[trial.grid.slice()]


class Distributions:
    """How the samples of metrics are distributed in each trial: quantiles at every hundredth."""

    def __init__(self, metrics: Sequence[Metric], subjects: Sequence[str]) -> None:
        self._wanted = [(metric, subject) for metric in metrics for subject in subjects]
        self.found: dict[tuple[str, str], tuple[Spread, int]] = {}
        """By metric and subject: the distributions, and of how many trials."""

    def add(self, trial: TrialMetrics) -> None:
        """Reads one trial."""
        for metric, subject in self._wanted:
            values = _samples(trial, metric, subject)
            known = np.empty(0) if values is None else values[np.isfinite(values)]
            if len(known):
                spread, count = self.found.get((metric.name, subject), (Spread(len(_SHARES)), 0))
                spread.add(np.quantile(known, _SHARES))
                self.found[metric.name, subject] = spread, count + 1

    def of(self, metric: str, subject: str) -> tuple[Floats, int] | None:
        """Median, lower and upper end over the trials at each share, [3, share], and how many trials."""
        found = self.found.get((metric, subject))
        if found is None:
            return None
        spread, count = found
        return spread.quantiles([0.5, 0, 1] if count < BAND_TRIALS else [0.5, 0.025, 0.975]), count


class SamplePairs:
    """Pairs of samples of two metrics, spread evenly over the trials."""

    def __init__(self, metrics: Sequence[Metric], subjects: Sequence[str], trials: int) -> None:
        self._metrics, self._subjects = metrics, subjects
        self._each = max(1, _MOST_POINTS // max(1, trials * len(subjects)))
        self.left_out = 0
        self.found: dict[str, list[tuple[float, float]]] = {}
        """By subject, in canonical units."""

    def add(self, trial: TrialMetrics) -> None:
        """Reads one trial."""
        for subject in self._subjects:
            columns = [_samples(trial, metric, subject) for metric in self._metrics]
            if any(column is None for column in columns):
                continue
            pairs = np.column_stack([column for column in columns if column is not None])
            pairs = pairs[np.isfinite(pairs).all(axis=1)]
            step = max(1, -(-len(pairs) // self._each))
            kept = pairs[::step]
            self.left_out += len(pairs) - len(kept)
            self.found.setdefault(subject, []).extend((float(x), float(y)) for x, y in kept)


def distribution(
    id_: str, title: str, like: str, metrics: Sequence[Metric], subjects: Sequence[str],
    read: Mapping[str, Distributions],
) -> DrawnFigure | None:  # fmt: skip
    """Cumulative distributions: a plot a metric, a line a subject, a column a mode."""
    rows: list[tuple[Any, ...]] = []
    counts: dict[str, int] = {}
    for metric in metrics:
        scale, _, panel = plotted(metric)
        for mode, found in read.items():
            for subject in subjects:
                if (one := found.of(metric.name, subject)) is None:
                    continue
                (middle, low, high), counts[mode] = one
                for share, *values in zip(_SHARES, middle / scale, low / scale, high / scale, strict=True):
                    ends = values[1:] if counts[mode] > 1 else (None, None)
                    told = (None if value is None else rounded(float(value)) for value in ends)
                    name = subject or "all"
                    rows.append((panel, mode, name, rounded(float(values[0])), rounded(float(share)), *told))
    if not rows:
        return None
    names = list(dict.fromkeys(row[2] for row in rows))
    panels = list(dict.fromkeys(row[0] for row in rows))
    width = round(min(420.0, (WIDTH - 70 * len(counts)) / len(counts)))
    legend = {"legend": {"symbolType": "stroke", "symbolOpacity": 1} if len(names) > 1 else None}
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [dash_of(i) for i in range(len(names))]
    colour = channel("series:N", scale={"domain": names, "range": colours}, **legend)
    dash = channel("series:N", scale={"domain": names, "range": dashes}, **legend)
    charts = []
    plots = []
    for place, panel in enumerate(panels):
        sides = []
        ends = [end for row in rows if row[0] == panel for end in (row[3], row[6]) if end is not None]
        left, right = min([0.0, *ends]), max(ends) or 1.0
        for mode, n in counts.items():
            x_scale = {"domain": [left, right], "nice": False}
            y = channel("share:Q", title="share of samples", scale={"domain": [0, 1]}, axis={"tickCount": 5})
            line = {
                "name": f"plot{place}_{mode}_line",
                "mark": {"type": "line"},
                "encoding": {
                    "x": channel("value:Q", title=panel, scale=x_scale),
                    "y": y, "color": colour, "strokeDash": dash, "order": channel("share:Q"),
                },
            }  # fmt: skip
            band = {
                "name": f"plot{place}_{mode}_band",
                "mark": {"type": "area", "orient": "horizontal", "opacity": 0.18},
                "encoding": {
                    "x": channel("low:Q", title=panel, scale=x_scale), "x2": {"field": "high"}, "y": y,
                    "color": colour,
                },
            }  # fmt: skip
            name = f"plot{place}_{mode}"
            heading = f"{mode}, n = {n}" + ("" if len(names) > 1 else f", {names[0]}")
            drawn = layer([band, line] if n > 1 else [line], width=width, height=170)
            drawn |= {"name": name, "title": {"text": heading, "fontSize": 12}}
            mine = f"datum.panel == {_text(panel)} && datum.mode == {_text(mode)}"
            sides.append({**drawn, "transform": filtered(mine)})
            plots.append({"name": name, "panel": panel, "mode": mode, "domain": [left, right], "top": 1})
        charts.append({"hconcat": sides, "spacing": 20})
    meta = {
        "left": 50, "right": 12, "axis": "value", "x": "value", "y": "share",
        "colours": dict(zip(names, colours, strict=True)), "plots": plots,
    }  # fmt: skip
    words = _bands(counts)
    return DrawnFigure(
        id_, title, f"Share of samples at or below a value, the median over the trials.{words}{like}",
        whole({"usermeta": {"streamgauge": meta}, "vconcat": charts, "spacing": 24}),
        ("panel", "mode", "series", "value", "share", "low", "high"), tuple(rows),
    )  # fmt: skip


def _bands(counts: Mapping[str, int]) -> str:
    if all(n < 2 for n in counts.values()):
        return ""
    few = [n for n in counts.values() if 1 < n < BAND_TRIALS]
    return " Bands reach from the least to the greatest." if few else " Bands hold 95 % of the trials."


def _text(text: str) -> str:
    """Returns the text for an expression of Vega's."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def scatter(
    id_: str, title: str, like: str, metrics: Sequence[Metric], read: Mapping[str, SamplePairs],
) -> DrawnFigure | None:  # fmt: skip
    """Returns one metric against another, a point a sample."""
    (x_scale, x_unit, x_title), (y_scale, y_unit, y_title) = (plotted(metric) for metric in metrics)
    rows = [
        (rounded(x / x_scale), rounded(y / y_scale), subject, mode)
        for mode, samples in read.items()
        for subject, pairs in samples.found.items()
        for x, y in pairs
    ]
    if not rows:
        return None
    subjects = list(dict.fromkeys(row[2] for row in rows))
    modes = list(dict.fromkeys(row[3] for row in rows))
    names = [_column(metrics[0].name, x_unit), _column(metrics[1].name, y_unit)]
    legend = {} if len(subjects) > 1 else {"legend": None}
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(subjects))]
    charts: list[Spec] = [
        {
            "mark": {"type": "point", "filled": False, "size": 26, "opacity": 0.6},
            "encoding": {
                "x": channel(f"{names[0]}:Q", title=x_title),
                "y": channel(f"{names[1]}:Q", title=y_title),
                "color": channel("series:N", scale={"domain": subjects, "range": colours}, **legend),
                "shape": channel("series:N", scale={"domain": subjects}, **legend),
                "tooltip": [
                    channel("series:N", title="of"), channel(f"{names[0]}:Q", title=x_title),
                    channel(f"{names[1]}:Q", title=y_title),
                ],
            },
            "transform": filtered(f"datum.mode == {_text(mode)}"),
            "title": mode,
            "width": round(min(420.0, (WIDTH - 70 * len(modes)) / len(modes))),
            "height": 300,
        }
        for mode in modes
    ]  # fmt: skip
    left_out = sum(samples.left_out for samples in read.values())
    thinned = f" {left_out} more samples are left out, evenly." if left_out else ""
    return DrawnFigure(
        id_, title, f"One point a sample, of all valid trials.{thinned}{like}",
        whole({"hconcat": charts, "spacing": 24}), (*names, "series", "mode"), tuple(rows),
    )  # fmt: skip


def _column(metric: str, unit: str) -> str:
    """Returns a column's name: ``queue_delay_ms``."""
    return re.sub(r"\W+", "_", f"{metric}_{unit.replace('%', 'percent')}").strip("_")


def mean_bars(
    entry: Entry, id_: str, title: str, like: str, metrics: Sequence[Metric], subjects: Sequence[str]
) -> DrawnFigure | None:
    """Means over the valid trials with their intervals, a panel a mode."""
    scale, unit, name = plotted(metrics[0])
    rows: list[tuple[Any, ...]] = []
    for group in entry.groups:
        for subject in subjects:
            for metric in metrics:
                found = group.over(metric.name, subject)
                if found is None:
                    continue
                ends = (None, None) if found.low is None or found.high is None else (found.low, found.high)
                low, high = (None if end is None else rounded(end / scale) for end in ends)
                if low is not None and not metric.signed:
                    low = max(0.0, low)
                panel = f"{group.mode}, n = {found.n}"
                what = metric.title
                rows.append((subject or "all", rounded(found.mean / scale), what, panel, low, high))
    if not rows:
        return None
    names = list(dict.fromkeys(row[2] for row in rows))
    whiskers = "; whiskers are 95 % intervals" if any(row[4] is not None for row in rows) else ""
    caption = f"Means over the window and the valid trials{whiskers}.{like}"
    return bars(id_, title, caption, rows, y=unit if len(names) > 1 and unit else name, kinds=names)

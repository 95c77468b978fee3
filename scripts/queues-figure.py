#!/usr/bin/env python3
"""Makes docs/images/queues.png and the table of docs/queues.md from records of sim and emu.

    .venv/bin/streamgauge run 'today/queue-*' --mode sim --repeat 40 --out runs/queues
    .venv/bin/streamgauge run 'today/queue-*' --mode emu --repeat 3 --out runs/queues
    .venv/bin/python scripts/queues-figure.py runs/queues docs/images/queues.png

For sim it draws the range of 95 % of further trials (the prediction interval by Student's t), for emu each
valid trial.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from scipy import stats
from streamgauge.report import load, save
from streamgauge.report.chart import BLUE, GREEN, PURPLE, VERMILION, DrawnFigure
from streamgauge.report.model import LoadedTrial

DISCIPLINES = {
    "droptail": "drop-tail",
    "nistnet": "NIST Net",
    "drd": "DRD",
    "red": "RED",
    "codel": "CoDel",
    "fq_codel": "FQ-CoDel",
    "pie": "PIE",
    "dualpi2": "DualPI2",
}
FLOWS = {
    "sparse": "sparse, 46 kbit/s",
    "steady": "steady, 0.5 Mbit/s",
    "bursts": "bursts, 2.3 Mbit/s half of the time, ECT(0)",
    "scalable": "scalable, 0.3 Mbit/s, ECT(1)",
}
METRICS = {
    "queue_delay": ("mean wait, ms", 1e3),
    "loss": ("dropped, %", 100.0),
    "mark_rate": ("marked, %", 100.0),
}
COLUMNS = ("discipline", "flow", "metric", "low", "high", "value")
CONFIDENCE = 0.95


def values(trials: list[LoadedTrial], flow: str, metric: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    factor = METRICS[metric][1]
    return np.array(
        [
            factor * t.metrics.flows[flow].series[metric].value(slice(None))
            for t in trials
            if t.metrics is not None
        ]
    )


def interval(found: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """Returns where a further trial lies with 95 % probability."""
    n, mean = len(found), float(found.mean())
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * found.std(ddof=1) * math.sqrt(1 + 1 / n)
    return max(0.0, mean - reach), mean + reach


def panel(metric: str, *, named: bool) -> alt.LayerChart:
    title = METRICS[metric][0]
    y = alt.Y(
        "discipline:N",
        sort=list(DISCIPLINES.values()),
        title=None,
        axis=alt.Axis(labels=named, ticks=named, domain=False, grid=True, gridColor="#eeeeee"),
    )
    offset = alt.YOffset("flow:N", sort=list(FLOWS.values()))
    colour = alt.Color(
        "flow:N",
        sort=list(FLOWS.values()),
        scale=alt.Scale(domain=list(FLOWS.values()), range=[BLUE, GREEN, VERMILION, PURPLE]),
        legend=alt.Legend(title=None, orient="bottom", columns=2, labelLimit=340, symbolType="circle"),
    )
    chosen = alt.Chart().transform_filter(alt.datum.metric == metric)
    sim = chosen.transform_filter("datum.low != null").mark_rule(strokeWidth=5, opacity=0.4)
    emu = chosen.transform_filter("datum.value != null").mark_point(size=26, strokeWidth=1.4, filled=False)
    # Waits reach from milliseconds to a second.
    waits = metric == "queue_delay"
    scale = alt.Scale(type="log", domain=[2, 1000]) if waits else alt.Scale(zero=True)
    ticks = alt.Axis(values=[3, 10, 30, 100, 300, 1000]) if waits else alt.Axis()
    return alt.layer(
        sim.encode(
            x=alt.X("low:Q", title=title, scale=scale, axis=ticks),
            x2="high:Q",
            y=y,
            yOffset=offset,
            color=colour,
        ),
        emu.encode(
            x=alt.X("value:Q", title=title, scale=scale, axis=ticks), y=y, yOffset=offset, color=colour
        ),
    ).properties(width=225, height=340)


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
    trials = load(directory)
    rows: list[tuple[Any, ...]] = []
    outside = compared = 0
    print("| discipline | flow | " + " | ".join(f"{title}: sim, emu" for title, _ in METRICS.values()) + " |")
    print("|---|---|" + "---|" * len(METRICS))
    for key, discipline in DISCIPLINES.items():
        mine = [t for t in trials if t.scenario == f"today/queue-{key}" and t.valid]
        modes = {mode: [t for t in mine if t.mode == mode] for mode in ("sim", "emu")}
        if len(modes["sim"]) < 2 or not modes["emu"]:
            sys.exit(f"{directory} lacks valid trials of today/queue-{key} in sim or emu")
        for flow, label in FLOWS.items():
            cells = []
            for metric in METRICS:
                sim, emu = (values(modes[mode], flow, metric) for mode in ("sim", "emu"))
                low, high = interval(sim)
                rows.append((discipline, label, metric, low, high, None))
                rows += [(discipline, label, metric, None, None, float(value)) for value in emu]
                outside += int(sum(not low - 1e-9 <= value <= high + 1e-9 for value in emu))
                compared += len(emu)
                cells.append(f"{sim.mean():.3g} [{low:.3g}, {high:.3g}], {emu.mean():.3g}")
            print(f"| {discipline} | {flow} | " + " | ".join(cells) + " |")
    counts = {mode: len([t for t in trials if t.mode == mode and t.valid]) for mode in ("sim", "emu")}
    print(
        f"\n{counts['sim']} trials of sim, {counts['emu']} of emu; "
        f"{outside} of {compared} values of emu lie outside."
    )
    chart = alt.hconcat(
        *(panel(metric, named=index == 0) for index, metric in enumerate(METRICS)), spacing=18
    ).resolve_scale(color="shared")
    spec = chart.to_dict(validate=False)
    without_data(spec)
    figure = DrawnFigure(
        out.stem, "", "", {**spec, "background": "#ffffff", "padding": 14}, COLUMNS, tuple(rows)
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    save(figure, out, scale=1.6)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

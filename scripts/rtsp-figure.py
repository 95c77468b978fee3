#!/usr/bin/env python3
"""Draws docs/images/rtsp-udp-tcp.png, the tour's picture, from records of real trials.

    .venv/bin/streamgauge run 'today/demo-rtsp-*-medium' --mode emu --out runs/rtsp
    .venv/bin/python scripts/rtsp-figure.py runs/rtsp docs/images/rtsp-udp-tcp.png

Draws rates over 2 s of each one's valid trial of lowest seed, and prints the numbers of the caption, over all
of their trials.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from streamgauge.metrics import TrialMetrics
from streamgauge.report import answer, gather, load, save
from streamgauge.report.chart import BLUE, ORANGE, VERMILION, lines

PANELS = {
    "today/demo-rtsp-udp-medium": "RTSP video over UDP",
    "today/demo-rtsp-tcp-medium": "RTSP video over TCP",
}
FLOWS = {"video": "video, 550 kbit/s", "cross": "cross traffic, 10 s to 30 s"}
DRAWN = {"sender_rate": "sent", "receiver_rate": "received", "loss_rate": "lost"}
PIXELS_PER_CSS_PIXEL = 1.6
MERGED = 2
"""Samples of 1 s that make a point: the clip's key frames come every 2 s, and would draw a saw."""


def merged(trial: TrialMetrics, metric: str, flow: str) -> list[tuple[float, float]]:
    """Returns a rate as (middle in s, kbit/s)."""
    series, edges = trial.flows[flow].series[metric], trial.grid.edges_ns / 1e9
    starts = range(0, len(edges) - MERGED, MERGED)
    return [
        (float(edges[i] + edges[i + MERGED]) / 2, series.value(slice(i, i + MERGED)) / 1e3) for i in starts
    ]


def main(directory: Path, out: Path) -> None:
    trials = [trial for trial in load(directory) if trial.mode == "emu" and trial.scenario in PANELS]
    found = {entry.id: entry.groups[0].shown for entry in gather(trials)}
    missing = [name for name in PANELS if found.get(name) is None]
    if missing:
        sys.exit(f"{directory} has no valid emu trial of {' or '.join(missing)}")
    rows = [
        (t, value, label, panel_flow, panel)
        for scenario, panel in PANELS.items()
        if (trial := found[scenario]) is not None
        for flow, panel_flow in FLOWS.items()
        for metric, label in DRAWN.items()
        for t, value in merged(trial, metric, flow)
    ]
    figure = lines(
        out.stem,
        "",
        "",
        rows,
        y="kbit/s of IP",
        series=list(DRAWN.values()),
        colours=(BLUE, ORANGE, VERMILION),
        facets=list(FLOWS.values()),
        height=150,
        end=40.0,
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

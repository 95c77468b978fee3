#!/usr/bin/env python3
"""Draws docs/images/one-link.png, the README's picture, from the record of a real trial.

    .venv/bin/streamgauge run examples/one-link.yaml --mode emu --seed 1 --out runs/readme
    .venv/bin/python scripts/readme-figure.py runs/readme docs/images/one-link.png

Draws rates over 2 s of the valid trial with the lowest seed, and prints the answer, which has the
figures of the caption.
"""

from __future__ import annotations

import sys
from pathlib import Path

from record_figure import merged, save_as_card
from streamgauge.report import answer, gather, load
from streamgauge.report.chart import BLUE, ORANGE, VERMILION, lines

SCENARIO = "examples/one-link"
FLOWS = {"film": "film, dash.js from nginx", "live": "live stream", "download": "download, CUBIC"}
PANELS = {"receiver_rate": "received from the link of 5 Mbit/s", "level": "bit rate of the level played"}


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
        for t, value in merged(shown, metric, flow, unit=1e6)
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
    save_as_card(figure, out)
    print(answer(trials))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

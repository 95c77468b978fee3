#!/usr/bin/env python3
"""Draws docs/images/rtsp-udp-tcp.png, the tour's picture, from records of real trials.

    .venv/bin/streamgauge run 'today/demo-rtsp-*-medium' --mode emu --out runs/rtsp
    .venv/bin/python scripts/rtsp-figure.py runs/rtsp docs/images/rtsp-udp-tcp.png

Draws rates over 2 s of each one's valid trial of lowest seed, and prints the numbers of the caption, over all
of their trials.
"""

from __future__ import annotations

import sys
from pathlib import Path

from record_figure import merged, save_as_card
from streamgauge.report import answer, gather, load
from streamgauge.report.chart import BLUE, ORANGE, VERMILION, lines

PANELS = {
    "today/demo-rtsp-udp-medium": "RTSP video over UDP",
    "today/demo-rtsp-tcp-medium": "RTSP video over TCP",
}
FLOWS = {"video": "video, 550 kbit/s", "cross": "cross traffic, 10 s to 30 s"}
DRAWN = {"sender_rate": "sent", "receiver_rate": "received", "loss_rate": "lost"}


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
        for t, value in merged(trial, metric, flow, unit=1e3)
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
    save_as_card(figure, out)
    print(answer(trials))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""All that happens over time in a scenario, over all of its trials: one figure of small multiples."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamgauge.claims.dimension import RATE, say_exactly
from streamgauge.metrics import METRICS, TrialMetrics
from streamgauge.metrics.frame import DOWN, bottleneck_of
from streamgauge.metrics.queueing import limit_of_queue
from streamgauge.report.asked import plotted
from streamgauge.report.chart import COLOURS, DrawnFigure, rounded
from streamgauge.report.courses import GroupCourse, How
from streamgauge.report.model import Entry
from streamgauge.report.modes import (
    Read,
    column_of,
    drawn_words,
    end_of,
    greatest,
    line_of,
    lines_of,
    plot_of_time,
    points_words,
)
from streamgauge.report.multiples import multiples
from streamgauge.report.plots import Plot, PlotBlock, PlotLine, Threshold
from streamgauge.scenario.path.capacity import rate_steps

__all__ = ["DRAWN", "OF_FLOWS", "OF_STAGES", "WINDOW", "capacity_steps", "over_time"]

OF_FLOWS: tuple[tuple[str, How], ...] = (
    ("sender_rate", "value"), ("receiver_rate", "value"), ("loss_rate", "value"), ("rtt", "value"),
    ("path_delay", "value"), ("buffer", "value"), ("cwnd", "value"), ("stall_time", "share"),
    ("freeze_time", "share"), ("sending_time", "share"), ("level", "value"), ("thinning", "value"),
)  # fmt: skip
OF_STAGES: tuple[tuple[str, How], ...] = (
    ("queue", "value"), ("queue", "most"), ("queue_packets", "value"), ("queue_packets", "most"),
)  # fmt: skip
_LEVELS = ("level", "thinning")
"""How good a picture is played."""
WINDOW = {
    "sent": "throughput", "received": "receiver_rate", "lost": "loss_rate", "good": "goodput",
    "waited": "queue_delay",
}  # fmt: skip
"""Data of a page's tables over stretches of time, and the metrics with their sums in it."""
DRAWN = {
    "throughput", "sender_rate", "receiver_rate", "loss_rate", "rtt", "queue", "queue_packets",
    "stall_time", "freeze_time", *_LEVELS,
}  # fmt: skip
"""Plots of every scenario that has the metric."""
_INK, _GREY = "#444444", "#777777"
_VARIES = 0.05
"""A window that varies less than by this share is not drawn."""


def over_time(entry: Entry, read: Read, more: Sequence[Plot]) -> DrawnFigure:
    """Returns the figure; `more` are plots that the scenario asks for besides."""
    first = next(iter(read.values())).first
    colours = _colours(first)
    said, notes = list[str](), [points_words(read)]
    plots = _rates(read, said, notes)
    plots += _queues(read, notes)
    plots += _delays(read, notes)
    plots += _windows(read)
    plots += _seen(read, said)
    titles = {plot.title for plot in plots}
    plots += [plot for plot in more if plot.title not in titles]
    notes += _not_known(plots, list(read))
    names = dict.fromkeys(line.series for plot in plots for line in plot.lines)
    bounds = dict.fromkeys(bound.series for plot in plots for bound in plot.bounds)
    all_colours = {name: colours.get(name) or _series_colour(name, colours) for name in (*names, *bounds)}
    columns = [column_of(mode, one) for mode, one in read.items()]
    shaded = next((column.period_words for column in columns if column.periods), "")
    if shaded:
        said.append(f"Shaded: {shaded}.")
        notes.append("Shading: cross traffic sends half of the time or more, on the mean over the trials.")
    return multiples(
        f"{entry.slug}-time",
        "Over time",
        " ".join([drawn_words(read, means=any(line.mean for plot in plots for line in plot.lines)), *said]),
        [PlotBlock(plots, columns, end_of(read))],
        all_colours,
        notes=" ".join(notes),
        beside={"window": _window(entry, read)},
    )


def _not_known(plots: Sequence[Plot], modes: Sequence[str]) -> list[str]:
    """Returns the plots that are empty in a mode, as it has no source for them."""
    found = []
    for mode in modes:
        empty = [plot.title for plot in plots if not any(mode in line.courses for line in plot.lines)]
        if empty:
            found.append(
                f"Not known in {mode}: {'; '.join(title.rpartition(', ')[0] or title for title in empty)}."
            )
    return found


def _colours(trial: TrialMetrics) -> dict[str, str]:
    """Returns colours: a flow has its colour in every plot, in either direction; pings are last."""
    flows = sorted(trial.flows.items(), key=lambda item: (item[1].info.is_ping, item[1].info.direction))
    return dict(zip((name for name, _ in flows), itertools.cycle(COLOURS), strict=False))


_ENDINGS = (" stalled", " frozen")


def _series_colour(name: str, colours: Mapping[str, str]) -> str:
    """Returns that of its flow, or grey for a bound and a series without a flow."""
    for ending in _ENDINGS:
        if name.removesuffix(ending) in colours:
            return colours[name.removesuffix(ending)]
    return _INK if name == "mean in sample" else _GREY


@dataclass(frozen=True)
class _Way:
    """The flows with media in one direction; the words are empty where all have the same."""

    direction: int
    flows: list[str]
    words: str


def _ways(trial: TrialMetrics) -> list[_Way]:
    """Down first. The other direction has a scale of its own: its bottleneck may be a tenth of this one's."""
    flows = {name: flow.info.direction for name, flow in trial.flows.items() if not flow.info.is_ping}
    directions = sorted(set(flows.values()))
    return [
        _Way(
            one,
            [name for name, direction in flows.items() if direction == one],
            "" if len(directions) == 1 else f" {'down' if one == DOWN else 'up'}",
        )
        for one in directions
    ]


def _rates(read: Read, said: list[str], notes: list[str]) -> list[Plot]:
    """Returns the sent, received and lost rates, a line a flow, with the capacity of their own direction."""
    first = next(iter(read.values())).first
    layer = {"ip": "IP bytes", "ethernet": "Ethernet bytes", "payload": "payload bytes"}[first.layer]
    plots: list[Plot] = []
    losing = False
    for way in _ways(first):
        sent, received = (lines_of(read, way.flows, metric) for metric in ("sender_rate", "receiver_rate"))
        lost = lines_of(read, way.flows, "loss_rate", mean=True)
        scale, unit = (1e6, "Mbit/s") if greatest([*sent, *received]) >= 1e7 else (1e3, "kbit/s")
        capacity = _capacity(read, way.direction)
        alike = f"rates{way.words}"
        plots += [
            Plot(f"Sent{way.words}, {unit}", 76, scale, sent, alike=alike),
            Plot(f"Received{way.words}, {unit}", 76, scale, received, capacity, alike=alike),
        ]
        if greatest(lost) > 0:
            losing = True
            plots.append(Plot(f"Lost{way.words}, mean, {unit}", 44, scale, lost))
        else:
            said.append(f"Nothing was lost{' going' + way.words if way.words else ''}.")
    has_capacity = any(plot.bounds for plot in plots)
    notes.append(f"Rates count {layer}{', the capacity Ethernet bytes' if has_capacity else ''}.")
    if losing:
        notes.append("Losses are means, because medians would nearly always be 0.")
    return plots


def _capacity(read: Read, way: int) -> list[Threshold]:
    corners = {mode: found for mode, one in read.items() if (found := capacity_steps(one.first, way))}
    if not corners:
        return []
    values = {value for found in corners.values() for _, value in found}
    said = f"capacity {'up to ' if len(values) > 1 else ''}{say_exactly(max(values), RATE)}"
    return [Threshold("capacity", said, corners)]


def capacity_steps(trial: TrialMetrics, way: int = DOWN) -> list[tuple[float, float]]:
    """Returns the rate of a direction's bottleneck as the corners of a step line, (s, bit/s)."""
    stage = bottleneck_of((stage.info for stage in trial.stages.values()), way)
    if stage is None:
        return []
    end = float(trial.grid.edges_ns[-1]) / 1e9
    steps = rate_steps(stage.settings.get("rate") or {}, end)
    if steps is None:
        return []
    ends = [*(at for at, _ in steps[1:]), end]
    corners = zip(steps, ends, strict=True)
    return [(rounded(t), bps) for (at, bps), to in corners for t in (at, to) if at <= end]


def _queues(read: Read, notes: list[str]) -> list[Plot]:
    """Returns the queue at the bottleneck of each direction with media."""
    first = next(iter(read.values())).first
    labels = {label for one in read.values() for label in one.first.stages}
    ways = _ways(first)
    several = len({stage.info.direction for stage in first.stages.values()}) > 1
    plots = []
    for way in ways:
        main = _main_stage(labels, way.direction)
        stages = {mode: one.first.stages[main] for mode, one in read.items() if main in one.first.stages}
        limits = {
            mode: limit_of_queue(stage.info.settings.get("queue") or {}) for mode, stage in stages.items()
        }
        by_packets = any("packets" in limit for limit in limits.values())
        metric, scale, unit = ("queue_packets", 1.0, "packets") if by_packets else ("queue", 8e3, "kB")
        lines = [
            line_of("mean in sample", read, main, metric),
            line_of("most in sample", read, main, metric, "most", part="thin"),
        ]
        corners: dict[str, list[tuple[float, float]]] = {}
        for mode, limit in limits.items():
            size = limit.get("packets") if by_packets else 8.0 * limit["bytes"] if "bytes" in limit else None
            if size is not None:
                end = float(read[mode].courses.edges_s[-1])
                corners[mode] = [(0.0, size), (rounded(end, 6), size)]
        most = max((value for found in corners.values() for _, value in found), default=0.0)
        bounds = [Threshold("limit", f"limit {rounded(most / scale):g} {unit}", corners)] if corners else []
        known = [line for line in lines if line is not None]
        if known:
            of = f" {'up' if main.startswith('up.') else 'down'}" if several else ""
            plots.append(Plot(f"Queue{of}, {unit}", 56, scale, known, bounds))
    if plots:
        dashed = ", its limit dashed" if any(plot.bounds for plot in plots) else ""
        notes.append(f"Queue: the packets at the bottleneck, the packet being sent included{dashed}.")
    return plots


def _main_stage(labels: set[str], way: int) -> str:
    """Returns the bottleneck with the drawn queue: one that media of this direction crosses, if there is
    one."""
    met = {label for label in labels if label.startswith("up.") == (way != DOWN)}
    usual = "bottleneck" if way == DOWN else "up.bottleneck"
    return usual if usual in met else min(met, default="")


def _delays(read: Read, notes: list[str]) -> list[Plot]:
    """Round-trip times of the flows that have them; else the way there."""
    flows = list(next(iter(read.values())).first.flows)
    if lines := lines_of(read, flows, "rtt"):
        told = {
            "probe": "by ICMP echo",
            "event": "as the machine itself reports it",
            "path": "by the time that packets take through the path both ways, hosts' time left out",
        }
        sources = {
            name: source
            for one in read.values()
            for name, flow in one.first.flows.items()
            if (source := flow.rtt_source) is not None and any(line.series == name for line in lines)
        }
        how = "; ".join(
            f"{', '.join(name for name, its in sources.items() if its == source)} {words}"
            for source, words in told.items()
            if source in sources.values()
        )
        notes.append(f"Round-trip time: {how}.")
        return [plot_of_time(METRICS["rtt"].title, lines)]
    lines = lines_of(read, flows, "path_delay")
    return [plot_of_time(METRICS["path_delay"].title, lines)] if lines else []


def _windows(read: Read) -> list[Plot]:
    """Returns the bytes that flows over TCP may have in flight, where they vary: a window that nothing fills
    is flat."""
    flows = next(iter(read.values())).first.flows
    lines = [line for line in lines_of(read, flows, "cwnd") if any(map(_varies, line.courses.values()))]
    return [Plot(f"{METRICS['cwnd'].title}, kB", 56, 8e3, lines)] if lines else []


def _varies(course: GroupCourse) -> bool:
    values = course.single[np.isfinite(course.single)]
    return bool(len(values)) and float(np.ptp(values)) > _VARIES * float(values.max())


def _seen(read: Read, said: list[str]) -> list[Plot]:
    """Returns the viewer's buffer and picture: levels, and bars during freezes."""
    flows = next(iter(read.values())).first.flows
    plots: list[Plot] = []
    if lines := lines_of(read, flows, "buffer"):
        plots.append(plot_of_time(METRICS["buffer"].title, lines, 46))
    for level in _LEVELS:
        if (lines := lines_of(read, flows, level)) and greatest(lines) > 0:
            scale, _, title = plotted(METRICS[level])
            plots.append(Plot(title, 46, scale, lines))
    bars: list[PlotLine] = []
    none: list[str] = []
    for flow in flows:
        for metric, ending in zip(("stall_time", "freeze_time"), _ENDINGS, strict=True):
            line = line_of(f"{flow}{ending}", read, flow, metric, "share", part="bar")
            if line is None:
                continue
            if greatest([line]) > 0:
                bars.append(line)
            else:
                none.append(f"{flow} never {ending.strip()}")
    if bars:
        endings = [ending.strip() for ending in _ENDINGS if any(one.series.endswith(ending) for one in bars)]
        title = f"{' or '.join(endings)}, share of the trials"
        plots.append(Plot(f"{title[0].upper()}{title[1:]}", 15 * len(bars), 0.01, bars))
        said.append("Bars: the share of the trials with a frozen picture.")
    if none:
        words = "; ".join(none)
        said.append(f"{words[0].upper()}{words[1:]}.")
    return plots


def _window(entry: Entry, read: Read) -> dict[str, Any]:
    """Returns the data of a page's tables over any stretch of time; templates/series.js describes it."""
    modes: dict[str, Any] = {}
    for mode, one in read.items():
        flows = {}
        for name, flow in one.first.flows.items():
            if flow.info.is_ping:
                continue
            found: dict[str, Any] = {"role": flow.info.role}
            for key, metric in WINDOW.items():
                sums = one.courses.sums(name, metric)
                if sums is None:
                    continue
                digits = 4 if key == "waited" else 6
                found[key] = [rounded(float(value), digits) for value in sums[0]]
                if key == "waited":
                    found["packets"] = [rounded(float(value), 5) for value in sums[1]]
            flows[name] = found
        edges = [rounded(float(edge), 7) for edge in one.courses.edges_s]
        modes[mode] = {"n": one.courses.trials, "edges_s": edges, "flows": flows}
    return {"scenario": entry.slug, "id": entry.id, "modes": modes}

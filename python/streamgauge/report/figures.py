"""A scenario's figures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

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
from streamgauge.claims.names import MetricName, is_event, is_known, named
from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.capacity import steps as rate_steps
from streamgauge.metrics.frame import DOWN
from streamgauge.metrics.queueing import limit_of_queue
from streamgauge.metrics.result import Series
from streamgauge.report.chart import BLUE, COLOURS, ORANGE, SKY, VERMILION, DrawnFigure, bars, lines
from streamgauge.report.model import Entry
from streamgauge.report.vega import channel, whole

MAX_POINTS = 240
"""Most points of a line: more would not be seen at the width of a page."""

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


_RATES = {"throughput", "sender_rate", "receiver_rate", "loss_rate"}


def for_entry(entry: Entry) -> list[DrawnFigure]:
    """A scenario's figures: what was sent, received and lost; who shared; the queue; round-trip times; and
    what the scenario itself asks for."""
    shown = [(group.mode, group.shown) for group in entry.groups if group.shown is not None]
    if not shown:
        return []
    slug = entry.slug
    made = [*_sent_received_lost(shown, slug), *_shares(shown, slug), _queue(shown, slug)]
    made += [_round_trips(shown, slug), _windows(shown, slug)]
    for i, wanted in enumerate(entry.scenario.get("figures") or []):
        # Unless it stands for a figure of the paper, one of the rates would repeat the first.
        if (
            wanted.get("draw") == "series"
            and not wanted.get("like")
            and set(wanted.get("of") or ()) <= _RATES
        ):
            continue
        made.append(_asked(entry, wanted, shown, f"{slug}-asked-{i}"))
    return [figure for figure in made if figure is not None]


Shown = Sequence[tuple[str, TrialMetrics]]


@dataclass(frozen=True)
class _Way:
    """The flows whose media goes one way; the words are empty where all go one way."""

    direction: int
    flows: list[str]
    ending: str
    """Of a figure's name."""
    words: str
    """Of its title."""


def _ways(trial: TrialMetrics) -> list[_Way]:
    """Down first. What goes the other way has a scale of its own: its bottleneck may be a tenth of this
    one's."""
    flows = {name: flow.info.direction for name, flow in trial.flows.items() if not flow.info.is_ping}
    directions = sorted(set(flows.values()))
    found = []
    for one in directions:
        told = "" if len(directions) == 1 else "down" if one == DOWN else "up"
        names = [name for name, direction in flows.items() if direction == one]
        found.append(_Way(one, names, f"-{told}" if told else "", f", {told}" if told else ""))
    return found


def _sent_received_lost(shown: Shown, slug: str) -> list[DrawnFigure]:
    """A figure for each way that media goes, a panel for each flow."""
    wanted = {"sender_rate": "sent", "receiver_rate": "received", "loss_rate": "lost"}
    layer = {"ip": "IP bytes", "ethernet": "Ethernet bytes", "payload": "payload bytes"}[shown[0][1].layer]
    made = []
    for way in _ways(shown[0][1]):
        rows = [
            (t, value, label, flow, mode)
            for mode, trial in shown
            for flow in way.flows
            for metric, label in wanted.items()
            for t, value in points(trial, trial.flows[flow].series[metric], 1e3)
        ]
        # A figure of one flow among several has no panel that names it.
        whose = f"by {way.flows[0]}" if way.ending and len(way.flows) == 1 else "by flow"
        figure = lines(
            f"{slug}-rates{way.ending}",
            f"Sent, received and lost, {whose}{way.words}",
            f"Rates by flow, in {layer}. {_drawn(shown)}",
            rows,
            y=f"kbit/s ({layer})",
            series=list(wanted.values()),
            colours=(BLUE, ORANGE, VERMILION),
            facets=way.flows,
            height=max(90, 150 - 20 * max(0, len(way.flows) - 2)),
            end=_end(shown),
        )
        made.append(figure)
    return made


def _shares(shown: Shown, slug: str) -> list[DrawnFigure]:
    """Each flow beside the capacity of its own direction: a figure for each way that media goes."""
    ways = _ways(shown[0][1])
    # A flow has its colour whichever way it goes.
    colour = dict(zip((flow for way in ways for flow in way.flows), itertools.cycle(COLOURS), strict=False))
    if len(colour) < 2:
        return []
    made = []
    for way in ways:
        rows = [
            (t, value, flow, "", mode)
            for mode, trial in shown
            for flow in way.flows
            for t, value in points(trial, trial.flows[flow].series["receiver_rate"], 1e3)
        ]
        for mode, trial in shown:
            rows += [(t, value, "capacity", "", mode) for t, value in capacity_steps(trial, way.direction)]
        has_capacity = any(row[2] == "capacity" for row in rows)
        figure = lines(
            f"{slug}-shares{way.ending}",
            f"Who got the link{way.words}",
            "Received rate of each flow beside the bottleneck's rate, which counts Ethernet bytes. "
            + _drawn(shown),
            rows,
            y="received, kbit/s",
            series=[*way.flows, *(["capacity"] if has_capacity else [])],
            colours=[colour[flow] for flow in way.flows],
            height=190,
            end=_end(shown),
        )
        made.append(figure)
    return made


def capacity_steps(trial: TrialMetrics, way: int = DOWN) -> list[tuple[float, float]]:
    """The rate of a direction's first bottleneck as the corners of a step line, in kbit/s."""
    stage = next((s.info for s in trial.stages.values() if s.info.direction == way), None)
    if stage is None:
        return []
    end = float(trial.grid.edges_ns[-1]) / 1e9
    steps = rate_steps(stage.settings.get("rate") or {}, end)
    if steps is None:
        return []
    ends = [*(at for at, _ in steps[1:]), end]
    corners = zip(steps, ends, strict=True)
    return [(_round(t), _round(bps / 1e3)) for (at, bps), to in corners for t in (at, to) if at <= end]


def _queue(shown: Shown, slug: str) -> DrawnFigure | None:
    rows: list[tuple[Any, ...]] = []
    limits = set()
    labels = {label for _, trial in shown for label in trial.stages}
    main = _main_stage(labels, shown[0][1])
    by_packets = any(
        "packets" in limit_of_queue(trial.stages[main].info.settings.get("queue") or {})
        for _, trial in shown
        if main in trial.stages
    )
    metric, scale, unit = ("queue_packets", 1.0, "packets") if by_packets else ("queue", 8e3, "kB")
    for mode, trial in shown:
        if main not in trial.stages:
            continue
        series = trial.stages[main].series[metric]
        rows += [(t, value, "mean in sample", "", mode) for t, value in points(trial, series, scale)]
        rows += [(t, value, "most in sample", "", mode) for t, value in peaks(trial, series, scale)]
        limit = limit_of_queue(trial.stages[main].info.settings.get("queue") or {})
        size = limit.get("packets") if by_packets else limit["bytes"] / 1e3 if "bytes" in limit else None
        if size is not None:
            end = _round(float(trial.grid.edges_ns[-1]) / 1e9)
            rows += [(0.0, size, "limit", "", mode), (end, size, "limit", "", mode)]
            limits.add(size)
    if not rows:
        return None
    ways = {stage.info.direction for stage in shown[0][1].stages.values()}
    way = "" if len(ways) < 2 else ", up" if main.startswith("up.") else ", down"
    return lines(
        slug + "-queue",
        f"Queue at the bottleneck{way}",
        f"What waits at the bottleneck, the packet being sent included. {_drawn(shown)}",
        rows,
        y=f"queue, {unit}",
        series=["mean in sample", "most in sample", *(["limit"] if limits else [])],
        colours=(BLUE, SKY, VERMILION),
        height=150,
        end=_end(shown),
    )


def _main_stage(labels: set[str], trial: TrialMetrics) -> str:
    """The bottleneck whose queue is drawn: one that the first subject's media crosses, if there is one."""
    media = (flow.info for flow in trial.flows.values() if not flow.info.is_ping)
    way = next((info.direction for info in media if info.role == "subject"), DOWN)
    met = {label for label in labels if label.startswith("up.") == (way != DOWN)} or labels
    usual = "bottleneck" if way == DOWN else "up.bottleneck"
    return usual if usual in met else min(met, default="")


def _round_trips(shown: Shown, slug: str) -> DrawnFigure | None:
    sources: dict[str, str | None] = {}
    rows: list[tuple[Any, ...]] = []
    for mode, trial in shown:
        for name, flow in trial.flows.items():
            series = flow.series.get("rtt")
            if series is not None and flow.rtt_source is not None:
                sources[name] = flow.rtt_source
                rows += [(t, value, name, "", mode) for t, value in points(trial, series, 1e-3)]
    if not rows:
        return None
    told = {
        "probe": "by ICMP echo",
        "event": "as the machine itself reports it",
        "path": "by the time that packets take through the path both ways, hosts' time left out",
    }
    how = "; ".join(
        f"{', '.join(name for name, its in sources.items() if its == source)} {words}"
        for source, words in told.items()
        if source in sources.values()
    )
    return lines(
        slug + "-rtt",
        "Round-trip time",
        f"Mean round-trip time in each sample: {how}. {_drawn(shown)}",
        rows,
        y="round-trip time, ms",
        series=list(sources),
        colours=COLOURS,
        height=150,
        end=_end(shown),
    )


def _windows(shown: Shown, slug: str) -> DrawnFigure | None:
    """What the flows over TCP may have in flight."""
    rows: list[tuple[Any, ...]] = []
    for mode, trial in shown:
        for name, flow in trial.flows.items():
            if (series := flow.series.get("cwnd")) is not None:
                rows += [(t, value, name, "", mode) for t, value in points(trial, series, 8e3)]
    if not rows:
        return None
    return lines(
        slug + "-cwnd",
        "Congestion window",
        f"TCP's congestion window at the sending end, mean in each sample. {_drawn(shown)}",
        rows,
        y="congestion window, kB",
        series=list(dict.fromkeys(row[2] for row in rows)),
        colours=COLOURS,
        height=150,
        end=_end(shown),
    )


def _asked(entry: Entry, wanted: Mapping[str, Any], shown: Shown, id_: str) -> DrawnFigure | None:
    """A figure that the scenario declares: series, bars, cdf or scatter. Tables stand elsewhere."""
    metrics = [str(name) for name in wanted.get("of") or [] if is_known(str(name))]
    kind, by = wanted.get("draw"), wanted.get("by", "flow")
    if not metrics or kind == "table":
        return None
    known = {name: _told(name, shown) for name in metrics}
    scale, unit = PLOTTED.get(known[metrics[0]].dimension, (1.0, ""))
    like = f" In the form of {wanted['like']}." if wanted.get("like") else ""
    names = [known[name].title for name in metrics]
    suffix = " by flow" if by == "flow" and metrics != ["jain"] else ""
    title = str(
        wanted.get("title") or f"{names[0]}{''.join(f' and {name.lower()}' for name in names[1:])}{suffix}"
    )
    found: list[tuple[str, str, str, str, Series, TrialMetrics]] = []
    for mode, trial in shown:
        subjects: Mapping[str, Any] = trial.stages if by == "stage" else trial.flows
        for subject in subjects if metrics != ["jain"] else [""]:
            if subject in trial.flows and trial.flows[subject].info.is_ping and metrics != ["rtt"]:
                continue
            for name, label in zip(metrics, names, strict=True):
                try:
                    series = trial.series(name, subject)
                    if trial.dimension(name, subject) != known[name].dimension:
                        continue
                except KeyError:
                    continue
                # A series of nothing but gaps is no more known than one that is not there.
                if np.isfinite(series.samples()).any():
                    found.append((mode, subject, name, label, series, trial))
    if not found:
        return None
    lacking = [mode for mode, _ in shown if mode not in {one[0] for one in found}]
    like += f" Not known in {' and '.join(lacking)}." if lacking else ""
    subjects_found = list(dict.fromkeys(one[1] for one in found))
    if kind == "series":
        rows = [
            (t, value, label, subject, mode)
            for mode, subject, _, label, series, trial in found
            for t, value in points(trial, series, scale)
        ]
        return lines(
            id_, title, _drawn(shown) + like, rows, y=unit or names[0], series=names,
            colours=(BLUE, ORANGE, *COLOURS[1:]), facets=subjects_found, height=130, end=_end(shown),
        )  # fmt: skip
    if kind == "cdf":
        rows = []
        for mode, subject, _, label, series, trial in found:
            values = np.sort(series.samples()[trial.grid.slice()])
            values = values[np.isfinite(values)]
            for share in np.linspace(0, 1, min(len(values), 100)) if len(values) else ():
                rows.append(
                    (
                        _round(float(np.quantile(values, share)) / scale),
                        _round(float(share)),
                        label,
                        subject,
                        mode,
                    )
                )
        return lines(
            id_, title, "Share of samples at or below." + like, rows, x=unit or names[0],
            y="share of samples", series=names, colours=COLOURS, facets=subjects_found, height=130,
        )  # fmt: skip
    if kind == "scatter" and len(metrics) == 2:
        return _scatter(id_, title, like, known, found)
    if kind == "bars":
        return _mean_bars(entry, id_, title, like, known, subjects_found)
    return None


def _told(metric: str, shown: Shown) -> MetricName:
    """A metric; of an event its dimension too, as the first flow that says it has it."""
    found = named(metric)
    if is_event(metric):
        for flow in (flow for _, trial in shown for flow in trial.flows.values()):
            if metric in flow.series:
                return replace(found, dimension=flow.dimension(metric))
    return found


def _mean_bars(
    entry: Entry, id_: str, title: str, like: str, metrics: Mapping[str, MetricName], subjects: list[str]
) -> DrawnFigure | None:
    """Means over the valid trials with their intervals, a panel a mode."""
    names = [one.title for one in metrics.values()]
    scale, unit = PLOTTED.get(next(iter(metrics.values())).dimension, (1.0, ""))
    rows: list[tuple[Any, ...]] = []
    for group in entry.groups:
        for subject in subjects:
            for name in metrics:
                found = group.over(name, subject)
                if found is not None:
                    ends = (
                        (None, None) if found.low is None or found.high is None else (found.low, found.high)
                    )
                    low, high = (None if end is None else _round(end / scale) for end in ends)
                    if low is not None and not metrics[name].signed:
                        low = max(0.0, low)
                    height = _round(found.mean / scale)
                    rows.append((subject or "all", height, metrics[name].title, group.mode, low, high))
    caption = "Means over the window and the valid trials; whiskers are 95 % intervals." + like
    return bars(id_, title, caption, rows, y=unit or names[0], kinds=names) if rows else None


def _scatter(
    id_: str,
    title: str,
    like: str,
    metrics: Mapping[str, MetricName],
    found: list[tuple[str, str, str, str, Series, TrialMetrics]],
) -> DrawnFigure:
    by_subject: dict[tuple[str, str], dict[str, tuple[Series, TrialMetrics]]] = {}
    for mode, subject, name, _, series, trial in found:
        by_subject.setdefault((mode, subject), {})[name] = (series, trial)
    axes = [PLOTTED.get(one.dimension, (1.0, "")) for one in metrics.values()]
    rows = []
    for (mode, subject), pair in by_subject.items():
        if len(pair) < 2:
            continue
        part = next(iter(pair.values()))[1].grid.slice()
        columns = [
            pair[name][0].samples()[part] / scale for name, (scale, _) in zip(metrics, axes, strict=True)
        ]
        for x, y in zip(*columns, strict=True):
            if np.isfinite(x) and np.isfinite(y):
                rows.append((_round(float(x)), _round(float(y)), subject, mode))
    titles = [
        f"{one.title}, {unit}".removesuffix(", ")
        for one, (_, unit) in zip(metrics.values(), axes, strict=True)
    ]
    subjects = list(dict.fromkeys(row[2] for row in rows))
    chart = {
        "mark": {"type": "point", "filled": False, "size": 26},
        "encoding": {
            "x": channel("x:Q", title=titles[0]),
            "y": channel("y:Q", title=titles[1]),
            "color": channel("s:N", scale={"domain": subjects, "range": list(COLOURS[: len(subjects)])}),
            "shape": channel("s:N", scale={"domain": subjects}),
        },
        "width": 420,
        "height": 300,
    }
    return DrawnFigure(
        id_, title, "One point a sample." + like, whole(chart), ("x", "y", "s", "m"), tuple(rows)
    )


def _drawn(shown: Shown) -> str:
    seeds = ", ".join(f"{mode} seed {trial.seed}" for mode, trial in shown)
    thinned = [_merge(trial) for _, trial in shown]
    text = f"One trial is drawn ({seeds})."
    if max(thinned) > 1:
        sample = f"{shown[0][1].grid.sample_s:g} s"
        text += (
            f" {max(thinned)} samples of {sample} make one point, to keep the page small; the tables use all."
        )
    return text


def _end(shown: Shown) -> float:
    """When the longest of the trials ended, in s."""
    return _round(max(float(trial.grid.edges_ns[-1]) for _, trial in shown) / 1e9, 6)


def _merge(trial: TrialMetrics) -> int:
    """How many samples make one point."""
    return math.ceil(len(trial.grid) / MAX_POINTS)


def points(trial: TrialMetrics, series: Series, scale: float) -> list[tuple[float, float]]:
    """A series as (time in s, value / scale), at the middle of each sample.

    Longer than `MAX_POINTS`, neighbouring samples are merged: the value of several samples is exact, a ratio
    of sums. Samples with nothing to measure are left out.
    """
    found = []
    edges = trial.grid.edges_ns / 1e9
    for part, middle in _parts(trial, edges):
        total = series.denominator is None
        value = float(np.mean(series.numerator[part])) if total else series.value(part)
        if np.isfinite(value):
            found.append((middle, _round(value / scale)))
    return found


def peaks(trial: TrialMetrics, series: Series, scale: float) -> list[tuple[float, float]]:
    """The greatest value in each point's samples."""
    edges = trial.grid.edges_ns / 1e9
    found = ((middle, series.extreme(part, highest=True)) for part, middle in _parts(trial, edges))
    return [(middle, _round(value / scale)) for middle, value in found if np.isfinite(value)]


def _parts(trial: TrialMetrics, edges: Any) -> list[tuple[slice, float]]:
    # A sliver left at either end by the window's bounds would show as a spike or a gap.
    step = _merge(trial)
    usual = float(np.median(np.diff(edges))) if len(edges) > 1 else 0.0
    parts = []
    for i in range(0, len(edges) - 1, step):
        to = min(i + step, len(edges) - 1)
        if edges[to] - edges[i] >= 0.5 * usual:
            parts.append((slice(i, to), _round(float(edges[i] + edges[to]) / 2, 6)))
    return parts


def _round(value: float, digits: int = 4) -> float:
    """To so many significant digits: enough to draw, and it keeps the page small."""
    return float(f"{value:.{digits}g}")

"""`Runs.plot`: figures of trials, as Altair charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import altair as alt
import numpy as np
import polars as pl

from streamgauge.claims.dimension import RATE, Dimension, pick_unit
from streamgauge.claims.names import is_event, named
from streamgauge.errors import StreamGaugeError
from streamgauge.metrics import TrialMetrics, interval
from streamgauge.metrics.frame import FlowInfo, bottleneck_of
from streamgauge.metrics.queueing import limit_of_queue
from streamgauge.metrics.result import StageMetrics
from streamgauge.notebook import frames
from streamgauge.notebook.charts import WIDTH, Chart, data_of, drawn, lines, palette
from streamgauge.notebook.compared import ComparedRuns
from streamgauge.report.chart import COLOURS
from streamgauge.report.courses import Courses, GroupCourse, band_words
from streamgauge.report.model import Group
from streamgauge.scenario.path.capacity import rate_steps

__all__ = ["Plots"]

Drawn = Mapping[str, GroupCourse]
"""Courses by the name of the flow or stage."""
Reference = Callable[[TrialMetrics], Sequence[tuple[float, float]]]
"""Set values, as opposed to measured ones, as (s, canonical value): the corners of a line."""

_MOST_OVERLAID: Final = len(COLOURS)
_MOST_TICKS: Final = 100
"""Most trials that are drawn one by one."""
_OFF_SCALE: Final = 3.0
"""A capacity or limit beyond this many times the drawn values would flatten them, and is in words instead."""
_BYTES: Final = {"ip": "IP bytes", "ethernet": "Ethernet bytes", "payload": "payload bytes"}
_OF_PAYLOAD: Final = ("goodput", "sent_goodput")


class Plots:
    """Figures of trials, as Altair charts: ``.save("x.svg")``, ``.png`` or ``.pdf`` writes one without the
    internet, ``.properties(...)`` and the like change it.

    Lines are medians over the trials that count, in bands as those of the report; nothing is smoothed.
    """

    def __init__(self, groups: Sequence[tuple[str, Group]], compared: Callable[..., ComparedRuns]) -> None:
        self._groups = groups
        self._compared = compared

    def rates(self, metric: str = "receiver_rate", *, flow: str | None = None) -> Chart:
        """Draws each flow's received rate over time, a panel a scenario, with the bottleneck's rate.

        Args:
            metric: another rate, such as ``throughput`` (sent), ``goodput`` or ``loss_rate``.
            flow: this flow alone.

        Raises:
            StreamGaugeError: if there is no such metric or flow, or nothing of it to draw.
        """
        return self.over_time(metric, flow=flow, reference=("capacity", _capacity))

    def queue(self, stage: str | None = None) -> Chart:
        """Returns how much waits at the bottleneck, in packets where its limit is in packets, with the limit.

        Args:
            stage: a stage by name, such as ``up.bottleneck``; the one that the subject flow crosses if
                None.

        Raises:
            StreamGaugeError: if there is no such stage.
        """
        first = self._first()
        chosen = stage or _main_stage(first)
        if chosen not in first.stages:
            raise StreamGaugeError(f"no bottleneck is called '{chosen}'; there are {', '.join(first.stages)}")
        limit = limit_of_queue(first.stages[chosen].info.settings.get("queue") or {})
        metric = "queue_packets" if "packets" in limit else "queue"
        return self.over_time(
            metric, stage=chosen, reference=("limit", lambda one: _limit(one, chosen, metric))
        )

    def rtt(self, *, flow: str | None = None) -> Chart:
        """Draws round-trip times: by ICMP echo, as a flow's own machine reports them, or by the time that its
        packets take both ways; docs/metrics.md lists the sources.

        Raises:
            StreamGaugeError: if there is no such flow, or nothing to draw.
        """
        return self.over_time("rtt", flow=flow)

    def buffer(self, *, flow: str | None = None) -> Chart:
        """Returns the media that each player holds.

        Raises:
            StreamGaugeError: if there is no such flow, or no player reports it.
        """
        return self.over_time("buffer", flow=flow)

    def over_time(
        self,
        metric: str,
        *,
        flow: str | None = None,
        stage: str | None = None,
        reference: tuple[str, Reference] | None = None,
    ) -> Chart:
        """Any metric over time, of all flows or one, or of a stage.

        One line a scenario is drawn in one panel, if there are few; else a scenario has a panel.

        Raises:
            StreamGaugeError: if there is no such metric, flow or stage, or nothing of it to draw.
        """
        about = frames.known(metric)
        found = [
            (label, group, _drawn(group, metric, flow, stage)) for label, group in self._groups if group.valid
        ]
        found = [(label, group, mine) for label, group, mine in found if mine]
        if not found:
            self._nothing(metric, flow)
        subjects = list(dict.fromkeys(subject for *_, mine in found for subject in mine))
        tops = [float(np.nanmax(one.median)) for *_, mine in found for one in mine.values()]
        scale, unit = _unit(tops, self._dimension(metric))
        overlaid = len(subjects) == 1 and 1 < len(found) <= _MOST_OVERLAID
        kind = "stage" if stage is not None or about.of == "stage" else "flow"
        rows = [
            {"scenario": label, kind: subject, **row}
            for label, _, mine in found
            for subject, course in mine.items()
            for row in _rows(course, scale)
        ]
        names, told = [label for label, *_ in found] if overlaid else subjects, ""
        references: list[str] = []
        if reference is not None:
            more, told = _references(found, reference, kind, scale)
            if overlaid:
                more = _alike(more, [label for label, *_ in found], reference[0])
            rows += more
            references = [reference[0]] if more else []
        layer = _layer(metric, self._first())
        n = sorted({len(group.valid) for _, group, _ in found})
        return lines(
            rows,
            by="scenario" if overlaid else kind,
            names=[*names, *references],
            references=references,
            panels=[label for label, *_ in found] if len(found) > 1 and not overlaid else [],
            y=unit or about.title.lower(),
            title=about.title + layer + (f": {subjects[0]}" if len(subjects) == 1 else ""),
            subtitle=_how(n) + (f"; {told}" if told else ""),
            height=220 if len(found) == 1 or overlaid else 130,
        )

    def metric(self, name: str, *, flow: str | None = None) -> Chart:
        """Returns a metric over the window: each scenario's mean with its 95 % interval (Student's t) and
        trials.

        Raises:
            StreamGaugeError: if there is no such metric or flow, or nothing of it to draw.
        """
        about = frames.known(name)
        rows: list[dict[str, Any]] = []
        for label, group in self._groups:
            if group.valid:
                rows += _means(frames.measured(group.valid, [name], flow), label)
        if not rows:
            self._nothing(name, flow)
        scale, unit = _unit([row["value"] for row in rows], self._dimension(name))
        for row in rows:
            row.update({key: row[key] / scale for key in ("value", "low", "high") if row[key] is not None})
        return _dots(rows, f"{about.title}, {unit}" if unit else about.title, about.title)

    def compare(
        self, *metrics: str, baseline: str | None = None, by: str | None = None, flow: str | None = None
    ) -> Chart:
        """Returns the figure of a comparison, `ComparedRuns.plot`; the arguments are those of `Runs.compare`.

        Raises:
            StreamGaugeError: as `Runs.compare`, and if there is nothing to draw.
        """
        return self._compared(baseline=baseline, by=by, flow=flow).plot(*metrics)

    def _first(self) -> TrialMetrics:
        """Returns the first trial that counts."""
        shown = next((group.shown for _, group in self._groups if group.valid), None)
        if shown is None:
            raise StreamGaugeError("there is no valid trial to draw; trials() has the reasons")
        return shown

    def _dimension(self, metric: str) -> Dimension:
        """Returns a metric's dimension; for an event's values that of their unit."""
        for _, group in self._groups:
            for metrics in group.each() if is_event(metric) else ():
                if saying := [one for one in metrics.flows.values() if metric in one.series]:
                    return frames.dimension_of(metric, saying[0])
        return frames.dimension_of(metric)

    def _nothing(self, metric: str, flow: str | None) -> None:
        """Raises StreamGaugeError with the reason why there is nothing to draw."""
        flows = list(self._first().flows)
        if flow is not None and flow not in flows:
            raise StreamGaugeError(f"no trial has a flow '{flow}'; the flows are {', '.join(flows)}")
        whose = f"of {flow} " if flow is not None else ""
        raise StreamGaugeError(
            f"nothing {whose}to draw: no trial has {metric} ({named(metric).title.lower()}) here; "
            "docs/metrics.md lists the flows that have it"
        )


def _drawn(group: Group, metric: str, flow: str | None, stage: str | None) -> dict[str, GroupCourse]:
    """Returns a metric's courses of all flows or one, or of stages; without those that have nothing to
    draw."""
    of_stages = stage is not None or named(metric).of == "stage"
    if of_stages and flow is not None:
        return {}
    wanted = [(metric, "value")]
    courses = Courses(group.numbers.samples, *([(), wanted] if of_stages else [wanted]))
    for trial in group.each():
        courses.add(trial)
    infos = group.numbers.infos
    found: dict[str, GroupCourse] = {}
    for subject in courses.subjects(metric):
        asked = stage if of_stages else flow if subject else None
        ping = subject in infos and infos[subject].is_ping and metric != "rtt"
        course = courses.course(subject, metric) if asked in (None, subject) and not ping else None
        if course is not None and np.isfinite(course.median).any():
            found[subject or "all flows"] = course
    return found


def _rows(course: GroupCourse, scale: float) -> list[dict[str, Any]]:
    """Returns the points to draw; the band of a single trial is its line."""
    low, high = (course.median if edge is None else edge for edge in (course.low, course.high))
    columns = (course.times_s, course.median / scale, low / scale, high / scale, course.known)
    return [
        {
            "time": round(float(time), 6),
            "median": _short(median),
            "low": _short(low),
            "high": _short(high),
            "trials": int(trials),
        }
        for time, median, low, high, trials in zip(*columns, strict=True)
        if np.isfinite(median)
    ]


def _short(value: float) -> float:
    """Digits enough to draw, so that a notebook stays small."""
    return float(f"{value:.5g}")


def _references(
    found: Sequence[tuple[str, Group, Drawn]],
    reference: tuple[str, Reference],
    kind: str,
    scale: float,
) -> tuple[list[dict[str, Any]], str]:
    """Returns the corners of the set values in each panel, and in words where they are off the scale."""
    name, of = reference
    rows: list[dict[str, Any]] = []
    beyond: list[str] = []
    top = max(one.greatest() for *_, mine in found for one in mine.values())
    for label, group, _ in found:
        shown = group.shown
        corners = [] if shown is None else of(shown)
        if corners and max(value for _, value in corners) > _OFF_SCALE * top:
            beyond.append(label)
            continue
        for time, value in corners:
            height = _short(value / scale)
            at = {"median": height, "low": height, "high": height, "trials": 1}
            rows.append({"scenario": label, kind: name, "time": round(time, 6), **at})
    if not beyond:
        return rows, ""
    where = "" if len(found) == 1 else f" of {', '.join(beyond[:3])}{' ...' if len(beyond) > 3 else ''}"
    return rows, f"the {name}{where} is above the scale"


def _alike(rows: Sequence[Mapping[str, Any]], labels: Sequence[str], name: str) -> list[dict[str, Any]]:
    """Returns the set values, as a line of its own beside those of scenarios; empty where they differ."""
    by_label = [
        [
            {key: value for key, value in row.items() if key != "scenario"}
            for row in rows
            if row["scenario"] == label
        ]
        for label in labels
    ]
    if any(mine != by_label[0] for mine in by_label):
        return []
    return [{**row, "scenario": name} for row in by_label[0]]


def _capacity(metrics: TrialMetrics) -> list[tuple[float, float]]:
    """Returns the rate of the bottleneck that the subject flow crosses first, in bit/s."""
    stage = metrics.stages.get(_main_stage(metrics))
    end_s = float(metrics.grid.edges_ns[-1]) / 1e9
    found = None if stage is None else rate_steps(stage.info.settings.get("rate") or {}, end_s)
    if not found:
        return []
    ends = [*(at for at, _ in found[1:]), end_s]
    return [
        (t, bps)
        for (at, bps), to in zip(found, ends, strict=True)
        for t in (at, min(to, end_s))
        if at <= end_s
    ]


def _limit(metrics: TrialMetrics, stage: str, metric: str) -> list[tuple[float, float]]:
    """Returns the queue's limit in packets or bits; empty where its unit differs from the drawn one."""
    if stage not in metrics.stages:
        return []
    limit = limit_of_queue(metrics.stages[stage].info.settings.get("queue") or {})
    unit, factor = ("packets", 1.0) if metric == "queue_packets" else ("bytes", 8.0)
    if unit not in limit:
        return []
    value = factor * float(limit[unit])
    return [(0.0, value), (float(metrics.grid.edges_ns[-1]) / 1e9, value)]


def _main_stage(metrics: TrialMetrics) -> str:
    """Returns the bottleneck on the way of the first subject flow; empty without one."""
    infos: list[FlowInfo] = [one.info for one in metrics.flows.values() if not one.info.is_ping]
    way = next((info.direction for info in infos if info.role == "subject"), 0)
    stages: Mapping[str, StageMetrics] = metrics.stages
    found = bottleneck_of((stage.info for stage in stages.values()), way)
    return found.label if found is not None else next(iter(stages), "")


def _layer(metric: str, metrics: TrialMetrics) -> str:
    """Returns which bytes a rate counts, in brackets."""
    if named(metric).dimension != RATE or named(metric).of != "flow":
        return ""
    return f" ({_BYTES['payload' if metric in _OF_PAYLOAD else metrics.layer]})"


def _unit(values: Sequence[float], dimension: Dimension) -> tuple[float, str]:
    """Returns the unit in which an axis is drawn: (canonical units in one, its name)."""
    return pick_unit(max((abs(float(value)) for value in values), default=0.0), dimension)


def _how(n: Sequence[int]) -> str:
    """Returns the meaning of lines and bands."""
    if list(n) == [1]:
        return "one trial"
    count = str(n[0]) if len(n) == 1 else f"{n[0]} to {n[-1]}"
    bands = list(dict.fromkeys(band_words(one) for one in n if one > 1))
    return f"median of {count} trials; band: {', or '.join(bands)}"


def _means(measured: pl.DataFrame, label: str) -> list[dict[str, Any]]:
    """Returns a row a flow or stage: mean, interval, the trials' own values."""
    found = []
    ticks = measured["seed"].n_unique() <= _MOST_TICKS
    subject = pl.coalesce("flow", "stage", pl.lit("all flows")).alias("subject")
    known = measured.filter(pl.col("value").is_not_null()).with_columns(subject)
    for (name,), mine in known.group_by("subject", maintain_order=True):
        over = interval(mine["value"].to_list())
        row = {"scenario": label, "flow": name, "value": over.mean, "low": over.low, "high": over.high}
        found.append({**row, "seed": None, "trials": over.n, "kind": "mean"})
        for value, seed in mine.select("value", "seed").iter_rows() if ticks else ():
            one = {"scenario": label, "flow": name, "value": value, "low": None, "high": None, "seed": seed}
            found.append({**one, "trials": 1, "kind": "trial"})
    return found


def _dots(rows: Sequence[Mapping[str, Any]], x: str, title: str) -> Chart:
    """Returns a mean with its interval a row, and the trials as ticks."""
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    flows = list(dict.fromkeys(row["flow"] for row in rows))
    colours, _ = palette(flows)
    legend = None
    if len(flows) > 1:
        # As dots, not as the trials' pale ticks.
        legend = alt.Legend(title=None, orient="top", symbolType="circle", symbolOpacity=1, symbolSize=70)
    base = alt.Chart().encode(
        y=alt.Y("scenario:N", sort=scenarios, title=None, axis=alt.Axis(labelLimit=400)),
        color=alt.Color("flow:N", sort=flows, scale=alt.Scale(domain=flows, range=colours), legend=legend),
    )
    if len(flows) > 1:
        base = base.encode(yOffset=alt.YOffset("flow:N", sort=flows))
    # Where a tick is enough to show a trial, a dot would hide the mean.
    at = alt.X("value:Q", title=x, scale=alt.Scale(zero=True))
    tooltip = [
        alt.Tooltip("scenario:N"),
        alt.Tooltip("flow:N"),
        alt.Tooltip("value:Q", title=x, format=".4~g"),
    ]
    tooltip += [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("low", "high", "trials")]
    of_trial, of_mean = "datum.kind == 'trial'", "datum.kind == 'mean'"
    ticks = (
        base.transform_filter(of_trial)
        .mark_tick(opacity=0.45, thickness=1, size=10)
        .encode(x=at, tooltip=[alt.Tooltip("seed:Q"), alt.Tooltip("value:Q", title=x, format=".4~g")])
    )
    rules = (
        base.transform_filter(f"{of_mean} && isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", title=x), x2=alt.X2("high:Q"))
    )
    dots = (
        base.transform_filter(of_mean)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x=at, tooltip=tooltip)
    )
    how = "mean of the valid trials with its 95 % interval"
    how += "; a tick a trial" if any(row["kind"] == "trial" for row in rows) else ""
    if all(row["trials"] == 1 for row in rows):
        how = "one trial each"
    told = alt.Title(title, subtitle=how, anchor="start", subtitleColor="#666666")
    step = alt.Step(26) if len(flows) == 1 else alt.Step(18)
    chart = alt.layer(ticks, rules, dots, data=data_of(rows), width=WIDTH, height=step, title=told)
    return drawn(chart)

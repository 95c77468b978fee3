"""Ranking by metrics: rows of subjects, or of scenarios, columns of metrics, each cell a value with its
interval on its column's axis."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from streamgauge.claims.dimension import show
from streamgauge.compare import COMPARED, ComparedMetric, ComparedRow, MetricSide, say_value, verdict_words
from streamgauge.compare.answer import MANY, WEIGHED
from streamgauge.compare.words import say_without
from streamgauge.report.dots import DotAxis, Point, ScatterAxis, axis_of, dot, scatter

__all__ = [
    "RankedCell",
    "RankedRow",
    "RankedRows",
    "Ranking",
    "Scatter",
    "chosen_metrics",
    "in_order",
    "leading_metrics",
    "pairs_of",
    "ranking",
    "scatters",
]

HEADS: dict[MetricSide, str] = {
    "viewer": "for the viewer",
    "flow": "for the flow",
    "neighbour": "for its neighbours",
}
SIGNS = {"better": "▲", "worse": "▼", "equal": "=", "undecided": "?"}
_MOST: dict[MetricSide, int] = {"viewer": 3, "flow": 3, "neighbour": 2}
_SHORT = 0.75
"""A percentile of delays below this share of the neighbours' mean queueing delay does not show the queue."""
_MOST_OF_LEVELS = 5
"""Most metrics for viewers of adaptive players: freezes, QoE, level, changes, start-up."""


@dataclass(frozen=True)
class RankedRows:
    """Rows of one mode with their basis, such as ``simulated, n = 10``."""

    mode: str
    heading: str
    rows: tuple[RankedRow, ...]


@dataclass(frozen=True)
class RankedCell:
    """One value."""

    metric: str
    short: str
    value: str
    half: str
    """Its interval: ``± 2.2``, or its ends."""
    strip: Markup
    sign: str
    verdict: str
    said: str
    """The difference in words."""
    without: str
    """Part that the value leaves out: ``36.4 % lost``."""
    why: str
    first: bool


@dataclass(frozen=True)
class RankedRow:
    """A subject, or a scenario, in one mode."""

    label: str
    href: str
    note: str
    """Remark on its trials: ``3 of 4 valid: ...``."""
    is_baseline: bool
    cells: tuple[RankedCell | None, ...]
    """None where nothing is known."""


@dataclass(frozen=True)
class RankedColumn:
    """A metric's column."""

    metric: str
    short: str
    title: str
    better: str
    axis: DotAxis


@dataclass(frozen=True)
class Ranking:
    """A table."""

    sides: tuple[tuple[str, int], ...]
    """Headings over the columns, each with how many it spans."""
    columns: tuple[RankedColumn, ...]
    parts: tuple[RankedRows, ...]
    left_out: tuple[str, ...]
    """Metrics that are known and have no column here."""
    has_differences: bool
    notes: tuple[str, ...]
    """Sentences on the limits of its numbers."""

    @property
    def letters(self) -> int:
        """Returns how many letters the column of names has to hold."""
        words = (word for part in self.parts for row in part.rows for word in row.label.split())
        return min(18, max(map(len, words), default=0))


@dataclass(frozen=True)
class Scatter:
    """A drawing of subjects on two axes, with its heading."""

    heading: str
    drawing: Markup


_BESIDE_STILL = ("level", "frames_lost", "live_latency", "startup_delay", "frames_shown")
"""Metric drawn against the time of freezes: the first that is known for all subjects and differs."""
Values = Mapping[tuple[str, str, str], ComparedRow]
"""Rows by (row's label, mode, metric)."""


@dataclass(frozen=True)
class RowHead:
    """A row's name, its link, and the remark on its trials."""

    label: str
    mode: str
    href: str
    note: str = ""


def chosen_metrics(rows: Iterable[ComparedRow]) -> list[ComparedMetric]:
    """Returns the metrics with a column: a few of each side, in the order of `COMPARED`, without those that
    another implies."""
    rows = [row for row in rows if row.value is not None]
    known = {row.metric for row in rows}
    everybody = {(row.subject, row.mode) for row in rows}
    of_all = {name for name in known if {(r.subject, r.mode) for r in rows if r.metric == name} == everybody}
    implied = {
        "rebuffer_ratio": {"frozen_share"} & of_all,
        # A player of levels shows every frame: other metrics separate such players.
        "frames_lost": {"level"} & of_all,
        "frames_shown": {"frames_lost", "level"} & of_all,
        "neighbour_share": {"harm"} & of_all,
        "jain": {"neighbour_share", "harm"} & of_all,
        "rate_variation": {"goodput"} & of_all,
    }
    most = _MOST | ({"viewer": _MOST_OF_LEVELS} if "level" in of_all else {})
    mine = [metric for metric in COMPARED.values() if metric.name in known and not implied.get(metric.name)]
    found: list[ComparedMetric] = []
    for metric in mine:
        if sum(one.side == metric.side for one in found) < most[metric.side]:
            found.append(metric)
    return found


def leading_metrics(rows: Sequence[ComparedRow], asked: Sequence[str] = ()) -> list[ComparedMetric]:
    """Returns the metrics that rank the subjects of a scenario and mode, the first deciding first: those of
    the first side that separate any. QoE precedes the others, as it weighs the viewer's whole experience."""
    known = {row.metric for row in rows if row.value is not None}
    metrics = [metric for metric in COMPARED.values() if metric.name in known]
    if asked:
        return [metric for metric in metrics if metric.name in asked]
    chosen = [one for one in chosen_metrics(rows) if one.side == metrics[0].side]
    ranks = {one.name: {row.rank for row in rows if row.metric == one.name} for one in chosen}
    found = [one for one in chosen if len(ranks[one.name]) > 1] or chosen[:1]
    return sorted(found, key=lambda one: one.name != WEIGHED)


def in_order(subjects: Sequence[str], rows: Sequence[ComparedRow], asked: Sequence[str] = ()) -> list[str]:
    """Subjects of one scenario and mode as tables have them: as they were given, or of more than `MANY` by
    their values of the leading metrics, the best first."""
    if len(subjects) <= MANY or not any(row.value is not None for row in rows):
        return list(subjects)
    by = {(row.metric, row.subject): row for row in rows}

    def place(subject: str, metric: ComparedMetric) -> float:
        row = by.get((metric.name, subject))
        if row is None or row.value is None:
            return math.inf
        return -row.value if metric.better == "more" else row.value

    leading = leading_metrics(rows, asked)
    return sorted(subjects, key=lambda one: [place(one, metric) for metric in leading])


def ranking(
    heads: Sequence[RowHead],
    values: Values,
    *,
    baseline: str = "",
    headings: Mapping[str, str],
    metrics: Sequence[ComparedMetric] | None = None,
) -> Ranking:
    """Returns the table of these rows.

    Args:
        heads: its rows, in order.
        values: their known values.
        baseline: the label of the reference row, if there is one.
        headings: titles of the rows of each mode, in the modes' order.
        metrics: the columns; `chosen_metrics` if None.
    """
    rows = list(values.values())
    chosen = list(chosen_metrics(rows) if metrics is None else metrics)
    columns = [_column(metric, [row for row in rows if row.metric == metric.name]) for metric in chosen]
    parts = []
    for mode, heading in headings.items():
        mine = [head for head in heads if head.mode == mode]
        if mine:
            parts.append(
                RankedRows(
                    mode, heading, tuple(_line(head, values, columns, baseline, mine) for head in mine)
                )
            )
    sides: list[tuple[str, int]] = []
    for metric in chosen:
        head = HEADS[metric.side]
        if sides and sides[-1][0] == head:
            sides[-1] = head, sides[-1][1] + 1
        else:
            sides.append((head, 1))
    names = {metric.name for metric in chosen}
    left_out = [
        COMPARED[name].short
        for name in COMPARED
        if name not in names and any(r.metric == name and r.value is not None for r in rows)
    ]
    return Ranking(
        tuple(sides),
        tuple(columns),
        tuple(parts),
        tuple(left_out),
        any(row.verdict for row in rows),
        tuple(_notes(heads, values, names)),
    )


def _notes(heads: Sequence[RowHead], values: Values, shown: Collection[str]) -> Iterable[str]:
    """Yields where a flow's packets seem to wait less than its neighbours': few of them were there while the
    queue was full."""
    if not all(name in shown for name in ("path_delay_p95", "neighbour_delay")):
        return
    found = []
    for head in heads:
        own, theirs = (
            values.get((head.label, head.mode, name)) for name in ("path_delay_p95", "neighbour_delay")
        )
        if own is None or theirs is None or own.value is None or theirs.value is None:
            continue
        if own.value < _SHORT * theirs.value:
            of = f"{head.label} ({head.mode})" if len({one.mode for one in heads}) > 1 else head.label
            found.append(f"{of}: {_value(own)[0]} beside {_value(theirs)[0]}")
    if found:
        yield (
            "A delay is that of the packets that arrived. Where a flow backs off or loses while the queue is "
            f"full, few of its packets wait there, and its neighbours' wait longer: {'; '.join(found)}."
        )


def _column(metric: ComparedMetric, rows: Sequence[ComparedRow]) -> RankedColumn:
    ends = [row.value for row in rows if row.value is not None]
    for row in rows:
        # An interval without a bound, or one that dwarfs all values, does not stretch the axis.
        if row.interval is not None and row.value is not None:
            ends += [end for end in row.interval if abs(end) <= 4 * max(map(abs, ends), default=0.0)]
    if not metric.signed:
        ends = [max(0.0, end) for end in ends]
    axis = axis_of(ends or [0.0, 1.0], metric.dimension, 2)
    return RankedColumn(metric.name, metric.short, metric.title, metric.better, axis)


def _line(
    head: RowHead, values: Values, columns: Sequence[RankedColumn], baseline: str, beside: Sequence[RowHead]
) -> RankedRow:
    cells: list[RankedCell | None] = []
    for column in columns:
        row = values.get((head.label, head.mode, column.metric))
        if row is None or row.value is None:
            cells.append(None)
            continue
        ranks = [
            other.rank
            for one in beside
            if (other := values.get((one.label, one.mode, column.metric))) is not None and other.rank
        ]
        first = row.rank == 1 and any(rank > 1 for rank in ranks)
        base = values.get((baseline, head.mode, column.metric)) if baseline else None
        is_base = head.label == baseline
        cells.append(
            RankedCell(
                column.metric,
                column.short,
                *_value(row),
                dot(
                    column.axis,
                    row.value,
                    row.interval,
                    first=first,
                    beside=None if base is None or is_base else base.value,
                ),
                SIGNS.get(row.verdict or "", ""),
                row.verdict or "",
                _brief(row),
                say_without(row),
                row.why,
                first,
            )
        )
    return RankedRow(
        head.label, head.href, head.note, bool(baseline) and head.label == baseline, tuple(cells)
    )


def _value(row: ComparedRow) -> tuple[str, str]:
    """Returns a mean with its unit, and its interval beside it."""
    assert row.value is not None
    half = None
    if row.interval is not None and all(map(math.isfinite, row.interval)):
        half = (row.interval[1] - row.interval[0]) / 2
    shown = show(row.value, half, row.about.dimension, signed=row.about.signed)
    return f"{shown.mean} {shown.unit}".rstrip(), shown.interval


def _brief(row: ComparedRow) -> str:
    """Returns a verdict for a cell: the reason of an undecided one is elsewhere."""
    return "undecided" if row.verdict == "undecided" else verdict_words(row)


def pairs_of(rows: Sequence[ComparedRow]) -> list[tuple[str, str, str]]:
    """Returns which two metrics are drawn against each other: (heading, across, up), the viewer's first; of
    each pair both are known of every subject."""
    rows = [row for row in rows if row.value is not None]
    everybody = {row.subject for row in rows}

    def known(*names: str) -> str | None:
        return next(
            (name for name in names if {r.subject for r in rows if r.metric == name} == everybody), None
        )

    def varies(name: str) -> bool:
        return len({row.value for row in rows if row.metric == name}) > 1

    found = []
    still = known("frozen_share", "rebuffer_ratio")
    missing = known(*(name for name in _BESIDE_STILL if varies(name)), *_BESIDE_STILL)
    if still is None:
        still = known("frames_shown") if missing != "frames_shown" else None
    if still and missing and still != missing:
        found.append(("for the viewer", still, missing))
    taken = known("harm", "neighbour_share")
    if (own := known("own_share", "goodput")) and taken:
        found.append(("for congestion", own, taken))
    delay = known("path_delay_p95", "loss", "neighbour_delay")
    if not found and (own := known("goodput")) and delay:
        found.append(("for the flow", delay, own))
    return found


def scatters(rows: Sequence[ComparedRow], extra: Mapping[str, ComparedMetric] | None = None) -> list[Scatter]:
    """Returns the drawings of rows of one scenario and mode, one for each of `pairs_of`; none of a single
    subject."""
    about = {**COMPARED, **(extra or {})}
    by = {(row.subject, row.metric): row for row in rows if row.value is not None}
    subjects = list(dict.fromkeys(row.subject for row in rows if row.value is not None))
    if len(subjects) < 2:
        return []
    made = []
    for heading, across, up in pairs_of(rows):
        points = []
        for subject in subjects:
            x, y = by[subject, across], by[subject, up]
            assert x.value is not None and y.value is not None
            said = "; ".join(f"{about[row.metric].title} {say_value(row)}" for row in (x, y))
            points.append(Point(subject, x.value, y.value, x.interval, y.interval, f"{subject}: {said}"))
        first, second = about[across], about[up]
        made.append(
            Scatter(
                heading,
                scatter(
                    points,
                    ScatterAxis(first.short, first.dimension, first.better, first.signed),
                    ScatterAxis(second.short, second.dimension, second.better, second.signed),
                    name=f"{first.title} and {second.title[0].lower()}{second.title[1:]} of each subject",
                ),
            )
        )
    return made

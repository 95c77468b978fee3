"""The answer in short: a table of at most twelve lines and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.claims.names import METRICS
from streamgauge.metrics import Interval
from streamgauge.report.answer import answering, by_question, spoken_of
from streamgauge.report.model import Entry, Group, listed, say_mean
from streamgauge.report.viewer import viewer_value

__all__ = ["MOST_LINES", "InShort", "in_short"]

MOST_LINES = 12
_COLUMNS = {
    "level": "bit rate played",
    "goodput": "received",
    "loss": "lost",
    "queue_delay": "waited",
    "stall_time": "stalled",
    "freeze_time": "stood still",
    "live_latency": "behind live",
}
#: The metrics that the sentence may rank by, the viewer's first, with their verbs.
_RANKED = {"freeze_time": "stood still", "stall_time": "stalled", "loss": "lost", "queue_delay": "waited"}


@dataclass(frozen=True)
class InShort:
    """A table, its heads first, and a sentence; both empty without a valid trial."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentence: str


@dataclass(frozen=True)
class _Subject:
    entry: Entry
    group: Group
    flow: str
    name: str

    def over(self, metric: str) -> Interval | None:
        return viewer_value(self.group, metric, self.flow)


def in_short(entries: Sequence[Entry]) -> InShort:
    """Returns the answer in short, from the trials that the whole answer is from."""
    found = _named(_subjects(entries))
    if not found:
        return InShort((), (), "")
    columns = [metric for metric in _COLUMNS if any(one.over(metric) is not None for one in found)]
    heads = ("subject", "mode", "n", *(_COLUMNS[metric] for metric in columns))
    # One line is for the heads, and one for the number of lines that are left out.
    shown = found if len(found) < MOST_LINES else found[: MOST_LINES - 2]
    rows = [(one.name, one.group.mode, str(len(one.group.valid)), *_cells(one, columns)) for one in shown]
    if len(shown) < len(found):
        rows.append((f"and {len(found) - len(shown)} more", *[""] * (len(heads) - 1)))
    return InShort(heads, tuple(rows), _sentence(found))


def _subjects(entries: Sequence[Entry]) -> list[_Subject]:
    by_id = {entry.id: entry for entry in entries}
    found = []
    for asked in by_question(entries):
        mine = [by_id[answer.scenario] for answer in asked.answers]
        for entry, group in zip(mine, answering(mine), strict=True):
            if group.valid:
                found += [_Subject(entry, group, flow, "") for flow in spoken_of(entry, group)]
    return found


def _named(found: Sequence[_Subject]) -> list[_Subject]:
    """Names each by its flow, its scenario or both: the shortest that is unique."""
    flows, ids = {one.flow for one in found}, {one.entry.id for one in found}
    return [
        _Subject(
            one.entry,
            one.group,
            one.flow,
            one.flow if len(ids) == 1 else one.entry.id if len(flows) == 1 else f"{one.entry.id} {one.flow}",
        )
        for one in found
    ]


def _cells(one: _Subject, columns: Sequence[str]) -> list[str]:
    values = ((metric, one.over(metric)) for metric in columns)
    return ["–" if value is None else say_mean(value, metric) for metric, value in values]


def _sentence(found: Sequence[_Subject]) -> str:
    if len(found) == 1:
        (one,) = found
        parts = [
            f"{verb} {say_mean(value, metric)}"
            for metric, verb in {"goodput": "received", **_RANKED}.items()
            if (value := one.over(metric)) is not None
        ]
        return f"{one.name} {listed(parts)}." if parts else ""
    for metric, verb in _RANKED.items():
        values = [(one, value) for one in found if (value := one.over(metric)) is not None]
        if len(values) < 2:
            continue
        values.sort(key=lambda pair: pair[1].mean)
        (best, least), (worst, most) = values[0], values[-1]
        if most.mean == least.mean:
            continue
        low, high = say_mean(least, metric), say_mean(most, metric)
        told = f"{best.name} {verb} least, {low}, and {worst.name} most, {high}"
        if least.half_width is None or most.half_width is None:
            return f"{told}; one trial each gives no interval."
        if least.mean + least.half_width >= most.mean - most.half_width:
            return f"{told}; their intervals overlap."
        return f"{told}."
    names = ", ".join(METRICS[metric].title.lower() for metric in _RANKED)
    return f"No subject differs from the others in {names}."

"""Where two sources of one number disagree, worst first: simulation and emulation, ours and a paper's.

Every number that the page shows of both is listed, not the one that agrees best.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from streamgauge.checks.published import match_published, published_value
from streamgauge.claims.dimension import Dimension, say, show
from streamgauge.compare import COMPARED
from streamgauge.metrics import METRICS, Interval
from streamgauge.report.model import Entry, Group, entry_labels

__all__ = ["SHOWN", "Agreement", "Pair", "agreement", "of_modes", "of_published", "pair"]

SHOWN = {name: metric.label for name, metric in METRICS.items() if metric.label}
"""Metrics on pages, with their names beside a flow's name."""

_NEAR = 0.05
"""A metric that is not compared otherwise differs practically beyond this share."""


@dataclass(frozen=True)
class Pair:
    """One number from two sources, in words and as sizes of their disagreement."""

    scenario: str
    slug: str
    what: str
    """The metric's title and its subject."""
    first: str
    second: str
    percent: float | None
    """Difference in percent of the greater of both; None if one is not known."""
    intervals: float | None
    """In half-widths of the interval of the difference; infinite if nothing varied, None without one."""
    verdict: str
    """``differs``, ``small`` (no more than the margin of practical equality), ``agrees`` or ``one`` (one is
    not known)."""

    @property
    def percent_words(self) -> str:
        """Returns ``75 %``."""
        return (
            "–"
            if self.percent is None
            else f"{self.percent:.0f} %"
            if self.percent >= 10
            else f"{self.percent:.1f} %"
        )

    @property
    def interval_words(self) -> str:
        """Returns ``10 ×``."""
        if self.intervals is None:
            return "–"
        if math.isinf(self.intervals):
            return "no spread"
        return f"{self.intervals:.0f} ×" if self.intervals >= 10 else f"{self.intervals:.1f} ×"

    @property
    def size(self) -> tuple[int, float, float]:
        """Returns the sort key of pairs, the worst first: verdict, percent, half-widths. A pair that differs
        at all does so by more than its interval; where nothing varied there are no half-widths to sort by."""
        order = ("differs", "one", "small", "agrees")
        return order.index(self.verdict), -(self.percent or 0.0), -(self.intervals or 0.0)


@dataclass(frozen=True)
class Agreement:
    """All pairs of two sources."""

    title: str
    first: str
    second: str
    pairs: tuple[Pair, ...]
    """The worst first."""
    summary: str

    @property
    def apart(self) -> list[Pair]:
        """Returns those that differ."""
        return [one for one in self.pairs if one.verdict == "differs"]

    @property
    def alike(self) -> list[Pair]:
        """Returns the others: unknown, small and equal ones."""
        return [one for one in self.pairs if one.verdict != "differs"]


def agreement(title: str, first: str, second: str, pairs: Iterable[Pair]) -> Agreement | None:
    """Returns all pairs of two sources, called `first` and `second`, worst first; None without any."""
    found = tuple(sorted(pairs, key=lambda one: one.size))
    if not found:
        return None
    counts = {
        verdict: sum(one.verdict == verdict for one in found)
        for verdict in ("differs", "one", "small", "agrees")
    }
    both = len(found) - counts["one"]
    told = [f"{counts['agrees']} agree within their interval"]
    told += [f"{counts['small']} differ by less than matters"] if counts["small"] else []
    told += [f"{counts['differs']} differ"]
    text = f"{both} numbers in both: {', '.join(told)}"
    if counts["differs"]:
        worst = max((one for one in found if one.verdict == "differs"), key=lambda one: one.percent or 0.0)
        text += f"; the most {worst.what} in {worst.scenario}: {worst.first} against {worst.second}"
    text += f". {counts['one']} more are in one of them only." if counts["one"] else "."
    return Agreement(title, first, second, found, text)


def of_modes(entries: Sequence[Entry]) -> Agreement | None:
    """Simulation and emulation of the scenarios that have valid trials in both; None without any."""
    short = entry_labels(entries)
    pairs = []
    for entry in entries:
        sim, emu = entry.group("sim"), entry.group("emu")
        if sim is None or emu is None or not sim.valid or not emu.valid:
            continue
        for flow, info in sim.numbers.infos.items():
            if info.is_ping or flow not in emu.numbers.infos:
                continue
            for metric in SHOWN:
                if METRICS[metric].of != "trial" and metric not in ("sent", "received"):
                    pairs += _of_metric(short[entry.id], entry, metric, flow, sim, emu)
        for metric in SHOWN:
            if METRICS[metric].of == "trial":
                pairs += _of_metric(short[entry.id], entry, metric, "", sim, emu)
    return agreement("Simulation and emulation", "simulated", "emulated", pairs)


def _of_metric(label: str, entry: Entry, metric: str, flow: str, sim: Group, emu: Group) -> list[Pair]:
    a, b = sim.over(metric, flow), emu.over(metric, flow)
    if a is None and b is None:
        return []
    named = METRICS[metric]
    what = f"{SHOWN[metric]} of {flow}" if flow else SHOWN[metric]
    return [pair(label, entry.slug, what, a, b, named.dimension, named.signed, metric)]


def of_published(entries: Sequence[Entry]) -> Agreement | None:
    """Returns ours and the printed values of papers: of checks, in the answering mode, and of tables; None
    without any."""
    short = entry_labels(entries)
    pairs: dict[tuple[str, str], Pair] = {}
    for entry in entries:
        group = entry.best
        for check in entry.checks:
            if check.mode != group.mode or check.changed:
                continue
            for key, value in match_published(check.values, check.published).items():
                theirs = Interval(published_value(check.published[key])[0], None, 1, False)
                what = _what(value.text)
                pairs.setdefault(
                    (entry.id, value.text),
                    pair(
                        short[entry.id], entry.slug, what, value.interval, theirs, value.dimension,
                        value.signed, value.text.partition(".")[0], published=str(check.published[key]),
                    ),
                )  # fmt: skip
        for text, (printed, flow) in _printed(entry).items():
            metric = text.partition(".")[0]
            ours = group.over(metric, flow) if group.valid else None
            named = METRICS[metric]
            theirs = Interval(published_value(printed)[0], None, 1, False)
            what = f"{SHOWN[metric]} of {flow}"
            pairs.setdefault(
                (entry.id, text),
                pair(
                    short[entry.id],
                    entry.slug,
                    what,
                    ours,
                    theirs,
                    named.dimension,
                    named.signed,
                    metric,
                    published=printed,
                ),
            )
    return agreement("Ours and the papers’", "ours", "published", pairs.values())


def _what(term: str) -> str:
    """Returns a term in words if it is a metric of a flow, else as it is written."""
    metric, _, flow = term.partition(".")
    if metric in SHOWN and flow and flow.isidentifier():
        return f"{SHOWN[metric]} of {flow}"
    return SHOWN.get(term, term)


def _printed(entry: Entry) -> dict[str, tuple[str, str]]:
    """Returns the values of a scenario in the tables of papers: (as printed, flow) by term."""
    found = {}
    for data in _tables():
        of = data.get("scenarios")
        if isinstance(of, Mapping) and isinstance(mine := of.get(entry.id), Mapping) and "flow" in data:
            for metric, printed in mine.items():
                found[f"{metric}.{data['flow']}"] = str(printed), str(data["flow"])
    return found


def _tables() -> list[Mapping[str, Any]]:
    folder = resources.files("streamgauge.report") / "published"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name
    )
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def pair(
    label: str,
    slug: str,
    what: str,
    first: Interval | None,
    second: Interval | None,
    dimension: Dimension,
    signed: bool,
    metric: str,
    published: str = "",
    half: float | None = None,
) -> Pair:
    """Returns one number from two sources.

    Args:
        label: the scenario's name.
        slug: its place on the page; empty without one.
        what: name of the number.
        first: from the one.
        second: from the other.
        dimension: of both.
        signed: whether it can be below zero.
        metric: its name, which selects the margin of practical equality.
        published: the second as it is printed.
        half: half of the interval of their difference, if it does not follow from both intervals.
    """

    def told(value: Interval | None) -> str:
        if value is None:
            return "not known"
        return str(show(value.mean, value.half_width, dimension, signed=signed))

    texts = told(first), published or told(second)
    if first is None or second is None:
        return Pair(label, slug, what, *texts, None, None, "one")
    gap = abs(first.mean - second.mean)
    greater = max(abs(first.mean), abs(second.mean))
    percent = 100 * gap / greater if greater else 0.0
    halves = [value.half_width for value in (first, second) if value.half_width is not None]
    half = half if half is not None else math.hypot(*halves) if halves else None
    units = None if half is None else gap / half if half else (math.inf if gap else 0.0)
    margin = COMPARED[metric].margin.about(second.mean) if metric in COMPARED else _NEAR * abs(second.mean)
    if (
        gap == 0
        or (units is not None and units <= 1)
        or say(first.mean, dimension) == say(second.mean, dimension)
    ):
        verdict = "agrees"
    else:
        verdict = "small" if gap <= margin else "differs"
    return Pair(label, slug, what, *texts, percent, units, verdict)

"""Values of a scenario's trials for its drawings, by mode, and their captions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamgauge.metrics import TrialMetrics
from streamgauge.report.chart import rounded
from streamgauge.report.courses import Courses, How, band_words
from streamgauge.report.model import Group
from streamgauge.report.plots import Column, Plot, PlotLine

__all__ = [
    "ModeRead",
    "Read",
    "column_of",
    "drawn_words",
    "end_of",
    "greatest",
    "line_of",
    "lines_of",
    "plot_of_time",
    "points_words",
]

_OFTEN = 0.5
"""Cross traffic counts as on where it sends in this share of a point, on the mean over the trials."""
_WHOLE = 0.9
"""Shading of this share of a trial would be meaningless."""

Read = Mapping[str, "ModeRead"]


@dataclass(frozen=True)
class ModeRead:
    """Values of a scenario's trials in one mode."""

    group: Group
    first: TrialMetrics
    """The valid trial of the lowest seed: its flows and stages are those of all."""
    courses: Courses


def line_of(
    series: str, read: Read, subject: str, metric: str, how: How = "value", **more: Any
) -> PlotLine | None:
    """Returns a quantity in every mode that has it; None if none has."""
    found = {
        mode: course
        for mode, one in read.items()
        if (course := one.courses.course(subject, metric, how)) is not None
    }
    return PlotLine(series, found, **more) if found else None


def lines_of(read: Read, flows: Iterable[str], metric: str, **more: Any) -> list[PlotLine]:
    lines = (line_of(flow, read, flow, metric, **more) for flow in flows)
    return [line for line in lines if line is not None]


def greatest(lines: Iterable[PlotLine]) -> float:
    return max((course.greatest() for line in lines for course in line.courses.values()), default=0.0)


def plot_of_time(title: str, lines: Sequence[PlotLine], height: int = 56) -> Plot:
    """In ms, or in s where they are long."""
    scale, unit = (1.0, "s") if greatest(lines) >= 2 else (1e-3, "ms")
    return Plot(f"{title}, {unit}", height, scale, lines)


def column_of(mode: str, one: ModeRead) -> Column:
    trials = one.courses.trials
    heading = f"{mode}, n = {trials}" if trials > 1 else f"{mode}, one trial (seed {one.first.seed})"
    periods, words = _periods(one)
    return Column(mode, heading, periods, words)


def _periods(one: ModeRead) -> tuple[list[tuple[float, float]], str]:
    """Returns the times of cross traffic, and their caption; nothing if it is always there."""
    rivals = [
        name for name, flow in one.first.flows.items() if flow.info.role == "rival" and not flow.info.is_ping
    ]
    edges = one.courses.edges_s
    active = np.zeros(len(edges) - 1, dtype=np.bool_)
    sending = []
    for name in rivals:
        course = one.courses.course(name, "sending_time", "share")
        if course is not None:
            on = course.mean >= _OFTEN
            if not on.any():
                on = course.mean > 0
            active |= on
            sending += [name] if on.any() else []
    if not active.any() or active.mean() > _WHOLE:
        return [], ""
    steps = np.diff(np.concatenate([[0], active.astype(np.int8), [0]]))
    begins, ends = edges[np.flatnonzero(steps == 1)], edges[np.flatnonzero(steps == -1)]
    found = [
        (rounded(float(begin), 6), rounded(float(end), 6)) for begin, end in zip(begins, ends, strict=True)
    ]
    words = f"{sending[0]} sends" if len(sending) == 1 else f"{len(sending)} flows of cross traffic send"
    if len(sending) == 2:
        words = f"{sending[0]} or {sending[1]} sends"
    return found, words


def end_of(read: Read) -> float:
    """Returns when the longest of the trials ended, in s."""
    return rounded(max(float(one.courses.edges_s[-1]) for one in read.values()), 6)


def drawn_words(read: Read, *, means: bool = False) -> str:
    """Returns the meaning of lines and bands, and the number of trials."""
    counts = {mode: one.courses.trials for mode, one in read.items()}
    alone = {mode: one.first.seed for mode, one in read.items() if counts[mode] == 1}
    said = []
    if len(alone) < len(read):
        bands = {mode: band_words(n) for mode, n in counts.items() if n > 1}
        is_same = len(set(bands.values())) == 1 and len(bands) == len(read)
        told = (
            next(iter(bands.values()))
            if is_same
            else "; ".join(f"{mode}: {what}" for mode, what in bands.items())
        )
        lines = f"Medians over all valid trials{' (lost: means)' if means else ''}"
        said.append(f"{lines}; bands {told}." if is_same else f"{lines}, with bands ({told}).")
    if alone:
        told = ", ".join(f"{mode} (seed {seed})" for mode, seed in alone.items())
        said.append(f"One trial is drawn of {told}.")
    return " ".join(said)


def points_words(read: Read) -> str:
    """Returns the meaning of a point."""
    step = max(one.courses.step for one in read.values())
    sample = f"{next(iter(read.values())).first.grid.sample_s:g} s"
    of = "Each is taken by itself, of what the trials have at that time."
    if step > 1:
        return f"{step} samples of {sample} make one point, to keep the page small; tables use all. {of}"
    return f"A point is a sample of {sample}. {of}"

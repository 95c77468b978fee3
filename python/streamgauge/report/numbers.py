"""Small numbers of many trials, read of each once, so that no trial's series need stay in memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamgauge.metrics import FlowMetrics, TrialMetrics
from streamgauge.metrics.frame import FlowInfo
from streamgauge.metrics.grid import Floats

__all__ = ["Numbers", "Stretch", "over_stretches"]

Stretch = tuple[str, str, float | None, float | None]
"""A metric of a subject from one time to another, in s; None is the window's begin or end."""

_PLAYED, _TRANSFERS = ":played", ":transfers"
"""For a flow, 1 or 0: whether its player showed something; whether any of its short transfers completed."""


class Numbers:
    """For each trial of a group its metrics over the window, the sending times of its flows, and their
    kinds."""

    def __init__(self) -> None:
        self._count = 0
        self._columns: dict[tuple[str, str], array[float]] = {}
        self._starts: list[Floats] = []
        self._sent: list[dict[str, bytes]] = []
        self._infos: list[Mapping[str, FlowInfo]] = []
        self._known: dict[bytes, Floats] = {}
        self._rows: list[int] | None = None

    def add(self, trial: TrialMetrics) -> int:
        """Reads a trial; returns its row."""
        row = self._count
        # A flow hides a stage of its name, as `TrialMetrics.find` has it.
        for name, measured in [*trial.stages.items(), *trial.flows.items()]:
            for metric in {**measured.series, **measured.scalars}:
                try:
                    self._put(metric, name, trial.value(metric, name))
                except (KeyError, ValueError):
                    continue
        self._put("jain", "", trial.jain)
        for metric in {**trial.whole.series, **trial.whole.scalars}:
            self._put(metric, "", trial.value(metric))
        for name, flow in trial.flows.items():
            self._put(_PLAYED, name, _played(flow))
            if (transfers := flow.series.get("transfers")) is not None:
                self._put(_TRANSFERS, name, bool(transfers.numerator.any()))
        edges = trial.grid.edges_ns.tobytes()
        self._starts.append(self._known.setdefault(edges, trial.grid.starts_s))
        self._sent.append(
            {
                name: np.packbits(flow.series["sending_time"].numerator > 0).tobytes()
                for name, flow in trial.flows.items()
            }
        )
        infos = {name: flow.info for name, flow in trial.flows.items()}
        self._infos.append(self._infos[-1] if self._infos and self._infos[-1] == infos else infos)
        self._count += 1
        return row

    def _put(self, metric: str, subject: str, value: float) -> None:
        column = self._columns.setdefault((metric, subject), array("d"))
        column.extend([math.nan] * (self._count + 1 - len(column)))
        column[self._count] = value

    def of(self, rows: Sequence[int]) -> Numbers:
        """Returns the same of some rows, in this order."""
        found = Numbers()
        found.__dict__ |= self.__dict__
        found._rows = list(rows)
        return found

    def _order(self) -> Sequence[int]:
        return range(self._count) if self._rows is None else self._rows

    def __len__(self) -> int:
        return len(self._order())

    @property
    def samples(self) -> int:
        """Returns the most samples that a trial has; 0 without trials."""
        return max((len(self._starts[row]) for row in self._order()), default=0)

    def column(self, metric: str, subject: str) -> Floats:
        """Returns a metric over the window, [trial]; NaN where there is nothing to measure."""
        if metric == "jain":
            subject = ""
        found = self._columns.get((metric, subject))
        if found is None and not any(subject == name for _, name in self._columns):
            found = self._columns.get((metric, subject.removeprefix("down.")))
        whole = np.full(self._count, np.nan)
        if found is not None:
            whole[: len(found)] = found
        return whole[list(self._order())]

    @property
    def infos(self) -> Mapping[str, FlowInfo]:
        """Returns the flows of the first trial, by name; empty without trials."""
        order = self._order()
        return self._infos[order[0]] if len(order) else {}

    def first_sent(self, flow: str, begin_s: float) -> list[float]:
        """Returns the begin of the first sample from `begin_s` on in which a flow sends at all, else
        infinite; of each trial that has it."""
        found = []
        for row in self._order():
            starts, bits = self._starts[row], self._sent[row].get(flow)
            if bits is not None:
                sends = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=len(starts)).astype(np.bool_)
                at = np.flatnonzero(sends & (starts >= begin_s - 1e-9))
                found.append(float(starts[at[0]]) if len(at) else math.inf)
        return found

    def played(self, flow: str) -> bool:
        """Returns whether a flow's player showed a frame, or reported the start of play, in every trial that
        has it."""
        found = self.column(_PLAYED, flow)
        return bool((found[np.isfinite(found)] == 1).all())

    def has_transfers(self, flow: str) -> bool:
        """Returns whether a flow is one of short transfers."""
        return bool(np.isfinite(self.column(_TRANSFERS, flow)).any())

    def completed_transfers(self, flow: str) -> bool:
        """Returns whether any of its short transfers completed at any time of a trial."""
        return bool((self.column(_TRANSFERS, flow) == 1).any())


def _played(flow: FlowMetrics) -> bool:
    shown = flow.series.get("frames_shown")
    return (shown is not None and shown.numerator.sum() > 0) or flow.scalars.get("startup_delay") is not None


def over_stretches(trials: Iterable[TrialMetrics], stretches: Iterable[Stretch]) -> dict[Stretch, Floats]:
    """Metrics over stretches of time, each [trial], NaN where there is nothing to measure; reads each trial
    once, one after the other."""
    found: dict[Stretch, list[float]] = {stretch: [] for stretch in stretches}
    for trial in trials:
        for stretch, values in found.items():
            try:
                values.append(trial.value(*stretch))
            except (KeyError, ValueError):
                values.append(math.nan)
    return {stretch: np.array(values) for stretch, values in found.items()}

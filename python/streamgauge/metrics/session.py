"""The watching time of a flow's viewer, as far as the plan and the player define it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamgauge.metrics.course import Spans
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS, Ints
from streamgauge.systems.machines import MACHINES


@dataclass(frozen=True)
class Watched:
    """When one flow was watched."""

    began: Ints
    """Start of play; empty if it never began, or is not reported."""
    over: int
    """When nothing was to be shown any more: the media's end, its stop, or the trial's end."""
    pauses: Spans
    """When the viewer himself had paused it."""
    stalls: Spans
    """When the player waited for more to play, pauses included."""
    tells_all: bool
    """It is a player of ours that reports each frame, and each stall if it ever waits."""
    tells_stalls: bool
    """Without a stall there was none."""
    startup_s: float | None
    """From the request to play to the first frame."""

    @property
    def played(self) -> Spans:
        """Returns when media was played, stalls and pauses left out."""
        session = Spans(self.began, np.full(len(self.began), self.over)).clipped(0, self.over)
        return session.without(self.pauses).without(self.stalls)


def watched(trial: Trial, flow: int) -> Watched:
    """Returns when a flow was watched. Times are those of the events, also where a host was late to act on
    them."""
    said, machine = trial.said, MACHINES.get(trial.machine(flow))
    # A receiver with a fixed latency never waits: it declares no `stall`, and has none.
    tells_all = machine is not None and "frame_shown" in machine.events
    shown, started = said.of("frame_shown", flow)[0], said.of("playout_start", flow)[0]
    over = over_ns(trial, flow)
    return Watched(
        began=shown[:1] if len(shown) or tells_all else started[:1],
        over=over,
        pauses=pauses_of(trial, flow),
        stalls=_stalls(trial, flow, over),
        tells_all=tells_all,
        tells_stalls=tells_all or said.has("stall", flow) or said.has("stall_count", flow),
        startup_s=_startup_s(trial, flow, shown),
    )


def pauses_of(trial: Trial, flow: int) -> Spans:
    """Returns when the viewer himself had paused it, by the plan."""
    begins: list[int] = []
    ends: list[int] = []
    for at, what in trial.plans[flow].get("actions", ()):
        if what == "pause" and len(begins) == len(ends):
            begins.append(at)
        elif what in ("resume", "stop") and len(begins) > len(ends):
            ends.append(at)
    if not begins:
        return Spans.none()
    ends += [round(trial.duration_s * SECOND_NS)] * (len(begins) - len(ends))
    return Spans(np.array(begins, dtype=np.int64), np.array(ends, dtype=np.int64))


def over_ns(trial: Trial, flow: int) -> int:
    """Returns when nothing was to be shown any more: the media's end, its stop, or the trial's end."""
    ends = [round(trial.duration_s * SECOND_NS), *trial.said.of("media_end", flow)[0].tolist()]
    ends += [at for at, what in trial.plans[flow].get("actions", ()) if what == "stop"]
    return int(min(ends))


def _stalls(trial: Trial, flow: int, over: int) -> Spans:
    """Returns each `stall` to the `resume` that follows it, or to the end.

    A repeat before its `resume` is the same stall. Before play has begun nothing stalls: an earlier report
    counts from there on, if the stall lasts.
    """
    stall, resume = trial.said.of("stall", flow)[0], trial.said.of("resume", flow)[0]
    if not len(stall):
        return Spans.none()
    starts = [
        told[0] for name in ("playout_start", "frame_shown") if len(told := trial.said.of(name, flow)[0])
    ]
    start = int(min(starts, default=0))
    spans: list[tuple[int, int]] = []
    at, ends = 0, resume.tolist()
    until = -1
    for begin in np.unique(stall).tolist():
        if begin < until:
            continue
        # The `resume` at its very begin is its own, unless it ended the one before.
        while at < len(ends) and ends[at] < begin:
            at += 1
        if begin == until:
            at += 1
        until = ends[at] if at < len(ends) else over
        until = max(begin, min(until, over))
        low = max(begin, start)
        if low < until or begin >= start:
            spans.append((low, max(low, until)))
    begins, untils = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    return Spans(begins, untils)


def _startup_s(trial: Trial, flow: int, shown: Ints) -> float | None:
    """Returns the time from the request to play to the first frame, as the player reports it; else from the
    flow's first packet."""
    times, values = trial.said.of("playout_start", flow)
    if len(values) and np.isfinite(values[0]):
        return float(values[0])
    first = shown if len(shown) else times
    sent = trial.offered[0].of(flow)
    if not len(first) or not len(sent):
        return None
    return float(first[0] - trial.offered[0].times_ns[sent[0]]) / SECOND_NS

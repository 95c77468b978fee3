"""What the viewer of a flow sees, by what its player said: frames, freezes, stalls, and what is buffered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamgauge.metrics.course import Spans, counted, stepped
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS, Ints
from streamgauge.metrics.live import behind_live
from streamgauge.metrics.result import Series
from streamgauge.metrics.session import over_ns, pauses_of
from streamgauge.systems.adapters import is_shipped
from streamgauge.systems.machines import MACHINES

FREEZE_FACTOR = 3
FREEZE_EXCESS_NS = 150_000_000
FREEZE_MEMORY = 30
"""Frames over whose durations the mean is taken."""

_SAID = (
    "playout_start", "frame_shown", "frame_late", "frame_incomplete", "stall", "resume", "stall_count",
    "media_end", "buffer",
)  # fmt: skip


@dataclass(frozen=True)
class Viewed:
    """The viewer's metrics of one flow."""

    series: dict[str, Series]
    scalars: dict[str, float | None]


def viewed(trial: Trial, flow: int) -> Viewed | None:
    """One flow's viewer; None if it plays nothing, as far as its machine and the plan say.

    Times are those of the events, so also where a host was late to act on them. From a third-party player's
    silence nothing follows: what it never speaks of, frames, frames lost or stalls, is not among the metrics.
    """
    said, machine = trial.said, MACHINES.get(trial.machine(flow))
    # Whose player tells of each frame and each stall.
    ours = machine is not None and {"frame_shown", "stall"} <= machine.events.keys()
    if not ours and (machine is not None or not any(said.has(name, flow) for name in _SAID)):
        return None
    tells_losses = ours or said.has("frame_late", flow) or said.has("frame_incomplete", flow)
    tells_stalls = ours or said.has("stall", flow) or said.has("stall_count", flow)
    grid = trial.grid
    shown, late = said.of("frame_shown", flow)[0], said.of("frame_late", flow)[0]
    incomplete = said.of("frame_incomplete", flow)[0]
    started = said.of("playout_start", flow)[0]
    # Adapters that ship say that play began, or tell each frame: one that says neither showed none.
    shows_none = is_shipped(trial.asked[flow]) and not len(started)
    shown_per_sample = counted(grid, shown)
    series = {}
    if ours or len(shown) or tells_losses or shows_none:
        series["frames_shown"] = Series(shown_per_sample)
    if tells_losses:
        missed = counted(grid, late) + counted(grid, incomplete)
        series["frames_lost"] = Series(missed, shown_per_sample + missed)
    scalars: dict[str, float | None] = {"startup_delay": _startup_s(trial, flow, shown)}
    pauses = pauses_of(trial, flow)
    over = over_ns(trial, flow)
    stalls = _stalls(trial, flow, over)
    stalled = stalls.without(pauses)
    began = shown[:1] if len(shown) or ours else started[:1]
    session_s = None
    if len(began):
        session = Spans(began, np.array([max(over, int(began[0]))])).without(pauses)
        session_s = session.seconds(grid)
    if len(shown):
        last_due = max(int(times[-1]) for times in (shown, late, incomplete) if len(times))
        open_end = over if len(stalled.end) and stalled.end[-1] == over else last_due
        if not said.has("media_end", flow):
            open_end = over
        froze = freezes(shown, open_end, pauses)
        frozen = froze.without(pauses)
        series |= {
            "freeze_count": Series(counted(grid, froze.begin)),
            "freeze_time": Series(frozen.seconds(grid)),
            "frozen_share": Series(frozen.clipped(int(shown[0]), over).seconds(grid), session_s),
        }
        if (latency := behind_live(trial, flow, pauses)) is not None:
            series["live_latency"] = latency
    # Of one that never began nothing is known.
    if tells_stalls and (len(began) or (len(stalls.begin) and not ours)):
        stalled_s = stalled.seconds(grid)
        series |= {"stall_count": Series(counted(grid, stalls.begin)), "stall_time": Series(stalled_s)}
        if session_s is not None:
            series["rebuffer_ratio"] = Series(stalled.clipped(int(began[0]), over).seconds(grid), session_s)
    return Viewed(series, scalars)


def levels(trial: Trial, flow: int) -> dict[str, Series]:
    """The bit rate of the level that a flow plays, by its `level_changed`, and how often it changed; empty if
    it never says so.

    The rate holds from each event to the next, pauses left out, until the session's end: its mean is over
    time, of the decisions as they were made. What follows the first event and says another level is a change.
    Where levels are numbers, and not rates, there are changes alone.
    """
    said = trial.said
    if not said.has("level_changed", flow):
        return {}
    told = said.of("level_changed", flow)
    times, values = told
    changed = np.flatnonzero(values[1:] != values[:-1]) + 1
    found = {"level_changes": Series(counted(trial.grid, times[changed]))}
    machine = MACHINES.get(trial.machine(flow))
    units = said.units("level_changed", flow) if machine is None else (machine.events.get("level_changed"),)
    if units == ("bit/s",):
        until = over_ns(trial, flow)
        found["level"] = stepped(trial.grid, told, until, without=pauses_of(trial, flow))
    return found


def freezes(shown_ns: Ints, until_ns: int, pauses: Spans) -> Spans:
    """When the picture stood still: from the frame that stayed to the frame that followed it.

    A freeze is an interval between two frames shown that is at least max(3 d, d + 150 ms), where d is the
    mean of the 30 intervals before it, or of as many as there were (Identifiers for WebRTC's
    Statistics API, `freezeCount` and `totalFreezesDuration`). The last frame's interval lasts to `until_ns`:
    unlike there, a picture that stands still to the end is a freeze too. Time paused counts nowhere, and the
    first interval, with none before it, is no freeze.
    """
    times = np.append(shown_ns, max(until_ns, int(shown_ns[-1])))
    lasted = np.diff(times - pauses.within(times))
    total = np.concatenate([[0], np.cumsum(lasted)])
    number = np.arange(len(lasted))
    memory = np.minimum(number, FREEZE_MEMORY)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (total[number] - total[number - memory]) / memory
        long = lasted >= np.maximum(FREEZE_FACTOR * mean, mean + FREEZE_EXCESS_NS)
    frozen = np.flatnonzero(long & (memory > 0))
    return Spans(times[frozen], times[frozen + 1])


def _stalls(trial: Trial, flow: int, over: int) -> Spans:
    """Each `stall` to the `resume` that follows it, or to the end.

    One that is said again before its `resume` is the same. Before play has begun nothing stalls: what was
    said then counts from there on, if it goes on.
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
    """From the request to play to the first frame, as the player says; else from the flow's first packet."""
    times, values = trial.said.of("playout_start", flow)
    if len(values) and np.isfinite(values[0]):
        return float(values[0])
    first = shown if len(shown) else times
    sent = trial.offered[0].of(flow)
    if not len(first) or not len(sent):
        return None
    return float(first[0] - trial.offered[0].times_ns[sent[0]]) / SECOND_NS

"""What the viewer of a flow sees, by what its player said: frames, freezes, stalls, and what is buffered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamgauge.metrics.course import Spans, counted
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS, Ints
from streamgauge.metrics.result import Series
from streamgauge.systems.machines import MACHINES

FREEZE_FACTOR = 3
FREEZE_EXCESS_NS = 150_000_000
FREEZE_MEMORY = 30
"""Frames over whose durations the mean is taken."""

_SAID = ("playout_start", "frame_shown", "frame_late", "frame_incomplete", "stall", "media_end", "buffer")


@dataclass(frozen=True)
class Viewed:
    """The viewer's metrics of one flow."""

    series: dict[str, Series]
    scalars: dict[str, float | None]


def viewed(trial: Trial, flow: int) -> Viewed | None:
    """One flow's viewer; None if it plays nothing, as far as its machine and the plan say.

    Times are those of the events, so also where a host was late to act on them. From a third-party player's
    silence nothing follows: what it never speaks of, frames lost or stalls, is not among the metrics.
    """
    said, machine = trial.said, MACHINES.get(trial.machine(flow))
    # Whose player tells of each frame and each stall.
    ours = machine is not None and {"frame_shown", "stall"} <= machine.events
    if not any(said.has(name, flow) for name in _SAID) and not ours:
        return None
    tells_losses = ours or said.has("frame_late", flow) or said.has("frame_incomplete", flow)
    tells_stalls = ours or said.has("stall", flow) or said.has("stall_count", flow)
    grid = trial.grid
    shown, late = said.of("frame_shown", flow)[0], said.of("frame_late", flow)[0]
    incomplete = said.of("frame_incomplete", flow)[0]
    started = said.of("playout_start", flow)[0]
    # One that says when play began, and nothing of any frame, does not count them.
    tells_frames = ours or len(shown) > 0 or tells_losses or not len(started)
    shown_per_sample = counted(grid, shown)
    series = {"frames_shown": Series(shown_per_sample)} if tells_frames else {}
    if tells_losses:
        missed = counted(grid, late) + counted(grid, incomplete)
        series["frames_lost"] = Series(missed, shown_per_sample + missed)
    scalars: dict[str, float | None] = {"startup_delay": _startup_s(trial, flow, shown)}
    pauses = _pauses(trial, flow)
    over = _over_ns(trial, flow)
    stalls = _stalls(trial, flow, over).without(pauses)
    if len(shown):
        last_due = max(int(times[-1]) for times in (shown, late, incomplete) if len(times))
        open_end = over if len(stalls.end) and stalls.end[-1] == over else last_due
        if not said.has("media_end", flow):
            open_end = over
        froze = freezes(shown, open_end, pauses)
        series |= {
            "freeze_count": Series(counted(grid, froze.begin)),
            "freeze_time": Series(froze.without(pauses).seconds(grid)),
        }
    began = shown[:1] if len(shown) or ours else started[:1]
    if len(began) and tells_stalls:
        session = Spans(began, np.array([max(over, int(began[0]))])).without(pauses)
        stalled_s = stalls.seconds(grid)
        series |= {
            "stall_count": Series(counted(grid, said.of("stall", flow)[0])),
            "stall_time": Series(stalled_s),
            "rebuffer_ratio": Series(stalled_s, session.seconds(grid)),
        }
    return Viewed(series, scalars)


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


def _stalls(trial: Trial, flow: int, over_ns: int) -> Spans:
    """Each `stall` to the `resume` that follows it, or to the end."""
    begin, again = trial.said.of("stall", flow)[0], trial.said.of("resume", flow)[0]
    if not len(begin):
        return Spans.none()
    following = np.append(again, over_ns)[np.searchsorted(again, begin, side="left")]
    end = np.minimum(following, over_ns)
    kept = end > begin
    return Spans(begin[kept], end[kept])


def _pauses(trial: Trial, flow: int) -> Spans:
    """When the viewer himself had paused it, by the plan."""
    begins: list[int] = []
    ends: list[int] = []
    for at, what in trial.plans[flow].get("actions", ()):
        if what == "pause" and len(begins) == len(ends):
            begins.append(at)
        elif what in ("resume", "stop") and len(begins) > len(ends):
            ends.append(at)
    ends += [round(trial.duration_s * SECOND_NS)] * (len(begins) - len(ends))
    return Spans(np.array(begins, dtype=np.int64), np.array(ends, dtype=np.int64))


def _over_ns(trial: Trial, flow: int) -> int:
    """When nothing was to be shown any more: the media's end, its stop, or the trial's end."""
    ends = [round(trial.duration_s * SECOND_NS), *trial.said.of("media_end", flow)[0].tolist()]
    ends += [at for at, what in trial.plans[flow].get("actions", ()) if what == "stop"]
    return int(min(ends))


def _startup_s(trial: Trial, flow: int, shown: Ints) -> float | None:
    """From the request to play to the first frame, as the player says; else from the flow's first packet."""
    values = trial.said.of("playout_start", flow)[1]
    if len(values) and np.isfinite(values[0]):
        return float(values[0])
    sent = trial.offered[0].of(flow)
    if not len(shown) or not len(sent):
        return None
    return float(shown[0] - trial.offered[0].times_ns[sent[0]]) / SECOND_NS

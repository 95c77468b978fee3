"""The viewer's experience of a flow, by its player's reports: frames, freezes, stalls, and the buffer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamgauge.metrics.course import Spans, counted, summed
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import Floats, Ints
from streamgauge.metrics.result import Series
from streamgauge.metrics.session import Watched
from streamgauge.systems.adapters import is_shipped
from streamgauge.systems.machines import MACHINES

FREEZE_FACTOR = 3
FREEZE_EXCESS_NS = 150_000_000
FREEZE_MEMORY = 30
"""Number of frames over which the mean duration is taken."""

_SAID = (
    "playout_start", "frame_shown", "frame_late", "frame_incomplete", "stall", "resume", "stall_count",
    "media_end", "buffer",
)  # fmt: skip


@dataclass(frozen=True)
class Viewed:
    """The viewer's metrics of one flow."""

    series: dict[str, Series]
    scalars: dict[str, float | None]


def viewed(trial: Trial, flow: int, watched: Watched) -> Viewed | None:
    """Returns one flow's viewer; None if it plays nothing, as far as its machine and the plan state.

    Times are those of the events, so also where a host was late to act on them. A third-party player's
    silence has no meaning: events that it never sends, of frames, lost frames or stalls, are not among the
    metrics.
    """
    said, machine, ours = trial.said, MACHINES.get(trial.machine(flow)), watched.tells_all
    if not ours and (machine is not None or not any(said.has(name, flow) for name in _SAID)):
        return None
    tells_losses = ours or said.has("frame_late", flow) or said.has("frame_incomplete", flow)
    grid = trial.grid
    shown, late = said.of("frame_shown", flow)[0], said.of("frame_late", flow)[0]
    incomplete = said.of("frame_incomplete", flow)[0]
    # A browser counts its drops; without the frames that it showed that is a share of an unknown number.
    counts_drops = bool(len(shown)) and said.has("dropped_frames", flow)
    started = said.of("playout_start", flow)[0]
    # Shipped adapters report the start of play, or each frame: a player that reports neither showed none.
    shows_none = not len(started) and is_shipped(trial.asked[flow])
    shown_per_sample = counted(grid, shown)
    series = {}
    if ours or len(shown) or tells_losses or shows_none:
        series["frames_shown"] = Series(shown_per_sample)
    if tells_losses or counts_drops:
        missed = counted(grid, late) + counted(grid, incomplete)
        if counts_drops:
            missed = missed + _dropped(trial, flow)
        series["frames_lost"] = Series(missed, shown_per_sample + missed)
    scalars: dict[str, float | None] = {"startup_delay": watched.startup_s}
    began, over, pauses, stalls = watched.began, watched.over, watched.pauses, watched.stalls
    stalled = stalls.without(pauses)
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
    # A player that never began has no known stalls.
    if watched.tells_stalls and (len(began) or (len(stalls.begin) and not ours)):
        stalled_s = stalled.seconds(grid)
        series |= {"stall_count": Series(counted(grid, stalls.begin)), "stall_time": Series(stalled_s)}
        if session_s is not None:
            series["rebuffer_ratio"] = Series(stalled.clipped(int(began[0]), over).seconds(grid), session_s)
    return Viewed(series, scalars)


def _dropped(trial: Trial, flow: int) -> Floats:
    """Returns frames dropped in each sample, by a growing count; one that falls begins anew."""
    times, counts = trial.said.of("dropped_frames", flow)
    times, counts = times[np.isfinite(counts)], counts[np.isfinite(counts)]
    more = np.diff(counts, prepend=0.0)
    return summed(trial.grid, times, np.where(more < 0, counts, more))


def freezes(shown_ns: Ints, until_ns: int, pauses: Spans) -> Spans:
    """Returns the times at which the picture stood still: from the frame that stayed to the frame that
    followed it.

    A freeze is an interval between two frames shown that is at least max(3 d, d + 150 ms), where d is the
    mean of the 30 intervals before it, or of as many as there were (Identifiers for WebRTC's Statistics API,
    `freezeCount` and `totalFreezesDuration`). The last frame's interval lasts to `until_ns`: unlike there, a
    picture that is frozen to the end is a freeze too. Time paused counts nowhere, and the first interval,
    with none before it, is no freeze.
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

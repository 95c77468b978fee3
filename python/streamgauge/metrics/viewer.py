"""The viewer's experience of a flow, by its player's reports: frames, freezes, stalls, and the buffer."""

from __future__ import annotations

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import NUMBER, PERCENT, TIME
from streamgauge.metrics.course import Spans, counted, summed
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import Floats, Ints
from streamgauge.metrics.result import Measured, Series
from streamgauge.metrics.session import watched
from streamgauge.metrics.tcp import of_player
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


def viewed(trial: Trial, flow: int) -> Measured | None:
    """Returns one flow's viewer; None if it plays nothing, as far as its machine and the plan state.

    Times are those of the events, so also where a host was late to act on them. A third-party player's
    silence has no meaning: events that it never sends, of frames, lost frames or stalls, are not among the
    metrics.
    """
    seen = trial.once(watched, flow)
    said, machine, ours = trial.said, MACHINES.get(trial.machine(flow)), seen.tells_all
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
    scalars: dict[str, float | None] = {"startup_delay": seen.startup_s}
    began, over, pauses, stalls = seen.began, seen.over, seen.pauses, seen.stalls
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
    if seen.tells_stalls and (len(began) or (len(stalls.begin) and not ours)):
        stalled_s = stalled.seconds(grid)
        series |= {"stall_count": Series(counted(grid, stalls.begin)), "stall_time": Series(stalled_s)}
        if session_s is not None:
            series["rebuffer_ratio"] = Series(stalled.clipped(int(began[0]), over).seconds(grid), session_s)
    return Measured(series, scalars)


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


def buffered(trial: Trial, flow: int) -> Series | None:
    """Returns the media in a player's buffer, as it reports it."""
    return of_player(trial, flow, "buffer")


METRICS = (
    Metric(
        "startup_delay",
        TIME,
        "flow",
        "Startup delay",
        formula=(
            "from the request to play to the first frame, as the player reports it; else from the "
            "flow's first packet"
        ),
        flow=viewed,
        better="less",
        reads=(
            "playout_start",
            "frame_shown",
        ),
        label="start-up delay",
        section="viewer",
        compared=(ComparedBy("viewer", 90, "start-up delay", Margin(absolute=0.1), title="Start-up delay"),),
    ),
    Metric(
        "frames_shown",
        NUMBER,
        "flow",
        "Frames shown",
        formula="frames shown when due, or after a stall by a player that waits",
        flow=viewed,
        better="more",
        reads=(
            "frame_shown",
            "frame_late",
            "frame_incomplete",
        ),
        whole=True,
        label="frames shown",
        section="viewer",
        compared=(ComparedBy("viewer", 70, "frames shown", Margin(relative=0.01), covered_by="frames_lost"),),
    ),
    Metric(
        "frames_lost",
        PERCENT,
        "flow",
        "Frames due but not shown",
        formula=(
            "100 · lost / (shown + lost); lost frames are late, incomplete, or counted as dropped by "
            "the player"
        ),
        flow=viewed,
        better="less",
        reads=(
            "frame_shown",
            "frame_late",
            "frame_incomplete",
            "dropped_frames",
        ),
        label="frames lost",
        section="viewer",
        compared=(
            ComparedBy(
                "viewer", 60, "frames lost", Margin(absolute=0.01), title="Frames that were due and not shown"
            ),
        ),
    ),
    Metric(
        "freeze_count",
        NUMBER,
        "flow",
        "Freezes",
        formula="number of freezes; each counts at its start",
        flow=viewed,
        better="less",
        reads=(
            "frame_shown",
            "frame_late",
            "frame_incomplete",
            "stall",
            "resume",
            "media_end",
        ),
        whole=True,
        label="freezes",
        section="viewer",
    ),
    Metric(
        "freeze_time",
        TIME,
        "flow",
        "Time frozen",
        formula="time in freezes, from the frozen frame to the next frame",
        flow=viewed,
        better="less",
        reads=(
            "frame_shown",
            "frame_late",
            "frame_incomplete",
            "stall",
            "resume",
            "media_end",
        ),
        label="time frozen",
        section="viewer",
    ),
    Metric(
        "frozen_share",
        PERCENT,
        "flow",
        "Share of the session spent frozen",
        formula="100 · time in freezes / time from the first frame to the media's end",
        flow=viewed,
        better="less",
        reads=(
            "frame_shown",
            "frame_late",
            "frame_incomplete",
            "stall",
            "resume",
            "media_end",
        ),
        json="frozen_percent",
        label="share of time frozen",
        section="viewer",
        compared=(
            ComparedBy(
                "viewer",
                10,
                "time frozen",
                Margin(absolute=0.01),
                title="Share of the time with a frozen picture",
            ),
        ),
    ),
    Metric(
        "stall_count",
        NUMBER,
        "flow",
        "Stalls",
        formula="number of stops to refill the buffer",
        flow=viewed,
        better="less",
        reads=(
            "playout_start",
            "frame_shown",
            "stall",
            "resume",
            "stall_count",
        ),
        whole=True,
        label="stalls",
        section="viewer",
    ),
    Metric(
        "stall_time",
        TIME,
        "flow",
        "Time stalled",
        formula="their total time",
        flow=viewed,
        better="less",
        reads=(
            "playout_start",
            "frame_shown",
            "stall",
            "resume",
            "stall_count",
            "media_end",
        ),
        label="time stalled",
        section="viewer",
    ),
    Metric(
        "rebuffer_ratio",
        PERCENT,
        "flow",
        "Share of the session spent stalled",
        formula="100 · time stalled / time from the first frame to the media's end",
        flow=viewed,
        better="less",
        reads=(
            "playout_start",
            "frame_shown",
            "stall",
            "resume",
            "stall_count",
            "media_end",
        ),
        json="rebuffer_percent",
        label="share of time stalled",
        section="viewer",
        compared=(
            ComparedBy(
                "viewer",
                20,
                "time stalled",
                Margin(absolute=0.01),
                title="Share of the time spent stalled",
                covered_by="frozen_share",
            ),
        ),
    ),
    Metric(
        "buffer",
        TIME,
        "flow",
        "Media buffered",
        formula="mean media in the player's buffer, as it reports it",
        flow=buffered,
        better="more",
        reads=("buffer",),
        json={"buffer_mean_s": "mean", "buffer_min_s": "min"},
        section="viewer",
    ),
)

"""How far behind live a viewer is: by the player's reports, or as if the clip were sent live as the flow
starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import TIME
from streamgauge.media import content_given
from streamgauge.metrics.course import Spans, observed
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS, Floats, Ints
from streamgauge.metrics.result import Series
from streamgauge.metrics.session import watched
from streamgauge.metrics.shares import declared_interval_ns
from streamgauge.systems.adapters import is_shipped

Clock = Callable[[Floats], Floats]
"""From the numbers of frames to the media's times of them, ns."""


def live_latency(trial: Trial, flow: int) -> Series | None:
    """Returns how far behind live the picture is, s; None where that is not known.

    The player's own reports, based on the capture times of a live stream, take precedence over the frames'
    numbers. Its reports in a pause of the viewer do not count.
    """
    pauses = trial.once(watched, flow).pauses
    times, values = trial.said.of("live_latency", flow)
    if not len(times):
        return _by_frames(trial, flow, pauses)
    counts = np.isfinite(values) & ~pauses.hold(times, times)
    return observed(trial.grid, times[counts], values[counts])


def _by_frames(trial: Trial, flow: int, pauses: Spans) -> Series | None:
    """Returns how long after a live source had it each frame is shown, s; None where that is not known.

    A live source that begins with the flow has frame n at the flow's start plus the media's time of frame n
    (n intervals; clips that begin again go on counting). Shown at t, it is behind by t less that, less the
    time that the viewer had paused until then. The mean is over the frames shown: start-up, stalls, and the
    player's buffer add to it; a player that skips frames to catch up has less. A server that sends ahead of
    time makes no difference, since a player shows at the media's pace.

    Not known for a player that reports no numbers, or numbers that do not ascend, nor for one of a shipped
    system that is not ours: those count the frames that they show. The spacing of the clip's frames must also
    be known.
    """
    if trial.machine(flow) == "external" and is_shipped(trial.asked[flow]):
        return None
    times, numbers = trial.said.of("frame_shown", flow)
    if not len(times) or not (numbers[0] >= 0 and (np.diff(numbers) > 0).all()):
        return None
    start, clock = trial.plans[flow].get("start"), _clock(trial, flow)
    if start is None or clock is None:
        return None
    unpaused: Ints = times - pauses.within(times)
    return observed(trial.grid, times, (unpaused - int(start) - clock(numbers)) / SECOND_NS)


def _clock(trial: Trial, flow: int) -> Clock | None:
    app = trial.apps[flow]
    if not isinstance(app, str):
        ((_, settings),) = app.items()
        levels = (settings.get("ladder") or {}).get("video")
        # All levels of a ladder are the same pictures.
        clip = levels[0]["clip"] if levels else settings.get("clip")
        planned = int((clip or {}).get("frame_interval") or 0)
        # Where in the media the player asked to begin.
        begin = int((settings.get("player") or {}).get("begin") or 0)
        return (lambda numbers: numbers * planned - begin) if planned else None
    if set(trial.said.units("frame_shown", flow)) - {"", "1"}:
        return None
    if (given := content_given(trial.plans[flow], trial.folder)) is not None:
        frames = max(given.video.encodings, key=lambda encoding: encoding.bit_rate_bps).frames
        shown_at, count, span = np.sort(frames.times_ns), len(frames), frames.span_ns

        def of_file(numbers: Floats) -> Floats:
            passes, place = np.divmod(numbers, count)
            return np.asarray(passes * span + shown_at[place.astype(np.int64)])

        return of_file
    if (named := trial.asked[flow].get("clip")) is None:
        return None
    interval = declared_interval_ns(named)
    return lambda numbers: numbers * interval


METRICS = (
    Metric(
        "live_latency",
        TIME,
        "flow",
        "Behind live, were the clip sent live",
        formula=("mean delay behind live, as the player reports it, else over the frames shown; see below"),
        flow=live_latency,
        better="less",
        reads=(
            "frame_shown",
            "live_latency",
        ),
        json={"live_latency_mean_s": "mean", "live_latency_max_s": "max"},
        label="latency to live",
        section="viewer",
        compared=(
            ComparedBy(
                "viewer", 100, "latency to live", Margin(absolute=0.1, relative=0.05), title="Latency to live"
            ),
        ),
    ),
)

"""The ladder that a flow plays, as far as its plan and the scenario define it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.media import Content, content_given
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS
from streamgauge.scenario.clips import media_clip, media_ladder
from streamgauge.scenario.flow import Clip
from streamgauge.systems.adapters import has_camera
from streamgauge.units import Time

SEGMENT_S = 2.0
"""Length of segments where none is stated."""


@dataclass(frozen=True)
class PlayedLevel:
    """One encoding of its pictures."""

    rate_bps: int
    size: tuple[int, int] | None
    frame_rate: float | None
    codec: str = "h264"


@dataclass(frozen=True)
class PlayedLadder:
    """Known facts about the ladder that a flow plays."""

    levels: tuple[PlayedLevel, ...]
    """The lowest rate first; none if unknown."""
    segment_s: float
    audio_bps: int

    def nearest(self, rate_bps: float) -> PlayedLevel:
        """Returns the level with the nearest rate, by ratio, to one that a player reports."""
        return min(self.levels, key=lambda level: abs(math.log(level.rate_bps / max(rate_bps, 1.0))))


def ladder_of(trial: Trial, flow: int) -> PlayedLadder:
    """Returns the ladder: for our machines by the plan, for third-party programs by their input, else by the
    scenario."""
    app = trial.apps[flow]
    if isinstance(app, Mapping):
        return _planned(next(iter(app.values())).get("ladder") or {})
    if (given := content_given(trial.plans[flow], trial.folder)) is not None:
        return _given(given)
    asked = trial.asked[flow]
    return _asked(None if has_camera(asked) else asked.get("clip"), trial.duration_s)


def _planned(ladder: Mapping[str, Any]) -> PlayedLadder:
    levels = []
    for level in ladder.get("video", ()):
        width, height = level.get("size") or (0, 0)
        interval = (level.get("clip") or {}).get("frame_interval")
        levels.append(
            PlayedLevel(
                int(level["bit_rate_bps"]),
                (width, height) if width and height else None,
                SECOND_NS / interval if interval else None,
            )
        )
    audio_bps = (ladder.get("audio") or {}).get("bit_rate_bps", 0)
    return PlayedLadder(tuple(levels), ladder.get("segment", 0) / SECOND_NS or SEGMENT_S, audio_bps)


def _given(content: Content) -> PlayedLadder:
    levels = [
        PlayedLevel(one.bit_rate_bps, one.size, len(one.frames) * SECOND_NS / one.frames.span_ns, one.codec)
        for one in content.video.encodings
    ]
    sound = [track.encodings[0].bit_rate_bps for track in content.tracks if track.kind == "audio"]
    segment_s = content.duration_ns / len(content.boundaries_ns()) / SECOND_NS
    levels.sort(key=lambda level: level.rate_bps)
    return PlayedLadder(tuple(levels), segment_s, sound[0] if sound else 0)


def _asked(named: Any, duration_s: float) -> PlayedLadder:
    """Returns the ladder of a clip in a scenario (normalised)."""
    clip = Clip.model_validate(named) if isinstance(named, Mapping) else named
    if clip is None or (isinstance(clip, Clip) and clip.files is not None):
        return PlayedLadder((), SEGMENT_S, 0)
    duration = Time.of(round(duration_s * SECOND_NS))
    if isinstance(clip, Clip) and clip.ladder is not None:
        ladder = media_ladder(clip, duration)
        clips, segment_s = [ladder.clip(rate) for rate in ladder.rates_bps], ladder.segment_s
        audio_bps = ladder.audio_bps
    else:
        one = media_clip(clip, duration)
        clips, segment_s, audio_bps = [one], SEGMENT_S, one.audio_bps
    levels = tuple(PlayedLevel(one.video_bps, one.picture, float(one.frame_rate), one.codec) for one in clips)
    return PlayedLadder(levels, segment_s, audio_bps)

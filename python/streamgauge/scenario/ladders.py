"""The part of a ladder that our machines play: its encodings by the sizes of their frames."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from streamgauge.scenario.clips import media_clip, media_ladder
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.media_files import in_segments, own_ladder_of
from streamgauge.units import Time

if TYPE_CHECKING:
    from streamgauge.media import ClipEncoding, Content, Encoding

__all__ = ["ladder_content"]

_AAC_SAMPLES, _AAC_RATE = 1024, 48_000
"""A block of AAC-LC, and the sampling rate of the sound that encodings have."""


def ladder_content(clip: str | Clip | None, duration: Time) -> Content:
    """Returns a clip as a ladder in segments: each rate of its pictures, and its sound as a track of its own.

    A clip of one rate is a ladder of one level. Built-in content and one's own file have the sizes of
    `content_of_clip`; files that are a ladder have their own. Raises MediaError.
    """
    assert clip is not None, "who plays a ladder is given a clip"
    if isinstance(clip, Clip) and clip.files is not None:
        return in_segments(own_ladder_of(clip), clip)
    if isinstance(clip, Clip) and clip.ladder is not None:
        ladder = media_ladder(clip, duration)
        clips = [ladder.clip(rate) for rate in ladder.rates_bps]
        segment_ns, audio_bps = round(ladder.segment_s * 1e9), ladder.audio_bps
    else:
        whole = media_clip(clip, duration)
        clips = [replace(whole, bit_rate_bps=whole.video_bps, audio_bps=0)]
        segment_ns, audio_bps = round(whole.gop_s * 1e9), whole.audio_bps
    make = _of_shipped if all(one.is_built_in for one in clips) else _of_clips
    return make(tuple(clips), segment_ns, audio_bps, duration)


@lru_cache(maxsize=512)
def _of_shipped(clips: tuple[ClipEncoding, ...], segment_ns: int, audio_bps: int, duration: Time) -> Content:
    """A campaign plans each of its trials, and shipped clips do not change. The cache must be larger than the
    number of clips that trials of one scenario draw from a playlist: a smaller one would be empty for the
    next scenario."""
    return _of_clips(clips, segment_ns, audio_bps, duration)


def _of_clips(clips: tuple[ClipEncoding, ...], segment_ns: int, audio_bps: int, duration: Time) -> Content:
    from streamgauge.media import Content, Encoding, Frames, Track, content_of_clip
    from streamgauge.media.ladder import short_name

    video: list[Encoding] = []
    for clip in clips:
        (encoding,) = content_of_clip(clip).video.encodings
        video.append(replace(encoding, name=short_name(clip.bit_rate_bps)))
    tracks = [Track(kind="video", encodings=tuple(video))]
    if audio_bps:
        interval_ns = _AAC_SAMPLES * 1_000_000_000 // _AAC_RATE
        block = max(1, round(audio_bps * interval_ns / 8e9))
        frames = Frames.regular([block], interval_ns, [0])
        sound = Encoding(name="audio", bit_rate_bps=audio_bps, codec="aac", frames=frames)
        tracks.append(Track(kind="audio", encodings=(sound,)))
    name = clips[0].label if len(clips) == 1 else f"{clips[0].label}-to-{video[-1].name}"
    return Content(name=name, duration_ns=duration.ns, segment_ns=segment_ns, tracks=tuple(tracks))

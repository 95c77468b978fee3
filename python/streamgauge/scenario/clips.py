"""Clips of scenarios: the media of each, and their faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamgauge.errors import MediaError
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.values import Problem, nearest
from streamgauge.units import Time

if TYPE_CHECKING:
    from streamgauge.media import ClipEncoding, Ladder

__all__ = ["clip_problems", "media_clip", "media_ladder"]

_IS_A_FILE = re.compile(r"/|\.[A-Za-z]\w*$")


def media_ladder(clip: Clip, duration: Time) -> Ladder:
    """Returns a clip that is a ladder, in the types of `streamgauge.media`. Raises MediaError for one that
    cannot be."""
    from streamgauge.media import Ladder

    assert clip.ladder is not None
    return Ladder(
        source=clip.file if clip.file is not None else str(clip.source),
        rates_bps=tuple(rate.bps for rate in clip.ladder),
        duration_s=(clip.duration or duration).s,
        audio_bps=clip.audio.bps,
        frame_rate=int(clip.frame_rate.amount),
        segment_s=_segment_s(clip),
    )


def _segment_s(clip: Clip) -> float:
    return 2.0 if clip.segment is None else clip.segment.s


def media_clip(clip: str | Clip, duration: Time) -> ClipEncoding:
    """Returns the clip, which is not of ``files``, in the types of `streamgauge.media`; for a ladder the
    highest encoding with its sound, which is the most that a player takes. Raises MediaError if there is no
    such content."""
    from streamgauge.media import ClipEncoding

    if isinstance(clip, str):
        return ClipEncoding.named(clip, duration_s=duration.s)
    assert clip.files is None, "files are taken as they are"
    rate_bps = clip.rate.bps if clip.rate is not None else 0
    if clip.ladder is not None:
        rate_bps = media_ladder(clip, duration).rates_bps[-1] + clip.audio.bps
    return ClipEncoding(
        source=clip.file if clip.file is not None else str(clip.source),
        bit_rate_bps=rate_bps,
        duration_s=(clip.duration or duration).s,
        audio_bps=clip.audio.bps,
        frame_rate=int(clip.frame_rate.amount),
        gop_s=_segment_s(clip),
        rate_control=clip.rate_control,
        codec=clip.codec,
    )


def clip_problems(where: tuple[str | int, ...], clip: str | Clip) -> Iterator[Problem]:
    """Yields the faults of the clip at `where`, without reading its files."""
    from streamgauge.media import BUILT_IN

    if isinstance(clip, Clip) and clip.source is not None and clip.source not in BUILT_IN:
        close = nearest(clip.source, BUILT_IN)
        yield Problem(
            (*where, "source"),
            f"there is no content called '{clip.source}'; expected one of {', '.join(BUILT_IN)}",
            f"did you mean '{close}'?" if close else "name a file of your own with 'file:'",
        )
        return
    if isinstance(clip, str) and _IS_A_FILE.search(clip):
        yield Problem(
            where,
            f"'{clip}' is a file, and a file needs the bit rate that it is encoded at",
            f"write 'clip: {{file: {clip}, rate: 550 kbit/s}}'",
        )
        return
    if isinstance(clip, Clip) and clip.files is not None:
        return
    try:
        media_clip(clip, Time("10 s"))
    except MediaError as error:
        stem = clip.rpartition("-") if isinstance(clip, str) else None
        close = nearest(stem[0], BUILT_IN) if stem and stem[0] else None
        yield Problem(
            where,
            str(error).rstrip("."),
            f"did you mean '{close}-{stem[2]}'?" if stem and close else None,
        )

"""The description of a clip."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from streamgauge.errors import MediaError

BUILT_IN: dict[str, str] = {
    "carphone": "talking head, the standard test sequence (176x144 original), 4 s looped",
    "bikes": "cyclists in a street, much motion (640x272 original), 10 s looped",
    "bigbuckbunny": "animation by the Blender Foundation, CC BY 3.0 (1280x720 original), 5 s looped",
    "testsrc2": "ffmpeg's moving test card: needs no content",
}
"""Sources that a clip can name, and their pictures. Anything else is a path to the user's own file."""

PASS_S = 20
"""Seconds of a built-in source that are encoded at a variable rate, then repeated."""

RateControl = Literal["constant", "variable"]
Codec = Literal["h264", "mpeg4"]

_NAME = re.compile(r"(?P<source>[a-z0-9]+)-(?P<rate>[0-9]+(?:\.[0-9]+)?)(?P<unit>[kM])")
_UNITS = {"k": 1_000, "M": 1_000_000}


@dataclass(frozen=True, kw_only=True)
class ClipEncoding:
    """Content at a bit rate.

    `bit_rate_bps` is the whole encoded rate, sound included; containers and RTP add to it. `size` is (width,
    height) in pixels; without it the bit rate decides. H.264 constrained baseline without B-frames, AAC-LC of
    `channels` when `audio_bps` is above zero (a file's own sound; built-in content has a tone), a key frame
    every `gop_s` seconds.

    `rate_control` is the span of the constant rate: a second, or (`variable`) the whole clip, where the
    quality is constant and the rate is not. A variable rate may also be of MPEG-4 part 2 Simple Profile,
    which QuickTime made of hinted films. Key frames are then also where the picture changes at once.
    """

    source: str
    bit_rate_bps: int
    duration_s: float
    audio_bps: int = 0
    frame_rate: int | Fraction = 25
    gop_s: float = 2.0
    size: tuple[int, int] | None = None
    rate_control: RateControl = "constant"
    codec: Codec = "h264"
    channels: int = 1

    def __post_init__(self) -> None:
        if self.duration_s <= 0 or self.frame_rate <= 0 or self.gop_s <= 0:
            raise MediaError(
                f"clip {self.source}: duration, frame rate and key-frame interval must be above zero."
            )
        if self.video_bps < 10_000:
            raise MediaError(
                f"clip {self.source}: {self.bit_rate_bps} bit/s leave {self.video_bps} bit/s for video. "
                "Ask for at least 10 kbit/s of video."
            )
        if self.codec == "mpeg4" and self.rate_control == "constant":
            raise MediaError(
                f"clip {self.source}: MPEG-4 is encoded at a variable rate only. "
                "Ask for rate_control variable, or for codec h264."
            )
        if self.audio_bps and self.rate_control == "variable":
            raise MediaError(
                f"clip {self.source}: a variable rate is for video alone. Leave the sound out, or ask for "
                "rate_control constant."
            )

    @classmethod
    def named(cls, name: str, *, duration_s: float) -> ClipEncoding:
        """Returns the clip called `name`: a source and a rate, as in ``carphone-550k`` or
        ``bigbuckbunny-1.5M``."""
        found = _NAME.fullmatch(name)
        if found is None or found["source"] not in BUILT_IN:
            raise MediaError(
                f"clip {name}: no such content. Write SOURCE-RATE such as carphone-550k, where SOURCE is "
                f"one of {', '.join(BUILT_IN)}. A scenario may also name a file with a bit rate."
            )
        rate = round(float(found["rate"]) * _UNITS[found["unit"]])
        return cls(source=found["source"], bit_rate_bps=rate, duration_s=duration_s)

    @property
    def video_bps(self) -> int:
        """Bit/s left for video."""
        return self.bit_rate_bps - self.audio_bps

    @property
    def picture(self) -> tuple[int, int]:
        """(width, height) in pixels. By bit rate: QCIF to 150 kbit/s, CIF to 700 kbit/s, 640x360 above."""
        if self.size is not None:
            return self.size
        if self.video_bps <= 150_000:
            return (176, 144)
        return (352, 288) if self.video_bps <= 700_000 else (640, 360)

    @property
    def is_built_in(self) -> bool:
        """False if `source` is a path to the user's own file."""
        return self.source in BUILT_IN

    @property
    def label(self) -> str:
        """Returns a short name for people and for file names."""
        stem = self.source if self.is_built_in else Path(self.source).stem
        return f"{stem}-{self.bit_rate_bps / 1000:g}k"

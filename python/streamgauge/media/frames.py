"""Sizes of coded frames without coding anything: from shipped figures, scaled to the asked rate."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from streamgauge.errors import MediaError
from streamgauge.media.clip import BUILT_IN, Clip

SCHEMA = "streamgauge.clip/1"


def frame_sizes(clip: Clip) -> list[int]:
    """Bytes of each coded frame over one pass of the shipped sequence (10 s), in order, every one at least 1.

    Scaled so that a pass has `clip.bit_rate_bps` on average, sound counted in. The same on every machine. A
    user's own file has no shipped figures: MediaError says so.
    """
    if not clip.is_built_in:
        raise MediaError(
            f"{clip.source}: sim knows the frame sizes of built-in content only ({', '.join(BUILT_IN)}); "
            "name one as the clip, or run in mode emu."
        )
    data = _shipped(clip.source, _nearest(clip))
    sizes: list[int] = data["frame_bytes"]
    # Integers throughout, the remainder carried on: the mean is exact and no platform rounds apart.
    target = clip.bit_rate_bps * len(sizes) * data["frame_interval_ns"] // 8_000_000_000
    total, carried, scaled = sum(sizes), 0, []
    for size in sizes:
        carried += size * target
        scaled.append(max(1, carried // total))
        carried %= total
    return scaled


def frame_interval_ns(clip: Clip) -> int:
    """Nanoseconds between frames of `frame_sizes`."""
    interval: int = _shipped(clip.source, _nearest(clip))["frame_interval_ns"]
    return interval


def _nearest(clip: Clip) -> int:
    """The shipped rate nearest to the asked one by ratio: the weight of key frames depends on the rate."""
    rates = [int(rate) for rate in _file(clip.source)["encodings"]]
    return min(rates, key=lambda rate: max(rate, clip.bit_rate_bps) / min(rate, clip.bit_rate_bps))


def _shipped(source: str, rate: int) -> dict[str, Any]:
    data = _file(source)
    return {"frame_interval_ns": data["frame_interval_ns"], "frame_bytes": data["encodings"][str(rate)]}


@cache
def _file(source: str) -> dict[str, Any]:
    file = resources.files("streamgauge.media") / "clips" / f"{source}.json"
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if data["schema"] != SCHEMA:
        raise MediaError(f"{file}: schema is {data['schema']}, expected {SCHEMA}; reinstall the package.")
    return data
